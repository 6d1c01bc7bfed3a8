package host

import (
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// Pause holds back the messages of an actor until Unpause; with subtree also those of all actors below it. The running turn
// ends first. Messages wait in the mailbox, up to its limit, and so do timers, answers and termination notices. System
// messages are still handled: a paused actor can be stopped, can fail, decides on its children's failures, and can be
// restarted, with its start and end turns. A restart leaves it paused. A child that is spawned below a paused subtree is
// paused, too. Pausing an actor twice is the same as once. It fails with ErrUnknown.
func (o Operator) Pause(ref Ref, subtree bool) error {
	return o.sys.order(ref, sysmail.Msg{Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.If(subtree, sysmail.Below)}})
}

// Unpause lets an actor handle messages again, with subtree also all below it, for any earlier Pause.
func (o Operator) Unpause(ref Ref, subtree bool) error {
	return o.sys.order(ref, sysmail.Msg{Kind: sysmail.Unpause, Kin: sysmail.Kin{How: sysmail.If(subtree, sysmail.Below)}})
}

// order is an operator's order to an actor.
func (s *System) order(ref Ref, m sysmail.Msg) error {
	a := s.here(ref.UID())
	if a == nil || !a.post(nil, m) {
		return ErrUnknown
	}
	return nil
}

// setPaused carries Pause and Unpause out.
func (a *actor) setPaused(scr *scratch, on, below bool) {
	what := life.Paused
	if below {
		what |= life.Below
	}
	before := a.life.Held(life.Paused)
	if on {
		a.life.Hold(what)
	} else {
		a.life.LetGo(life.Paused | life.Below)
	}
	if below { // after the flag: a child that comes now has it
		order := sysmail.Msg{Kind: sysmail.Unpause, Kin: sysmail.Kin{How: sysmail.Below}}
		if on {
			order.Kind = sysmail.Pause
		}
		for _, k := range a.kids() {
			k.post(scr, order)
		}
	}
	if before != on {
		a.sys.seen.Paused(a, on)
	}
}
