//go:build tinygo

package actor

// mem is the SDK's memory, but for what makeMemory makes: TinyGo's collector looks for pointers
// in all of a package's variables, and in all of an object that has some.
var mem struct{ ctx Context }

func makeMemory() {
	mem.ctx.room, mem.ctx.scratch = make([]byte, 0, startRoom), make([]byte, 0, scratchRoom)
	inbox, outbox = make([]byte, InboxSize+spare), make([]byte, OutboxSize+spare)
}
