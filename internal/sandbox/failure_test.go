package sandbox

import (
	"bytes"
	"testing"
)

// The text of a panic may have empty lines: only the traces of goroutines are taken off it.
func TestTextsOfPanics(t *testing.T) {
	const stack = "goroutine 1 [running]:\nmain.act()\n\t/main.go:7"
	for _, c := range []struct {
		text           string
		find           func(s, sep []byte) int
		message, trace string
	}{
		{"one line", bytes.LastIndex, "one line", ""},
		{"one\n\nthree\n\nfive", bytes.LastIndex, "one\n\nthree\n\nfive", ""}, // of the SDK
		{"one\n\nthree\n\n" + stack, bytes.LastIndex, "one\n\nthree", stack},
		{"of a\n\ngoroutine of ours\n\n" + stack, bytes.LastIndex, "of a\n\ngoroutine of ours", stack},
		{"panic: one\n\nthree\n", bytes.Index, "panic: one\n\nthree\n", ""}, // TinyGo's
		{"panic: one\n\t\n\tthree\n\n" + stack, bytes.Index, "panic: one\n\t\n\tthree", stack},
		{"fatal error: deadlock\n\n" + stack + "\n\ngoroutine 2:\n\n", bytes.Index, "fatal error: deadlock", stack + "\n\ngoroutine 2:"},
		{"", bytes.Index, "", ""},
	} {
		if message, trace := splitTrace([]byte(c.text), c.find); string(message) != c.message || string(trace) != c.trace {
			t.Errorf("%q: %q and %q", c.text, message, trace)
		}
	}
}
