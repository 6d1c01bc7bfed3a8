package host

import (
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A guest of standard Go could write to 4 MB and has written to some dozen pages. While it may run it counts for
// all of it, so whatever guests touch, and however many at once, is on their accounts before. Between two runs it can
// count for the pages that it has of its own: then it is slim, and gets the room back before it runs again.
//
// Which pages those are depends on the machine, so a system with another clock than the machine's has no slim guests:
// what such a system refuses must be the same in each run.

// Slim implements residency.Sleeper. Like PutAway it takes the place of a run.
func (g *guest) Slim(now bool) (done bool) {
	g.actor.disp.Visit(&g.actor.task, func() {
		if ran := g.actor.turns; !now && ran != g.ran {
			g.ran = ran
			return
		}
		done = g.beSlim()
	})
	return done
}

func (g *guest) beSlim() bool {
	a, x := g.actor, g.inst.Load()
	if x == nil || g.slim {
		return false
	}
	a.sys.awake.Narrow(&g.node)
	n, ok := x.LeanWeight()
	if !ok || n >= a.account.Of(account.Memory) {
		return false // nor later, before it has another memory
	}
	a.account.Note(account.Memory, n)
	g.slim = true
	return true
}

// widen gets a slim guest the room to run. Where there is none, others make it.
func (g *guest) widen(scr *scratch, x *sandbox.Instance) error {
	err := work.Hold(&g.actor.account, account.Memory, x.Weight())
	for i := 0; err != nil && i < mostPutAway && g.makeRoom(scr, err); i++ {
		err = work.Hold(&g.actor.account, account.Memory, x.Weight())
	}
	if err != nil {
		return err
	}
	g.slim, g.waited = false, 0
	g.widened()
	return nil
}

// widened notes that the guest has room to run, which it may give back.
func (g *guest) widened() {
	if s := g.actor.sys; s.time.Real() {
		s.awake.Widen(&g.node)
	}
}

// release gives the instance back.
func (g *guest) release() {
	g.mu.Lock()
	x := g.inst.Swap(nil)
	g.mu.Unlock()
	if x != nil {
		g.actor.sys.awake.Remove(&g.node)
		g.actor.sys.awake.Narrow(&g.node)
		g.slim = false
		x.Put()
	}
	g.actor.account.Note(account.Memory, 0)
}
