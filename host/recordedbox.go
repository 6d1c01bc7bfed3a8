package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/recordbox"
	"github.com/wasmactors/wasmactors/host/internal/work"
)

// recordedOf is the recorded mailbox of an actor; nil: it has none.
func recordedOf(a *actor) *recordbox.Box {
	if a.sealed == nil {
		return nil
	}
	return a.sealed.box
}

// mailOf is an actor as its recorded mailbox sees it.
type mailOf struct{ *actor }

// StillCounts implements recordbox.Owner.
func (m mailOf) StillCounts(e *Envelope) bool {
	v := m.work.StillCounts(m.actor, e, m.sysq.Waiting())
	return v == work.Counts || v == work.CountsLater
}

// Flies implements recordbox.Owner.
func (m mailOf) Flies(e *Envelope) bool {
	p := m.sys.repeats.Load()
	if p == nil {
		return false
	}
	by := p.actor.Load()
	switch e.Kind {
	case abi.KindTimer, abi.KindReceiveTimeout, abi.KindAskTimeout:
		by = nil // an alarm that was due while the process was away, and not something that is sent in a turn
	}
	return p.flights.Begin(rebuild.Flight[*actor]{To: m.actor, By: by, E: e})
}

// pushAt pushes what a recorded turn has sent at a time.
func pushAt(a *actor, e *Envelope, at int64) error {
	if b := recordedOf(a); b != nil {
		return b.PushAt(e, at)
	}
	return a.box.Push(e)
}
