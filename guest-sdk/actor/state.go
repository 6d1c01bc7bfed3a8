package actor

import (
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// Saver is an actor whose state can go over to other code: the host has the old code write it, and the new code read it.
// Ref, children, timers, watches, grants and stashed messages stay as they are. Neither method may ask for anything: no
// message, no timer, no child. An error leaves the actor with the code that it has.
type Saver interface {
	Actor

	// Save writes the state as one CBOR item. It is called for a copy of the actor, which ends then.
	Save(ctx *Context, w *abi.Writer) error

	// Load reads what Save, or the last migration, has written. It is called in place of Started, for a fresh actor.
	Load(ctx *Context, r *abi.Reader) error
}

// State says in which version a [Saver] writes its state, and how older ones become this one. It is given to [Register].
type State struct {
	version uint64
	steps   []migration

	// Functions, so that guests that save nothing are not larger for it.
	save func() error
	load func() error
}

type migration struct {
	from uint64
	step Migration
}

// Migration reads a state of one version, and writes it as one of the next.
type Migration func(r *abi.Reader, w *abi.Writer) error

// Saves makes a State: what the actor's Save writes now is of this version, from 1 on. Count it up when what is written
// changes, and add a Migrate from the version before.
//
//	actor.Register("cart", newCart, actor.Saves(3).Migrate(1, addPrices).Migrate(2, dropNames))
func Saves(version uint64) *State {
	if version == 0 {
		panic("actor.Saves: versions begin with 1")
	}
	return &State{version: version, save: saveState, load: loadState}
}

// Migrate adds the step from one version to the next; steps are chained. A second one from the same version, and one that leads
// nowhere, panic.
func (s *State) Migrate(from uint64, step Migration) *State {
	if from == 0 || from >= s.version {
		panic("actor.Migrate: from version " + strconv.FormatUint(from, 10) + " there is nowhere to go")
	}
	for i := range s.steps {
		if s.steps[i].from == from {
			panic("actor.Migrate: there are two steps from version " + strconv.FormatUint(from, 10))
		}
	}
	s.steps = append(s.steps, migration{from, step})
	return s
}

// Version is the version in which the state is written now.
func (s *State) Version() uint64 { return s.version }

// Step is the migration from a version, nil if there is none.
func (s *State) Step(from uint64) Migration {
	for i := range s.steps {
		if s.steps[i].from == from {
			return s.steps[i].step
		}
	}
	return nil
}

func takeOver(r *registration) error {
	if r.state == nil {
		return errors.New("the type takes no state over: it is registered without actor.Saves")
	}
	return r.state.load()
}

// saver is the current actor, without its interceptors.
func saver() (Saver, error) {
	a := mem.ctx.current
	for {
		x, ok := a.(*intercepted)
		if !ok {
			break
		}
		a = x.inner
	}
	if s, ok := a.(Saver); ok {
		return s, nil
	}
	return nil, errors.New("the actor has no methods Save and Load, and is registered with actor.Saves")
}

// saveState answers KindSave. Functions cannot be saved: who waits for an answer with one waits for it first.
func saveState() error {
	s, err := saver()
	if err != nil {
		return err
	}
	c := &mem.ctx
	if c.asks.open > 0 {
		return errors.New("it waits for " + strconv.Itoa(c.asks.open) + " answers, whose functions cannot go over to other code")
	}
	var state, own abi.Writer
	if err := s.Save(c, &state); err != nil {
		return err
	}
	own.Map(3)
	own.Text("asks")
	own.Uint(c.asks.last)
	own.Text("rand")
	own.Uint(c.rand.next)
	own.Text("rates")
	own.Array(len(c.rates))
	for i := range c.rates {
		r := &c.rates[i]
		own.Array(4)
		own.Uint(r.key)
		own.Int(r.due)
		own.Int(r.period)
		own.ByteString(r.payload)
	}
	version := lookup(c.start.Type).state.version
	wrote(abi.AppendSaved(appendix(usualHead+len(state.Bytes())+len(own.Bytes())), version, state.Bytes(), own.Bytes()))
	return nil
}

// loadState begins with the state in the start envelope.
func loadState() error {
	c := &mem.ctx
	now := c.start.State
	c.start.State = nil // it is read once
	state := lookup(c.start.Type).state
	s, err := saver()
	if err != nil {
		return err
	}
	if now.Version > state.version {
		return errors.New("the state is of version " + strconv.FormatUint(now.Version, 10) + ", and this code reads up to version " + strconv.FormatUint(state.version, 10))
	}
	payload := now.Payload
	for v := now.Version; v < state.version; v++ {
		step := state.Step(v)
		if step == nil {
			return errors.New("the state is of version " + strconv.FormatUint(now.Version, 10) + ", and no migration leads from version " + strconv.FormatUint(v, 10))
		}
		r := abi.NewReader(payload)
		var w abi.Writer
		if err := step(r, &w); err != nil {
			return err
		}
		if err := r.Done(); err != nil {
			return err
		}
		payload = w.Bytes()
	}
	if err := c.loadOwn(now.Own); err != nil {
		return err
	}
	r := abi.NewReader(payload)
	if err := s.Load(c, r); err != nil {
		return err
	}
	return r.Done()
}

// loadOwn reads what an SDK has saved for itself. It may be another one's: what is not known is stepped over.
func (c *Context) loadOwn(own []byte) error {
	r := abi.NewReader(own)
	for range r.Map() {
		switch key := r.Text(); key {
		case "asks":
			c.asks.last = r.Uint()
		case "rand":
			c.rand.next = r.Uint()
		case "rates":
			for range r.Array() {
				if n := r.Array(); r.OK() && n != 4 {
					return errors.New("what the SDK has saved is malformed")
				}
				x := rate{key: r.Uint(), due: r.Int(), period: r.Int(), payload: r.Bytes()}
				if r.OK() && x.period <= 0 {
					return errors.New("what the SDK has saved is malformed")
				}
				c.rates = append(c.rates, x)
			}
		default:
			r.Skip()
		}
	}
	return r.Done()
}
