package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Address is the destination of messages to a path: the actor there or, for a keyed actor, its keeper, which starts it if
// needed. It is for senders that use a path repeatedly: it is valid as long as To is, however often a keyed actor starts and
// stops. The zero value names no actor. Values may be copied and compared.
type Address struct {
	To   Ref    // the actor that takes the message
	name string // the child of To that is addressed; empty: To itself
}

// AddressOf is the address of a path, or of the text of a ref; with a uid in it, it is the address of that
// incarnation only. It fails with ErrUnknown if there is neither an actor at the path nor
// a keeper that could start it. Of a path with another node (wasm://name@3/user/a) it is not known whether there
// is: messages are for whoever is there when they arrive.
func (s *System) AddressOf(path string) (Address, error) {
	if to, below, far := s.far.Elsewhere(path); far && below != "" {
		return Address{newRef(to, ref.Root(s.Name(), to.Node())), below}, nil
	} else if far {
		return Address{To: newRef(to, path)}, nil
	}
	p, ok := s.parsePath(path)
	if n := len(p.Elements); ok && p.UID == 0 && n > 0 && p.Elements[n-1] != "" {
		if a, name := s.findDoor(p.Elements); a != nil {
			if name != "" && !abi.ValidName([]byte(name)) {
				return Address{}, fmt.Errorf("%w: %s: no actor can have the name %q: names are 1 to %d of the bytes A-Z, a-z, 0-9, _, ., ~ and -", ErrUnknown, path, name, abi.MaxName)
			}
			return Address{a.ref(), name}, nil
		}
	}
	to, err := s.Lookup(path)
	return Address{To: to}, err
}

// Below is the address of what a keeper calls name, for keepers that pass messages on to each other: to may be on another
// node, and the name is the keeper's own affair, at most 64 KiB of text.
func Below(to Ref, name string) Address { return Address{to, name} }

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

// Find is the actor of an address; false if it is not there now. It starts no actor, and allocates
// nothing. Any goroutine may call it.
func (s *System) Find(a Address) (Ref, bool) {
	x := s.here(a.To.UID())
	if x != nil && a.name != "" {
		x = x.child(a.name)
	}
	if x == nil {
		return Ref{}, false
	}
	return x.ref(), true
}

// PassTo is Pass to an address.
func (h Head) PassTo(a Address) error { return h.ctx.forward(a.To, a.name, "", true) }

// ForwardTo is Forward to an address, without one of the message's headers; an empty name removes none.
func (h Head) ForwardTo(a Address, without string) error {
	return h.ctx.forward(a.To, a.name, without, false)
}
