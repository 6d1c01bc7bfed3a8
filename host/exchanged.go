package host

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// The code of a durable actor changes with a record, and with nothing else: a restart keeps it, whatever its module has by then. The
// record has what the new state follows from. So after a crash the actor is what it was before the record, or what it was after it.

// exchange has the actor sleep in a state of another image.
func exchange(a *actor, g *guest, image *sandbox.Image, state *sandbox.Snapshot, trial *swap.Trial) {
	keeps := g.inst.States != nil
	sandbox.Use(image) // it is open: the upgrade, or the trial, has it
	g.inst.ForgetStates()
	dropBox(g)
	if g.track != nil {
		g.track.Lose("its code was exchanged")
	}
	g.inst.Release()
	g.inst.ForgetSleep()
	dropTrial(g, "other code has come")
	setCode(g, image)
	if a.durable {
		begins(g, image)
	} else if g.module.Image() != image {
		g.pin = pin{g.module.Image(), image}
	}
	g.inst.FallAsleep(state)
	if keeps {
		g.inst.States = &instance.States{Snap: *state.Clone()}
		if err := work.Hold(&a.account, account.Snapshot, g.inst.States.Held()); err != nil {
			g.inst.States.Why, g.inst.States.Snap = err.Error(), sandbox.Snapshot{}
		}
		g.inst.NoteStates()
	}
	setTrial(g, trial)
}

// errEnds says that nothing is recorded any more.
var errEnds = errors.New("its system ends")

// noteExchange tells the recorder of an exchange, if there is room. The time is that of the turn that loads.
func noteExchange(a *actor, all []record.Exchange, at int64) error {
	d := a.sys.durable
	switch {
	case len(all) == 0:
		return nil
	case d != nil && d.rest.Frozen():
		return errEnds
	}
	if g, ok := a.sys.cfg.Recorder.(record.Gate); ok {
		if err := swap.Admit(g, all); err != nil {
			return err
		}
	}
	for i := range all {
		tellRecorder(a.sys, &record.Record{Kind: record.Exchanged, Actor: a.uid, Time: at, Exchange: &all[i]})
	}
	return nil
}

// between calls f between two checkpoints: what it records is before the mark of one, and the actor's state in it, or behind it.
func between(a *actor, f func()) {
	if d := a.sys.durable; d != nil && a.durable {
		d.checkpoints.Lock()
		defer d.checkpoints.Unlock()
	}
	f()
}

// code finds the image that records of an actor name.
func (p *repeats) code(a *actor, fingerprint []byte) (*sandbox.Image, error) {
	return rebuild.CodeOf(a.props.module.Image(), a.props.typ, fingerprint, p.sys.cfg.Recorder)
}

// runs has the next incarnation of an actor begin with the image that records name; empty: they say nothing of it.
func (p *repeats) runs(a *actor, fingerprint []byte) error {
	if len(fingerprint) == 0 || a.props.module == nil {
		return nil
	}
	image, err := p.code(a, fingerprint)
	if err == nil {
		begins(a.behaviour.(*guest), image)
	}
	return err
}

// exchanged has an actor go on with other code.
func (p *repeats) exchanged(a *actor, r *record.Record) error {
	x := r.Exchange
	g, ok := a.behaviour.(*guest)
	if !ok {
		return errors.New("it is no guest")
	}
	if x.Way == record.Copied {
		had := p.states[a.uid]
		more, err := had.Add(x)
		if p.states[a.uid] = had; more || err != nil {
			return err
		}
	}
	parts := p.states[a.uid]
	delete(p.states, a.uid)
	if x.Way == record.Anew {
		return p.runs(a, x.Code)
	}
	if !a.life.Begun.Load() || a.sealed.isHeld() {
		return fmt.Errorf("its code is exchanged while it is %v", a.life.State())
	}
	image, err := p.code(a, x.Code)
	if err != nil {
		return err
	}
	return p.step(a, r, nil, func(*scratch) {
		var snap *sandbox.Snapshot
		var err error
		if x.Way == record.Copied {
			snap, err = parts.State(image)
		} else {
			snap, err = reload(a, g, image, r)
		}
		if err != nil {
			p.err = err
			return
		}
		exchange(a, g, image, snap, p.trials.Begin(g.inst.Image, image, snap, r, func() (*sandbox.Snapshot, error) { return stateOf(g) }))
	})
}

// probes has an actor of a checkpoint be on probation, if it was and its upgrade still is.
func (p *repeats) probes(a *actor, w *saved.Whole) {
	g := a.behaviour.(*guest)
	t, why := p.trials.Load(w.Trial, g.inst.Image, func(code []byte) (*sandbox.Image, error) { return p.code(a, code) })
	if setTrial(g, t); why != nil {
		a.sys.logf(a, abi.LogWarn, "it cannot go back to its old code any more: %v", why)
	}
}

// setTrial begins a trial; nil: there is none.
func setTrial(g *guest, t *swap.Trial) {
	if g.trial = t; t != nil {
		g.actor.looks |= uint8(lookTrial)
	}
}

// stateOf copies the state of a guest that is between two turns.
func stateOf(g *guest) (*sandbox.Snapshot, error) {
	x := g.inst.Load()
	if x == nil {
		return g.inst.Snapshot.Clone(), nil
	}
	s := new(sandbox.Snapshot)
	return s, x.Save(s)
}

// reload has the new code load what the old code has saved, as it did before.
func reload(a *actor, g *guest, image *sandbox.Image, r *record.Record) (*sandbox.Snapshot, error) {
	x, err := sandbox.Get(image)
	if err != nil {
		return nil, err
	}
	defer x.Put()
	start, own := startOf(a, g), r.Exchange
	start.State = &abi.State{Version: own.Version, Payload: own.Saved, Own: own.Own}
	state, fuel, err := swap.Load(x, &start, swap.EntryOf(entryAfter(a, g, r.Time)))
	if err != nil {
		return nil, fmt.Errorf("the new code does not load again what it has loaded: %w", err)
	}
	if fuel != own.Fuel { // its services are those of the manifest now, as with any start that is repeated
		a.sys.logf(a, abi.LogWarn, "loading its state again has taken %d fuel, and had taken %d", fuel, own.Fuel)
	}
	return state, nil
}

// entryAfter is what a turn after those of the actor may spend.
func entryAfter(a *actor, g *guest, now int64) sandbox.Entry {
	l := &a.rules.Load().limits
	in := sandbox.Entry{Now: now, FirstTurn: a.turns, Seed: g.keys.Seed, TurnFuel: l.Fuel, MemoryLimit: l.Memory, OutboxLimit: l.Outbox}
	if a.sys.cfg.Allowance == nil {
		in.Deadline = l.Deadline // else as in limits
	}
	return in
}
