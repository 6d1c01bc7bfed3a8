package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/view"
)

// noteFailure keeps what an operator may want to know later. It is on the actor's account.
func (a *actor) noteFailure(f *abi.Failure) {
	f = a.sys.bus.Secrets.Failure(f)
	l := view.Shortened(a.Now(), f)
	before := a.failed.Swap(l).Weight()
	if more := l.Weight() - before; more != 0 {
		a.account.Note(account.Base, a.account.Of(account.Base)+more)
	}
}

// Info is the present Info of an actor; ErrUnknown if it has stopped.
func (s *System) Info(ref Ref) (Info, error) {
	a := s.here(ref.UID())
	if a == nil {
		return Info{}, ErrUnknown
	}
	var i Info
	a.info(&i)
	i.Children = a.super.Family.Len()
	return i, nil
}

// AppendInfo appends the current Info of every actor, /user and /system included, in no particular order. Actors that start
// or stop during the call may be left out. It holds no lock that a message needs. To add up what actors have done, use
// [System.Census].
func (s *System) AppendInfo(to []Info) []Info { return s.appendInfo(to, nil) }

// Census is AppendInfo plus the totals, by type, of stopped actors. Each actor is in one of the two, so their sums never
// decrease from one call to the next. /user and /system have no type and are in neither. Calls wait for each other.
func (s *System) Census(to []Info) (infos []Info, ended map[string]TypeStats) {
	ended = s.totals.Count(func(c *look.Census) { to = s.appendInfo(to, c) })
	return to, ended
}

// appendInfo leaves out actors that a census does not count as living, if there is one.
func (s *System) appendInfo(to []Info, c *look.Census) []Info {
	const together = 32
	var batch [together]*actor
	n := 0
	flush := func() {
		// The fields that are read are rarely in a cache. Reading several actors before
		// anything depends on the values makes the memory fetch all of them at once.
		warm := uint64(0)
		for _, a := range batch[:n] {
			warm += a.tally.Turns.Load() + uint64(a.account.Of(account.Base)) + uint64(a.box.Len()) + uint64(a.uid)
		}
		if warm == 0 {
			return // no actor has uid 0
		}
		for _, a := range batch[:n] {
			if len(to) < cap(to) {
				to = to[:len(to)+1]
			} else {
				to = append(to, Info{})
			}
			a.info(&to[len(to)-1])
		}
	}
	s.table.Each(func(a *actor) {
		if c != nil && !c.Meets(&a.counted) {
			return
		}
		batch[n] = a
		if n++; n == together {
			flush()
			n = 0
		}
	})
	flush()
	return to
}

// info fills i in, field by field: there may be many.
func (a *actor) info(i *Info) {
	i.Ref = newRef(a.uid, a.path)
	if p := a.parent; p != nil {
		i.Parent = newRef(p.uid, p.path)
	} else {
		i.Parent = Ref{}
	}
	i.Type, i.Incarnation, i.Since, i.Failure = a.typ, a.number.Load(), a.startedAt.Load(), a.failed.Load()
	i.Mailbox, i.MailboxBytes, i.Before, i.Came = a.box.Len(), a.box.Bytes(), 0, 0
	if a.box.Hosted != nil {
		i.Before, i.Came = a.box.Hosted.Order()
	}
	i.Turns, i.Fuel, i.Crashes, i.Restarts = a.tally.Turns.Load(), a.tally.Fuel.Load(), a.tally.Crashes.Load(), a.tally.Restarts.Load()
	i.Held, i.Children, i.Due = a.account.Total(), 0, 0
	a.infoState(i)
}

// infoState says what the actor is doing: the highest state that applies.
func (a *actor) infoState(i *Info) {
	state := a.life.State()
	i.Paused, i.Grace = a.holds.has(holdPaused), a.holds.has(holdGrace)
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
	case a.holds.has(holdInstance):
		i.State = StateStarved
	case !a.begun.Load():
		i.State = StateStarting
	case a.asleep.Load():
		i.State = StateAsleep
	default:
		i.State = StateRunning
	}
}
