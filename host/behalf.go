package host

import "github.com/wasmactors/wasmactors/internal/mailbox"

// OnBehalf is a message that Go code sends because an actor has asked for it, such as a run of a
// schedule: Of is the path of that actor, which may have ended. The message's sender stays nobody, or
// whoever sends it; but code that charges senders for what they cause (host/keyed) charges that actor,
// also if the message is passed or forwarded. No guest can set or remove it.
type OnBehalf struct {
	Value any
	Of    string
}

// Behalf is the path of the actor on whose behalf Go code has sent the current message, see [OnBehalf];
// empty if there is none.
func (c *Context) Behalf() string {
	if c.env == nil || c.env.Attached == nil {
		return ""
	}
	return c.env.Attached.Behalf
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
