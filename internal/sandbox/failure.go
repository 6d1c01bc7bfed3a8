package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// explain says what a call's error means. Turn and Fuel are the caller's to fill
// in.
func (x *Instance) explain(err error) *abi.Failure {
	x.finishLines() // a panic's last line may lack its end
	f := &abi.Failure{}
	whole := err.Error()
	text, stack, _ := strings.Cut(whole, "\nwasm stack trace:")
	f.Stack = frames(stack, len(whole) <= sharedText)
	if x.image.cfg.Places {
		x.failedAt(stack, f.Stack)
	}
	a, cause := origin(err)
	reason, trap := strings.CutPrefix(text, "wasm error: ")
	if own := cause.Error(); reason == own {
		reason = own // it does not hold the whole text
	}
	switch {
	case a != nil:
		f.Kind, f.Reason, f.Message, f.GuestStack = a.kind, a.reason, a.message, a.trace
	case reason == "stack overflow":
		f.Kind, f.Reason = abi.FailureStackOverflow, reason
	case trap:
		f.Kind, f.Reason = abi.FailureTrap, reason
	default:
		f.Kind, f.Reason = abi.FailureHost, clip([]byte(text), 1024)
	}
	x.renew = f.Kind == abi.FailureStackOverflow
	if f.Kind == abi.FailureTrap || f.Kind == abi.FailureExit {
		x.readTrace(f)
	}
	x.explainWait(f)
	if x.memory.Refused() {
		switch f.Kind {
		case abi.FailureTrap, abi.FailureExit, abi.FailureGuestPanic:
			if f.Message == "" {
				f.Message = f.Reason
			}
			f.Kind, f.Reason = abi.FailureMemoryLimit, fmt.Sprintf("more than %d KiB of memory", x.memoryLimit()>>10)
		}
	}
	return f
}

// origin is what a call's error wraps: the abort, if there is one, and the innermost error. It
// is what errors.As would find, without reflection.
func origin(err error) (*abort, error) {
	for {
		if a, ok := err.(*abort); ok {
			return a, a
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return nil, err
		}
		err = inner
	}
}

// memoryLimit is the limit of the present call.
func (x *Instance) memoryLimit() uint64 {
	limit := x.image.cfg.MemoryLimit
	if in := x.in; in != nil && in.MemoryLimit != 0 {
		limit = min(limit, in.MemoryLimit)
	}
	return limit
}

// readTrace turns a trap or an exit into the panic that the guest's language has
// reported before it. Go writes "panic: text" to stderr, an empty line, and the goroutines'
// traces; TinyGo writes "panic: text" or "panic: runtime error at 0x1234: text" to stdout.
// For other languages the trap gets the last lines on stderr, which may say why (an
// assertion of C, a panic of Rust).
func (x *Instance) readTrace(f *abi.Failure) {
	t := x.turnDiagnostics()
	if len(t.trace) == 0 {
		if f.Kind == abi.FailureTrap && f.Reason == unreachable {
			f.Message = clip(bytes.TrimSpace(t.last), abi.MaxReason)
		}
		return
	}
	head, rest := splitTrace(t.trace, bytes.Index)
	head = bytes.TrimSpace(head)
	head = bytes.TrimPrefix(head, []byte("panic: "))
	f.Kind, f.Reason = abi.FailureGuestPanic, ""
	f.Message = clip(head, abi.MaxReason)
	f.GuestStack = clip(rest, abi.MaxReason)
}

// splitTrace takes the goroutines' traces off the text of a panic, which may have empty lines of its own. find is
// which of the places that look like the begin of a trace is it.
func splitTrace(text []byte, find func(s, sep []byte) int) (message, trace []byte) {
	i := find(text, []byte("\n\ngoroutine "))
	if i < 0 {
		return text, nil
	}
	return text[:i], bytes.TrimSpace(text[i:])
}

// unreachable is wazero's reason for the trap by which languages abort.
const unreachable = "unreachable"

// enterName is what the rewriter calls its entry in the name section.
const enterName = "wasmactors.enter"

// Of names in a stack trace.
const (
	maxName    = 512  // bytes of one
	sharedText = 1024 // a text of at most so many bytes may be held by names that are parts of it
)

// frames are the names of the functions in wazero's stack trace, innermost first, without
// the rewriter's. They may be parts of the trace if it may be shared.
func frames(trace string, shared bool) []string {
	trace, _, _ = strings.Cut(trace, "\n\n") // what follows is the host's stack
	shared = shared && utf8.ValidString(trace)
	var names []string
	for trace != "" {
		var line string
		line, trace, _ = strings.Cut(trace, "\n")
		if strings.HasPrefix(line, "\t\t") { // where that is, see places.go
			continue
		}
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "... ") {
			continue
		}
		name := strings.TrimPrefix(functionName(line), ".") // the guest's module has no name
		if strings.HasPrefix(name, rewrite.ImportModule+".") || name == enterName {
			continue
		}
		if len(names) == abi.MaxFrames {
			break
		}
		if !shared || len(name) > maxName {
			name = clip([]byte(name), maxName)
		}
		if names == nil {
			names = make([]string, 0, min(2+strings.Count(trace, "\n"), abi.MaxFrames))
		}
		names = append(names, name)
	}
	return names
}

// functionName cuts the signature off "module.name(i32,i64) i32" and
// "module.name(i32) (i32,i32)". The name may contain parentheses itself, as Go's
// methods do.
func functionName(line string) string {
	end := len(line)
	for {
		open := strings.LastIndexByte(line[:end], '(')
		if open < 0 {
			return line
		}
		if open > 0 && line[open-1] != ' ' {
			return line[:open]
		}
		end = open // the results' parenthesis
	}
}
