package persist

import (
	"errors"
	"maps"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Stateful is an actor in Go that keeps its state. What Save returns is any value that CBOR can hold, and nil if there is nothing to keep;
// Load gets it at the next start, in the version of StateDefinition. An actor that nothing is kept of is not loaded.
type Stateful interface {
	host.Actor
	Save() (any, error)
	Load(payload host.Raw) error
}

// Tagged is an actor whose states have tags, by which others find them: those that it says when its state is kept.
type Tagged interface{ Tags() []string }

// StateDefinition says how actors of a type keep their state.
type StateDefinition struct {
	// Type names what is stored: a message name such as cart.state. It stays the same for as long as something is stored.
	Type string
	// Version is the one in which Save writes now, from 1 on; 0 is 1.
	Version uint16
	// Migrations are the steps from a version to the next one: what they return is any value that CBOR can hold.
	Migrations map[uint16]func(payload host.Raw) (any, error)
	// Automatic has the state kept after each message, if it has changed. Then nobody calls Keep.
	Automatic bool
	// Events knows what such actors have stored as events before they kept their state. They have a method Apply then, see [Actor], and
	// Restore, see [Snapshotter], if there may be snapshots. What is kept first takes the place of all of it.
	Events *Schema
}

// StateProps makes props of an actor in Go that keeps its state in the journal. The factory makes a fresh one for every incarnation, and whenever
// a turn has failed. limit bounds the bytes of its state; 0: none. A definition that cannot be one is an error of its start.
func (j *Journal) StateProps(d StateDefinition, factory func(*Keeper) Stateful, limit int64) host.Props {
	if d.Version == 0 {
		d.Version = 1
	}
	d.Migrations = maps.Clone(d.Migrations)
	return host.Native(func() host.Actor { return &stateful{journal: j, definition: d, factory: factory} }).
		WithEvents().WithMailbox(j.mailbox(mailbox.New(mailbox.Bounded), limit, false))
}

// Keeper is how an actor in Go keeps its state. It is for the actor's turns.
type Keeper struct {
	core   rules.Latest
	of     *stateful
	member *member
}

// Revision is the number of what was kept last, or forgotten after it; 0: nothing was ever kept. It grows by one with each state that is kept.
func (k *Keeper) Revision() uint64 { return k.core.Last() }

// Kept reports whether anything is kept.
func (k *Keeper) Kept() bool { return k.core.There() }

// Recovering reports whether the actor has not been given yet what is kept.
func (k *Keeper) Recovering() bool { return !k.core.Recovered() }

// ID is what the state is found by: the path of the actor below the system.
func (k *Keeper) ID() string { return k.member.id }

// Keep keeps what Save returns, in place of all that was kept before: nothing is stored if it is the same. If Save returns nil it is Forget. What the
// turn sends leaves when the state is stored, and if the turn fails, nothing was. An error says why it cannot be kept; nothing has changed then.
func (k *Keeper) Keep() error {
	if !k.core.Recovered() {
		return rules.ErrRecovering
	}
	b, err := k.save()
	if err != nil {
		return err
	}
	var tags []string
	if t, ok := k.of.now.(Tagged); ok {
		tags = slices.Clone(t.Tags())
	}
	return k.store(k.core.Keep(b, tags))
}

// save is what Save returns, encoded; empty for nil.
func (k *Keeper) save() (host.Raw, error) {
	v, err := k.of.now.Save()
	if v == nil || err != nil {
		return nil, err
	}
	b, err := host.Encode(v)
	if err != nil {
		return nil, &rules.Rejected{Reason: err.Error()}
	}
	return b, nil
}

// Forget deletes what is kept: the actor begins empty at its next start, unless something is kept by then. What the actor is does not change; where its
// state is kept automatically, that is when it changes next.
func (k *Keeper) Forget() error {
	if err := k.store(k.core.Forget()); err != nil || !k.of.definition.Automatic {
		return err
	}
	return k.rests()
}

// rests takes the present state as one that need not be kept.
func (k *Keeper) rests() error {
	b, err := k.save()
	if err == nil {
		k.core.Rests(b)
	}
	return err
}

func (k *Keeper) store(list []rules.Entry, err error) error {
	for i := range list {
		list[i].Event.ID = k.member.id
		k.member.stage(&list[i])
	}
	return err
}

// stateful is an actor in Go with its keeper.
type stateful struct {
	journal    *Journal
	definition StateDefinition
	factory    func(*Keeper) Stateful

	keeper *Keeper
	now    Stateful
	unsure bool // a turn has begun and not ended well: what it has changed does not count
}

func (x *stateful) settle() error {
	if !x.definition.Automatic {
		return nil
	}
	return x.keeper.Keep()
}

// Started implements host.Starter.
func (x *stateful) Started(ctx *host.Context) error {
	if x.journal.living { // its state comes after this turn: it is fed before its first message
		x.now = nil
		return nil
	}
	return x.recover(ctx)
}

// recover makes a fresh actor and feeds it.
func (x *stateful) recover(ctx *host.Context) error {
	m, d := x.journal.of(ctx.Self().UID()), &x.definition
	switch {
	case m == nil:
		return errOutside
	case m.feed.broken != nil:
		return m.feed.broken
	}
	m.staged = nil
	k := &Keeper{core: rules.Latest{Type: d.Type, Version: d.Version, Step: d.step, Events: d.Events}, of: x, member: m}
	if err := k.core.Check(); err != nil {
		return err
	}
	if x.keeper, x.now = k, x.factory(k); x.now == nil {
		return errors.New("the factory returned nil")
	}
	if s, ok := x.now.(host.Starter); ok {
		if err := s.Started(ctx); err != nil {
			return err
		}
	}
	var apply func(*Event) error
	if a, ok := x.now.(interface{ Apply(e *Event) error }); ok {
		apply = a.Apply
	}
	last, err := x.journal.fill(ctx, m, Recovery{}, func(s *Snapshot) error {
		to, can := x.now.(restorer)
		if err := restore(to, can && d.Events != nil, s); err != nil {
			return err
		}
		k.core.Restored(s)
		return nil
	}, func(e *Event) error {
		return k.core.Replay(e, func(payload []byte) error { return x.now.Load(payload) }, apply)
	})
	if err != nil {
		x.now = nil
		m.feed.doom(err)
		return nil
	}
	k.core.Finish(last)
	if d.Automatic && !k.core.There() {
		if err := k.rests(); err != nil {
			return err
		}
	}
	x.unsure = true
	if r, ok := x.now.(Recovered); ok {
		if err := r.Recovered(ctx); err != nil {
			return err
		}
	}
	if !x.journal.living { // what has become of it is kept in this turn, or in that of the first message
		if err := x.settle(); err != nil {
			return err
		}
	}
	x.unsure = false
	return nil
}

// step is the migration from a version.
func (d *StateDefinition) step(from uint16) func([]byte) ([]byte, error) {
	f := d.Migrations[from]
	if f == nil {
		return nil
	}
	return func(payload []byte) ([]byte, error) {
		v, err := f(payload)
		if err != nil {
			return nil, err
		}
		b, err := host.Encode(v)
		return b, err
	}
}

// Receive implements host.Actor.
func (x *stateful) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind == abi.KindRecover {
		return refusedBy(m)
	}
	if x.now == nil || x.unsure || x.keeper.core.Last() != x.keeper.member.state.last {
		if err := x.recover(ctx); err != nil {
			return err
		}
		if x.now == nil {
			return x.keeper.member.feed.lost("state")
		}
	}
	x.unsure = true
	err := x.now.Receive(ctx, m)
	if err == nil || errors.Is(err, host.ErrUnhandled) { // a message that was not for it may have changed something all the same
		if kept := x.settle(); kept != nil {
			return kept
		}
		x.unsure = false
	}
	return err
}

// Decide implements host.Supervisor.
func (x *stateful) Decide(ctx *host.Context, child host.Ref, f *abi.Failure) supervision.Directive {
	if s, ok := x.now.(host.Supervisor); ok {
		return s.Decide(ctx, child, f)
	}
	return 0
}

// Stopped implements host.Stopper.
func (x *stateful) Stopped(ctx *host.Context) {
	if s, ok := x.now.(host.Stopper); ok {
		s.Stopped(ctx)
	}
}
