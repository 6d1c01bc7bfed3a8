package event

import (
	"fmt"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Report describes a failure for a person: what it was, where, about which message, and
// what was decided; several lines without a final newline. For other events it is empty. The
// texts in it are the guest's; they are not safe for a terminal.
func (e *Event) Report() string {
	if e.Kind != Failed || e.Failure == nil {
		return ""
	}
	f := e.Failure
	var b strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "\n  %-10s "+format, append([]any{what}, args...)...)
	}
	fmt.Fprintf(&b, "%s (%s) has failed: %s", e.Ref.Path(), e.Type, f.Error())
	row("report", "%s", e.ID)
	row("life", "incarnation %d, turn %d, failure %d since the count was reset", e.Incarnation, f.Turn, e.Failures)
	if m := e.Mail; m != nil {
		row("message", "%s, %d bytes, from %s: %s", m.Kind, m.Size, nameOf(uint64(m.Sender)), diagnostic(m.Payload, m.Size))
		if m.File != "" {
			row("repeat", "wasmactors replay %s", m.File)
		}
		if m.Redelivered > 0 {
			row("delivered", "%d times before", m.Redelivered)
		}
		row("waiting", "%d messages", m.Waiting)
		if m.Memory > 0 {
			row("memory", "%d KiB", m.Memory>>10)
		}
	}
	if f.Fuel > 0 {
		row("fuel", "%d units", f.Fuel)
	}
	for i, frame := range f.Stack {
		what := ""
		if i == 0 {
			what = "stack"
		}
		row(what, "%s", frame)
	}
	for i, line := range strings.Split(strings.TrimRight(f.GuestStack, "\n"), "\n") {
		if line == "" {
			continue
		}
		what := ""
		if i == 0 {
			what = "trace"
		}
		row(what, "%s", line)
	}
	then := e.Directive.String()
	if e.Delay > 0 {
		then += " in " + e.Delay.String()
	}
	if e.Note != "" {
		then += " (" + e.Note + ")"
	}
	row("then", "%s", then)
	return b.String()
}

func nameOf(ref uint64) string {
	if ref == 0 {
		return "nobody"
	}
	return fmt.Sprint(ref)
}

// diagnostic is a payload in CBOR's diagnostic notation, in one line of bounded length.
func diagnostic(payload []byte, size int) string {
	const most = 200
	text, _, err := cbor.DiagnoseFirst(payload)
	switch {
	case size == 0:
		return "null"
	case len(payload) == 0:
		return "not shown, it has secrets of the actor"
	case err != nil:
		text = fmt.Sprintf("h'%x'", payload[:min(len(payload), most/2)])
	}
	if len(text) > most {
		text = printable.Clip(text, most) + "..."
	}
	return text
}
