package bundle

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Advice says which key of a manifest an event is about: the limit that a failure has
// met, the capability that was missing. It is "" if there is none.
func Advice(e *host.Event) string {
	if f := e.Failure; f != nil && e.Kind == host.EventFailed {
		return map[abi.FailureKind]string{
			abi.FailureFuel:          "limits.fuel raises it",
			abi.FailureDeadline:      "limits.deadline raises it",
			abi.FailureMemoryLimit:   "limits.memory raises it",
			abi.FailureStackOverflow: "limits.stack raises it",
			abi.FailureTableLimit:    "limits.table raises it",
		}[f.Kind]
	}
	if r := e.Refused; r != nil {
		switch {
		case r.Denied:
			return fmt.Sprintf("capabilities: {%s: [%s]} of the actor would allow it", r.What, r.Type)
		case r.Limit:
			return "limits.children of the actor raises it"
		}
		return ""
	}
	if e.Dead == nil {
		return ""
	}
	switch d := e.Dead; d.Reason {
	case host.DeadDenied:
		switch {
		case d.Path == "":
			return "capabilities of the sender would allow it"
		case d.Size == 0: // a stop has no message
			return fmt.Sprintf("capabilities: {stop: [%s]} of the sender would allow it, or send for a message", d.Path)
		}
		return fmt.Sprintf("capabilities: {send: [%s]} of the sender would allow it", d.Path)
	case host.DeadMailboxFull:
		return "limits.mailbox and limits.mailbox-bytes of the receiver raise it"
	case host.DeadStashFull:
		return "limits.stash raises it"
	case host.DeadLimit:
		return "limits.timers, limits.watches or limits.asks of the sender raise it"
	case host.DeadEvicted:
		return "supervision.backoff.stash or resend.keep raises it"
	}
	return ""
}
