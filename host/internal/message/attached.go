package message

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// InBehalf is the attachment of a message that is sent on behalf of an actor.
func InBehalf(at *mailbox.Attached, path string) *mailbox.Attached {
	var b mailbox.Attached
	if at != nil {
		b = *at
	}
	b.Behalf = path
	return &b
}

// Via is the attachment of a message that an actor forwards to another node.
func Via(at *mailbox.Attached, forwarder abi.Ref) *mailbox.Attached {
	var b mailbox.Attached
	if at != nil {
		b = *at
	}
	b.Via = forwarder
	return &b
}

// Keyed is the attachment of a request that has an identity.
func Keyed(at *mailbox.Attached, x *mailbox.Effect) *mailbox.Attached {
	var b mailbox.Attached
	if at != nil {
		b = *at
	}
	b.Effect = x
	return &b
}

// Below is the attachment of a message for a child of its receiver.
func Below(at *mailbox.Attached, name string) *mailbox.Attached {
	b := mailbox.Attached{Below: name}
	if at != nil {
		b.Grants, b.Context, b.Behalf = at.Grants, at.Context, at.Behalf
	}
	return &b
}

// StillBelow is the attachment at with what the sent value has set: the child it is for, and on whose behalf it is sent.
func StillBelow(at, given *mailbox.Attached) *mailbox.Attached {
	if given == nil {
		return at
	}
	if given.Behalf != "" {
		at = InBehalf(at, given.Behalf)
	}
	if given.Below == "" {
		return at
	}
	return Below(at, given.Below)
}

// Addressed is a message for a child of its receiver.
type Addressed struct {
	name  string
	value any
}

func NotBelow(at *mailbox.Attached) *mailbox.Attached {
	if at == nil || at.Below == "" && at.Kept == "" {
		return at
	}
	if at.Grants == nil && at.Context == nil && at.Behalf == "" {
		return nil
	}
	return &mailbox.Attached{Grants: at.Grants, Context: at.Context, Behalf: at.Behalf}
}

// CloneEnvelope copies a message with the marks that its sender gave it, without what the host
// has noted in the original on its way.
func CloneEnvelope(e *mailbox.Envelope) *mailbox.Envelope {
	k := mailbox.New()
	k.Kind, k.Due, k.Sender, k.SenderPath, k.Correlation = e.Kind, e.Due, e.Sender, e.SenderPath, e.Correlation
	k.Flags = e.Flags & mark.Kept
	k.Attached = e.Attached
	k.SetPayload(e.Payload)
	k.SetHeaders(e.Headers)
	return k
}

// HandedOn is what an actor sends on of its current message, as what, and in whose name; for a letter, too. What the host has
// told the actor is no question then (the key of a timer is the correlation of nothing) and has the actor as its sender,
// because a message without a sender is one from outside.
func HandedOn(current *mailbox.Envelope, by abi.Ref, path string) mailbox.Envelope {
	e := mailbox.Envelope{
		Kind: current.Kind, Flags: current.Flags & (mark.NoInfluence | mark.Suppressed), Sender: current.Sender, SenderPath: current.SenderPath,
		Correlation: current.Correlation, Headers: current.Headers, Payload: current.Payload,
	}
	if e.Kind != abi.KindReply && e.Kind != abi.KindReplyError && e.Kind != abi.KindMessage {
		if e.Kind = abi.KindMessage; e.Sender == 0 {
			e.Sender, e.SenderPath, e.Correlation = by, path, 0
		}
	}
	return e
}

// ForChild is v for a child of its receiver.
func ForChild(name string, v any) Addressed { return Addressed{name, v} }
