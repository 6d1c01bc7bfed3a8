package sandbox

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// Languages whose panics end in the instruction unreachable have said why before.
func TestGiveUp(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		x := get(t, load(t, e, "giveup", ImageConfig{MemoryLimit: 1 << 20}))
		defer func() { x.Put() }()
		for _, c := range []struct {
			whats   []byte
			kind    abi.FailureKind
			reason  string
			message string
		}{
			{[]byte{1}, abi.FailureGuestPanic, "", "the books do not agree"},
			{[]byte{2}, abi.FailureGuestPanic, "", "runtime error at 0x000012ab: index out of range"},
			{[]byte{3}, abi.FailureTrap, "unreachable", "first\nAssertion failed: sum == 0 (ledger.c: book: 12)"},
			{[]byte{4}, abi.FailureTrap, "unreachable", ""},
			{[]byte{5}, abi.FailureMemoryLimit, "more than 1024 KiB of memory", "runtime error at 0x00000f00: out of memory"},
			{[]byte{6, 4}, abi.FailureTrap, "unreachable", ""}, // what an earlier turn has said explains nothing
			{[]byte{7}, abi.FailureTrap, "unreachable", ""},    // nor does just any output
			{[]byte{0, 6, 0, 3}, abi.FailureTrap, "unreachable", "first\nAssertion failed: sum == 0 (ledger.c: book: 12)"},
		} {
			push(t, x, c.whats...)
			out, _, err := run(t, x, entry())
			f := out.Failure
			if err != nil || f == nil || out.Turns != len(c.whats)-1 {
				t.Fatalf("%v: %+v, %v", c.whats, out, err)
			}
			if f.Kind != c.kind || f.Reason != c.reason || f.Message != c.message {
				t.Errorf("%v: %v, %q, %q", c.whats, f.Kind, f.Reason, f.Message)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestGiveUpAtInitialisation(t *testing.T) {
	e := newEngine(t, NewConfig())
	_, err := e.Load(context.Background(), guest(t, "giveup"), ImageConfig{Name: "giveup", Env: []string{"GIVE=up"}})
	var f *abi.Failure
	if !errors.As(err, &f) || f.Message != "the books do not agree" || !strings.Contains(err.Error(), "the books do not agree") {
		t.Errorf("%v", err)
	}
}

// However much a guest writes, the last lines are kept, whole and within their bound.
func TestLastLines(t *testing.T) {
	var l diagnostics
	for i := range 10_000 {
		l.add(true, bytes.Repeat([]byte{'a' + byte(i%26)}, i%3000))
		if len(l.last) > maxLastLines || !bytes.HasSuffix(l.last, []byte("\n")) || len(l.trace) != 0 {
			t.Fatalf("%d: %d bytes", i, len(l.last))
		}
		for _, line := range bytes.Split(bytes.TrimSuffix(l.last, []byte("\n")), []byte("\n")) {
			if len(line) > 0 && bytes.Count(line, line[:1]) != len(line) {
				t.Fatalf("%d: a line of two", i)
			}
		}
	}
}
