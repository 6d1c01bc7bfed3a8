// Package persist has actors whose state is what has happened to them: they store events, and are fed them at their next start,
// whatever the code is then.
//
//	var schema = new(persist.Schema).Type("account.moved", 1)
//
//	func init() {
//		persist.Register("account", persist.Definition{Schema: schema}, func(log *persist.Log) persist.Actor { return &account{log: log} })
//	}
//
//	func (a *account) Apply(e *persist.Event) error { // the only place that changes the state
//		var m Moved
//		err := persist.Decode(e, &m)
//		a.balance += m.Amount
//		return err
//	}
//
//	func (a *account) Receive(ctx *actor.Context, msg *actor.Message) error {
//		if err := a.log.Persist(ctx, &Moved{Amount: 5}); err != nil {
//			return ctx.ReplyError(err.Error()) // nothing has changed
//		}
//		return ctx.Reply(actor.Int(a.balance)) // leaves when the event is stored
//	}
//
// The manifest has `durable: events` for such an actor. docs/guide/event-sourcing.md tells the rest.
package persist

import (
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Values of abi/persist.
type (
	Event     = rules.Event
	Snapshot  = rules.Snapshot
	Schema    = rules.Schema
	Recovery  = rules.Recovery
	Retention = rules.Retention
)

// Actor is an actor that keeps events. Only Apply changes its state: it is called for each event that is stored, and for all of
// them again at the next start. What it is given is valid until it returns; Decode copies. It must not send.
type Actor interface {
	actor.Actor
	Apply(e *Event) error
}

// Snapshotter is an actor whose state can be written down: Snapshot writes one item of CBOR, Restore reads it. version is the
// Definition.SnapshotVersion by which it was written.
type Snapshotter interface {
	Snapshot(w *abi.Writer)
	Restore(version uint16, r *abi.Reader) error
}

// Recovered is an actor that wants to know when it has been fed everything, before its first message. It may store events and
// send.
type Recovered interface {
	Recovered(ctx *actor.Context) error
}

// Definition says what actors of a type know, and how they begin.
type Definition struct {
	Schema          *Schema
	Retention       Retention
	Recovery        Recovery
	SnapshotVersion uint16
	// Recover, if it is set, says what an actor is fed, by its arguments for example. It is called in the turn of the start.
	Recover func(ctx *actor.Context) (Recovery, error)
}

func init() { actor.Need(abi.FeatureEvents) }

// Register is actor.Register for a type whose actors keep events.
func Register(name string, d Definition, factory func(*Log) Actor) {
	actor.Register(name, Factory(d, factory))
}

// Factory makes the factory for actor.Register, for actors within interceptors.
func Factory(d Definition, factory func(*Log) Actor) func() actor.Actor {
	if d.Schema == nil {
		panic("persist: a definition needs a schema")
	}
	return func() actor.Actor {
		x := &entity{definition: d}
		x.log = Log{core: rules.Core{Schema: d.Schema, Retention: d.Retention}, entity: x}
		x.inner = factory(&x.log)
		return x
	}
}

// entity is an actor with its log.
type entity struct {
	behind[Actor]
	definition Definition
	log        Log
}

// Log is how an actor stores events. It is for the actor's turns.
type Log struct {
	core   rules.Core
	entity *entity
	writer abi.Writer
	bytes  []byte
	entry  []byte
}

// Last is the number of the last event.
func (l *Log) Last() uint64 { return l.core.Last() }

// Recovering reports whether the actor is still being fed.
func (l *Log) Recovering() bool { return !l.core.Recovered() }

// Persist stores an event, and applies it. What the turn sends leaves when the event is stored, and if the turn fails, nothing
// was. An error that says why the event cannot be stored has changed nothing. If Apply fails, so does the turn.
func (l *Log) Persist(ctx *actor.Context, v actor.Typed, tags ...string) error {
	e, err := Make(v, tags...)
	if err != nil {
		return err
	}
	return l.persist(ctx, &e)
}

// Make is an event for PersistAll.
func Make(v actor.Typed, tags ...string) (e Event, err error) {
	name, version, ok := abi.CutMessageType(v.MessageType())
	if !ok {
		return e, &rules.Rejected{Reason: v.MessageType() + " is no type of an event, such as bank.paid@1"}
	}
	w := abi.NewWriter(nil)
	actor.Encode(w, v)
	return Event{Type: name, Version: version, Tags: tags, Payload: w.Bytes()}, nil
}

// PersistAll stores events, or none of them, and applies them.
func (l *Log) PersistAll(ctx *actor.Context, events ...Event) error {
	list := make([]*Event, len(events))
	for i := range events {
		list[i] = &events[i]
	}
	return l.persist(ctx, list...)
}

func (l *Log) persist(ctx *actor.Context, list ...*Event) error {
	if err := l.core.Check(list...); err != nil {
		return err
	}
	now := ctx.Now().UnixNano()
	for _, e := range list {
		e.Time = now
		l.store(ctx, &rules.Entry{Kind: rules.EntryEvent, Event: *e})
		if err := l.core.Stored(e, l.entity.inner.Apply); err != nil {
			ctx.Fail(err)
			return err
		}
	}
	if l.core.Due() {
		if _, can := l.entity.inner.(Snapshotter); can {
			return l.SaveSnapshot(ctx)
		}
	}
	return nil
}

// SaveSnapshot stores a snapshot of the present state, and deletes what the retention says.
func (l *Log) SaveSnapshot(ctx *actor.Context) error {
	s, can := l.entity.inner.(Snapshotter)
	switch {
	case !can:
		return &rules.Rejected{Reason: "the actor has no Snapshot"}
	case !l.core.Recovered():
		return rules.ErrRecovering
	case l.core.Last() == 0:
		return nil
	}
	l.writer.Reset(l.bytes[:0])
	s.Snapshot(&l.writer)
	l.bytes = l.writer.Bytes()
	switch {
	case len(l.bytes) > rules.MaxSnapshot:
		return &rules.Rejected{Reason: "a snapshot of " + strconv.Itoa(len(l.bytes)) + " bytes, of at most " + strconv.Itoa(rules.MaxSnapshot)}
	case abi.Valid(l.bytes) != nil:
		return &rules.Rejected{Reason: "the snapshot is not one item of CBOR"}
	}
	l.store(ctx, &rules.Entry{Kind: rules.EntrySnapshot, Snapshot: Snapshot{Number: l.core.Last(), Version: l.entity.definition.SnapshotVersion, Payload: l.bytes}})
	for _, e := range l.core.Snapshotted() {
		l.store(ctx, &e)
	}
	return nil
}

// DeleteEvents deletes the events up to a number. Numbers are not used again.
func (l *Log) DeleteEvents(ctx *actor.Context, to uint64) {
	l.store(ctx, &rules.Entry{Kind: rules.EntryDeleteEvents, To: to})
}

// DeleteSnapshots deletes the snapshots of events from a number to another, both included.
func (l *Log) DeleteSnapshots(ctx *actor.Context, from, to uint64) {
	l.store(ctx, &rules.Entry{Kind: rules.EntryDeleteSnapshots, From: from, To: to})
}

func (l *Log) store(ctx *actor.Context, e *rules.Entry) {
	l.entry = rules.AppendEntry(l.entry[:0], e)
	ctx.Persist(l.entry)
}

// Decode reads an event's payload.
func Decode(e *Event, d actor.Decoder) error {
	r := abi.NewReader(e.Payload)
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Started implements actor.Starter.
func (x *entity) Started(ctx *actor.Context) error {
	r := x.definition.Recovery
	if f := x.definition.Recover; f != nil {
		var err error
		if r, err = f(ctx); err != nil {
			return err
		}
	}
	x.log.store(ctx, &rules.Entry{Kind: rules.EntryRecover, Recovery: r})
	if s, ok := x.inner.(actor.Starter); ok {
		return s.Started(ctx)
	}
	return nil
}

var errNotFed = errors.New("persist: a message before the end of the recovery: the actor has to be durable: events")

// Receive implements actor.Actor.
func (x *entity) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindRecover:
		return x.recover(ctx, msg)
	case !x.log.core.Recovered():
		return errNotFed
	}
	return x.inner.Receive(ctx, msg)
}

// recover takes a batch.
func (x *entity) recover(ctx *actor.Context, msg *actor.Message) error {
	r := msg.Reader()
	if r.Peek() == abi.TypeText {
		return errors.New(r.Text())
	}
	last, done, err := rules.ReadBatch(r, func(s *Snapshot) error {
		to, can := x.inner.(Snapshotter)
		if err := restore(to, can, s); err != nil {
			return err
		}
		x.log.core.Restored(s)
		return nil
	}, func(e *Event) error { return x.log.core.Replay(e, x.inner.Apply) })
	if err != nil || !done {
		return err
	}
	x.log.core.Finish(last)
	if f, ok := x.inner.(Recovered); ok {
		return f.Recovered(ctx)
	}
	return nil
}

type restorer interface {
	Restore(version uint16, r *abi.Reader) error
}

// restore gives an actor a snapshot, if it can take one.
func restore(to restorer, can bool, s *Snapshot) error {
	if !can {
		return errors.New("persist: there is a snapshot, and the actor has no Restore")
	}
	from := abi.NewReader(s.Payload)
	err := to.Restore(s.Version, from)
	if err == nil {
		err = from.Done()
	}
	if err != nil {
		return errors.New("persist: the snapshot of event " + strconv.FormatUint(s.Number, 10) + ": " + err.Error())
	}
	return nil
}
