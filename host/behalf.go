package host

import "github.com/wasmactors/wasmactors/internal/mailbox"

// OnBehalf is a message that Go code sends because an actor has asked for it, such as a run of a schedule. Of is the path of
// that actor, which may have stopped. The message keeps its own sender, or none. But code that charges senders (host/keyed)
// charges the actor Of, also if the message is forwarded. No guest can set or remove it.
type OnBehalf struct {
	Value any
	Of    string
}

// Behalf is the path of the actor on whose behalf Go code has sent the current message, see [OnBehalf], or "".
func (h Head) Behalf() string {
	if h.ctx.env == nil || h.ctx.env.Attached == nil {
		return ""
	}
	return h.ctx.env.Attached.Behalf
}

// onBehalf is the attachment of a message that is sent on behalf of an actor.
func onBehalf(at *mailbox.Attached, path string) *mailbox.Attached {
	var b mailbox.Attached
	if at != nil {
		b = *at
	}
	b.Behalf = path
	return &b
}
