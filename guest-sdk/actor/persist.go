package actor

import "github.com/wasmactors/wasmactors/abi"

// KindRecover is for package persist: what has happened to the actor before.
const KindRecover = abi.KindRecover

// Persist has the log of an actor that keeps events take up an entry. It is for package persist.
func (c *Context) Persist(entry []byte) {
	wrote(abi.AppendPersist(appendix(usualHead+len(entry)), entry))
	if c.stored += len(entry); c.stored > mostStored { // the next messages come with another entry: what one has stored is one record
		c.stored = 0
		c.marks |= ended
	}
}

// mostStored is about how many bytes the turns of one entry store.
const mostStored = 128 << 10

// Settle has f called at the end of each turn in which the actor's functions have got an answer, or a Wait was over: those that its Receive does
// not see. It is for package persist, and holds for one incarnation.
func (c *Context) Settle(f func(*Context) error) { c.settle = f }

// settled is what has become of a turn whose function has returned err.
func settled(err error) error {
	if f := mem.ctx.settle; err == nil && f != nil {
		return f(&mem.ctx)
	}
	return err
}
