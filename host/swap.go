package host

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How the code of a guest is exchanged between two turns (host/upgrade). The guest is held, so that its state can be copied and taken
// over elsewhere, and then sleeps with the state of its new code: whatever wakes it goes on with that.

func init() {
	swap.Take, swap.Members, swap.Settle = take, members, settle
	swap.Release = func(system any, ref abi.Ref) {
		if a := system.(*System).here(ref); a != nil && a.life.Held(life.Swapping) {
			release(a)
		}
	}
	swap.Manual = func(system any) bool { return system.(*System).cfg.Manual }
	swap.Renew = func(ctx context.Context, system any, ref abi.Ref) bool {
		a := system.(*System).here(ref)
		return a != nil && a.parent != nil && assign(ctx, system, ref) == nil && renewCode(a)
	}
	swap.Assign = assign
	swap.History = func(ctx context.Context, system any, behind record.Place, each func(*record.Record) error) (record.Place, error) {
		if h, ok := system.(*System).cfg.Recorder.(record.Historian); ok {
			return h.History(ctx, behind, each)
		}
		return behind, swap.ErrNoHistory
	}
}

// visited calls f where the actor's own run would; false if ctx ends before, or the actor has gone. In a manual system it waits for nobody
// who has no turn to take: what a turn waits for there, as its record, comes when the caller lets time pass.
func visited(ctx context.Context, a *actor, f func()) bool {
	l := a.lookAt(f)
	for a.sys.cfg.Manual && !l.IsOver() && a.sys.disp.Step() {
	}
	if !a.sys.cfg.Manual {
		l.Wait(ctx)
	}
	return l.Done()
}

// settle implements swap.Settle.
func settle(ctx context.Context, system any, ref abi.Ref) {
	if a := system.(*System).here(ref); a != nil {
		visited(ctx, a, func() {
			if g, ok := a.behaviour.(*guest); ok && !a.life.Held(life.Swapping) {
				dropTrial(g, "the probation is over")
			}
		})
	}
}

// members implements swap.Members.
func members(ctx context.Context, system, module any) (all []swap.Member) {
	for _, a := range actorsOf(system.(*System), module.(*Module)) {
		x := swap.Member{Ref: a.ref(), Path: a.path, Type: a.props.typ, Durable: a.durable, Events: keepsEvents(a)}
		seen := visited(ctx, a, func() {
			if g := a.behaviour.(*guest); a.life.Begun.Load() {
				x.Image, x.Trial = g.inst.Image, g.trial
			} else {
				x.Image = g.own // nil: it begins with its module's
			}
		})
		x.Unseen = !seen && a.sys.here(a.uid) != nil
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
		case a.sys.repeats.Load() != nil:
			err = swap.ErrNotNow
		case a.life.State() != life.Running || !a.life.Begun.Load() || a.renewals > 0 || a.sealed.isHeld() || x == nil && g.inst.Snapshot == nil || a.life.Held(life.Swapping) && g.trial == nil:
			err = swap.ErrNotNow
		}
		if err != nil {
			return
		}
		a.life.Hold(life.Swapping)
		turns, incarnation = a.turns, a.Incarnation()
		t = &swap.Taken{Ref: ref, Path: a.path, Type: a.props.typ, Image: g.inst.Image, Waits: len(a.work.Asks.Correlations()), Trial: g.trial, Durable: a.durable, Timeless: a.sys.cfg.Allowance != nil}
		t.State, t.Why = stateOf(g)
		t.Start, t.Entry = startOf(a, g), entryAfter(a, g, a.sys.time.Now())
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
	t.Let = func() { release(a) }
	t.Log = func(level int, text string) { a.sys.logf(a, level, "%s", text) }
	t.Switch = func(ctx context.Context, to *swap.Code, trial *swap.Trial) error {
		var records []record.Exchange
		var err error
		if a.durable {
			records, err = swap.RecordsOf(to, fingerprintOf(to.Image))
		}
		if err == nil {
			err = swap.ErrMoved
			between(a, func() {
				visited(context.WithoutCancel(ctx), a, func() {
					if a.turns == turns && a.Incarnation() == incarnation && a.life.State() == life.Running && !a.sealed.isHeld() {
						t.Passes(to, swap.Recording)
						if err = noteExchange(a, records, to.Time); err == nil {
							t.Passes(to, swap.Switching)
							exchange(a, g, to.Image, to.State, trial)
						}
					}
				})
			})
		}
		if err == nil {
			t.Let()
		}
		return err
	}
	return t, nil
}

// release has an actor that was taken handle messages again. If its instance has failed, and it has not gone back, the actor fails
// before it handles one: the failed turn is in no record, and the signal is.
func release(a *actor) {
	var f *abi.Failure
	visited(context.Background(), a, func() {
		g := a.behaviour.(*guest)
		if x := g.inst.Load(); a.life.Held(life.Swapping) && x != nil && x.Poisoned() && a.life.State() == life.Running {
			f = &abi.Failure{Kind: abi.FailureHost, Reason: "its new code has failed, and it could not go back"}
			if g.trial != nil {
				f = cmp.Or(g.trial.Failure(), f)
			}
			f = &abi.Failure{Kind: f.Kind, Reason: f.Reason}
		}
	})
	if f != nil {
		a.post(nil, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: f}})
	}
	visited(context.Background(), a, func() { a.life.LetGo(life.Swapping) })
	a.place.Wake(nil)
}

// assign implements swap.Assign.
func assign(ctx context.Context, system any, ref abi.Ref) error {
	a := system.(*System).here(ref)
	if a == nil || a.props.module == nil {
		return swap.ErrGone
	}
	if !a.durable {
		return nil
	}
	g, image := a.behaviour.(*guest), a.props.module.Image()
	if why := sandbox.CannotSave(image); why != "" {
		return fmt.Errorf("the new code cannot be copied: %s", why)
	}
	code := fingerprintOf(image)
	err := fmt.Errorf("%w: it is in a long turn, or ends", swap.ErrNotNow)
	between(a, func() {
		visited(ctx, a, func() {
			if err = nil; g.start != nil {
				err = swap.ErrNotNow // it begins with the code that it has
			} else if g.own != image && !bytes.Equal(code, fingerprintOf(g.own)) {
				err = noteExchange(a, []record.Exchange{{Code: code, Way: record.Anew}}, a.sys.time.Now())
			}
			if err == nil {
				begins(g, image)
			}
		})
	})
	return err
}
