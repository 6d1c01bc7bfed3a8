//go:build !tinygo

package actor

import "github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"

// recovers says that a deferred function sees a panic.
const recovers = true

// tell tells the host of a panic. The host has the stack of the functions
// already; with the build tag wasmactors_trace the lines of the Go code come, too,
// which takes a tenth of a millisecond. The host replaces the instance's state, so
// nothing is lost by recovering here.
func tell(r any) {
	text := append(make([]byte, 0, 512), panicText(r)...)
	bridge.Panic(appendTrace(text))
}

// panicText describes the value of a panic without package fmt.
func panicText(r any) string {
	switch v := r.(type) {
	case error:
		return v.Error()
	case string:
		return v
	case interface{ String() string }:
		return v.String()
	}
	return "panic with a value that is neither a string nor an error"
}

// warmPanic lets Go find out once, while the image is made, how to unwind the
// stack.
func warmPanic() {
	defer func() { kept.bytes = append(make([]byte, 0, 512), panicText(recover())...) }()
	panic("warm")
}
