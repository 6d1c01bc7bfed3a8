package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Defaults of a World.
const (
	DefaultAsk     = 30 * time.Second // how long an ask waits
	DefaultSettle  = 5 * time.Minute  // within which every mailbox empties after the end of the faults
	mostSteps      = 300_000
	mostSpellSteps = 8
)

// closeTime bounds the end of a system, in real time. It decides about nothing: only a defect of the host makes it last.
const closeTime = time.Minute

// worldStart is the time at which the virtual clock of a World begins.
var worldStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a simulated system of Go code: what a test does with it comes from outside, at moments that the seed chooses.
// It is for the goroutine of its body.
type World struct {
	run      *Run
	sys      *host.System
	clock    *host.VirtualClock
	ctx      context.Context
	settle   time.Duration
	messages uint64
	choices  uint64
	asks     []*ask
	checks   []check
	err      error
}

type ask struct {
	p    *host.Pending
	due  time.Time
	then func(host.Message, error)
}

type check struct {
	rule string
	f    func() error
}

// Body is what a test does with a World.
type Body func(*World)

// WorldOptions change how a World is made.
type WorldOptions struct {
	Config func(host.Config) host.Config // nil: as it is
	Places Places
	Settle time.Duration               // 0: DefaultSettle
	Clock  func(host.Clock) host.Clock // stands between the system and its clock; nil: nothing does
}

// ErrSteps ends a run in which actors never come to rest.
var ErrSteps = errors.New("the actors have not come to rest: messages without an end?")

// Bodies plays plans with a body.
type Bodies struct {
	Body    Body
	Options WorldOptions
}

// Close implements Player.
func (Bodies) Close() {}

// Play implements Player.
func (b Bodies) Play(ctx context.Context, p Plan) *Outcome {
	began := time.Now()
	clock := host.NewVirtualClock(worldStart)
	w := &World{run: NewRun(p, clock, b.Options.Places), clock: clock, ctx: ctx, settle: b.Options.Settle}
	w.run.between = b.Options.Clock
	if w.settle <= 0 {
		w.settle = DefaultSettle
	}
	cfg := host.NewConfig("simulated")
	if b.Options.Config != nil {
		cfg = b.Options.Config(cfg)
	}
	sys, err := host.New(w.run.Configure(cfg))
	if err != nil {
		return w.run.Finish(0, time.Since(began), err)
	}
	w.sys = sys
	w.run.Begin(sys)
	b.Body(w)
	w.end()
	if err := closeSystem(sys, w.run); err != nil && w.err == nil {
		w.err = err
	}
	return w.run.Finish(w.messages, time.Since(began), w.err)
}

// closeSystem stops all actors and closes the system.
func closeSystem(sys *host.System, r *Run) error {
	for _, top := range sys.View().Tree().Children {
		sys.Stop(top.Ref)
	}
	for range mostSteps {
		if !r.Step() {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return sys.Close(ctx)
}

// System is the system.
func (w *World) System() *host.System { return w.sys }

// Run is the run, for violations and notes of the body's own.
func (w *World) Run() *Run { return w.run }

// Now is the virtual time.
func (w *World) Now() time.Time { return w.clock.Now() }

// Int is a number from 0 to n-1 that the seed chooses, another one at each call.
func (w *World) Int(n int) int {
	w.choices++
	return w.run.Chance("body", w.choices, n)
}

// Spawn starts an actor below /user. A failure ends the run.
func (w *World) Spawn(name string, p host.Props) host.Ref {
	ref, err := w.sys.Spawn(name, p)
	if err != nil {
		w.fail(fmt.Errorf("%s cannot be started: %w", name, err))
	}
	w.moment()
	return ref
}

func (w *World) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// over reports whether there is nothing left to do: the run has failed.
func (w *World) over() bool { return w.err != nil || w.run.Err() != nil }

// Tell sends a message from outside, unless the plan leaves it out, and lets actors run for as long as the seed says. It reports
// whether the message was sent, and was not refused.
func (w *World) Tell(to host.Ref, v any) (sent bool) {
	if w.over() {
		return false
	}
	n := w.messages
	if w.messages++; w.run.Sends(n) {
		w.run.Note("to %s: %v", to.Path(), v)
		sent = w.sys.Tell(to, v) == nil
	}
	w.moment()
	return sent
}

// Ask asks from outside, unless the plan leaves it out. then is called with the answer, or with the reason why there is none,
// before the run ends; it may be nil. An ask waits for DefaultAsk.
func (w *World) Ask(to host.Ref, v any, then func(host.Message, error)) {
	if w.over() {
		return
	}
	n := w.messages
	if w.messages++; w.run.Sends(n) {
		w.run.Note("ask %s: %v", to.Path(), v)
		w.ask(to, v, then)
	}
	w.moment()
}

func (w *World) ask(to host.Ref, v any, then func(host.Message, error)) {
	if then == nil {
		then = func(host.Message, error) {}
	}
	p, err := w.sys.Request(to, v)
	if err != nil {
		then(host.Message{}, err)
		return
	}
	a := &ask{p, w.clock.Now().Add(DefaultAsk), then}
	w.asks = append(w.asks, a)
	w.clock.AfterFunc(DefaultAsk, func() {}) // so that time stops there
}

// answers takes the answers that have come.
func (w *World) answers() {
	left := w.asks[:0]
	for _, a := range w.asks {
		select {
		case m := <-a.p.Answer():
			a.then(m, m.Err())
			continue
		default:
		}
		if !w.clock.Now().Before(a.due) {
			a.p.Cancel()
			a.then(host.Message{}, host.ErrTimeout)
			continue
		}
		left = append(left, a)
	}
	w.asks = left
}

// moment lets actors run for as long as the seed says.
func (w *World) moment() {
	if w.over() {
		return
	}
	switch n := w.run.Chance("moment", w.messages, mostSpellSteps); n {
	case 0:
		w.idle()
	case 1:
		w.idle()
		w.jump(w.clock.Now().Add(time.Second))
	default:
		for range n {
			w.run.Step()
		}
	}
	w.answers()
}

// idle runs actors until none has work.
func (w *World) idle() {
	for range mostSteps {
		if w.ctx.Err() != nil {
			w.fail(context.Cause(w.ctx))
			return
		}
		if !w.run.Step() {
			w.answers()
			if !w.run.Step() {
				return
			}
		}
	}
	w.fail(ErrSteps)
}

// jump lets time pass to what is due next, but not beyond end.
func (w *World) jump(end time.Time) {
	next, ok := w.clock.Next()
	if !ok || next.After(end) {
		next = end
	}
	w.clock.Advance(next.Sub(w.clock.Now()))
	w.run.Tick()
	w.idle()
}

// Pass lets time pass, with all that becomes due.
func (w *World) Pass(d time.Duration) {
	end := w.clock.Now().Add(d)
	w.idle()
	for w.clock.Now().Before(end) && !w.over() {
		w.jump(end)
	}
}

// Settled calls f when the faults have ended and every mailbox is empty: with an error it is a violation of the rule. f may ask by
// Answer.
func (w *World) Settled(rule string, f func() error) { w.checks = append(w.checks, check{rule, f}) }

// Answer asks and waits for the answer, in virtual time. It is for what Settled calls.
func (w *World) Answer(to host.Ref, v any) (m host.Message, err error) {
	came := false
	w.ask(to, v, func(x host.Message, e error) { m, err, came = x, e, true })
	w.idle()
	for end := w.clock.Now().Add(2 * DefaultAsk); !came && !w.over() && w.clock.Now().Before(end); {
		w.jump(end)
	}
	if !came && err == nil {
		err = host.ErrTimeout
	}
	return m, err
}

// Auditor says that the actor at a path fails when something is wrong: a failure of its own is a violation.
func (w *World) Auditor(path string) {
	w.run.Watch(func(e *host.Event) { AuditorFails(w.run, path, e) })
}

// AuditorFails notes a failure of an auditor.
func AuditorFails(r *Run, path string, e *host.Event) {
	if e.Kind == host.EventFailed && e.Ref.Path() == path && !r.Injected(e) {
		r.Violate("auditor "+path, "it has failed: %s: %s", e.Failure.Kind, strings.TrimSpace(e.Failure.Reason+" "+e.Failure.Message))
		if v := r.Violation(); e.Mail != nil && v.File == "" {
			v.File = e.Mail.File
		}
	}
}

// end ends the faults, waits until all is quiet, and checks.
func (w *World) end() {
	if w.over() {
		return
	}
	w.idle()
	w.run.Calm()
	began := w.clock.Now()
	end := began.Add(w.settle)
	w.idle()
	for !w.over() && w.clock.Now().Before(end) && (!w.run.Settled() || len(w.asks) > 0) {
		w.jump(end)
	}
	if w.over() {
		return
	}
	w.run.CheckEnd(w.clock.Now().Sub(began))
	for _, c := range w.checks {
		if w.over() {
			return
		}
		if err := c.f(); err != nil {
			w.run.Violate(c.rule, "%v", err)
		}
	}
}
