package actor

import "github.com/wasmactors/wasmactors/abi"

// KindRecover is for package persist: what has happened to the actor before.
const KindRecover = abi.KindRecover

// Persist has the log of an actor that keeps events take up an entry. It is for package persist.
func (c *Context) Persist(entry []byte) {
	wrote(abi.AppendPersist(appendix(usualHead+len(entry)), entry))
}
