package host

import (
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/box"
)

// What the host holds for actors is counted in bytes, on an account for each, and bounded:
// for the actor, for the trees that it is in, and for the system. What would exceed a bound
// is refused, or fails the actor that asks for it, and never another one.

// How much things take, in bytes, besides payloads: about what Go's heap needs for them.
const (
	actorBytes = 2 << 10
	pathBytes  = 3 // a byte of an actor's path: it is there as a text and as elements, and in its parent
)

// baseBytes are what an actor takes from its start to its end.
func baseBytes(path string, args []byte, p *Props) int64 {
	return actorBytes + int64(len(args)) + pathBytes*int64(len(path)) + box.BoxBytes(box.FreeBox) + int64(p.optionBytes)
}

// poolFor is where an actor of the tree takes from: above, or a pool of its own below that if it has limits as a tree. top says
// that it is the topmost actor of the tree.
func (t *tree) poolFor(above *account.Pool, top bool, path string, l TreeLimits) *account.Pool {
	if l == (TreeLimits{}) {
		return above
	}
	pool := &t.pool
	if !top {
		pool = new(account.Pool)
	}
	pool.Init(path, "limits.tree.", above, l.Memory, int64(l.Actors))
	return pool
}
