// The guest of the tests of clusters with real processes: a register. It says with each answer which life of its key it is, and
// how many questions that life has taken, so that a history of answers shows two lives that overlap.
package main

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

func init() { actor.Register("register", func() actor.Actor { return &register{} }) }

func main() {}

type register struct {
	life  uint64
	count int64
	value int64
}

func (r *register) Started(ctx *actor.Context) error {
	r.life = ctx.Rand().Uint64() >> 1
	return nil
}

// Receive takes a number, which it keeps, "read", or "hold", which it never answers. The answer is the life, its count, the node and
// the value from before.
func (r *register) Receive(ctx *actor.Context, msg *actor.Message) error {
	before := r.value
	v, number := msg.Int()
	switch {
	case number:
		r.value = v
	case msg.Is("read"):
	case msg.Is("hold"):
		return nil
	default:
		return actor.ErrUnhandled
	}
	r.count++
	return ctx.Reply(actor.Func(func(w *abi.Writer) {
		w.Array(4)
		w.Uint(r.life)
		w.Int(r.count)
		w.Uint(uint64(abi.Ref(ctx.Self()).Node()))
		w.Int(before)
	}))
}
