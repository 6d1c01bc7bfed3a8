package persist

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// An actor that has a value, and no wish for events, keeps its state:
//
//	func init() {
//		d := persist.StateDefinition{Type: "cart.state", State: actor.Saves(1), Automatic: true}
//		persist.RegisterState("cart", d, func(*persist.Keeper) actor.Saver { return &cart{} })
//	}
//
//	func (c *cart) Save(_ *actor.Context, w *abi.Writer) error { ... } // one item of CBOR; nothing: there is nothing to keep
//	func (c *cart) Load(_ *actor.Context, r *abi.Reader) error { ... }
//
// The manifest has `durable: events` for it, too: each state is an event that takes the place of all before it.

// StateDefinition says how actors of a type keep their state.
type StateDefinition struct {
	// Type names what is stored: a message name such as cart.state. It stays the same for as long as something is stored.
	Type string
	// State has the version in which Save writes now, 1 to 65535, and the migrations from earlier ones, as of a type that goes over to
	// other code; nil is actor.Saves(1).
	State *actor.State
	// Automatic has the state kept after each message, answer and timer, if it has changed. Then nobody calls Keep.
	Automatic bool
	// Events knows what such actors have stored as events before they kept their state. They have a method Apply then, see [Actor], and
	// Restore, see [Snapshotter], if there may be snapshots. What is kept first takes the place of all of it.
	Events *Schema
}

// Tagged is an actor whose states have tags, by which others find them: those that it says when its state is kept.
type Tagged interface{ Tags() []string }

// RegisterState is actor.Register for a type whose actors keep their state. A definition that cannot be one panics.
func RegisterState(name string, d StateDefinition, factory func(*Keeper) actor.Saver) {
	actor.Register(name, StateFactory(d, factory))
}

// StateFactory makes the factory for actor.Register, for actors within interceptors.
func StateFactory(d StateDefinition, factory func(*Keeper) actor.Saver) func() actor.Actor {
	if d.State == nil {
		d.State = actor.Saves(1)
	}
	c := rules.Latest{Type: d.Type, Events: d.Events, Step: steps(d.State)}
	if v := d.State.Version(); v < 1<<16 {
		c.Version = uint16(v)
	}
	if err := c.Check(); err != nil {
		panic(err.Error())
	}
	return func() actor.Actor {
		x := &stateful{automatic: d.Automatic}
		x.keeper = Keeper{core: c, of: x}
		x.inner = factory(&x.keeper)
		return x
	}
}

// steps are the migrations of a State, from payload to payload.
func steps(s *actor.State) func(uint16) func([]byte) ([]byte, error) {
	return func(from uint16) func([]byte) ([]byte, error) {
		step := s.Step(uint64(from))
		if step == nil {
			return nil
		}
		return func(payload []byte) ([]byte, error) {
			r, w := abi.NewReader(payload), abi.NewWriter(nil)
			if err := step(r, w); err != nil {
				return nil, err
			}
			return w.Bytes(), r.Done()
		}
	}
}

// Keeper is how an actor keeps its state. It is for the actor's turns.
type Keeper struct {
	core   rules.Latest
	of     *stateful
	writer abi.Writer
	bytes  []byte
	entry  []byte
}

// Revision is the number of what was kept last, or forgotten after it; 0: nothing was ever kept. It grows by one with each state that is kept.
func (k *Keeper) Revision() uint64 { return k.core.Last() }

// Kept reports whether anything is kept.
func (k *Keeper) Kept() bool { return k.core.There() }

// Recovering reports whether the actor has not been given yet what is kept.
func (k *Keeper) Recovering() bool { return !k.core.Recovered() }

// Keep keeps what Save writes, in place of all that was kept before: nothing is stored if it is the same. If Save writes nothing it is Forget. What the
// turn sends leaves when the state is stored, and if the turn fails, nothing was. An error says why it cannot be kept; nothing has changed then.
func (k *Keeper) Keep(ctx *actor.Context) error {
	if !k.core.Recovered() {
		return rules.ErrRecovering
	}
	b, err := k.save(ctx)
	if err != nil {
		return err
	}
	var tags []string
	if t, ok := k.of.inner.(Tagged); ok {
		tags = t.Tags()
	}
	list, err := k.core.Keep(b, tags)
	k.store(ctx, list)
	return err
}

// save is what Save writes, valid until the next call.
func (k *Keeper) save(ctx *actor.Context) ([]byte, error) {
	k.writer.Reset(k.bytes[:0])
	if err := k.of.inner.Save(ctx, &k.writer); err != nil {
		return nil, err
	}
	k.bytes = k.writer.Bytes()
	return k.bytes, nil
}

// Forget deletes what is kept: the actor begins empty at its next start, unless something is kept by then. What the actor is does not change; where its state
// is kept automatically, that is when it changes next.
func (k *Keeper) Forget(ctx *actor.Context) error {
	list, err := k.core.Forget()
	k.store(ctx, list)
	if err != nil || !k.of.automatic {
		return err
	}
	return k.rests(ctx)
}

// rests takes the present state as one that need not be kept.
func (k *Keeper) rests(ctx *actor.Context) error {
	b, err := k.save(ctx)
	if err == nil {
		k.core.Rests(b)
	}
	return err
}

func (k *Keeper) store(ctx *actor.Context, list []rules.Entry) {
	now := ctx.Now().UnixNano()
	for i := range list {
		e := &list[i]
		e.Event.Time = now
		k.entry = rules.AppendEntry(k.entry[:0], e)
		ctx.Persist(k.entry)
	}
}

// stateful is an actor with its keeper.
type stateful struct {
	behind[actor.Saver]
	keeper    Keeper
	automatic bool
}

// settle keeps the state if that is for it to do.
func (x *stateful) settle(ctx *actor.Context) error {
	if !x.automatic || x.keeper.Recovering() {
		return nil
	}
	return x.keeper.Keep(ctx)
}

// Started implements actor.Starter.
func (x *stateful) Started(ctx *actor.Context) error {
	if x.automatic {
		ctx.Settle(x.settle)
	}
	x.keeper.entry = rules.AppendEntry(x.keeper.entry[:0], &rules.Entry{Kind: rules.EntryRecover})
	ctx.Persist(x.keeper.entry)
	if s, ok := x.inner.(actor.Starter); ok {
		return s.Started(ctx)
	}
	return nil
}

// Receive implements actor.Actor.
func (x *stateful) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindRecover:
		return x.recover(ctx, msg)
	case x.keeper.Recovering():
		return errNotFed
	}
	err := x.inner.Receive(ctx, msg)
	if err == nil || err == actor.ErrUnhandled { // a message that was not for it may have changed something all the same
		if kept := x.settle(ctx); kept != nil {
			return kept
		}
	}
	return err
}

// recover takes a batch: the state, or what was stored as events before.
func (x *stateful) recover(ctx *actor.Context, msg *actor.Message) error {
	r := msg.Reader()
	if r.Peek() == abi.TypeText {
		return errors.New(r.Text())
	}
	load := func(payload []byte) error {
		from := abi.NewReader(payload)
		if err := x.inner.Load(ctx, from); err != nil {
			return err
		}
		return from.Done()
	}
	var apply func(*Event) error
	if a, ok := x.inner.(interface{ Apply(e *Event) error }); ok {
		apply = a.Apply
	}
	c := &x.keeper.core
	last, done, err := rules.ReadBatch(r, func(s *Snapshot) error {
		to, can := x.inner.(restorer)
		if err := restore(to, can && c.Events != nil, s); err != nil {
			return err
		}
		c.Restored(s)
		return nil
	}, func(e *Event) error { return c.Replay(e, load, apply) })
	if err != nil || !done {
		return err
	}
	c.Finish(last)
	if x.automatic && !c.There() {
		if err := x.keeper.rests(ctx); err != nil {
			return err
		}
	}
	if f, ok := x.inner.(Recovered); ok {
		if err := f.Recovered(ctx); err != nil {
			return err
		}
	}
	return x.settle(ctx)
}
