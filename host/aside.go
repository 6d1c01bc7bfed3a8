package host

import (
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/box"
)

// Hold sets how many bytes of messages the actor keeps in structures of its own, as a
// router keeps questions that it may have to send again. They are on its account beside its
// stash, and count for limits.held, limits.tree and system.memory. An increase may be
// refused with an error that wraps ErrLimit; then nothing has changed. A new incarnation
// begins with 0. It is for code in Go, within a turn.
func (h Head) Hold(bytes int64) error {
	a := h.ctx.actor
	bytes = max(bytes, 0)
	if err := a.hold(account.Stash, a.stashBytes()-a.stash.Held()+bytes); err != nil {
		return err
	}
	a.stash.Hold(bytes)
	return nil
}

// stashBytes is what the stash takes and what is held by Hold.
func (a *actor) stashBytes() int64 {
	return a.stash.Held() + int64(a.stash.Bytes()) + int64(a.stash.Len())*box.EnvelopeBytes
}
