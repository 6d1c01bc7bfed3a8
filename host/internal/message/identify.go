package message

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Identify asks an actor, or with below the one that it keeps, who it is.
func Identify(sender abi.Ref, correlation uint64, below string) *mailbox.Envelope {
	e := mailbox.New()
	e.Flags, e.Sender, e.Correlation = mark.Identify, sender, correlation
	if below != "" {
		e.Attached = Below(nil, below)
	}
	return e
}
