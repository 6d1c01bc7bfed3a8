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

// ForChild is v for a child of its receiver.
func ForChild(name string, v any) Addressed { return Addressed{name, v} }
