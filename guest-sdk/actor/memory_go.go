//go:build !tinygo

package actor

// mem is the SDK's memory. A turn with small messages writes to two or three of its pages: the context, what an
// actor was started with and the beginning of the outbox follow on each other, and then there is the
// beginning of the inbox. An actor has a copy of each page that it writes to, and the first write
// takes microseconds. The collector looks for pointers in the context only.
var mem struct {
	ctx     Context
	start   [startRoom]byte
	scratch [scratchRoom]byte
	outbox  [OutboxSize + spare]byte
	inbox   [InboxSize + spare]byte
}

func makeMemory() {
	mem.ctx.room, mem.ctx.scratch = mem.start[:0], mem.scratch[:0]
	inbox, outbox = mem.inbox[:], mem.outbox[:]
}
