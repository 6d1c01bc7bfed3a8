package persist

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Actor is an actor in Go that keeps events. Only Apply changes its state: it is called for each event that is stored, and for
// all of them again at the next start.
type Actor interface {
	host.Actor
	Apply(e *Event) error
}

// Snapshotter is an actor whose state can be written down. What Snapshot returns is any value that CBOR can hold, and Restore
// gets it as a payload, with the version of Definition.SnapshotVersion by which it was written.
type Snapshotter interface {
	Snapshot() (any, error)
	Restore(version uint16, payload host.Raw) error
}

// Recovered is an actor that wants to know when it has been fed everything, before its first message. It may store events
// and send.
type Recovered interface {
	Recovered(ctx *host.Context) error
}

// Definition says what actors of a type know, and how they begin.
type Definition struct {
	Schema          *Schema
	Retention       Retention
	Recovery        Recovery
	SnapshotVersion uint16
}

// Props makes props of an actor in Go that keeps its events in the journal. The factory makes a fresh one for every
// incarnation, and whenever a turn that has stored something has failed. limit bounds the bytes of its events and snapshots;
// 0: none.
func (j *Journal) Props(d Definition, factory func(*Log) Actor, limit int64) host.Props {
	return host.Native(func() host.Actor { return &entity{journal: j, definition: d, factory: factory} }).
		WithEvents().WithMailbox(j.mailbox(mailbox.New(mailbox.Bounded), limit, false))
}

// entity is an actor in Go with its log.
type entity struct {
	journal    *Journal
	definition Definition
	factory    func(*Log) Actor

	log *Log
	now Actor
}

// Log is how an actor in Go stores events. It is for the actor's turns.
type Log struct {
	core   rules.Core
	entity *entity
	member *member
	failed error // the turn fails with it
}

// Last is the number of the last event.
func (l *Log) Last() uint64 { return l.core.Last() }

// Recovering reports whether the actor is still being fed.
func (l *Log) Recovering() bool { return !l.core.Recovered() }

// ID is what the actor's events are found by: its path below the system.
func (l *Log) ID() string { return l.member.id }

// Persist stores an event, and applies it. typ is its type and version, such as bank.paid@2, v any value that CBOR can hold.
// What the turn sends leaves when the event is stored. An error that is not from Apply has changed nothing; if Apply
// fails, so does the turn.
func (l *Log) Persist(typ string, v any, tags ...string) error {
	return l.PersistAll(New(typ, v, tags...))
}

// New is an event for PersistAll.
func New(typ string, v any, tags ...string) Pending { return Pending{typ, v, tags} }

// Pending is an event that is to be stored.
type Pending struct {
	typ  string
	v    any
	tags []string
}

// PersistAll stores events, or none of them, and applies them.
func (l *Log) PersistAll(list ...Pending) error {
	events := make([]*Event, len(list))
	for i, p := range list {
		name, version, ok := abi.CutMessageType(p.typ)
		if !ok {
			return &rules.Rejected{Reason: fmt.Sprintf("%.100q is no type of an event, such as bank.paid@1", p.typ)}
		}
		b, err := host.Encode(p.v)
		if err != nil {
			return &rules.Rejected{Reason: err.Error()}
		}
		events[i] = &Event{Type: name, Version: version, Tags: p.tags, Payload: b}
	}
	if err := l.core.Check(events...); err != nil {
		return err
	}
	for _, e := range events {
		e.ID = l.member.id
		l.stage(&rules.Entry{Kind: rules.EntryEvent, Event: *e})
		if err := l.core.Stored(e, l.entity.now.Apply); err != nil {
			l.failed = err
			return err
		}
	}
	if l.core.Due() {
		if _, can := l.entity.now.(Snapshotter); can {
			return l.SaveSnapshot()
		}
	}
	return nil
}

// SaveSnapshot stores a snapshot of the present state, and deletes what the retention says.
func (l *Log) SaveSnapshot() error {
	s, can := l.entity.now.(Snapshotter)
	switch {
	case !can:
		return &rules.Rejected{Reason: "the actor has no Snapshot"}
	case !l.core.Recovered():
		return rules.ErrRecovering
	case l.core.Last() == 0:
		return nil
	}
	v, err := s.Snapshot()
	var b host.Raw
	if err == nil {
		b, err = host.Encode(v)
	}
	if err == nil && len(b) > rules.MaxSnapshot {
		err = fmt.Errorf("a snapshot of %d bytes, of at most %d", len(b), rules.MaxSnapshot)
	}
	if err != nil {
		return &rules.Rejected{Reason: err.Error()}
	}
	l.stage(&rules.Entry{Kind: rules.EntrySnapshot, Snapshot: Snapshot{Number: l.core.Last(), Version: l.entity.definition.SnapshotVersion, Payload: b}})
	for _, e := range l.core.Snapshotted() {
		l.stage(&e)
	}
	return nil
}

// DeleteEvents deletes the events up to a number. Numbers are not used again.
func (l *Log) DeleteEvents(to uint64) { l.stage(&rules.Entry{Kind: rules.EntryDeleteEvents, To: to}) }

// DeleteSnapshots deletes the snapshots of events from a number to another, both included.
func (l *Log) DeleteSnapshots(from, to uint64) {
	l.stage(&rules.Entry{Kind: rules.EntryDeleteSnapshots, From: from, To: to})
}

func (l *Log) stage(e *rules.Entry) { l.member.stage(e) }

func (m *member) stage(e *rules.Entry) {
	if m.staged == nil {
		m.staged = &taken{}
	}
	m.staged.add(*e, rules.AppendEntry(nil, e))
}

var errOutside = errors.New("persist: the actor runs in a system without the journal")

// Started implements host.Starter.
func (x *entity) Started(ctx *host.Context) error {
	if x.journal.living { // its events come after this turn: it is fed before its first message
		x.now, x.log = nil, nil
		return nil
	}
	return x.recover(ctx)
}

// recover makes a fresh actor and feeds it.
func (x *entity) recover(ctx *host.Context) error {
	m := x.journal.of(ctx.Self().UID())
	if m == nil {
		return errOutside
	}
	if m.feed.broken != nil {
		return m.feed.broken
	}
	m.staged = nil
	x.log = &Log{core: rules.Core{Schema: x.definition.Schema, Retention: x.definition.Retention}, entity: x, member: m}
	if x.now = x.factory(x.log); x.now == nil {
		return errors.New("the factory returned nil")
	}
	if s, ok := x.now.(host.Starter); ok {
		if err := s.Started(ctx); err != nil {
			return err
		}
	}
	last, err := x.journal.fill(ctx, m, x.definition.Recovery, func(b *Snapshot) error {
		s, can := x.now.(Snapshotter)
		if err := restore(s, can, b); err != nil {
			return err
		}
		x.log.core.Restored(b)
		return nil
	}, func(e *Event) error { return x.log.core.Replay(e, x.now.Apply) })
	if err != nil {
		return x.stop(ctx, err)
	}
	x.log.core.Finish(last)
	if r, ok := x.now.(Recovered); ok {
		if err := r.Recovered(ctx); err != nil {
			return err
		}
	}
	return x.log.failed
}

// fill feeds an actor in Go. last is the number of the last event that was ever stored.
func (j *Journal) fill(ctx *host.Context, m *member, r Recovery, restore func(*Snapshot) error, apply func(*Event) error) (last uint64, err error) {
	c := cursor{journal: j, id: m.id, state: m.state, recovery: r}
	for n := 0; ; n++ {
		b, err := c.batch()
		if err == nil && b.Snapshot != nil {
			err = restore(b.Snapshot)
		}
		for i := 0; i < len(b.Events) && err == nil; i++ {
			b.Events[i].ID = m.id
			err = apply(&b.Events[i])
		}
		if err != nil || b.Done {
			return b.Last, err
		}
		if n == 0 {
			ctx.Block() // it may take long
		}
	}
}

type restorer interface {
	Restore(version uint16, payload host.Raw) error
}

// restore gives an actor in Go a snapshot, if it can take one.
func restore(to restorer, can bool, s *Snapshot) error {
	if !can {
		return errors.New("persist: there is a snapshot, and the actor has no Restore")
	}
	if err := to.Restore(s.Version, s.Payload); err != nil {
		return fmt.Errorf("persist: the snapshot of event %d: %w", s.Number, err)
	}
	return nil
}

// stop ends an actor that cannot be fed, whatever its supervisor says.
func (x *entity) stop(ctx *host.Context, err error) error {
	x.now = nil
	x.log.member.feed.doom(err)
	return nil
}

// refusedBy is why an actor in Go was stopped.
func refusedBy(m host.Message) error {
	var why string
	if err := m.Decode(&why); err != nil {
		return host.ErrUnhandled
	}
	return errors.New(why)
}

// Receive implements host.Actor.
func (x *entity) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind == abi.KindRecover {
		return refusedBy(m)
	}
	if x.now == nil || x.log.failed != nil || x.log.core.Last() != x.log.member.state.last {
		if err := x.recover(ctx); err != nil { // a turn that has stored something has failed
			return err
		}
		if x.now == nil {
			return x.log.member.feed.lost("events")
		}
	}
	err := x.now.Receive(ctx, m)
	if f := x.log.failed; f != nil {
		return f
	}
	return err
}

// Decide implements host.Supervisor.
func (x *entity) Decide(ctx *host.Context, child host.Ref, f *abi.Failure) supervision.Directive {
	if s, ok := x.now.(host.Supervisor); ok {
		return s.Decide(ctx, child, f)
	}
	return 0
}

// Stopped implements host.Stopper.
func (x *entity) Stopped(ctx *host.Context) {
	if s, ok := x.now.(host.Stopper); ok {
		s.Stopped(ctx)
	}
}
