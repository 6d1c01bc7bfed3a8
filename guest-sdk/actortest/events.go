//go:build !wasip1

package actortest

import (
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/persist"
)

// kept is what an actor has stored, which outlives its incarnations as it does in a host.
type kept struct {
	last      uint64
	events    []persist.Event
	snapshots []persist.Snapshot
}

// History has the actor begin with events, in order, and a snapshot of the first ones if it is not nil. Their numbers are
// set if they are 0.
func History(snapshot *persist.Snapshot, events ...persist.Event) Option {
	return func(c *config) {
		c.kept = kept{}
		if snapshot != nil {
			c.kept.snapshots, c.kept.last = []persist.Snapshot{*snapshot}, snapshot.Number
		}
		for _, e := range events {
			if e.Number == 0 {
				e.Number = c.kept.last + 1
			}
			c.kept.events, c.kept.last = append(c.kept.events, e), e.Number
		}
	}
}

// Kept has the actor begin with a state that was kept before, as the type of its StateDefinition with a version, such as cart.state@1, and what
// its Save has written.
func Kept(typ string, save func(w *abi.Writer)) Option {
	name, version, ok := abi.CutMessageType(typ)
	if !ok {
		panic("actortest.Kept: " + typ + " is no type and version, such as cart.state@1")
	}
	w := abi.NewWriter(nil)
	save(w)
	return History(nil, persist.Event{Type: name, Version: version, Payload: w.Bytes()})
}

// Events are those that the actor has stored and not deleted, in order; of an actor that keeps its state it is one, or none.
func (a *Actor) Events() []persist.Event { return a.kept.events }

// Snapshots are those that the actor has stored and not deleted, the oldest first.
func (a *Actor) Snapshots() []persist.Snapshot { return a.kept.snapshots }

// persist notes an entry of a turn; what is wrong with it fails the turn, as it does in a host.
func (u *Turn) persist(a *Actor, payload []byte) error {
	var e persist.Entry
	if err := persist.DecodeEntry(&e, payload); err != nil {
		return err
	}
	last := a.kept.last
	if n := len(u.Persisted); n > 0 {
		last = u.Persisted[n-1].Number
	}
	switch e.Kind {
	case persist.EntryEvent:
		if e.Event.Number != last+1 {
			return errors.New("event " + strconv.FormatUint(e.Event.Number, 10) + " after event " + strconv.FormatUint(last, 10))
		}
		e.Event.Time = a.now.UnixNano()
		u.Persisted = append(u.Persisted, e.Event)
	case persist.EntrySnapshot:
		if e.Snapshot.Number > last {
			return errors.New("a snapshot of an event that there is not")
		}
		e.Snapshot.Time = a.now.UnixNano()
	case persist.EntryRecover:
		if u.question.Kind != abi.KindStart || u.recovery != nil {
			return errors.New("what to recover is said once, in the turn of the start")
		}
		r := e.Recovery
		u.recovery = &r
	}
	u.entries = append(u.entries, e)
	return nil
}

// keep takes over what a turn has stored.
func (a *Actor) keep(u *Turn) {
	for i := range u.entries {
		e := &u.entries[i]
		switch e.Kind {
		case persist.EntryEvent:
			e.Event.Time = a.now.UnixNano()
			a.kept.events, a.kept.last = append(a.kept.events, e.Event), e.Event.Number
		case persist.EntrySnapshot:
			a.kept.snapshots = append(a.kept.dropped(e.Snapshot.Number, e.Snapshot.Number), e.Snapshot)
		case persist.EntryDeleteEvents:
			n := 0
			for n < len(a.kept.events) && a.kept.events[n].Number <= e.To {
				n++
			}
			a.kept.events = a.kept.events[n:]
		case persist.EntryDeleteSnapshots:
			a.kept.snapshots = a.kept.dropped(e.From, e.To)
		}
	}
}

// dropped are the snapshots without those of some numbers.
func (k *kept) dropped(from, to uint64) (left []persist.Snapshot) {
	for _, s := range k.snapshots {
		if s.Number < from || s.Number > to {
			left = append(left, s)
		}
	}
	return left
}

// feed runs the turns of a recovery, if the start has asked for one, and returns the last of them.
func (a *Actor) feed(start *Turn) (last *Turn) {
	a.t.Helper()
	r := start.recovery
	if r == nil || start.Failure != nil {
		return nil
	}
	b := persist.Batch{Last: a.kept.last, Done: true}
	to, next := a.kept.last, uint64(1)
	if r.To != 0 {
		to = min(to, r.To)
	}
	for i := len(a.kept.snapshots) - 1; i >= 0 && !r.Off && !r.NoSnapshot && b.Snapshot == nil; i-- {
		if s := &a.kept.snapshots[i]; s.Number <= to && (r.SnapshotTo == 0 || s.Number <= r.SnapshotTo) && s.Version >= r.SnapshotVersion {
			b.Snapshot, next = s, s.Number+1
		}
	}
	left := uint64(len(a.kept.events))
	if r.Most != 0 {
		left = min(left, r.Most)
	}
	for i := range a.kept.events {
		if e := &a.kept.events[i]; !r.Off && left > 0 && e.Number >= next && e.Number <= to {
			b.Events, left = append(b.Events, *e), left-1
		}
	}
	return a.run(abi.Envelope{Kind: abi.KindRecover, Payload: persist.AppendBatch(nil, &b)})
}
