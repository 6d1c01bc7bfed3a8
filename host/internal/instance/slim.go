package instance

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
func (h *Holder) Slim(now bool) (done bool) {
	h.owner.Visit(func() {
		if ran := h.owner.State().Turns; !now && ran != h.ran {
			h.ran = ran
			return
		}
		done = h.beSlim()
	})
	return done
}

func (h *Holder) beSlim() bool {
	x := h.inst.Load()
	if x == nil || h.slim {
		return false
	}
	h.room.List.Narrow(&h.Node)
	n, ok := x.LeanWeight()
	if !ok || n >= h.owner.Account().Of(account.Memory) {
		return false // nor later, before it has another memory
	}
	h.owner.Account().Note(account.Memory, n)
	h.slim = true
	return true
}

// widen gets a slim guest the room to run. Where there is none, others make it.
func (h *Holder) widen(w Worker, x *sandbox.Instance) error {
	err := work.Hold(h.owner.Account(), account.Memory, x.Weight())
	for i := 0; err != nil && i < MostPutAway && h.makeRoom(w, err); i++ {
		err = work.Hold(h.owner.Account(), account.Memory, x.Weight())
	}
	if err != nil {
		return err
	}
	h.slim, h.Waited = false, 0
	h.Widened()
	return nil
}

// Widened notes that the guest has room to run, which it may give back.
func (h *Holder) Widened() {
	if h.room.Real {
		h.room.List.Widen(&h.Node)
	}
}
