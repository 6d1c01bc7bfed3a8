package look

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Audience is the Observer of a system: subscribers of events, dead letters that are kept, taps, and a sample of the flow of messages.
// The zero value is to be opened with Open before anything looks on.
type Audience struct {
	Bus
	Letters Letters

	dir    Directory
	now    func() time.Time
	traced bool
	word   *Word

	mu      sync.Mutex // of tapped and fuel, and of all Taps
	tapped  int
	fuel    int // who samples the fuel of turns
	sampler atomic.Pointer[Sampler]
}

// Open says how actors are found, what time it is, whether messages may be part of traces, and where the system's word is.
func (a *Audience) Open(d Directory, now func() time.Time, traced bool, w *Word) {
	a.dir, a.now, a.traced, a.word = d, now, traced, w
}

// Tap adds a tap to those of an actor. stop removes it, once.
func (a *Audience) Tap(of *Taps, t *Tap) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of.Add(t)
	if a.tapped++; a.tapped == 1 {
		a.word.Or(ForTaps)
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		of.Remove(t)
		if a.tapped--; a.tapped == 0 {
			a.word.And(^ForTaps)
		}
	})
}

// Sample begins to sample the flow of messages; false if somebody does.
func (a *Audience) Sample(x *Sampler) (stop func(), ok bool) {
	if !a.sampler.CompareAndSwap(nil, x) {
		return nil, false
	}
	a.word.Or(ForFlow)
	return func() {
		if a.sampler.CompareAndSwap(x, nil) {
			a.word.And(^ForFlow)
		}
	}, true
}

// SampleFuel marks that the fuel of turns is sampled, until stop is called, once.
func (a *Audience) SampleFuel() (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fuel++; a.fuel == 1 {
		a.word.Or(ForFuel)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.fuel--; a.fuel == 0 {
			a.word.And(^ForFuel)
		}
	}
}

// about is an event about an actor.
func about(a Who, k event.Kind) event.Event {
	s := a.Subject()
	return event.Event{Kind: k, Time: s.At, Ref: s.Ref, Type: s.Type, Incarnation: s.Incarnation}
}

// Started implements Observer.
func (a *Audience) Started(who Who, cause *abi.Failure) {
	if !a.Quiet() { // nothing else is done for it: it happens to each actor
		a.started(who, cause)
	}
}

func (a *Audience) started(who Who, cause *abi.Failure) {
	e := about(who, event.Started)
	if e.Incarnation > 0 {
		e.Kind = event.Restarted
	}
	e.Failure = cause
	a.Publish(e)
}

// Resumed implements Observer.
func (a *Audience) Resumed(who Who) {
	if !a.Quiet() {
		a.Publish(about(who, event.Resumed))
	}
}

// Paused implements Observer.
func (a *Audience) Paused(who Who, on bool) {
	if a.Quiet() {
		return
	}
	k := event.Unpaused
	if on {
		k = event.Paused
	}
	a.Publish(about(who, k))
}

// Stopped implements Observer.
func (a *Audience) Stopped(who Who, reason string, cause *abi.Failure) {
	if !a.Quiet() { // nothing else is done for it: it happens to each actor
		a.stopped(who, reason, cause)
	}
}

func (a *Audience) stopped(who Who, reason string, cause *abi.Failure) {
	e := about(who, event.Stopped)
	e.Note, e.Failure = reason, cause
	a.Publish(e)
}

// Decided implements Observer. An escalated failure is published once as a failure; higher up, events say what happens to the
// supervisors that it has reached.
func (a *Audience) Decided(who Who, d *Decision) {
	if a.Quiet() {
		return
	}
	e := about(who, event.Failed)
	if d.Escalated {
		e.Kind = event.Escalated
	}
	if e.Mail = d.Mail; d.Mail != nil {
		e.Trace = d.Mail.Trace
	}
	e.ID, e.Time, e.Failure, e.Directive, e.Delay, e.Failures, e.Note, e.Silent = d.ID, d.At, d.Failure, d.Directive, d.Delay, d.Failures, d.Note, d.Silent
	a.Publish(e)
}

// Terminated implements Observer.
func (a *Audience) Terminated(at time.Time) { a.Publish(event.Event{Kind: event.Terminated, Time: at}) }

// Undelivered implements Observer.
func (a *Audience) Undelivered(reason event.DeadReason, key string, to abi.Ref, path string, e *mailbox.Envelope) {
	l := a.Secrets.Letter(reason, to, path, e)
	l.Key, l.Time, l.From = key, a.now(), sender(a.dir, e).Path()
	kind := event.Undelivered
	if message.IsSuppressed(e, reason) {
		kind = event.Suppressed
	} else {
		a.Letters.Add(&l, e)
	}
	if a.Quiet() {
		return
	}
	ev := event.Event{Kind: kind, Time: l.Time, Ref: a.dir.RefOf(to), Dead: &l}
	if a.traced {
		if t := trail.Of(e.Headers); t.IsValid() {
			ev.Trace = &t
		}
	}
	a.Publish(ev)
}

// Unhandled implements Observer.
func (a *Audience) Unhandled(who Who, e *mailbox.Envelope) {
	if a.Quiet() {
		return
	}
	ev := about(who, event.Unhandled)
	l := a.Secrets.Letter(0, ev.Ref.UID(), ev.Ref.URI(), e)
	l.From = sender(a.dir, e).Path()
	ev.Dead = &l
	a.Publish(ev)
}

// Refused implements Observer.
func (a *Audience) Refused(who Who, r *event.Refusal) {
	if a.Quiet() {
		return
	}
	e := about(who, event.Refused)
	e.Refused = r
	a.Publish(e)
}

// Said implements Observer.
func (a *Audience) Said(who Who, level int, text string, trace *span.Context) {
	if a.Quiet() {
		return
	}
	e := about(who, event.Log)
	e.Level, e.Text, e.Trace = level, text, trace
	a.Publish(e)
}

// Turns implements Observer.
func (a *Audience) Turns(taps *Taps, skip *uint64, t *Turns) {
	looks := a.word.Load()
	if looks&ForTaps != 0 {
		taps.Report(a.dir, &a.Secrets, t)
	}
	if x := a.sampler.Load(); looks&ForFlow != 0 && x != nil {
		x.Take(a.dir, skip, t)
	}
}

// TurnFailed implements Observer.
func (a *Audience) TurnFailed(taps *Taps, who Who, e *mailbox.Envelope, f *abi.Failure) {
	if taps.None() {
		return
	}
	s := who.Subject()
	taps.Failed(a.dir, &a.Secrets, Tapped{Actor: s.Ref, Incarnation: s.Incarnation, Time: s.At}, e, f)
}

// Shown implements Observer.
func (a *Audience) Shown(f *abi.Failure) *abi.Failure { return a.Secrets.Failure(f) }

// Excerpt implements Observer.
func (a *Audience) Excerpt(payload []byte) []byte { return a.Secrets.Excerpt(payload) }

// Hides implements Observer.
func (a *Audience) Hides(text string) bool { return a.Secrets.Finds(text) }

var _ Observer = (*Audience)(nil)
