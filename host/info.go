package host

import (
	"time"

	"github.com/wasmactors/wasmactors/host/internal/life"
)

// info fills i in, field by field: there may be many.
func (a *actor) info(i *Info) {
	i.Ref = newRef(a.uid, a.path)
	if p := a.parent; p != nil {
		i.Parent = newRef(p.uid, p.path)
	} else {
		i.Parent = Ref{}
	}
	i.Type, i.Incarnation, i.Since, i.Failure = a.props.typ, a.Number.Load(), a.Since.Load(), a.failed.Load()
	i.Mailbox, i.MailboxBytes, i.Before, i.Came = a.box.Len(), a.box.Bytes(), 0, 0
	if a.box.Hosted != nil {
		i.Before, i.Came = a.box.Hosted.Order()
	}
	i.Turns, i.Fuel, i.Crashes, i.Restarts = a.tally.Turns.Load(), a.tally.Fuel.Load(), a.tally.Crashes.Load(), a.tally.Restarts.Load()
	i.Held, i.Children, i.Due = a.account.Total(), 0, 0
	// What it is doing is the highest state that applies.
	state := a.life.State()
	i.Paused, i.Grace = a.life.Held(life.Paused), a.life.Held(life.Grace)
	i.Failed = state == life.Failed
	switch {
	case state.Ending():
		i.State = StateStopping
	case state == life.Restarting:
		i.State = StateDelayed
		if due := a.due.Load(); due != 0 {
			i.Due = max(0, time.Unix(0, due).Sub(a.Now()))
		}
	case i.Failed || a.life.Suspended() > 0:
		i.State = StateSuspended
	case i.Paused:
		i.State = StatePaused
	case a.life.Held(life.Starved):
		i.State = StateStarved
	case !a.life.Begun.Load():
		i.State = StateStarting
	case a.asleep.Load():
		i.State = StateAsleep
	default:
		i.State = StateRunning
	}
}
