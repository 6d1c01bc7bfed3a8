// A basket for each user that is kept: see docs/guide/event-sourcing.md.
package main

import (
	"sort"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

// basket is how many of each thing a user wants.
type basket struct{ things map[string]int64 }

// Save implements actor.Saver: it writes the state as one item of CBOR. Of an empty basket nothing is kept.
func (b *basket) Save(_ *actor.Context, w *abi.Writer) error {
	if len(b.things) > 0 {
		b.MarshalCBOR(w)
	}
	return nil
}

// Load implements actor.Saver: it reads what Save has written, at the next start.
func (b *basket) Load(_ *actor.Context, r *abi.Reader) error {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		b.things[r.Text()] = r.Int()
	}
	return nil
}

// Receive gets the name of a thing, or "list", "how many" or "clear".
func (b *basket) Receive(ctx *actor.Context, m *actor.Message) error {
	switch thing := m.Text(); thing {
	case "list":
	case "how many":
		all := int64(0)
		for _, n := range b.things {
			all += n
		}
		return ctx.Reply(actor.Int(all))
	case "clear":
		clear(b.things)
	default:
		b.things[thing]++
	}
	return ctx.Reply(b) // leaves when the state is stored
}

// MarshalCBOR writes the things in one order: a state that has not changed is the same bytes, and is not stored again.
func (b *basket) MarshalCBOR(w *abi.Writer) {
	names := make([]string, 0, len(b.things))
	for name := range b.things {
		names = append(names, name)
	}
	sort.Strings(names)
	w.Map(len(names))
	for _, name := range names {
		w.Text(name)
		w.Int(b.things[name])
	}
}

// Tags implements persist.Tagged: followers of the tag see each basket when it has changed.
func (b *basket) Tags() []string { return []string{"baskets"} }

// kept says how baskets are kept. The first release had a list of names.
var kept = persist.StateDefinition{
	Type: "basket.state",
	State: actor.Saves(2).Migrate(1, func(r *abi.Reader, w *abi.Writer) error {
		b := basket{map[string]int64{}}
		for n := r.Array(); n > 0 && r.OK(); n-- {
			b.things[r.Text()]++
		}
		b.MarshalCBOR(w)
		return nil
	}),
	Automatic: true,
}

func init() {
	persist.RegisterState("basket", kept, func(*persist.Keeper) actor.Saver { return &basket{map[string]int64{}} })
}

func main() {}
