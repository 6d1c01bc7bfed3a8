package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/address"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Address is the destination of messages to a path: the actor there or, for a keyed actor, its keeper, which starts it if
// needed. It is for senders that use a path repeatedly: it is valid as long as To is, however often a keyed actor starts and
// stops. The zero value names no actor. Values may be copied and compared. Its field To is the
// actor that takes the message; package address has its methods: Kept, Path, Message.
type Address = address.Address

// AddressOf is the address of a path, or of the text of a ref; with a uid in it, it is the address of that
// incarnation only. It fails with ErrUnknown if there is neither an actor at the path nor
// a keeper that could start it. Of a path with another node (wasm://name@3/user/a) it is not known whether there
// is: messages are for whoever is there when they arrive.
func (s *System) AddressOf(path string) (Address, error) {
	if to, below, far := s.far.Elsewhere(path); far && below != "" {
		return address.Of(newRef(to, ref.Root(s.Name(), to.Node())), below), nil
	} else if far {
		return Address{To: newRef(to, path)}, nil
	}
	p, ok := s.parsePath(path)
	if n := len(p.Elements); ok && p.UID == 0 && n > 0 && p.Elements[n-1] != "" {
		if a, name := s.findDoor(p.Elements); a != nil {
			if name != "" && !abi.ValidName([]byte(name)) {
				return Address{}, fmt.Errorf("%w: %s: no actor can have the name %q: names are 1 to %d of the bytes A-Z, a-z, 0-9, _, ., ~ and -", ErrUnknown, path, name, abi.MaxName)
			}
			return address.Of(a.ref(), name), nil
		}
	}
	to, err := s.Lookup(path)
	return Address{To: to}, err
}

// Below is the address of what a keeper calls name, for keepers that pass messages on to each other: to may be on another
// node, and the name is the keeper's own affair, at most 64 KiB of text.
func Below(to Ref, name string) Address { return address.Of(to, name) }

// Find is the actor of an address; false if it is not there now. It starts no actor, and allocates
// nothing. Any goroutine may call it.
func (s *System) Find(a Address) (Ref, bool) {
	x := s.here(a.To.UID())
	if name := address.NameOf(a); x != nil && name != "" {
		x = x.child(name)
	}
	if x == nil {
		return Ref{}, false
	}
	return x.ref(), true
}

// PassTo is Pass to an address.
func (h Head) PassTo(a Address) error { return h.ctx.forward(a.To, address.NameOf(a), "", true) }

// ForwardTo is Forward to an address, without one of the message's headers; an empty name removes none.
func (h Head) ForwardTo(a Address, without string) error {
	return h.ctx.forward(a.To, address.NameOf(a), without, false)
}
