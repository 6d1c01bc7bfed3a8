// The guest of the tests of keys whose events a cluster keeps: a book of numbers. What it answers is all that it has.
package main

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

// written is the event.
type written struct{ number int64 }

func (e written) MarshalCBOR(w *abi.Writer)    { w.Int(e.number) }
func (e *written) UnmarshalCBOR(r *abi.Reader) { e.number = r.Int() }
func (written) MessageType() string            { return "book.written@1" }

func init() {
	persist.Register("book", persist.Definition{
		Schema: new(persist.Schema).Type("book.written", 1), Retention: persist.Retention{Every: 20, Keep: 1, Trim: true}, SnapshotVersion: 1,
	}, func(log *persist.Log) persist.Actor { return &book{log: log} })
}

func main() {}

type book struct {
	log     *persist.Log
	numbers []int64
}

func (b *book) Apply(e *persist.Event) error {
	var x written
	err := persist.Decode(e, &x)
	b.numbers = append(b.numbers, x.number)
	return err
}

func (b *book) all(w *abi.Writer) {
	w.Array(len(b.numbers))
	for _, n := range b.numbers {
		w.Int(n)
	}
}

func (b *book) Snapshot(w *abi.Writer) { b.all(w) }

func (b *book) Restore(_ uint16, r *abi.Reader) error {
	b.numbers = nil
	for n := r.Array(); n > 0 && r.OK(); n-- {
		b.numbers = append(b.numbers, r.Int())
	}
	return nil
}

// Receive takes a number, which it keeps, or "read".
func (b *book) Receive(ctx *actor.Context, msg *actor.Message) error {
	v, number := msg.Int()
	switch {
	case number:
		if err := b.log.Persist(ctx, written{v}); err != nil {
			return err
		}
	case !msg.Is("read"):
		return actor.ErrUnhandled
	}
	return ctx.Reply(actor.Func(b.all))
}
