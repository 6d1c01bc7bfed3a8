package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/setup"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// How a system is rebuilt from its records (host/rebuild). Its actors are those of any system, and run the same code: each
// takes in again what it took in, when the record of it comes. In between they are held. What they send, and the signals
// that they post, wait until the record of their arrival comes, so that everything arrives in the recorded order.

func init() {
	rebuild.Open, rebuild.Look = openRepeats, lookFor
	rebuild.Checkpoint = func(ctx context.Context, system any, mark func() ([]abi.Ref, bool, error), each func([]byte) error) (int, func() ([]byte, error), error) {
		return checkpoint(ctx, system.(*System), mark, each)
	}
	rebuild.Part = saved.Part
	rebuild.Freeze = func(system any) { freezeDurable(system.(*System)) }
}

func openRepeats(config any, props func(*record.Life) (any, error)) (rebuild.Port, error) {
	c := config.(Config)
	cfg := setup.PartsOf(&c)
	if cfg.Recorder == nil || !cfg.Saved && cfg.Secret == nil {
		return nil, errors.New("host: a system that is rebuilt needs a recorder and the secret of the system that was recorded")
	}
	log := cfg.Log
	p := &repeats{
		props: props, at: &rebuild.PastClock{Clock: cfg.Clock}, turns: &rebuild.PastClock{Clock: cfg.Clock},
		held: map[abi.Ref][]sysmail.Msg{}, early: map[abi.Ref][]*record.Record{}, left: map[abi.Ref]bool{},
		hostRefs: map[abi.Ref]uint64{}, removed: map[abi.Ref]*actor{}, renewed: map[abi.Ref]int{},
		unborn: map[abi.Ref]bool{}, known: map[abi.Ref]bool{}, then: map[abi.Ref]*record.Rules{}, states: map[abi.Ref]swap.Partial{}, renewals: map[abi.Ref]*record.Life{}, trials: saved.TrialsOf(cfg.Recorder),
	}
	cfg.Sweeps, cfg.Clock, cfg.Log = cfg.Clock, p.at, nil
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	p.sys, s.cfg.Log, p.bornOf = s, log, p.propsOfChild
	for _, a := range []*actor{s.user, s.services} { // until they have begun
		l := a.lookAt(func() {})
		if cfg.Manual {
			s.RunUntilIdle(1 << 30)
		}
		l.Wait(context.Background())
	}
	s.time.Init(p.turns)
	s.repeats.Store(p)
	for _, a := range []*actor{s.user, s.services} { // a run that has begun before does not know of p
		for !a.place.Visit(func() {}) {
			if runtime.Gosched(); cfg.Manual {
				s.RunUntilIdle(1 << 30)
			}
		}
	}
	return p, nil
}

// System implements rebuild.Port.
func (p *repeats) System() any { return p.sys }

// run is the run of an actor that is held.
func (p *repeats) run(a *actor, w *dispatch.Worker) bool {
	if p.actor.Load() == a {
		p.do(scratchOf(w))
		p.actor.Store(nil)
		close(p.done)
	}
	return false
}

// step has an actor repeat something on a worker, with all that it was posted put aside.
func (p *repeats) step(a *actor, r *record.Record, turns []*record.Record, f func(scr *scratch)) error {
	p.expect, p.err, p.done = turns, nil, make(chan struct{})
	p.at.At.Store(r.Time)
	p.turns.At.Store(r.Time)
	p.do = func(scr *scratch) {
		p.setAside(a, scr)
		scr.same, scr.skip = 0, 0
		if a.inst != nil {
			a.inst.GoOn()
		}
		scr.patient = true
		p.arm(scr)
		f(scr)
		scr.patient = false
		scr.entry.Cut, scr.entry.Most, scr.same = nil, 0, 0
		p.setAside(a, scr)
		a.tally.Turns.Store(a.turns)
	}
	p.actor.Store(a)
	a.place.Wake(nil)
	for p.sys.cfg.Manual && p.actor.Load() != nil && p.sys.disp.Step() {
	}
	if !p.sys.cfg.Manual {
		<-p.done
	}
	if p.err == nil && len(p.expect) > 0 {
		p.err = errors.New("a recorded turn has not come about")
	}
	return p.err
}

// arm prepares the worker for the next recorded turn.
func (p *repeats) arm(scr *scratch) {
	scr.entry.Cut, scr.entry.Most = nil, 0
	p.fuel, p.memory = 0, 0
	if len(p.expect) == 0 {
		return
	}
	p.turns.At.Store(p.expect[0].Time)
	e := p.expect[0].Entry
	p.fuel, p.memory = e.Fuel, e.Memory
	if scr.entry.Cut = e.Cut; e.Failure == nil {
		scr.entry.Most = e.Done
	}
}

// limitTo has the limits and the rules of an actor be those that records state; nil: they are not known.
func (p *repeats) limitTo(a *actor, l *Limits, r *record.Rules) {
	if l != nil {
		p.known[a.uid] = true
		limitActor(a, *l)
	}
	if r != nil {
		p.then[a.uid] = r.Of(p.then[a.above])
		ruleActor(a, p.then[a.uid])
	}
}

// limitActor sets the limits of an actor that does not run. Those of its tree only say what is recorded: the tree has those that it was
// made with.
func limitActor(a *actor, l Limits) {
	l.SetDefaults()
	if a.rules.Load().limits != l {
		changeRules(a, func(p *Props) { p.limits = l })
	}
	a.account.Limit(l.Held)
	if b := recordedOf(a); b != nil {
		b.Limit(MailboxLimits{Messages: l.Mailbox, Bytes: l.MailboxBytes})
	}
}

// limitNow has an actor go on with its present limits and rules, which the recorder is told of if they are not those of the records.
func (p *repeats) limitNow(a *actor) {
	now, whole := p.present(a)
	before := a.rules.Load().limits
	if whole {
		l := a.rules.Load().Props
		l.limits = now.limits
		l.limits.SetDefaults()
		l.bindMessage()
		limitActor(a, l.limits)
	}
	then := p.then[a.uid]
	ruleNow(a, now)
	if rules := ruledBy(a, false); !p.known[a.uid] || then == nil || a.rules.Load().limits != before || !rules.Equal(then) {
		noteLife(a, record.Changed)
	}
}

// present are the props that an actor of the records would be made with now. It has their limits only if they are whole.
func (p *repeats) present(a *actor) (now *Props, whole bool) {
	g, ok := a.parent.behaviour.(*guest)
	switch {
	case ok && a.props.spawned:
		options := []byte(nil)
		if kept := a.props.rare.Get().Options; kept != nil {
			options = *kept
		}
		props, err := g.childProps(a.props.typ, options)
		if props.module != nil {
			return &props, err == nil
		}
		return a.props, false
	case a.parent == p.sys.user:
		return a.props, true
	}
	if props := named(a.parent.rules.Load().children, a.Name()); props != nil {
		return props, true
	}
	return a.props, false
}

// setAside takes what was posted to the actor. What is in no records is dealt with.
func (p *repeats) setAside(a *actor, scr *scratch) {
	items := a.sysq.Take()
	for i := range items {
		if _, recorded := sysmail.Recorded(&items[i], uidOfAny); recorded {
			p.held[a.uid] = append(p.held[a.uid], items[i])
		} else {
			a.system(scr, &items[i])
		}
	}
	owe(a, a.sysq.Done(items))
}

// committed compares a turn with its record; false if there is none.
func (p *repeats) committed(a *actor, scr *scratch, t *record.Turn, o sealedEntry) (done int, f *abi.Failure, recorded bool) {
	if len(p.expect) == 0 {
		if scr.waits {
			p.err = cmp.Or(p.err, errors.New("a turn has come about that is in no record"))
			return o.done, o.f, true
		}
		p.late = append(p.late, a)
		return 0, nil, false
	}
	want := p.expect[0].Entry
	p.expect = p.expect[1:]
	var got record.Entry
	got.Set(t)
	done, f = o.done, o.f
	if want.Failure != nil && want.Cut == nil && (f == nil || o.done > want.Done) { // it was failed from outside
		done, f = want.Done, want.Failure
		got.Outbox = got.Outbox[:min(len(want.Outbox), len(got.Outbox))]
	}
	turn, command, differs := want.Differs(&got)
	switch {
	case p.err != nil:
	case want.First != got.First || want.Incarnation != got.Incarnation || !slices.Equal(want.Mail, got.Mail):
		p.err = fmt.Errorf("turn %d of incarnation %d about messages %v is repeated as turn %d of incarnation %d about %v", want.First, want.Incarnation, want.Mail, got.First, got.Incarnation, got.Mail)
	case differs:
		p.err = fmt.Errorf("turn %d: command %d is another one than recorded", want.First+uint64(turn), command)
	case want.Done != done || (want.Failure == nil) != (f == nil) || f != nil && f.Kind != want.Failure.Kind:
		p.err = fmt.Errorf("turn %d: %d of its entry end well, then %v; recorded were %d, then %v", want.First, done, f, want.Done, want.Failure)
	}
	p.arm(scr)
	return done, f, true
}

// Apply implements rebuild.Port.
func (p *repeats) Apply(r *record.Record, x rebuild.Ahead) (err error) {
	a, turns, last := p.sys.here(r.Actor), x.Turns, x.Last
	p.ahead = x
	defer p.lift(true)()
	defer func() {
		if err != nil && r.Life == nil {
			path := fmt.Sprintf("actor %016x", uint64(r.Actor))
			if a != nil {
				path = a.path
			}
			err = fmt.Errorf("%s: %w", path, err)
		}
		if err != nil && p.removed[r.Actor] != nil {
			err = fmt.Errorf("%w; %w", err, notStartedNow(p.removed[r.Actor]))
		}
	}()
	switch {
	case r.Kind == record.Began:
		return p.began(a, r)
	case r.Kind == record.Refused:
		if a != nil {
			p.flights.Land(func(f *rebuild.Flight[*actor]) bool { return f.To == a && r.Message.IsRefusal(f.E) })
		}
		return nil
	case r.Kind == record.Changed:
		if a != nil && r.Life.Incarnation > a.Incarnation() {
			p.renewals[a.uid] = r.Life
		} else if a != nil {
			p.limitTo(a, r.Life.Limits, r.Life.Rules)
		}
		return nil
	case r.Kind == record.Ended && !p.left[r.Actor]:
		if a != nil {
			return fmt.Errorf("%s has ended in the records", a.path)
		}
		return nil
	case p.left[r.Actor]:
		return nil
	case a == nil && r.Kind == record.Accepted:
		p.early[r.Actor] = append(p.early[r.Actor], r)
		return nil
	case a == nil:
		return errors.New("it is not there")
	}
	switch r.Kind {
	case record.Restarted:
		return nil // of the signal that comes with it
	case record.Accepted:
		return p.accepted(a, r)
	case record.Exchanged:
		return p.exchanged(a, r)
	case record.Took:
		p.flights.Drop(a)
		if x := r.Signal; x.What == signal.Unanswered.String() { // logs of earlier releases say only so that a question was refused
			p.flights.Land(func(f *rebuild.Flight[*actor]) bool {
				return f.To.uid == x.From && f.E.Sender == a.uid && f.E.Correlation == x.Correlation && mark.AwaitsReply(f.E)
			})
		}
		return p.took(a, r, turns, last)
	case record.Turned:
		p.flights.Drop(a)
		if g, ok := a.behaviour.(*guest); ok && g.start != nil && len(r.Entry.Mail) == 0 {
			return p.step(a, r, []*record.Record{r}, func(scr *scratch) { g.residency(scr, sysmail.Instance) })
		}
		if !a.life.Open() {
			return fmt.Errorf("turn %d: it cannot take messages: %v", r.Entry.First, a.life.State())
		}
		return p.step(a, r, []*record.Record{r}, func(scr *scratch) {
			for a.handleMessages(scr, max(1, len(r.Entry.Mail))) == 0 && a.sysq.Waiting() {
				p.setAside(a, scr) // an alarm has posted something meanwhile
			}
		})
	}
	return fmt.Errorf("a record of kind %d", r.Kind)
}

// began makes an actor, unless the actor that has spawned it has made it.
func (p *repeats) began(a *actor, r *record.Record) error {
	if parent := p.sys.here(r.Life.Parent); a == nil && parent != nil && p.unborn[r.Actor] {
		name, err := nameBelow(parent, r.Life.Path)
		if err == nil {
			a, err = p.born(parent, name, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Life.Path, err)
		}
	}
	if a == nil {
		parent := p.sys.here(r.Life.Parent)
		x, err := p.props(r.Life)
		if err != nil || x == nil || parent == nil {
			p.left[r.Actor] = err == nil
			return err
		}
		props := *x.(*Props)
		name, err := nameBelow(parent, r.Life.Path)
		if err != nil {
			return err
		}
		named := parent.parent == nil && p.sys.durable != nil
		if named && !p.sys.durable.lives.Lived(parent.uid, r.Life.Path, r.Actor) {
			return fmt.Errorf("%s: no life of it has the ref %016x", r.Life.Path, uint64(r.Actor))
		}
		for range 1 << 20 { // it was the next one, or one of those that come soon
			if named || parent.nextHostRef() == r.Actor {
				break
			}
		}
		props.args = Raw(r.Life.Args)
		p.at.At.Store(r.Time)
		if a, err = parent.spawn(nil, name, &props, r.Actor); err != nil {
			return fmt.Errorf("%s: %w", r.Life.Path, err)
		}
	}
	if p.sys.durable != nil && !a.durable {
		return notDurableNow(a.path)
	}
	if a.path != r.Life.Path {
		return fmt.Errorf("%s is %s in the records: its parent must start the children that it has had, in the same order, or be forgotten by the store", a.path, r.Life.Path)
	}
	p.limitTo(a, r.Life.Limits, r.Life.Rules)
	beginsWith(a, r.Life.Args)
	if err := p.runs(a, r.Life.Code); err != nil {
		return fmt.Errorf("%s: %w", r.Life.Path, err)
	}
	waiting := p.early[r.Actor]
	delete(p.early, r.Actor)
	for _, m := range waiting {
		if err := p.accepted(a, m); err != nil {
			return err
		}
	}
	return nil
}

// beginsWith has an actor that was made have other arguments: those that it had. Its parent may start it with others now.
func beginsWith(a *actor, args []byte) {
	if len(args) > 0 && !bytes.Equal(a.args, args) {
		a.account.Note(account.Base, a.account.Of(account.Base)+int64(len(args)-len(a.args)))
		a.args = bytes.Clone(args)
	}
}

// accepted puts a message into the mailbox: what was sent to it, what a timer of it sends, or the recorded one.
func (p *repeats) accepted(a *actor, r *record.Record) error {
	b := recordedOf(a)
	if b == nil {
		return errors.New("it has no recorded mailbox")
	}
	m := r.Message
	if m.Position <= b.Position() {
		return nil // the checkpoint has it
	}
	e := p.arrives(a, m)
	if e == nil {
		a.work.Ring(a, &work.Alarm{Kind: m.Kind, Correlation: m.Correlation, Due: m.Due, Now: r.Time, Payload: m.Payload, Headers: m.Headers})
		e = p.arrives(a, m)
	}
	if e != nil && !bytes.Equal(e.Payload, m.Payload) {
		e.Free()
		e = nil
	}
	if e == nil {
		e = mailbox.New()
		e.Kind, e.Flags, e.Due, e.Sender, e.SenderPath, e.Correlation = m.Kind, m.Flags, m.Due, m.Sender, m.SenderPath, m.Correlation
		e.SetHeaders(m.Headers)
		e.SetPayload(m.Payload)
	}
	e.Flags &^= mark.Promised // who waited for the answer is gone; that the question was handled all the same is in the records
	if !b.Repeat(e, m.Position) {
		return errors.New("its mailbox is closed")
	}
	return nil
}

// arrives finds a message that is on its way.
func (p *repeats) arrives(a *actor, m *record.Message) *Envelope {
	return p.flights.Land(func(f *rebuild.Flight[*actor]) bool {
		e := f.E
		return f.To == a && e.Kind == m.Kind && e.Sender == m.Sender && e.Correlation == m.Correlation &&
			(bytes.Equal(e.Payload, m.Payload) || m.Kind == abi.KindSpawnFailed) && bytes.Equal(e.Headers, m.Headers) && // why may have other words now
			(mark.IsMail(e) || m.Due == 0 || e.Due == m.Due)
	})
}

// took has the actor deal with a signal. One that is to lead to a turn that is in no record is left for the system when
// it goes on.
func (p *repeats) took(a *actor, r *record.Record, turns []*record.Record, last bool) error {
	want := r.Signal
	with := turns
	turns, x := decidedIn(a, want, with, last)
	p.decided = x
	defer func() { p.decided = decided{} }()
	if want.What == "message" {
		return p.step(a, r, turns, func(scr *scratch) {
			if e := a.peek(scr); e == nil || e.Position != want.Position {
				p.err = fmt.Errorf("message %d is not the next one", want.Position)
			} else if a.box.Pop(); e.Flags&mark.Control != 0 {
				a.control(scr, e)
			} else {
				e.Free()
			}
		})
	}
	var m *sysmail.Msg
	missing := false
	err := p.step(a, r, turns, func(scr *scratch) {
		if m = p.take(a, want); m == nil {
			if missing = p.puts(a, want) >= 0 || p.crowdedOut(a, want) != nil; !missing {
				p.err = fmt.Errorf("nobody has sent the signal %q", want.What)
			}
			p.expect = nil
			return
		}
		if last && len(turns) == 0 && (x.d == nil || x.d.About == record.Delayed) && runsTurns(a, m) {
			m.How |= sysmail.Noted
			p.held[a.uid] = slices.Insert(p.held[a.uid], 0, *m)
			p.put = append(p.put, putOff{a, r, x, p.ahead})
			return
		}
		a.system(scr, m)
		if g, ok := a.behaviour.(*guest); ok && g.start != nil && p.expects(a) { // it waited for room, and got it after the signal
			g.residency(scr, sysmail.Instance)
		}
	})
	if err != nil || !missing {
		return err
	}
	if child := p.crowdedOut(a, want); child != nil {
		err = p.step(child, r, nil, func(scr *scratch) {
			child.crowded = !child.life.Begun.Load()
			child.fail(scr, want.Failure, life.ByItself)
		})
	} else {
		err = p.takeUp(p.puts(a, want))
	}
	if err != nil {
		return err
	}
	return p.took(a, r, with, last)
}

// decidedIn takes what was decided about a signal from what comes with it; the rest are turns.
func decidedIn(a *actor, s *record.Signal, with []*record.Record, last bool) (turns []*record.Record, x decided) {
	x.last = last
	for _, r := range with {
		if r.Decision == nil {
			turns = append(turns, r)
		} else {
			x.d = r.Decision
		}
	}
	g, ok := a.behaviour.(*guest)
	x.asked = ok && g.start == nil && len(turns) > 0 && s.What == "child-failed"
	return turns, x
}

// crowdedOut is the child that has told an actor of a failure which no other record says: it has failed before the first turn of its
// incarnation, as there was no room for that, or as logs of earlier releases have failures of who was full of refusals; nil: there is none.
func (p *repeats) crowdedOut(a *actor, s *record.Signal) *actor {
	if s.What != "child-failed" || s.Failure == nil {
		return nil
	}
	child := p.sys.here(s.From)
	if child == nil || child.parent != a || child.life.State() != life.Running {
		return nil
	}
	if g, ok := child.behaviour.(*guest); ok && g.start != nil || strings.HasPrefix(s.Failure.Reason, crowdedOut) {
		return child
	}
	return nil
}

// puts finds who may have led to a signal, and was put off: the parent of its actor, a child, or whom it is about; -1: nobody.
func (p *repeats) puts(a *actor, s *record.Signal) int {
	return slices.IndexFunc(p.put, func(x putOff) bool {
		return x.a == a.parent || x.a.parent == a || x.a.uid == s.From || x.a.uid == s.Other
	})
}

// takeUp has an actor deal with its last signal after all: another one has taken what can only have come from that, so there was no turn.
func (p *repeats) takeUp(i int) error {
	x := p.put[i]
	p.put = slices.Delete(p.put, i, i+1)
	held := p.held[x.a.uid]
	at := slices.IndexFunc(held, func(m sysmail.Msg) bool { return m.How.Has(sysmail.Noted) })
	if at < 0 {
		return nil
	}
	m := held[at]
	p.held[x.a.uid] = slices.Delete(held, at, at+1)
	p.decided = x.x
	defer func(now rebuild.Ahead) { p.ahead = now }(p.ahead)
	p.ahead = x.ahead
	return p.step(x.a, x.r, nil, func(scr *scratch) { x.a.system(scr, &m) })
}

// take is a signal that was posted to the actor, or has come from outside.
func (p *repeats) take(a *actor, want *record.Signal) *sysmail.Msg {
	held := p.held[a.uid]
	for i := range held {
		if s, _ := sysmail.Recorded(&held[i], uidOfAny); s.What == want.What && s.From == want.From && s.Other == want.Other && s.Correlation == want.Correlation {
			m := held[i]
			if m.Kind == sysmail.ChildFailed { // whether it can be resumed depends on what there was room for
				m.Reason = want.Reason
			}
			if m.Kind == sysmail.Restart { // its supervisor may draw another jitter now
				m.Delay = time.Duration(want.Delay)
				restartAsWas(&m, want)
			}
			p.held[a.uid] = slices.Delete(held, i, i+1)
			return p.renews(a, &m, want)
		}
	}
	return p.renews(a, systemMessage(a, want), want)
}

// renewalOf is what a recorded restart has changed of an actor; nil: nothing. Children and grants are those of its present props.
func (p *repeats) renewalOf(a *actor, s *record.Signal) *renewal {
	if !sysmail.How(s.How).Has(sysmail.Renews) {
		return nil
	}
	if s.What == "renew" {
		p.renewed[s.From]++ // which its supervisor has restart
	}
	l := p.renewals[a.uid]
	delete(p.renewals, a.uid)
	if s.What != "restart" || l == nil || l.Limits == nil {
		return &renewal{}
	}
	props := a.rules.Load().Props
	props.args, props.limits = Raw(l.Args), *l.Limits
	if r := l.Rules; r != nil {
		p.then[a.uid] = r
		mayNow(a, &props, r)
	}
	return &renewal{&props}
}

// renews has a signal change what it did.
func (p *repeats) renews(a *actor, m *sysmail.Msg, want *record.Signal) *sysmail.Msg {
	if m == nil {
		return nil
	}
	if n := p.renewalOf(a, want); n != nil {
		m.Detail, m.How = n, m.How&^sysmail.Renews
	}
	return m
}

// runsTurns reports whether a system message may lead to a turn that is no message's.
func runsTurns(a *actor, m *sysmail.Msg) bool {
	switch m.Kind {
	case sysmail.Start, sysmail.Begin, sysmail.RestartDue:
		return true
	case sysmail.Stop, sysmail.Quit:
		return a.super.Family.Len() == 0 && hasLastTurn(a)
	case sysmail.Restart:
		return hasLastTurn(a) || m.Delay <= 0 && !m.How.Has(sysmail.Hold) && (a.super.Family.Len() == 0 || m.How.Has(sysmail.Keep))
	case sysmail.ChildStopped:
		r := a.restart
		return a.life.State() == life.Stopping && hasLastTurn(a) || a.life.State() == life.Restarting && r != nil && r.due && !r.hold
	case sysmail.ChildFailed:
		_, decides := a.behaviour.(*guest)
		child, known := m.Child.(*actor)
		return decides && known && m.Directive == 0 && a.super.Strategy().Decide(child.props.typ, m.Failure) == supervision.Ask
	}
	return false
}

// hasLastTurn reports whether the actor may have a turn when its incarnation ends.
func hasLastTurn(a *actor) bool {
	if n, ok := a.behaviour.(*native); ok {
		_, ok = n.now.(Stopper)
		return ok
	}
	if g, ok := a.behaviour.(*guest); ok && (g.silent || g.inst.Load() != nil && g.inst.Load().Poisoned()) {
		return false
	}
	return a.life.Begun.Load()
}

// Resumes implements rebuild.Port.
func (p *repeats) Resumes(refs map[abi.Ref]bool) { p.resumes = refs }

// Forgotten implements rebuild.Port.
func (p *repeats) Forgotten(path string, ref abi.Ref) error {
	if !p.sys.durable.lives.Lived(p.sys.user.uid, path, ref) {
		return fmt.Errorf("%s: no life of it has the ref %016x", path, uint64(ref))
	}
	return nil
}

// Repeated implements rebuild.Port.
func (p *repeats) Repeated() error {
	p.beginRest()
	p.over.Store(true)
	return nil
}

// Release implements rebuild.Port.
func (p *repeats) Release() {
	s := p.sys
	p.at.At.Store(0)
	p.turns.At.Store(0)
	s.cfg.Clock = p.at.Clock
	s.time.Init(p.at.Clock)
	if s.time.Real() {
		for i := range s.wheels {
			s.wheels[i] = clock.NewWheel(p.at.Clock)
		}
	}
	if s.cfg.Log != nil {
		s.logEvents(s.cfg.Log)
	}
	p.limits.Lock()
	if p.released = true; s.durable != nil {
		p.noteUnnoted()
		for _, a := range treeOf(s) {
			p.limitNow(a)
		}
	}
	p.limits.Unlock()
	p.beginRest()
	p.at.At.Store(0)
	p.turns.At.Store(0)
	var all []*actor
	s.table.Each(func(a *actor) { all = append(all, a) })
	slices.SortFunc(all, func(a, b *actor) int { return cmp.Compare(a.uid, b.uid) })
	for _, r := range p.owed {
		tellRecorder(s, r)
	}
	for _, a := range all {
		held := p.held[a.uid]
		if g, ok := a.behaviour.(*guest); ok && g.start != nil {
			held = append(held, sysmail.Msg{Kind: sysmail.Instance})
		}
		if len(held) > 0 {
			owe(a, a.sysq.PutBack(held))
		}
		if !a.durable {
			beginAnew(a)
		}
	}
	p.stopRemoved()
	var again []askedAgain
	if s.durable != nil {
		for _, a := range treeOf(s) {
			again = append(again, askAgain(a)...)
		}
	}
	s.repeats.Store(nil)
	for _, f := range p.flights.End() {
		if f.E.Kind == abi.KindTimer && !f.To.work.Timers.Current(f.E) {
			f.E.Free() // it has been repeated, and has rung by itself, too
			continue
		}
		if reason, err := f.To.accept(nil, f.E, 0); err != nil {
			f.To.dead(nil, reason, err, f.E)
		}
	}
	for _, x := range again {
		_ = s.deliver(nil, x.to, x.env)
	}
	for _, a := range p.late {
		if _, there := a.sealed.turn.Ask(s.cfg.Commit, a.sealed.wake); there {
			a.place.Wake(nil)
		}
	}
	for _, a := range all {
		a.place.Wake(nil)
	}
}

// lookFor implements rebuild.Look.
func lookFor(system any, ref abi.Ref) *rebuild.State {
	s := system.(*System)
	a := s.here(ref)
	if a == nil {
		return nil
	}
	x := &rebuild.State{Path: a.path, Ref: a.uid, Life: a.life.State().String(), Incarnation: a.Incarnation()}
	x.Turns, x.Held = a.turns, a.sealed.isHeld()
	g, ok := a.behaviour.(*guest)
	x.Held = x.Held || ok && g.start != nil // it has still to have the turn of its start
	if ok && a.life.Begun.Load() {
		x.Saved, _ = saved.Bytes(g.saveTo)
		x.Codes = [2][]byte{fingerprintOf(g.inst.Image), fingerprintOf(g.own)}
	}
	for _, t := range a.work.Timers.Save() {
		x.Timers = append(x.Timers, fmt.Sprint(t.Key, " ", t.Due.UnixNano(), " ", t.Period, " ", t.Payload))
	}
	for _, m := range a.super.Family.Members() {
		if k := m.Child; k.life.State() != life.Stopped {
			x.Children = append(x.Children, fmt.Sprintf("%s %016x %s %+v", k.path, uint64(k.uid), k.props.typ, m.Record.State()))
		}
	}
	if b := recordedOf(a); b != nil {
		x.Position = b.Counting(func(e *Envelope) {
			var m record.Message
			m.Set(e)
			m.Headers, m.Payload = bytes.Clone(m.Headers), bytes.Clone(m.Payload)
			x.Mail = append(x.Mail, m)
		})
	}
	super, _ := saved.Encoder.Marshal(a.super.Save(uidOf))
	x.Rest = fmt.Sprintf("suspended %d orders %d due %d cause %v ended %d paused %v watchers %v jitter %x gate %v supervisor %x",
		a.life.Suspended(), a.orders, a.due.Load(), a.cause, a.ended, a.life.Held(life.Paused), a.work.Watch.Watchers(), a.dice.Save(), a.gate.Policy(), super)
	if a.work.Receive != nil {
		x.Rest += fmt.Sprint(" receive timeout ", a.work.Receive.Due().UnixNano())
	}
	if g := a.gate.Grace(); g != nil {
		x.Rest += fmt.Sprint(" grace until ", a.gate.Due().UnixNano(), " ", a.gate.Holds())
	}
	return x
}

// propsOfChild are the props of a child of a type that an actor has started because its props named it. If they do not any more the child
// is made like one that the actor spawns, or of the code that records say: if it has not ended when all is repeated, it is told to stop.
func (p *repeats) propsOfChild(a *actor, name, typ string, ref abi.Ref, code []byte) (Props, error) {
	if k := named(a.rules.Load().children, name); k != nil && k.typ == typ {
		return *k, nil
	}
	g, ok := a.behaviour.(*guest)
	if !ok {
		return Props{}, notStartedNow(a)
	}
	made, err := g.childProps(typ, nil)
	if err == nil && made.check() != nil { // it has a module of its own
		image, unknown := rebuild.CodeOf(nil, typ, code, p.sys.cfg.Recorder)
		if err = unknown; err == nil {
			caps := made.caps
			made = GuestOf(NewModule(image), typ).WithLimits(made.limits).WithCapabilities(caps).WithSupervision(made.strategy)
		}
	}
	if err != nil {
		return Props{}, fmt.Errorf("%w; %w", notStartedNow(a), err)
	}
	made.spawned = false
	p.removed[ref] = a
	return made, nil
}

// stopRemoved stops the children that are left and that their parent would not start now, as a renewal of it would.
func (p *repeats) stopRemoved() {
	var all []*actor
	for ref, parent := range p.removed {
		a := p.sys.here(ref)
		if a != nil && p.removed[parent.uid] == nil && !a.life.State().Ending() && a.life.State() != life.Stopped {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *actor) int { return strings.Compare(a.path, b.path) })
	for _, a := range all {
		p.sys.logf(a, abi.LogWarn, "its parent starts no such child any more: it stops, and its state is gone")
		a.stop(nil, rebuild.RemovedReason)
	}
}
