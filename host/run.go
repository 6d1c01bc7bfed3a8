package host

import (
	"time"

	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// A run of an actor: a spell of work on a worker of the dispatcher.

// Run does one spell of work: up to the throughput of turns, with system messages handled
// before and between them.
func (a *actor) Run(w *dispatch.Worker) (more bool) {
	scr := scratchOf(w)
	if a.sysq.Cut.Load() || a.sysq.Waiting() {
		a.handleSystem(scr)
	}
	if a.doomed() != nil {
		a.tally.Turns.Store(a.turns)
		return a.sysq.Waiting()
	}
	budget := int(a.throughput)
	if budget < 0 {
		budget = a.timedSpell(scr)
	} else if int32(uint32(a.turns)-a.timedNext) >= 0 {
		budget -= a.timedTurn(scr)
	}
	for budget > 0 && !a.box.Nothing() && a.life.Open() && !w.Spent() {
		n := a.handleMessages(scr, budget)
		budget -= n
		if a.sysq.Waiting() {
			a.handleSystem(scr)
		} else if n == 0 {
			break
		}
	}
	if a.gate.Bounded() {
		a.gate.TrimBox(&a.box, boxHost{a}.evict)
	}
	if !a.box.Minimal() {
		a.box.GiveBack()
	}
	if a.endings {
		a.endRun(w)
	}
	a.tally.Turns.Store(a.turns)
	return a.sysq.Waiting() || !a.box.Nothing() && a.life.Open() && !a.box.Empty()
}

// endRun does what few actors have to do at the end of a run.
func (a *actor) endRun(w *dispatch.Worker) {
	if a.surplus && !a.sealed.isHeld() {
		a.surplus = false
		a.inst.PutAwayIfOver(w)
		a.endings = a.kept != nil
	}
	if a.kept != nil {
		a.kept.SpellOver(a.tally.Turns.Load() != a.turns, a.quiet(), a.Now())
	}
}

// timedSpell handles messages one by one, until the deadline of the spell or up to the throughput. It returns
// 0: nothing is left to handle in this spell.
func (a *actor) timedSpell(scr *scratch) int {
	begun := a.Now()
	if int32(uint32(a.turns)-a.timedNext) >= 0 {
		a.timedTurn(scr)
	}
	for range int(-a.throughput) {
		if a.box.Nothing() || !a.life.Open() || scr.w.Spent() || a.handleMessages(scr, 1) == 0 {
			break
		}
		if a.sysq.Waiting() {
			a.handleSystem(scr)
		}
		if a.Now().Sub(begun) >= workplace.DeadlineOf(a.props.dispatch) {
			break
		}
	}
	return 0
}

// timedTurn handles a message, if there is one, times it, and returns how many were handled.
func (a *actor) timedTurn(scr *scratch) int {
	if a.box.Nothing() || !a.life.Open() {
		return 0
	}
	a.timedNext = uint32(a.turns) + timedEvery
	t := &a.sys.turnTimes
	begun := a.sys.time.Now()
	n := a.handleMessages(scr, 1)
	if n > 0 {
		t.Of(a.props.typ).Observe(time.Duration(a.sys.time.Now() - begun))
	}
	return n
}
