package bundle

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
)

// noRoom begins the reason of a failure at a bound of the system's, not of the actor's.
const noRoom = "the system has no room"

// Advice names the key of a manifest that an event is about: the limit that was exceeded or
// the capability that was missing. It is "" if there is none.
func Advice(e *host.Event) string {
	if f := e.Failure; f != nil && e.Kind == host.EventFailed {
		if f.Kind == abi.FailureMemoryLimit && strings.HasPrefix(f.Reason, noRoom) {
			return "limits.tree.memory of the actor, or of one above it, or system.memory raises it"
		}
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
		case r.Denied && r.Key != "":
			return r.Key + " of the actor would allow it"
		case r.Denied:
			return fmt.Sprintf("capabilities: {%s: [%s]} of the actor would allow it", r.What, r.Type)
		case r.Key != "":
			return r.Key + " raises it"
		}
		return ""
	}
	if e.Dead == nil {
		return ""
	}
	if key := e.Dead.Key; key != "" {
		whose := "sender"
		if e.Dead.Reason == host.DeadMailboxFull || e.Dead.Reason == host.DeadStashFull {
			whose = "receiver"
		}
		if strings.HasPrefix(key, "system.") {
			return key + " raises it"
		}
		return key + " of the " + whose + " raises it"
	}
	switch d := e.Dead; d.Reason {
	case host.DeadDenied:
		switch {
		case d.Path == guests.Path:
			return "capabilities: {metrics: ...} of the sender, with the names of what it counts, would allow it"
		case d.Path == "":
			return "capabilities of the sender would allow it"
		case d.Size == 0: // a stop has no message
			return fmt.Sprintf("capabilities: {stop: [%s]} of the sender would allow it, or send for a message", d.Path)
		}
		return fmt.Sprintf("capabilities: {send: [%s]} of the sender would allow it", d.Path)
	case host.DeadMailboxFull:
		return "limits.mailbox and limits.mailbox-bytes of the receiver raise it"
	case host.DeadDropped:
		return "limits.mailbox and limits.mailbox-bytes of the receiver raise it; its mailbox is of a kind that drops"
	case host.DeadStashFull:
		return "limits.stash raises it"
	case host.DeadLimit:
		return "limits.timers, limits.watches or limits.asks of the sender raise it"
	case host.DeadEvicted:
		return "supervision.backoff.stash or resend.keep raises it"
	}
	return ""
}
