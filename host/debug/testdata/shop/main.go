// The guest of the debugger's tests: a cart whose items are counted. Now and then it is wrong, on purpose.
package main

import (
	"fmt"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// total is where the stray write goes.
var total int64 = 1000

type cart struct {
	items []int64
	index map[int64]int
	turns int
}

func (c *cart) Receive(ctx *actor.Context, m *actor.Message) error {
	n, ok := m.Int()
	if !ok {
		return nil
	}
	c.turns++
	c.add(ctx, n)
	if c.turns == 9 {
		c.stray(9)
	}
	return ctx.Reply(actor.Int(c.sum()))
}

// add takes an amount into the cart.
//
//go:noinline
func (c *cart) add(ctx *actor.Context, n int64) {
	if n < 0 {
		panic("negative amount")
	}
	for k := range n {
		c.put(k * n)
	}
	if c.turns%4 == 2 {
		ctx.Info(fmt.Sprint("the cart has ", len(c.items), " items"))
	}
}

//go:noinline
func (c *cart) put(n int64) {
	c.items = append(c.items, n)
	if c.index == nil {
		c.index = map[int64]int{}
	}
	c.index[n]++
}

//go:noinline
func (c *cart) stray(n int) {
	for k := range n {
		if k == 5 {
			total = 0x0bad0bad
		}
	}
}

//go:noinline
func (c *cart) sum() (n int64) {
	for _, item := range c.items {
		n += item
	}
	return n
}

func main() {}

func init() {
	actor.Register("cart", func() actor.Actor { return &cart{} })
	actor.Register("burner", func() actor.Actor { return &burner{} })
}

// burner spends fuel until there is none: it writes all over 4 MiB, and leaves garbage.
type burner struct {
	table [1 << 19]uint64
	lists [][]uint64
}

func (b *burner) Receive(_ *actor.Context, m *actor.Message) error {
	if _, ok := m.Int(); !ok {
		return nil
	}
	b.burn()
	return nil
}

//go:noinline
func (b *burner) burn() {
	state := uint64(88172645463325252)
	for n := uint64(0); ; n++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		b.table[state%uint64(len(b.table))] += n
		if n%1000 == 0 {
			b.lists = append(b.lists[max(0, len(b.lists)-100):], make([]uint64, 100))
		}
	}
}
