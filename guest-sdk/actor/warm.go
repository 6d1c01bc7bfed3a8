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

// warm does once, while the image is made, what the first turns of every actor
// would do otherwise: it makes the allocator set up its small size classes, so
// that an actor's first allocations find room in the image.
func warm() {
	kept.actor = warmed{}
	for n := 8; n <= 1024; n += n / 2 {
		kept.bytes = make([]byte, n)
		kept.pointers = make([]*byte, n/8)
	}
	s := abi.Start{Type: "warm", Path: "wasm://warm/user/warm#1", Self: 1, Args: []byte{0xf6}, Reason: "warm"}
	if abi.DecodeStart(&kept.start, abi.AppendStart(nil, &s)) != nil {
		panic("actor: the start payload does not decode")
	}
	_, kept.stops = kept.actor.(Stopper) // the runtime's table of interfaces grows by 256 KiB at its first entry
	ctx.asks.take(ctx.asks.add(nil))
	ctx.scratch = make([]byte, 0, 1024)
	ctx.Tell(1, Text("warm"))
	ctx.TellPath("/warm", Text("warm"))
	fail("warm")
	ctx.marks, ctx.asks.last, written = 0, 0, 0
	warmPanic()
	kept.bytes, kept.pointers, kept.start = nil, nil, abi.Start{}
}
