package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// begin remembers that actors are about to go over.
func (u *run) begin() error {
	if u.Remember == nil {
		return nil
	}
	from, err := sandbox.Fingerprint(u.old)
	if err != nil {
		return err
	}
	to, err := sandbox.Fingerprint(u.image)
	if err != nil {
		return err
	}
	if from == to {
		return nil // states of one are states of the other, so that nothing of it is recorded
	}
	u.state = record.Probation{
		Module: u.image.Name(), From: from[:], To: to[:], Began: u.sys.Clock().Now().UnixNano(), Lasts: u.Probation, First: u.Canary > 0, MaxFailures: u.MaxFailures,
	}
	if err := u.Remember(&u.state); err != nil {
		return fmt.Errorf("upgrade: what it needs for going back cannot be kept: %w", err)
	}
	return nil
}

// remember remembers how far the upgrade is now. Where that cannot be written down nothing else can: the store is closing, or has failed.
func (u *run) remember(f func(*record.Probation)) {
	u.remembering.Lock()
	defer u.remembering.Unlock()
	if u.Remember == nil || u.state.Module == "" {
		return
	}
	f(&u.state)
	now := u.state
	_ = u.Remember(&now)
}

// Resume goes on with an upgrade of an earlier process, in a system whose durable actors are back: it is what Options.Remember was told last.
// old and image are the code before and the new code. Of the options, those that p has are not looked at.
//
// Actors that have gone over are watched until the probation ends, or go back; it may have ended while no process ran. Those that
// have not gone over follow, unless they have kept their code, or gone back: that is all that is known of an actor which has its old code.
// An actor with the way Restart that has begun anew before, and is durable, cannot go back.
func Resume(ctx context.Context, sys *host.System, m *host.Module, old, image *runtime.Image, p *record.Probation, o Options) (*Report, error) {
	if why := p.Wrong(); why != "" || p.Over {
		return nil, fmt.Errorf("upgrade: there is nothing to resume: %s", why)
	}
	for _, x := range []struct {
		image *sandbox.Image
		sum   []byte
	}{{old, p.From}, {image, p.To}} {
		if sum, err := sandbox.Fingerprint(x.image); err != nil || !bytes.Equal(sum[:], x.sum) {
			return nil, fmt.Errorf("upgrade: the code of %s is not that of its probation", x.image.Name())
		}
	}
	if _, busy := underWay.LoadOrStore(sys, true); busy {
		return nil, ErrBusy
	}
	defer underWay.Delete(sys)
	o.Plan, o.Canary, o.Probation, o.MaxFailures, o.Insist = false, 0, p.Lasts, p.MaxFailures, false
	u := newRun(ctx, sys, m, o)
	defer u.alarmed()
	u.old, u.image, u.state, u.crashes, u.resumed = old, image, *p, p.Crashes, true
	if u.crashes > u.MaxFailures { // the process has ended before it could go back
		u.alarmed()
	}
	for u.adopt(p); u.blind && ctx.Err() == nil && !swap.Manual(sys); {
		u.adopt(p) // an actor that is in a long turn may be one of them
	}
	return u.through(func() string {
		switch {
		case p.Back:
			return "the process has ended while all actors went back"
		case p.Until != 0 && !p.First:
			if why := u.last(); why != "" { // those that begin anew in each process
				return why
			}
			return u.rest(p)
		case p.Until != 0:
			if why := u.rest(p); why != "" {
				return why
			}
			u.remember(func(p *record.Probation) { p.First, p.Until = false, 0 })
		case p.First: // nobody knows which of them were to go over first: those that have
			if why := u.probation(true); why != "" {
				return why
			}
		}
		todo, restarts := u.sort(u.members())
		if why := u.batches(Rest, todo); why != "" {
			return why
		}
		return u.finish(restarts)
	})
}

// rest is what is left of a probation. A clock that was set back does not make it longer.
func (u *run) rest(p *record.Probation) string {
	u.tell(Probing, 0, 0)
	u.Wait(u.calm, min(p.Lasts, max(0, time.Unix(0, p.Until).Sub(u.sys.Clock().Now()))))
	return u.tooMany()
}

// adopt takes over the actors that have gone over before, or have begun with the new code. If all had, the others have kept their code.
func (u *run) adopt(p *record.Probation) {
	all := u.members()
	var trials []*swap.Trial
	var of []*Actor
	u.mu.Lock()
	for _, x := range all {
		if u.by[x.Ref.UID()] != nil {
			continue
		}
		a := &Actor{Path: x.Ref.Path(), Type: x.Type, ref: x.Ref}
		switch {
		case x.Trial != nil && u.isNew(x.Image):
			a.Way, a.Did = State, Upgraded
			trials, of = append(trials, x.Trial), append(of, a)
			u.kept += x.Trial.Bytes()
		case x.Events && u.isNew(x.Image):
			a.Way, a.Did = Events, Upgraded
		case x.Durable && u.isNew(x.Image): // it has nothing for going back: see back
			a.Way, a.Did = State, Upgraded
		case x.Durable && x.Image != nil && !u.isNew(x.Image) && p.Until != 0 && !p.First:
			a.Did, a.Why = Kept, "it has kept its code, or gone back to it, in an earlier process"
		default:
			continue
		}
		u.by[x.Ref.UID()] = a
	}
	u.trials = append(u.trials, trials...)
	u.mu.Unlock()
	for i, t := range trials {
		t.Adopt(u.crash(of[i]))
	}
}

// isNew reports whether an image has the new code.
func (u *run) isNew(image *sandbox.Image) bool {
	if image == nil || image == u.image {
		return image != nil
	}
	sum, err := sandbox.Fingerprint(image)
	return err == nil && bytes.Equal(sum[:], u.state.To)
}

// gone reports whether the system has terminated.
func (u *run) gone() bool {
	select {
	case <-u.sys.Terminated():
		return true
	default:
		return false
	}
}
