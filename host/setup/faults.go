package setup

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/queue"
	"github.com/wasmactors/wasmactors/host/ref"
)

// The hooks of a test kit: at the end of a turn, and before an actor's mailbox. Without them the path of a message pays
// nothing.

// Turn is a turn of a message that has been run, before anything of it takes effect. It is
// valid until the function returns that it was given to, and not to be changed.
type Turn struct {
	Actor       ref.Ref
	Incarnation uint64
	Number      uint64 // of the turn in the actor's life
	Kind        abi.Kind
	Sender      ref.Ref
	Correlation uint64
	Payload     []byte // nil for that of a start
}

// Faults says of turns whether they fail after all, see Config.WithFaults.
type Faults func(*Turn) *abi.Failure

// Among is how many of the turns that were run together count, and the failure of the one behind those.
func (f Faults) Among(c *turn.Turn, sender func(*queue.Envelope) ref.Ref) (int, *abi.Failure) {
	for i, e := range c.Mail[:min(c.Done, len(c.Mail))] {
		t := Turn{
			Actor: ref.Of(c.Actor, c.Path), Incarnation: c.Incarnation, Number: c.First + uint64(i), Kind: e.Kind, Sender: sender(e),
			Correlation: e.Correlation, Payload: mark.Shown(e),
		}
		if f := f(&t); f != nil {
			f.Turn = t.Number
			return i, f
		}
	}
	return c.Done, nil
}

// WithFaults has f say of each turn whether it fails after all: then it has done nothing, and its
// supervisor gets the failure that f returns. The turns of a guest that handles several messages in
// one call count one by one; turns without a message (starts and ends of actors in Go, decisions)
// do not. f is called by workers, also at the same time. It is for tests and simulations.
func (c Config[O, X]) WithFaults(f func(*Turn) *abi.Failure) Config[O, X] {
	c.parts.Faults = f
	return c
}

// WithMailboxes has f make the mailboxes of all actors, or stand between an actor and its
// mailbox: it gets what Props.WithMailbox was given, nil for the usual one, or the mailbox of a
// recorded actor, and returns what is used instead. It is for tests and simulations: actors with the usual mailbox are faster
// without it.
func (c Config[O, X]) WithMailboxes(f func(ref.Ref, func(queue.Limits) queue.Mailbox) func(queue.Limits) queue.Mailbox) Config[O, X] {
	c.parts.Mailboxes = f
	return c
}

// WithNested is WithManual with another order of turns: what a turn has sent is handled right
// behind it, in the order in which it was sent, each with all that follows from it, before
// anything else goes on. An actor's messages to itself wait until then. It takes a throughput
// of 1.
func (c Config[O, X]) WithNested() Config[O, X] {
	c.parts.Manual, c.parts.Nested, c.parts.Throughput = true, true, 1
	return c
}

// WithOrder is WithManual with an order of turns that choose decides: at each step it says which of the n actors that have
// work goes on, from 0; at is one of these. It is for simulations; see WithShuffle for an order without preference.
func (c Config[O, X]) WithOrder(choose func(n int, at func(int) ref.Ref) int) Config[O, X] {
	c.parts.Manual, c.parts.Order = true, choose
	return c
}

// WithAllowance has f lower, before each entry of a guest, the fuel of its turns and the bytes that its memory may grow to;
// 0 is the image's limit. Workers call it, also at the same time. It is for simulations: such a turn ends in the middle, and
// Limits.Deadline, which is of real time, does not count.
func (c Config[O, X]) WithAllowance(f func(r ref.Ref, fuel, memory *uint64)) Config[O, X] {
	c.parts.Allowance = f
	return c
}
