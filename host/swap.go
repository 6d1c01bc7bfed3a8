package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How the code of a guest is exchanged between two turns (host/upgrade). The guest is held, so that its state can be copied and taken
// over elsewhere, and then sleeps with the state of its new code: whatever wakes it goes on with that.

func init() {
	swap.Take, swap.Members, swap.Settle = take, members, settle
	swap.Manual = func(system any) bool { return system.(*System).cfg.manual }
	swap.Renew = func(system any, ref abi.Ref) bool {
		a := system.(*System).here(ref)
		return a != nil && a.parent != nil && renewCode(a)
	}
}

// visited calls f where the actor's own run would; false if ctx ends before, or the actor has gone.
func visited(ctx context.Context, a *actor, f func()) bool {
	l := a.lookAt(f)
	for a.sys.cfg.manual && !l.IsOver() && a.sys.disp.Step() {
	}
	l.Wait(ctx)
	return l.Done()
}

// settle implements swap.Settle.
func settle(ctx context.Context, system any, ref abi.Ref) {
	if a := system.(*System).here(ref); a != nil {
		visited(ctx, a, func() {
			if g, ok := a.behaviour.(*guest); ok && !a.holds.has(holdSwap) {
				dropTrial(g, "the probation is over")
			}
		})
	}
}

// members implements swap.Members.
func members(ctx context.Context, system, module any) (all []swap.Member) {
	for _, a := range actorsOf(system.(*System), module.(*Module)) {
		x := swap.Member{Ref: a.ref(), Path: a.path, Type: a.props.typ}
		visited(ctx, a, func() {
			if a.begun.Load() {
				x.Image = a.behaviour.(*guest).inst.Image
			}
		})
		all = append(all, x)
	}
	return all
}

// take implements swap.Take.
func take(ctx context.Context, system any, ref abi.Ref) (t *swap.Taken, err error) {
	a := system.(*System).here(ref)
	if a == nil || a.props.module == nil {
		return nil, swap.ErrGone
	}
	g := a.behaviour.(*guest)
	var turns, incarnation uint64
	done := visited(ctx, a, func() {
		x := g.inst.Load()
		switch {
		case a.durable:
			err = swap.ErrDurable
		case a.life.State() != life.Running || !a.begun.Load() || a.renewals > 0 || a.isHeld() || x == nil && g.inst.Snapshot == nil || a.holds.has(holdSwap) && g.trial == nil:
			err = swap.ErrNotNow
		}
		if err != nil {
			return
		}
		a.holds.add(holdSwap)
		turns, incarnation = a.turns, a.Incarnation()
		t = &swap.Taken{Path: a.path, Type: a.props.typ, Image: g.inst.Image, Waits: len(a.work.Asks.Correlations()), Trial: g.trial}
		if x == nil {
			t.State = g.inst.Snapshot.Clone()
		} else {
			t.State = new(sandbox.Snapshot)
			t.Why = x.Save(t.State)
		}
		t.Start, t.Entry = startOf(a, g), sandbox.Entry{
			Now: a.sys.time.Now(), FirstTurn: a.turns, Seed: g.seed, TurnFuel: a.props.limits.Fuel, Deadline: a.props.limits.Deadline,
			MemoryLimit: a.props.limits.Memory, OutboxLimit: a.props.limits.Outbox,
		}
		if g.inst.States != nil {
			for _, l := range g.inst.States.Log {
				if e := l.Mail; !l.Unread {
					t.Inputs = append(t.Inputs, swap.Input{Turn: l.Turn, Envelope: abi.Envelope{
						Kind: e.Kind, Time: l.Now, Sender: e.Sender, Correlation: e.Correlation, Headers: slices.Clone(e.Headers), Payload: slices.Clone(e.Payload)}})
				}
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !done && ctx.Err() != nil: // it may be taken later: then it is let go at once
		return nil, fmt.Errorf("%w: %w", swap.ErrNotNow, context.Cause(ctx))
	case !done:
		return nil, swap.ErrGone
	}
	t.Let = func() {
		visited(context.Background(), a, func() { a.holds.drop(holdSwap) })
		a.wake(nil)
	}
	t.Log = func(level int, text string) { a.sys.logf(a, level, "%s", text) }
	t.Switch = func(ctx context.Context, image *sandbox.Image, state *sandbox.Snapshot, trial *swap.Trial) error {
		err := swap.ErrMoved
		visited(context.WithoutCancel(ctx), a, func() {
			if a.holds.drop(holdSwap); a.turns == turns && a.Incarnation() == incarnation && a.life.State() == life.Running {
				exchange(a, g, image, state, trial)
				err = nil
			}
		})
		a.wake(nil)
		return err
	}
	return t, nil
}

// exchange has the actor sleep in a state of another image.
func exchange(a *actor, g *guest, image *sandbox.Image, state *sandbox.Snapshot, trial *swap.Trial) {
	keeps := g.inst.States != nil
	sandbox.Use(image) // it is open: the upgrade, or the trial, has it
	g.inst.ForgetStates()
	g.dropBox()
	if g.track != nil {
		g.track.Lose("its code was exchanged")
	}
	g.inst.Release()
	g.inst.ForgetSleep()
	dropTrial(g, "other code has come")
	setCode(g, image)
	if g.module.Image() != image {
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
	if g.trial = trial; trial != nil {
		a.looks |= uint8(lookTrial)
	}
}
