package operate

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Engine is a system as an Operator sees it. Package host implements it. Orders fail with ErrUnknown if the actor has stopped.
type Engine[P, M any] interface {
	// Here reports whether an actor is there, Child whether it is one and no guardian.
	Here(of abi.Ref) bool
	Child(of abi.Ref) bool
	// Order gives an order to an actor, OrderAbove to the supervisor of one.
	Order(of abi.Ref, m sysmail.Msg) error
	OrderAbove(of abi.Ref, m sysmail.Msg) error
	// Control puts what the host itself deals with into a mailbox.
	Control(of abi.Ref, flag uint16) error
	// Restart has the supervisor of an actor begin another incarnation of it, Renew one with other props.
	Restart(of abi.Ref, why *abi.Failure) error
	Renew(of abi.Ref, p *P) error
	// RenewModule renews all actors of a module but those of but, and says which.
	RenewModule(m M, but []ref.Ref) []ref.Ref

	// Letters are the dead letters that are kept.
	Letters() *look.Letters
	// Take gives a message to an actor; there is false if it has stopped, and err why it does not take the message, which stays the
	// caller's then.
	Take(of abi.Ref, e *mailbox.Envelope) (to ref.Ref, there bool, err error)
	// Now is the actor that now gets messages to the path that a letter was for, 0 if there is none; with a name it is the keeper of
	// the one that is meant.
	Now(l *event.DeadLetter) (to abi.Ref, name string)
}
