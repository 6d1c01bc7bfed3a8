package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// A scenario under a plan of host/simulate.

// invariant is something that must hold in simulations.
type invariant struct {
	name    string
	auditor string // a path; "": it is asked
	always  bool
	becomes bool // it need not hold at once when faults have ended
	grows   bool // the answer is a number that never falls
	step    step // an ask
}

// simulation says how a scenario is simulated.
type simulation struct {
	faults []simulate.Class // nil: all
	spare  []spared
	lossy  []string
	bug    map[string]string
	settle time.Duration
}

type spared struct {
	path    string
	classes []simulate.Class
}

// invariants reads a checked list.
func (c *checker) invariants(n *yaml.Node) (out []invariant) {
	if n == nil {
		return nil
	}
	ask := &verbs[slices.IndexFunc(verbs, func(v verb) bool { return v.name == "ask" })]
	for _, x := range n.Content {
		i := invariant{name: valueAt(x, "name"), always: valueAt(x, "when") == "always", becomes: valueAt(x, "when") == "eventually", grows: valueAt(x, "grows") == "true", step: step{verb: ask, n: x}}
		path := valueAt(x, "ask")
		if a := grammar.At(x, "auditor"); a != nil {
			path = a.Value
			i.auditor = pathOf(path)
		}
		switch {
		case (grammar.At(x, "ask") != nil) == (grammar.At(x, "auditor") != nil):
			c.At(x, "an invariant needs either ask or auditor")
		case i.auditor == "" && grammar.At(x, "message") == nil:
			c.At(x, "ask needs message")
		case i.auditor != "" && len(x.Content) != 4:
			c.At(x, "beside auditor there is only name")
		case !validPath(pathOf(path)):
			c.At(x, "%q is neither the name of an actor nor a path such as /user/a/b", path)
		}
		if m := grammar.At(x, "message"); m != nil && drawsAny(m) {
			c.At(m, "the question of an invariant is always the same")
		}
		out = append(out, i)
	}
	return out
}

func valueAt(n *yaml.Node, key string) string {
	if x := grammar.At(n, key); x != nil {
		return x.Value
	}
	return ""
}

// simulation reads a checked mapping into s.
func (c *checker) simulation(s *simulation, n *yaml.Node) {
	if n == nil {
		return
	}
	if x := grammar.At(n, "faults"); x != nil {
		s.faults = c.classes(x)
	}
	if x := grammar.At(n, "spare"); x != nil {
		for i := 0; i+1 < len(x.Content); i += 2 {
			s.spare = append(s.spare, spared{pathOf(x.Content[i].Value), c.classes(x.Content[i+1])})
		}
	}
	if x := grammar.At(n, "lossy"); x != nil {
		for _, p := range x.Content {
			s.lossy = append(s.lossy, pathOf(p.Value))
		}
	}
	s.bug = with(s.bug, grammar.At(n, "bug"))
	if x := grammar.At(n, "settle"); x != nil {
		s.settle, _ = grammar.ParseDuration(x.Value)
	}
}

func (c *checker) classes(n *yaml.Node) []simulate.Class {
	cs, err := simulate.ParseFaults(n.Value)
	if err != nil {
		c.At(n, "%v", err)
	}
	if cs == nil {
		cs = []simulate.Class{}
	}
	return cs
}

// Faults are those of the classes that the scenario withstands.
func (s *Scenario) Faults(on []simulate.Class) []simulate.Class {
	return slices.DeleteFunc(slices.Clone(on), func(c simulate.Class) bool {
		return !s.has(c) || s.simulation.faults != nil && !slices.Contains(s.simulation.faults, c)
	})
}

// has reports whether faults of a class can happen in the scenario.
func (s *Scenario) has(c simulate.Class) bool { return !c.OfNodes() || len(s.nodes) > 0 }

// Meets reports whether faults of some of the classes can happen in the scenario, whatever it withstands.
func (s *Scenario) Meets(on []simulate.Class) bool { return slices.ContainsFunc(on, s.has) }

// withstands reports classes that a scenario names and that cannot happen in it.
func (c *checker) withstands(s *Scenario, n *yaml.Node) {
	x := grammar.At(grammar.At(n, "simulation"), "faults")
	if x == nil {
		return
	}
	for _, word := range strings.Split(x.Value, ",") {
		if class := simulate.Class(strings.TrimSpace(word)); class.Doc() != "" && !s.has(class) {
			c.At(x, "faults: %s is for scenarios with nodes, and this one has none: nodes: 3", class)
		}
	}
}

// Bug are the variables of the manifest that choose the deliberate mistake of the scenario; empty if it has none.
func (s *Scenario) Bug() map[string]string { return s.simulation.bug }

// Invariants are the names of the scenario's invariants.
func (s *Scenario) Invariants() (names []string) {
	for _, i := range s.invariants {
		names = append(names, i.name)
	}
	return names
}

// simulated is a scenario that is simulated. Its methods may be called on nil: then the scenario is tested.
type simulated struct {
	run      *simulate.Run
	plan     simulate.Plan
	scenario *Scenario
	box      *blackbox.Recorder
	judges   bool // failing steps count
	moments  uint64
	over     bool   // the steps are
	sent     uint64 // messages of steps
	probing  []probing
	disk     *simulate.Disk // of durable actors; nil: there are none
	greatest map[*invariant]*big.Float
}

// probing is an invariant that was asked at a moment of the seed's.
type probing struct {
	of  *invariant
	p   *host.Pending
	due time.Time
	not *big.Float // what is known already: if the answer grows, it is not less
}

// meet makes the run of a world.
func (by *simulated) meet(w *world) {
	if by == nil {
		return
	}
	s := by.scenario
	matches := func(pattern, path string) bool {
		p := glob.CompilePath(strings.TrimPrefix(pattern, "/"))
		return p.Match(strings.Split(strings.TrimPrefix(path, "/"), "/"))
	}
	by.run = simulate.NewRun(by.plan, w.clock, simulate.Places{
		Spared: func(c simulate.Class, path string) bool {
			return slices.Contains(s.standIns, path) || w.spread(path) || slices.ContainsFunc(s.simulation.spare, func(x spared) bool {
				return slices.Contains(x.classes, c) && matches(x.path, path)
			})
		},
		Lossy: func(path string) bool {
			return slices.ContainsFunc(s.simulation.lossy, func(p string) bool { return matches(p, path) })
		},
	})
	by.run.From(w.scenario.start)
	if w.keepsActors() {
		by.disk = by.run.NewDisk()
		if slices.Contains(by.plan.On(), simulate.Upgrade) {
			by.disk.KeepCode(&w.stage.packed)
		}
	}
	for _, i := range s.invariants {
		if i.auditor != "" {
			by.run.Watch(func(e *host.Event) { simulate.AuditorFails(by.run, i.auditor, e) })
		}
	}
}

// keepsActors reports whether actors of the bundle are durable, and steps do not put another mailbox before them.
func (w *world) keepsActors() bool {
	some := false
	w.bundle.Manifest.Walk(func(path string, a *bundle.Actor) {
		some = some || a.Durable || a.Events
		if strings.Count(path, "/") > 2 && w.scenario.hasFaults(path, a) || a.Durable && w.scenario.hasFaults(path, a) {
			w.faulty = true
		}
	})
	return some && !w.faulty && len(w.scenario.nodes) == 0 // nodes of a cluster have no store
}

func (by *simulated) configure(cfg host.Config, clock host.Clock) host.Config {
	if by == nil {
		return cfg
	}
	if by.box != nil {
		cfg = cfg.WithBlackBox(by.box)
	}
	return by.run.ConfigureOn(cfg, clock)
}

func (by *simulated) begin(p *place, sys *host.System) {
	if by == nil {
		return
	}
	var runs func() bool
	if p.life != nil {
		runs = p.life.machine.Runs
	}
	by.run.BeginOn(p.name, sys, runs)
}

// left is told of a place that has ended.
func (by *simulated) left(p *place) {
	if by != nil && p.sys != nil {
		by.run.Left(p.sys)
	}
}

func (by *simulated) tick() {
	if by != nil {
		by.run.Tick()
	}
}

// sends reports whether the message with a number, from 1, is sent.
func (by *simulated) sends(number uint64) bool { return by == nil || by.over || by.run.Sends(number-1) }

// moment lets actors run after a message: until all is done, or in a simulation for as long as the seed says. more says that the
// step goes on.
func (w *world) moment(more bool) error {
	by := w.simulated
	if by == nil || by.judges && !more {
		return w.runUntilIdle()
	}
	if err := w.nodeFaults(); err != nil {
		return err
	}
	n := by.run.Chance("moment", w.messages, 8) // by its number, so that leaving out others does not change it
	if n == 7 {
		w.probe1()
	}
	switch {
	case n == 0:
		return w.runUntilIdle()
	case n == 1 && !by.judges:
		if err := w.runUntilIdle(); err != nil {
			return err
		}
		if w.cluster != nil { // something is due all the time
			return w.advance(time.Duration(1+by.run.Chance("gap", w.messages, 1500)) * time.Millisecond)
		}
		if next, ok := w.clock.Next(); ok {
			return w.advance(min(next.Sub(w.clock.Now()), time.Second))
		}
		return nil
	}
	for range n {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if _, err := w.turn(); err != nil {
			return err
		}
		w.drain()
		if err := w.rest(); err != nil {
			return err
		}
	}
	w.probed(false)
	return nil
}

// probe1 asks the invariants that must always hold.
func (w *world) probe1() {
	by := w.simulated
	for i := range w.scenario.invariants {
		x := &w.scenario.invariants[i]
		if !x.always || x.auditor != "" {
			continue
		}
		if w.stillStands(&x.step) != nil {
			continue // no node runs
		}
		to, err := w.address(x.step.object())
		if err != nil {
			continue // it is not there now
		}
		v, err := valueOf(grammar.At(x.step.n, "message"), w.number)
		if err != nil {
			continue
		}
		if p, err := w.sys.Request(to.To, to.Message(v)); err == nil {
			by.probing = append(by.probing, probing{x, p, w.clock.Now().Add(time.Minute), by.greatest[x]})
		}
	}
}

// probed judges the answers that have come. One that is an error, or is missing, tells of a fault and not of the invariant.
func (w *world) probed(last bool) {
	by := w.simulated
	by.probing = slices.DeleteFunc(by.probing, func(x probing) bool {
		select {
		case m := <-x.p.Answer():
			if m.Err() == nil || x.of.step.has("error") {
				err := w.answered(&x.of.step, m, m.Err())
				if err == nil && x.of.grows {
					err = by.grown(x.of, m.Payload, x.not)
				}
				if err != nil {
					by.run.Violate("invariant "+x.of.name, "%s", told1(err))
				}
			}
			return true
		default:
		}
		if last || w.clock.Now().After(x.due) {
			x.p.Cancel()
			return true
		}
		return false
	})
}

// grown compares an answer with what was known when it was asked for.
func (by *simulated) grown(x *invariant, payload []byte, before *big.Float) error {
	v, err := decode(payload)
	n := number(v)
	switch {
	case err != nil || n == nil:
		return &stepError{what: "it is not a number", got: shownPayload(payload)}
	case before != nil && n.Cmp(before) < 0:
		return &stepError{what: "it is less than before", want: "at least " + before.Text('g', 20), got: show(v)}
	}
	if by.greatest == nil {
		by.greatest = map[*invariant]*big.Float{}
	}
	if now := by.greatest[x]; now == nil || n.Cmp(now) > 0 {
		by.greatest[x] = n
	}
	return nil
}

// told1 is a step's error in a line.
func told1(err error) string {
	var e *stepError
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := e.what
	for _, x := range []struct{ name, text string }{{"expected", e.want}, {"got", e.got}} {
		if x.text != "" {
			text += "; " + x.name + " " + x.text
		}
	}
	return text
}

// Simulating are options of Simulate.
type Simulating struct {
	Timeout time.Duration // in real time; 0: DefaultRun
	For     time.Duration // the steps are repeated for so much virtual time; 0: once
	// BlackBox writes crash files of guests that fail; nil: there are none.
	BlackBox *blackbox.Recorder
}

// Simulate runs a scenario under a plan, in a system of its own: at moments that the seed chooses it goes on with the next
// step. Steps that fail count only in a plan without faults; what must hold otherwise is said by the invariants. One scenario
// of a stage runs at a time.
func (st *Stage) Simulate(ctx context.Context, b *bundle.Bundle, s *Scenario, p simulate.Plan, o Simulating) *simulate.Outcome {
	began := time.Now()
	if o.Timeout <= 0 {
		o.Timeout = DefaultRun
	}
	seeded := *s
	seeded.seed = p.Seed
	s = &seeded
	p.Scenario = s.ID()
	by := &simulated{plan: p, scenario: s, box: o.BlackBox, judges: len(p.On()) == 0 && len(p.Skip) == 0}
	if slices.Contains(p.On(), simulate.Upgrade) {
		if err := st.load(ctx, b); err != nil {
			return &simulate.Outcome{Plan: p, Took: time.Since(began), Err: err}
		}
		defer st.plain(b)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	w, err := st.begin(ctx, b, s, by)
	if err == nil {
		if err = w.simulate(by, o); errors.Is(err, simulate.ErrViolated) { // the first violation ends the run
			err = nil
		}
	}
	if w != nil && !by.over {
		by.sent = w.messages
	}
	out := by.run.Finish(by.sent, time.Since(began), err)
	if w != nil && err == nil || w != nil && w.calm != nil {
		st.end(w)
	}
	out.Took = time.Since(began)
	return out
}

// simulate carries out the steps, ends the faults, and checks.
func (w *world) simulate(by *simulated, o Simulating) error {
	for {
		for i := range w.scenario.steps {
			s := &w.scenario.steps[i]
			err := w.step(s)
			var known *stepError
			switch {
			case err == nil:
			case !errors.As(err, &known):
				return err
			case by.judges:
				by.run.Violate("step "+fmt.Sprint(i+1), "line %d: %s: %s", s.n.Line, s.verb.name, told1(err))
			}
			if by.run.Err() != nil {
				return nil
			}
		}
		if w.since(w.clock.Now()) >= o.For {
			break
		}
		if !by.judges {
			w.forget()
		}
		by.moments++
		if err := w.advance(time.Duration(1+by.run.Chance("pause", by.moments, 1000)) * time.Millisecond); err != nil {
			return err
		}
	}
	return w.settle(by)
}

// asksOn is asks where the actor is.
func (w *world) asksOn(s *step) (m host.Message, err error) {
	if err := w.stillStands(s); err != nil {
		return m, err
	}
	return w.asks(s)
}

// forget drops the messages that probes have, which no step expects any more.
func (w *world) forget() {
	for _, p := range w.probes {
		for {
			if _, ok := p.take(""); !ok {
				break
			}
		}
		p.open = nil
	}
}

// settle ends the faults, waits until all is over, and checks what must hold then.
func (w *world) settle(by *simulated) error {
	if err := w.runUntilIdle(); err != nil {
		return err
	}
	by.over, by.sent = true, w.messages
	by.run.Calm()
	w.calmNodes()
	began := w.clock.Now()
	bound := w.scenario.simulation.settle
	if bound <= 0 {
		bound = simulate.DefaultSettle
	}
	err := w.runUntilIdle()
	settled := func() bool { return w.cluster.whole() && by.run.Settled() }
	if err == nil && !settled() {
		_, err = w.until(bound, settled)
	}
	if err != nil || by.run.Err() != nil {
		return err
	}
	w.probed(true)
	by.run.CheckEnd(w.clock.Now().Sub(began))
	for i := range w.scenario.invariants {
		x := &w.scenario.invariants[i]
		if by.run.Err() != nil {
			return nil
		}
		if x.auditor != "" {
			continue
		}
		before := by.greatest[x]
		m, err := w.asksOn(&x.step)
		for end := began.Add(bound); err != nil && x.becomes && by.run.Err() == nil && w.clock.Now().Before(end); {
			if err := w.advance(time.Second); err != nil {
				return err
			}
			w.quiet = true // else it would be all that a failure shows
			m, err = w.asksOn(&x.step)
			w.quiet = false
		}
		if err != nil && m.Err() != nil && !by.judges && !x.becomes { // it is being restarted
			if err := w.advance(time.Minute); err != nil {
				return err
			}
			m, err = w.asksOn(&x.step)
		}
		if err == nil && x.grows {
			err = by.grown(x, m.Payload, before)
		}
		var known *stepError
		switch {
		case err == nil:
		case errors.As(err, &known) && x.becomes:
			by.run.Violate("invariant "+x.name, "%v after the end of the faults %s", bound, told1(err))
		case errors.As(err, &known):
			by.run.Violate("invariant "+x.name, "%s", told1(err))
		default:
			return err
		}
	}
	return nil
}
