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
}
