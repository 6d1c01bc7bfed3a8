// Package address has destinations of messages to a path: host.Address is its Address.
package address

import (
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Address is the destination of messages to a path: the actor there or, for a keyed actor, its keeper, which starts it if
// needed. It is for senders that use a path repeatedly: it is valid as long as To is, however often a keyed actor starts and
// stops. The zero value names no actor. Values may be copied and compared.
type Address struct {
	To   ref.Ref // the actor that takes the message
	name string  // the child of To that is addressed; empty: To itself
}

// Of is the address of an actor, or with a name that of a child which it keeps.
func Of(to ref.Ref, name string) Address { return Address{to, name} }

// NameOf is the child of To that is addressed; empty: To itself.
func NameOf(a Address) string { return a.name }

// Kept reports whether a keeper stands for the actor: then To is the keeper, not the actor.
func (a Address) Kept() bool { return a.name != "" }

// Path is the path of the actor, even if it is not there.
func (a Address) Path() string {
	if a.name == "" {
		return a.To.Path()
	}
	return a.To.Path() + "/" + a.name
}

// Message is the message to send to To so that v reaches the actor.
func (a Address) Message(v any) any {
	if a.name == "" {
		return v
	}
	return message.ForChild(a.name, v)
}
