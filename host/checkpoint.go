package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/rest"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A checkpoint is the state of all durable actors at one point of the log. They come to rest for it: none is within a
// turn, and nothing that they tell each other is under way, so that what each of them has is all there is. Then nothing of
// them runs until all is copied. What others send them meanwhile waits, and is in the log behind the checkpoint or in it: the
// positions of messages tell which.

// errNotNow says that a checkpoint cannot be made because something is under way that ends by itself.
var errNotNow = errors.New("host: an actor is between two states")

// checkpoint copies the state of durable actors, which rest meanwhile. mark is called when everything that is recorded
// later comes after the checkpoint; it must not block. It returns who has changed, in the order of their start, or that all are copied who are
// here: each is called with their parts, and with head comes that of /user. n is how many actors there are. An actor whose
// state cannot be saved fails, and there is no checkpoint then.
func checkpoint(ctx context.Context, s *System, mark func() ([]abi.Ref, bool, error), each func([]byte) error) (n int, head func() ([]byte, error), err error) {
	d := s.durable
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	if d.rest.Frozen() {
		return 0, nil, ErrClosed
	}
	release := away(s).Hold()
	dormant.InOrder(away(s), &s.user.super.Family, uidOf)
	release()
	defer d.rest.Thaw()
	if err := comeToRest(ctx, s, true); err != nil {
		return 0, nil, err
	}
	d.spawning.Lock()
	release = away(s).Hold() // behind spawning: who spawns may have one return
	changed, everybody, err := mark()
	var all []resting
	if everybody {
		dormant.InOrder(away(s), &s.user.super.Family, uidOf)
		for _, a := range treeOf(s) {
			all = append(all, resting{a})
		}
	}
	for _, ref := range changed {
		if a := livingDurable(s, ref); a != nil {
			all = append(all, resting{a})
		}
	}
	n = d.rest.Actors() + away(s).Len()
	h, lives := headOf(s), d.lives.Save()
	release()
	d.spawning.Unlock()
	if err == nil {
		slices.SortStableFunc(all, func(a, b resting) int { return cmp.Compare(len(a.elements), len(b.elements)) }) // behind their parents
		err = rest.Copy(ctx, all, each)
	}
	return n, func() ([]byte, error) {
		h.Lives = lives()
		return saved.Encoder.Marshal(h)
	}, err
}

// resting is an actor as a checkpoint sees it.
type resting struct{ *actor }

// Visit implements rest.Actor.
func (a resting) Visit(ctx context.Context, f func()) bool {
	for !a.place.Visit(f) {
		if a.place.Wake(nil); a.sys.cfg.Manual {
			a.sys.RunUntilIdle(1 << 30)
		}
		if a.sys.durable.rest.Wait(ctx) != nil {
			return false
		}
	}
	return true
}

// Save implements rest.Actor.
func (a resting) Save(s *saved.State) error { return wholeOf(a.actor, s) }

// Most implements rest.Actor.
func (a resting) Most() int64 { return a.rules.Load().limits.Durable }

// TooLarge implements rest.Actor.
func (a resting) TooLarge(bytes int) {
	a.post(nil, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: &abi.Failure{
		Kind: abi.FailureMemoryLimit, Reason: fmt.Sprintf("its state has %d bytes in the store, of at most %d: see limits.durable", bytes, a.Most()),
	}}})
}

// Unsaved implements rest.Actor: it keeps all others from their checkpoint, which is its own failure: a file that it has open, a table that it has
// written to. One that does so again after its restart stops.
func (a resting) Unsaved(why string) {
	d := a.sys.durable
	if d.unsaved[a.uid] {
		a.stop(nil, why)
		return
	}
	maps.DeleteFunc(d.unsaved, func(ref abi.Ref, _ bool) bool { return a.sys.here(ref) == nil }) // a guest may spawn such children without end
	d.unsaved[a.uid] = true
	a.post(nil, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: &abi.Failure{Kind: abi.FailureABIViolation, Reason: why}}})
}

// livingDurable is the durable actor of a ref that is here and has not stopped, or nil.
func livingDurable(s *System, ref abi.Ref) *actor {
	if a := s.table.Peek(ref); a != nil && a.durable && a.parent != nil && a.life.State() != life.Stopped {
		return a
	}
	return nil
}

// treeOf are the durable actors, each behind its parent, siblings in the order of their start.
func treeOf(s *System) (all []*actor) {
	var below func(a *actor)
	below = func(a *actor) {
		for _, k := range a.super.Family.Children() {
			if k.durable && k.life.State() != life.Stopped {
				all = append(all, k)
				below(k)
			}
		}
	}
	below(s.user)
	return all
}

// headOf is the head of a checkpoint without lives.
func headOf(s *System) *saved.Head {
	h := &saved.Head{Version: saved.Version, Super: s.user.super.Save(uidOf), Jitter: s.user.dice.Save()}
	h.Super.Undecided = slices.DeleteFunc(h.Super.Undecided, func(r supervisor.ReportState) bool { return livingDurable(s, r.Of) == nil })
	return h
}

// wholeOf copies the state of an actor, which rests.
func wholeOf(a *actor, s *saved.State) error {
	g := a.behaviour.(*guest)
	limits, rules := a.rules.Load().limits, ruledBy(a, false)
	w := &saved.Whole{
		Limits: &limits, Rules: &rules,
		Parent: a.above, Path: a.path, Args: a.args, Code: fingerprintOf(cmp.Or(g.inst.Image, g.own)), Spawned: a.props.spawned,
		Life: a.life.State(), Suspended: a.life.Suspended(), Paused: a.life.Held(life.Paused), Below: a.life.Held(life.Below), Begun: a.life.Begun.Load(),
		Crowded: a.crowded, Orders: a.orders, Cause: a.cause, Ended: a.ended, Started: a.Since.Load(), Turned: int64(g.turnAt), Watchers: a.work.Watch.Watchers(),
		Super: a.super.Save(uidOf), Jitter: a.dice.Save(), Noted: &saved.Noted{Record: a.member.Record.State(), Orders: a.member.Orders, Suspended: a.member.Suspended},
	}
	if kept := a.props.rare.Get().Options; kept != nil {
		w.Options = *kept
	}
	w.AutoNames, w.HostRefs = a.super.Family.Counters()
	s.Whole = w
	if g.inst.Image != nil && g.own != g.inst.Image {
		if next := fingerprintOf(g.own); !bytes.Equal(next, w.Code) {
			w.Next = next
		}
	}
	switch r := a.restart; {
	case a.life.Held(life.Swapping) && g.trial != nil && g.inst.Load() != nil && g.inst.Load().Poisoned():
		return errNotNow // it is about to go back to its old code
	case w.Life.Ending(), a.renewals > 0, a.life.Held(life.Renewed), w.Life == life.Restarting && (r == nil || r.leave != nil):
		return errNotNow
	case w.Life == life.Failed && !a.member.Suspended && a.parent != a.sys.user:
		if x := a.parent.super.Save(uidOf); !x.Concerns(a.uid) {
			return errNotNow // it tries to go on, and waits for room
		}
	case w.Life == life.Failed && !a.member.Suspended:
		return errNotNow
	case r != nil:
		w.Restart = &saved.Restart{Cause: r.cause, Delay: r.delay, Over: r.due, Keep: r.keep, Hold: r.hold, Told: r.told, Due: a.due.Load()}
	}
	if x := g.start; x != nil && w.Life == life.Running {
		w.Start = &saved.Start{Cause: x.cause, Held: x.held}
	} else if w.Life == life.Running && !w.Begun {
		return errNotNow
	}
	if err := g.saveTo(s); err != nil {
		return err
	}
	w.Failed = w.Life == life.Failed
	var err error
	if w.Rewind, err = saved.RewindOf(g.inst.States, g.inst.Image); err == nil {
		w.Trial, err = saved.TrialOf(g.trial, g.inst.Image)
	}
	if err != nil {
		return err
	}
	waits := saved.NewWaiting(&a.work, a)
	w.Position = recordedOf(a).Counting(func(e *Envelope) { w.Mail = append(w.Mail, waits.Mail(e, a.sysq.Waiting())) })
	if x := a.gate.Grace(); x != nil {
		w.Grace = &saved.Grace{All: a.gate.Holds(), Due: a.gate.Due().UnixNano()}
		a.gate.Held(func(e *mailbox.Envelope) { w.Grace.Mail = append(w.Grace.Mail, waits.Mail(e, a.sysq.Waiting())) })
	}
	waits.Note(s)
	return nil
}

// Restore implements rebuild.Port.
func (p *repeats) Restore(parts [][]byte) error {
	defer p.lift(true)()
	s := p.sys
	head, all, err := saved.DecodeParts(parts)
	if err != nil {
		return err
	}
	s.durable.lives.Load(head.Lives)
	var wrong error
	err = p.step(s.user, &record.Record{Time: p.at.Clock.Now().UnixNano()}, nil, func(scr *scratch) {
		for i := 0; i < len(all) && wrong == nil; i++ {
			if err := p.restore(scr, all[i]); err != nil {
				wrong = fmt.Errorf("%s: the checkpoint: %w", all[i].Whole.Path, err)
			}
		}
	})
	p.at.At.Store(0)
	p.turns.At.Store(0)
	if err = errors.Join(wrong, err); err != nil {
		return err
	}
	for _, x := range all {
		if a := s.here(x.Ref); a != nil {
			if err := restoreFamily(a, x.Children, &x.Whole.Super, x.Whole.Jitter); err != nil {
				return fmt.Errorf("%s: the checkpoint: %w", a.path, err)
			}
			a.super.Family.SetCounters(x.Whole.AutoNames, x.Whole.HostRefs)
		}
	}
	left := slices.DeleteFunc(head.Children, func(k saved.Child) bool { return s.here(k.Ref) == nil }) // forgotten since
	head.Super.Undecided = slices.DeleteFunc(head.Super.Undecided, func(r supervisor.ReportState) bool { return s.here(r.Of) == nil })
	if err := restoreFamily(s.user, left, &head.Super, head.Jitter); err != nil {
		return fmt.Errorf("the checkpoint: %w", err)
	}
	return nil
}

// restore makes one actor, in the run of another one: nothing else runs.
func (p *repeats) restore(scr *scratch, x *saved.State) error {
	w := x.Whole
	parent := p.sys.here(w.Parent)
	if parent == nil {
		if p.left[w.Parent] {
			p.left[x.Ref] = true
			return nil
		}
		return errors.New("its parent is not there")
	}
	name, err := nameBelow(parent, w.Path)
	if err != nil {
		return err
	}
	if a := p.sys.here(x.Ref); a != nil && !a.durable {
		return notDurableNow(a.path)
	}
	props, err := p.propsOf(parent, name, x)
	if err != nil || props == nil {
		p.left[x.Ref] = err == nil
		return err
	}
	if made := strings.TrimPrefix(name, "$"); !abi.ValidName([]byte(made)) { // the host has made up the name of one whose parent gave it none
		return errs.BadName(name)
	}
	if err := props.check(); err != nil {
		return err
	}
	a, err := reserveNamed(parent, nil, name, props, x.Ref)
	if err == nil {
		err = p.begins(a, w)
	}
	if err != nil {
		return err
	}
	restore := func() {
		if w.Life == life.New {
			parent.launch(nil, a)
		}
		err = restoreActor(scr, a, x)
		p.setAside(a, scr)
		a.tally.Turns.Store(a.turns)
	}
	for !a.place.Visit(restore) {
		runtime.Gosched()
	}
	if err == nil {
		err = p.runs(a, w.Next)
	}
	if err == nil {
		p.probes(a, w)
	}
	return err
}

// begins has an actor that was made go on with the code and the limits that it had.
func (p *repeats) begins(a *actor, w *saved.Whole) error {
	p.limitTo(a, w.Limits, w.Rules)
	return p.runs(a, w.Code)
}

// propsOf are the props that an actor was made with; nil: it is left out.
func (p *repeats) propsOf(parent *actor, name string, x *saved.State) (props *Props, err error) {
	w := x.Whole
	switch {
	case parent == p.sys.user:
		found, err := p.props(&record.Life{Path: w.Path, Type: x.Type, Args: w.Args, Parent: w.Parent, Incarnation: x.Incarnation, Code: w.Code})
		if err != nil || found == nil {
			return nil, err
		}
		props = new(*found.(*Props))
	case w.Spawned:
		g, ok := parent.behaviour.(*guest)
		if !ok {
			return nil, errors.New("its parent is no guest")
		}
		made, err := g.childProps(x.Type, w.Options)
		if made.module == nil { // otherwise it has begun, whatever its parent may give now
			return nil, err
		}
		props = &made
	default:
		made, err := p.propsOfChild(parent, name, x.Type, x.Ref, w.Code)
		if err != nil {
			return nil, err
		}
		props = &made
	}
	props.args = Raw(w.Args)
	return props, fits(props, x.Type)
}

// fits reports why an actor of a type cannot go on with props.
func fits(props *Props, typ string) error {
	if props.typ != typ || props.module == nil {
		return fmt.Errorf("it is a %s, and was a %s: %w", props.typ, typ, rebuild.ErrCode)
	}
	return nil
}

// restoreActor is the inverse of wholeOf.
func restoreActor(scr *scratch, a *actor, x *saved.State) error {
	g, w := a.behaviour.(*guest), x.Whole
	if err := x.Exceeds(&a.rules.Load().limits); err != nil {
		return err
	}
	a.life.Restore(w.Life, w.Suspended)
	if a.life.LetGo(life.Paused | life.Below); w.Paused {
		a.life.Hold(life.Paused)
	}
	if w.Below {
		a.life.Hold(life.Below)
	}
	a.Number.Store(x.Incarnation)
	a.life.Begun.Store(w.Begun)
	a.Since.Store(w.Started)
	a.turns, a.orders, a.cause, a.ended, a.crowded = x.Turns, w.Orders, w.Cause, w.Ended, w.Crowded
	g.spawned, g.turnAt = x.Spawned, turnTime(w.Turned)
	g.setImage()
	g.keys.Draw(secretFor(g.actor), g.actor.uid, x.Incarnation)
	if x.Guest != nil {
		snap, err := sandbox.DecodeSnapshot(g.inst.Image, x.Guest, 0) // its memory may be from before a limit was lowered
		if err != nil {
			return err
		}
		g.inst.FallAsleep(snap)
		g.inst.Failed = w.Failed
	}
	if r := w.Rewind; r != nil {
		states, err := r.States(g.inst.Image)
		if err != nil {
			return err
		}
		g.inst.States = states
		g.inst.NoteStates()
	}
	if err := a.restoreHeld(scr, x); err != nil {
		return err
	}
	for _, text := range x.Lookouts {
		if _, err := a.restoreLookout(text); err != nil {
			return err
		}
	}
	for _, ref := range w.Watchers {
		a.work.Watch.AddWatcher(ref)
	}
	if x.Receive > 0 {
		a.work.Receive = timers.LoadReceive(a, time.Duration(x.Receive), time.Unix(0, w.Due), w.Waits)
	}
	if w.Start != nil {
		g.start = &starting{w.Start.Cause, w.Start.Held}
		a.life.Hold(life.Starved)
	}
	if y := w.Restart; y != nil {
		r := &restarting{cause: y.Cause, delay: y.Delay, due: y.Over, keep: y.Keep, hold: y.Hold, told: y.Told}
		if a.restart = r; y.Delay {
			b, _ := a.backoff()
			a.gate.Close(b)
			a.due.Store(y.Due)
		}
		if !r.due {
			r.after(tenant{a}, time.Unix(0, y.Due).Sub(a.Now()))
		}
	}
	b := recordedOf(a)
	b.Begin(w.Position)
	for i := range w.Mail {
		if !b.PutBack(w.Mail[i].Marked(&a.work)) {
			return errors.New("its mailbox is closed")
		}
	}
	if y := w.Grace; y != nil {
		var held []*mailbox.Envelope
		for i := range y.Mail {
			held = append(held, y.Mail[i].Marked(&a.work))
		}
		a.gate.LoadGrace(tenant{a}, &a.life, y.All, held, time.Unix(0, y.Due))
	}
	return nil
}

// restoreFamily restores what a supervisor has noted about its children.
func restoreFamily(a *actor, children []saved.Child, state *supervisor.State, jitter []byte) error {
	if err := saved.LoadFamily(&a.super, children, state, uidOf); err != nil {
		return err
	}
	if jitter != nil {
		return a.dice.Load(secretFor(a), a.uid, jitter)
	}
	return nil
}
