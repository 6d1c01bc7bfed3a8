//go:build !wasip1

package actortest

import (
	"sort"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// World is several actors that talk to each other in one test, without wasm and without a
// host: what they send, ask, spawn, stop and watch is carried out, one message after the
// other, in the order in which it was sent. The test plays everybody else.
//
// An actor whose turn fails is restarted, one whose start fails stops; [World.Supervise]
// decides otherwise. There are no capabilities and no limits. It is for one goroutine.
type World struct {
	t        testing.TB
	config   config
	actors   map[actor.Ref]*Actor
	order    []*Actor // in which they were started
	ended    map[actor.Ref]string
	watchers map[actor.Ref][]actor.Ref
	queue    []step
	decide   func(*Actor, *abi.Failure) actor.Directive
	now      time.Time
	names    uint64
	corr     uint64

	probes []*Probe
	faults []*Fault
	held   []step // that wait to be overtaken by the next message to the same receiver

	fakes     map[actor.Ref]*Fake
	fakesMade uint64
	later     []later
	laterMade uint64
	running   bool // see goOn

	out      []Sent
	dead     []Sent
	failures []Failed
	turns    int
}

// Failed is a turn that has failed in a [World].
type Failed struct {
	Path    string
	Failure *abi.Failure
}

// NewWorld is a world without actors. [At] and [Seed] hold for all of them.
func NewWorld(t testing.TB, options ...Option) *World {
	t.Helper()
	w := &World{
		t: t, config: config{at: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)},
		actors: map[actor.Ref]*Actor{}, ended: map[actor.Ref]string{}, watchers: map[actor.Ref][]actor.Ref{},
		fakes: map[actor.Ref]*Fake{},
	}
	for _, o := range options {
		o(&w.config)
	}
	w.now = w.config.at
	return w
}

// Supervise sets the function that decides about failures. After actor.Resume the actor keeps what its
// failed turn has changed: turns are not undone here.
func (w *World) Supervise(decide func(a *Actor, f *abi.Failure) actor.Directive) { w.decide = decide }

// Spawn starts an actor at /user/ and its name, which is the type if [Named] gives no other, and runs
// the world until nothing is left to do. With [Parent] it is below that actor.
func (w *World) Spawn(typ string, options ...Option) *Actor {
	w.t.Helper()
	c := w.config
	c.name = typ
	for _, o := range options {
		o(&c)
	}
	c.keyed(w.t)
	if p := w.actors[c.parent]; p != nil {
		c.name = p.config.name + "/" + c.name
	} else if p := w.probeAt(Target{To: c.parent}); c.parent != 0 && p != nil {
		c.name = p.name + "/" + c.name
	} else if c.parent != 0 {
		w.t.Fatalf("actortest: the parent %d is not an actor of this world", c.parent)
	}
	a := w.add(typ, c)
	w.Run()
	return a
}

// add makes an actor and lets it begin in its turn.
func (w *World) add(typ string, c config) *Actor {
	w.t.Helper()
	c.at = w.now
	a := newActor(w.t, typ, c)
	if w.actors[a.Ref()] != nil || w.Find("/user/"+c.name) != nil {
		w.t.Fatalf("actortest: there is an actor /user/%s already", c.name)
	}
	a.world = w
	delete(w.ended, a.Ref())
	w.actors[a.Ref()] = a
	w.order = append(w.order, a)
	w.queue = append(w.queue, step{to: a, start: true})
	return a
}

// Path is where the actor is: /user/ and its name, behind those of its parents.
func (a *Actor) Path() string { return "/user/" + a.config.name }

// Find returns the actor at a path, or nil.
func (w *World) Find(path string) *Actor {
	for _, a := range w.order {
		if a.Path() == path {
			return a
		}
	}
	return nil
}

// Actors are the paths of those that live, sorted.
func (w *World) Actors() []string {
	paths := make([]string, 0, len(w.order))
	for _, a := range w.order {
		paths = append(paths, a.Path())
	}
	sort.Strings(paths)
	return paths
}

// Tell sends a message without a sender, and runs the world until nothing is left to do.
func (w *World) Tell(to *Actor, body actor.Encoder) {
	w.t.Helper()
	w.send(Sent{Target: Target{To: to.Ref()}, Payload: encode(body)})
	w.Run()
}

// Ask sends a question as [Tester], runs the world until nothing is left to do, and returns the answer,
// even if it is an error. Without an answer the test fails.
func (w *World) Ask(to *Actor, body actor.Encoder) Sent {
	w.t.Helper()
	w.corr++
	q := w.corr
	w.send(Sent{Target: Target{To: to.Ref()}, Kind: Ask, From: Tester, Correlation: q, Payload: encode(body)})
	w.Run()
	for i, s := range w.out {
		if (s.Kind == Reply || s.Kind == ReplyError) && s.To == Tester && s.Correlation == q {
			w.out = append(w.out[:i:i], w.out[i+1:]...)
			return s
		}
	}
	w.t.Fatalf("actortest: %s has not answered; failures: %v", to.Path(), w.failures)
	return Sent{}
}

// Answer answers a question that has left the world, one of [World.Out], and runs it.
func (w *World) Answer(question Sent, body actor.Encoder) {
	w.t.Helper()
	w.answer(question, Reply, encode(body))
	w.Run()
}

// AnswerError is Answer with an error.
func (w *World) AnswerError(question Sent, reason string) {
	w.t.Helper()
	w.answer(question, ReplyError, encode(actor.Text(reason)))
	w.Run()
}

func (w *World) answer(q Sent, kind SentKind, payload []byte) {
	from := q.To
	if from == 0 {
		from = Tester
	}
	w.send(Sent{Target: Target{To: q.From}, Kind: kind, From: from, Correlation: q.Correlation, Payload: payload})
}

// Out takes the messages to actors outside the world: to the test, and to paths and refs that no actor in it has had.
func (w *World) Out() []Sent {
	out := w.out
	w.out = nil
	return out
}

// Dead takes what was sent to actors that have ended, and answers that are not waited for.
func (w *World) Dead() []Sent {
	dead := w.dead
	w.dead = nil
	return dead
}

// Failures are the turns that have failed so far.
func (w *World) Failures() []Failed { return w.failures }

// Run delivers what is under way until nothing is left to do. Tell, Ask, Spawn, Answer and
// Advance do so themselves; Run is for what [Actor.Send] and its like have caused.
func (w *World) Run() {
	w.t.Helper()
	if w.running {
		w.t.Fatal("actortest: a handler runs the world that has called it")
	}
	w.running = true
	defer func() { w.running = false }()
	for len(w.queue) > 0 || w.letPassed() {
		if w.turns++; w.turns > maxTurns {
			w.t.Fatalf("actortest: %d turns: a conversation without an end?", w.turns)
		}
		s := w.queue[0]
		w.queue = w.queue[1:]
		w.step(s)
	}
}

// Stop stops an actor, its children first, and runs the world.
func (w *World) Stop(a *Actor) {
	w.t.Helper()
	if !a.ended {
		a.now = w.now
		a.Stop()
	}
	w.Run()
}

// Now is the clock of the world.
func (w *World) Now() time.Time { return w.now }

// Advance moves the clock of all actors. What becomes due is delivered in the order of time, and
// everything that follows from it before the clock goes on.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	w.Run()
	w.until(d, func() bool { return false })
}

// until lets time pass until a condition holds, for d at most, and reports whether it does.
func (w *World) until(d time.Duration, is func() bool) bool {
	w.t.Helper()
	if w.Run(); is() {
		return true
	}
	for end := w.now.Add(max(d, 0)); w.fireNext(end); {
		if w.Run(); is() {
			w.setClocks()
			return true
		}
	}
	w.setClocks()
	return false
}

func (w *World) setClocks() {
	for _, a := range w.order {
		a.now = w.now
	}
}

// first is what becomes due first: of an actor, or (the index is not -1) a call.
func (w *World) first() (who *Actor, first *due, called int) {
	for _, a := range w.order {
		if next := a.next(); next != nil && a.failure == nil && (first == nil || next.at.Before(first.at)) {
			who, first = a, next
		}
	}
	called = w.nextCall()
	if called >= 0 && first != nil && first.at.Before(w.later[called].at) {
		called = -1
	}
	return who, first, called
}

// nextAt is when something becomes due.
func (w *World) nextAt() (time.Time, bool) {
	switch _, first, called := w.first(); {
	case called >= 0:
		return w.later[called].at, true
	case first != nil:
		return first.at, true
	}
	return time.Time{}, false
}

// fireNext advances to what becomes due next. If that is after end, it sets the clock to end and
// reports false.
func (w *World) fireNext(end time.Time) bool {
	w.t.Helper()
	who, first, called := w.first()
	if at, ok := w.nextAt(); !ok || at.After(end) {
		w.now = end
		return false
	}
	if w.turns++; w.turns > maxTurns {
		w.t.Fatalf("actortest: %d turns before %v: a timer without an end?", maxTurns, end)
	}
	if called >= 0 { // before what is due at the same time: an answer in the last moment counts
		w.call(called)
		return true
	}
	if first.at.After(w.now) {
		w.now = first.at
	}
	who.now = w.now
	w.judge(who, who.fire(first), step{to: who})
	return true
}
