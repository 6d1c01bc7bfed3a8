package actor

import "github.com/wasmactors/wasmactors/abi"

// kept holds what warm allocates, so that it is not optimised away.
var kept struct {
	bytes    []byte
	pointers []*byte
	start    abi.Start
	actor    Actor
	stops    bool
}

type warmed struct{}

func (warmed) Receive(*Context, *Message) error { return nil }

// step is to the next size of an object that warm tries.
func step(n int) int {
	switch {
	case n < 64:
		return 8
	case n < 256:
		return 16
	}
	return n / 4
}

// warm does once, while the image is made, what the first turns of every actor
// would do otherwise: it makes the allocator set up its small size classes, so
// that an actor's first allocations find room in the image.
func warm() {
	kept.actor = warmed{}
	// Go has a class for each multiple of 16 bytes up to 256, and fewer beyond. A class that is
	// new to an actor takes 8,000 instructions and the first touch of eight pages.
	for n := 8; n <= 1024; n += step(n) {
		kept.bytes = make([]byte, n)
		kept.pointers = make([]*byte, n/8)
	}
	s := abi.Start{Type: "warm", Path: "wasm://warm/user/warm#1", Self: 1, Args: []byte{0xf6}, Reason: "warm"}
	if abi.DecodeStart(&kept.start, abi.AppendStart(nil, &s)) != nil {
		panic("actor: the start payload does not decode")
	}
	_, kept.stops = kept.actor.(Stopper) // the runtime's table of interfaces grows by 256 KiB at its first entry
	mem.ctx.asks.take(mem.ctx.asks.add(nil))
	mem.ctx.Tell(1, Text("warm"))
	mem.ctx.TellPath("/warm", Text("warm"))
	fail("warm")
	mem.ctx.marks, mem.ctx.asks.last, mem.ctx.written = 0, 0, 0
	warmPanic()
	kept.bytes, kept.pointers, kept.start = nil, nil, abi.Start{}
}
