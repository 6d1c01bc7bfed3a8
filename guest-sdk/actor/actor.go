// Package actor is what a guest imports: it turns a Go type into an actor of a
// wasmactors bundle. It builds with standard Go (GOOS=wasip1 GOARCH=wasm,
// -buildmode=c-shared) and with TinyGo.
//
//	package main
//
//	import "github.com/wasmactors/wasmactors/guest-sdk/actor"
//
//	type greeter struct{ n int64 }
//
//	func (g *greeter) Receive(ctx *actor.Context, msg *actor.Message) error {
//		g.n++
//		return ctx.Reply(actor.Text("hello " + msg.Text()))
//	}
//
//	func init() { actor.Register("greeter", func() actor.Actor { return &greeter{} }) }
//
//	func main() {}
//
// Every message is one turn. What a turn asks for takes effect when it has
// ended, in order; a turn that panics or returns an error has done nothing.
// The actor's fields are its state; after a restart they start over.
//
// docs/guests.md tells the rest: testing without wasm, and the hazards.
package actor

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
)

// Actor handles messages, one at a time.
//
// An error fails the turn: the supervisor decides what follows. ErrUnhandled
// does not; it says that the message was not for this actor.
type Actor interface {
	Receive(ctx *Context, msg *Message) error
}

// Starter is an actor that wants to know when it begins, also after a restart
// (see Context.Incarnation). An error fails the start.
type Starter interface{ Started(ctx *Context) error }

// Stopper is an actor that wants to know when it ends for good. What it sends
// still goes out.
type Stopper interface{ Stopped(ctx *Context) }

// ErrUnhandled is what Receive returns for a message that it has no use for. If
// that was the end of a watched actor, the actor fails with a death pact.
var ErrUnhandled = errors.New("message not handled")

// Ref names one incarnation of an actor; 0 means none. It may travel in messages.
type Ref = abi.Ref

// SDK names this SDK in the module's description.
const SDK = "wasmactors-go/0.1.0"

type registration struct {
	name    string
	factory func() Actor
	state   *State // nil: it does not go over to other code
}

var registry []registration

// Register makes a type known under a name: 1 to 128 bytes of [A-Za-z0-9_.~/-].
// It is called in init, before the image is made; later is too late. The factory
// makes a fresh actor for every start. It is called once more while the image is made, to see what the host must
// tell such actors; all that it makes must have the same methods. A name that is invalid or taken panics.
//
// A State, of which there may be one, lets the state of such actors go over to other code.
func Register(name string, factory func() Actor, state ...*State) {
	if !abi.ValidTypeName([]byte(name)) {
		panic("actor.Register: invalid type name " + name)
	}
	for i := range registry {
		if registry[i].name == name {
			panic("actor.Register: the type " + name + " is registered twice")
		}
	}
	r := registration{name: name, factory: factory}
	if len(state) > 0 {
		r.state = state[0]
	}
	registry = append(registry, r)
}

func lookup(name string) *registration {
	for i := range registry {
		if registry[i].name == name {
			return &registry[i]
		}
	}
	return nil
}
