package host

import (
	"fmt"

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

// openAccount begins the account of a new actor and counts it in its pool, which has room reserved for one that returns late.
func (a *actor) openAccount(reserved bool) error {
	a.pool = a.sys.pool
	if a.parent != nil {
		a.pool = a.parent.pool
		l := a.rules.Load().limits.Tree
		if a.parent.parent == nil && l.Memory == 0 {
			l.Memory = a.sys.cfg.treeMemory
		}
		if l != (TreeLimits{}) {
			pool := &a.tree.pool
			if a.parent.parent != nil { // a.tree.pool is that of the child of the guardian
				pool = new(account.Pool)
			}
			pool.Init(a.path, "limits.tree.", a.pool, l.Memory, int64(l.Actors))
			a.pool = pool
		}
	}
	base := actorBytes + int64(len(a.args)) + pathBytes*int64(len(a.path)) + box.BoxBytes(box.FreeBox) + int64(a.props.optionBytes)
	if a.account.Init(a.pool, a.rules.Load().limits.Held); reserved { // it returns
		a.pool.Claim()
		a.account.Note(account.Base, base)
		return nil
	}
	if a.parent != nil { // the guardians are nobody's
		if err := a.pool.Enter(); err != nil {
			return fmt.Errorf("%w: %w", ErrLimit, err)
		}
	}
	if err := a.account.Set(account.Base, base); err != nil {
		a.leavePool()
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return nil
}

// closeAccount gives everything back; the actor has ended.
func (a *actor) closeAccount() {
	a.box.CloseAccount()
	a.leavePool()
}

func (a *actor) leavePool() {
	if a.parent != nil {
		a.pool.Leave()
	}
}
