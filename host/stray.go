package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// deliver is [System.deliver] of what the actor itself has addressed: it may be a guess.
func (a *actor) deliver(scr *scratch, to abi.Ref, e *mailbox.Envelope) error {
	if t := a.sys.here(to); t != nil {
		return a.sys.deliverTo(scr, t, e)
	}
	if e.Sender != a.uid && a.sys.far.To(to) != nil { // forwarded: a guess of the actor, not of the sender
		e.Attached = message.Via(e.Attached, a.uid)
	}
	err := a.sys.deliver(scr, to, e)
	if err == ErrUnknown {
		a.strayed(scr, to)
	}
	return err
}

// strayed notes that the actor has named a ref without a receiver.
func (a *actor) strayed(scr *scratch, to abi.Ref) {
	if to == 0 || a.sys.repeats.Load() != nil {
		return // a receiver from before is no guess
	}
	if _, ok := a.sys.recent.Find(to); ok {
		return
	}
	if !a.tree.guesses.Count(a.sys.time.Now()) {
		a.post(scr, sysmail.Msg{Kind: sysmail.Stray})
	}
}

// barred reports whether the actor may not name a ref now, and fails it if so: no guess is left, and the ref is none
// of those that the host has given it. from is the sender of its current message.
func (a *actor) barred(scr *scratch, to, from abi.Ref) bool {
	if !a.tree.guesses.None() || to == from || a.vouched(to) ||
		slices.ContainsFunc(a.services(), func(s abi.Service) bool { return s.Ref == to }) {
		return false
	}
	return a.outOfGuesses(scr)
}

// outOfGuesses fails the actor if no guess is left. Any goroutine may call it.
func (a *actor) outOfGuesses(scr *scratch) bool {
	if a.tree.guesses.Left(a.sys.time.Now()) {
		return false
	}
	a.post(scr, sysmail.Msg{Kind: sysmail.Stray})
	return true
}

// vouched reports whether a ref is one of those that each actor has: its own, its parent's, its children's.
// Any goroutine may ask.
func (a *actor) vouched(to abi.Ref) bool {
	if to == 0 || to == a.uid || to == a.above {
		return true
	}
	k := a.sys.here(to)
	return k != nil && k.parent == a
}
