package host

import "github.com/wasmactors/wasmactors/internal/mailbox"

// OnBehalf is a message that Go code sends because an actor has asked for it, such as a run of a
// schedule: Of is the path of that actor, which need not be there any more. It stays a message from nobody,
// or from whom it is sent; but who counts what senders make it do (host/keyed) counts it as that actor's,
// also if it is passed or forwarded. No guest can say or take it away.
type OnBehalf struct {
	Value any
	Of    string
}

// Behalf is the path of the actor because of which Go code has sent the current message, see [OnBehalf];
// empty if it is of none.
func (c *Context) Behalf() string {
	if c.env == nil || c.env.Attached == nil {
		return ""
	}
	return c.env.Attached.Behalf
}

// onBehalf is what a message carries that is sent because of an actor.
func onBehalf(at *mailbox.Attached, path string) *mailbox.Attached {
	var b mailbox.Attached
	if at != nil {
		b = *at
	}
	b.Behalf = path
	return &b
}
