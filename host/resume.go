package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// CannotRewind implements Behaviour.
func (g *guest) CannotRewind() string {
	if g.inst.States == nil {
		return "its states were not kept"
	}
	return g.inst.States.Why
}

// Rewind implements Behaviour.
func (g *guest) Rewind(ctx *Context) bool {
	a, scr := g.actor, ctx.scr
	if g.track != nil {
		g.track.Rewound()
	}
	if can, unchanged := g.inst.Rewindable(); !can || unchanged {
		return can
	}
	x := g.inst.Load()
	if !g.inst.GoBack(scr.w) {
		g.inst.Release() // it is in no state for a last turn
		return false
	}
	defer func() { a.account.Note(account.Memory, x.Weight()) }() // that of the failed turn is given back
	return g.repeat(scr)
}

// repeat has the turns since the last snapshot once more.
func (g *guest) repeat(scr *scratch) bool {
	a := g.actor
	in := sandbox.Entry{
		TurnFuel: a.rules.Load().limits.Fuel, Seed: g.keys.Seed, MemoryLimit: a.rules.Load().limits.Memory, OutboxLimit: a.rules.Load().limits.Outbox, Yield: scr.w, Anchor: scr.entry.Anchor,
	}
	push := func(e *mailbox.Envelope, now int64) bool { return g.push(scr, g.inst.Load(), e, now) }
	return g.inst.Repeat(scr.w, in, push, func(turn uint64, f *abi.Failure) {
		a.sys.logf(a, abi.LogError, "resuming: turn %d has failed when it was repeated: %v", turn, f)
	})
}
