package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/supervision"
)

// The rows D01 to D16 of the semantics. See docs/conformance.md.

// faulty is a counter that fails in any way: told {"fail": kind}.
type faulty struct{ counter }

func (a *faulty) Receive(ctx *Context, m Message) error {
	var f struct{ Fail uint8 }
	if m.Decode(&f) == nil && f.Fail != 0 {
		return failure(abi.FailureKind(f.Fail))
	}
	return a.counter.Receive(ctx, m)
}

func fail(k abi.FailureKind) any { return map[string]uint8{"Fail": uint8(k)} }

func newFaulty() Props { return Native(func() Actor { return &faulty{} }) }

// Each directive acts on the failed actor and all below it.
func TestD01_DirectivesActOnDescendants(t *testing.T) {
	for _, c := range []struct {
		directive    supervision.Directive
		keep         bool
		top, leaf    int // what they hold afterwards; -1: gone
		incarnations [2]uint64
	}{
		{supervision.Resume, false, 1, 3, [2]uint64{0, 0}},
		{supervision.Restart, false, 0, 0, [2]uint64{1, 0}}, // the leaf is stopped, and started anew
		{supervision.Restart, true, 0, 0, [2]uint64{1, 1}},  // it is restarted
		{directive: supervision.Stop, top: -1},
	} {
		t.Run(fmt.Sprint(c.directive, c.keep), func(t *testing.T) {
			l := newLab(t, otherwise(c.directive).WithKeepChildren(c.keep))
			top := l.spawn("top", newCounter().WithChildren(Child{"mid", newCounter().WithChildren(Child{"leaf", newCounter()})}))
			leaf := l.at("top/mid/leaf")
			l.tell(top, 1)
			l.tell(leaf, 3)
			l.tell(top, "crash")
			if c.top < 0 {
				if l.state("top") != "gone" || l.state("top/mid/leaf") != "gone" {
					t.Fatal(l.View().Tree())
				}
				return
			}
			again := l.at("top/mid/leaf")
			if n, k := l.get(top), l.get(again); n != c.top || k != c.leaf {
				t.Errorf("they hold %d and %d", n, k)
			}
			if same := again == leaf; same != (c.directive == supervision.Resume || c.keep) {
				t.Errorf("the leaf is the same: %v", same)
			}
			if got := [2]uint64{l.table.Get(top.UID()).Incarnation(), l.table.Get(again.UID()).Incarnation()}; got != c.incarnations {
				t.Errorf("incarnations %v", got)
			}
		})
	}
}

// Escalate: the supervisor itself fails, with the same failure.
func TestD01_EscalateFailsTheSupervisor(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	l.spawn("top", parentOf(otherwise(supervision.Escalate), Child{"kid", newCounter()}))
	l.tell(l.at("top/kid"), "crash")
	es := l.seen(EventFailed, EventEscalated)
	if len(es) != 2 || es[0].Directive != supervision.Escalate || es[1].Directive != supervision.Restart ||
		es[0].Ref.Name() != "kid" || es[1].Ref.Name() != "top" || es[0].Failure != es[1].Failure || es[0].Kind != EventFailed || es[1].Kind != EventEscalated {
		t.Errorf("%+v", es)
	}
}

// The decider maps causes to directives: by kind, by a pattern of the reason, by the
// actor's type.
func TestD02_Decider(t *testing.T) {
	s := supervision.Default().WithRules(
		supervision.Rule{Kinds: []abi.FailureKind{abi.FailureFuel, abi.FailureDeadline}, Directive: supervision.Stop},
		supervision.Rule{Reason: "crash*", Type: "nat?ve", Directive: supervision.Resume},
	).WithOtherwise(supervision.Restart)
	for _, c := range []struct {
		message any
		want    supervision.Directive
	}{{fail(abi.FailureFuel), supervision.Stop}, {fail(abi.FailureDeadline), supervision.Stop}, {"crash", supervision.Resume}, {"panic", supervision.Restart}} {
		l := newLab(t, s)
		l.tell(l.spawn("a", newFaulty()), c.message)
		if e := l.next(EventFailed); e.Directive != c.want {
			t.Errorf("%v: %v, want %v", c.message, e.Directive, c.want)
		}
	}
}

// The default decider, by kind; D05: one-for-one, unlimited, at once.
func TestD03_DefaultDeciderCarriedOut(t *testing.T) {
	for _, k := range abi.FailureKinds() {
		l := newLab(t, supervision.Default())
		l.spawn("sibling", newCounter())
		ref := l.spawn("a", newFaulty())
		l.tell(ref, 5)
		l.tell(ref, fail(k))
		e := l.next(EventFailed)
		switch want := supervision.DefaultDirective(k); {
		case e.Directive != want || e.Failure.Kind != k:
			t.Errorf("%v: %v, want %v", e.Failure, e.Directive, want)
		case want == supervision.Restart:
			if l.get(ref) != 0 || l.state("sibling") != "running" {
				t.Errorf("%v: not restarted, or more than that", k)
			}
		case want == supervision.Stop:
			if l.state("a") != "gone" || l.state("sibling") != "running" {
				t.Errorf("%v: not stopped, or more than that", k)
			}
		case want == supervision.Escalate:
			if l.Cause() == nil {
				t.Errorf("%v: the system goes on", k)
			}
		}
	}
}

func TestD04_UncoveredEscalates(t *testing.T) {
	l := newLab(t, supervision.Stopping())
	covers := supervision.Default().WithRules(supervision.Rule{Kinds: []abi.FailureKind{abi.FailureTrap}, Directive: supervision.Restart})
	l.spawn("top", parentOf(covers, Child{"kid", newFaulty()}))
	kid := l.at("top/kid")
	l.tell(kid, fail(abi.FailureTrap))
	if e := l.next(EventFailed); e.Directive != supervision.Restart {
		t.Errorf("%v", e.Directive)
	}
	l.tell(kid, fail(abi.FailureFuel))
	if e := l.next(EventFailed); e.Directive != supervision.Escalate || l.state("top") != "gone" {
		t.Errorf("%v, top is %s", e.Directive, l.state("top"))
	}
}

// Unlimited restarts, no window.
func TestD05_DefaultIsUnlimited(t *testing.T) {
	l := newLab(t, supervision.Default())
	ref := l.spawn("a", newCounter())
	for range 5000 {
		l.Tell(ref, "crash")
	}
	l.run()
	if st := l.View().Stats(); st.Crashes != 5000 || l.get(ref) != 0 || l.table.Get(ref.UID()).Incarnation() != 5000 {
		t.Errorf("%+v", st)
	}
}

// Stop when the limit is exceeded; and the window of 3.3, on the host's clock.
func TestD06_D08_LimitOfRestarts(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		within time.Duration
		at     []int
		stops  bool // with the last one
	}{
		{"N = 0", 0, 0, []int{0}, true},
		{"lifetime", 2, 0, []int{0, 1_000_000, 2_000_000}, true},
		{"inside", 3, time.Second, []int{0, 100, 200, 300}, true},
		{"re-opened", 3, time.Second, []int{0, 400, 800, 1200}, false},
		{"across a boundary", 3, time.Second, []int{0, 998, 999, 1001, 1002, 1003, 1004}, true},
		{"N < 0 in a window", -1, time.Second, []int{0, 1001, 1500}, true},
	} {
		l := newLab(t, supervision.Default().WithMaxRestarts(c.n, c.within))
		ref := l.spawn("a", newCounter())
		now := 0
		for i, ms := range c.at {
			l.pass(time.Duration(ms-now) * time.Millisecond)
			now = ms
			l.tell(ref, "crash")
			last := i == len(c.at)-1
			e := l.next(EventFailed)
			want := supervision.Restart
			if last && c.stops {
				want = supervision.Stop
			}
			if e.Directive != want || (e.Note != "") != (want == supervision.Stop) {
				t.Errorf("%s: at %d: %v %q, want %v", c.name, ms, e.Directive, e.Note, want)
			}
		}
		if gone := l.state("a") == "gone"; gone != c.stops {
			t.Errorf("%s: gone: %v", c.name, gone)
		}
	}
}

// Resume, stop and escalate use up nothing; counters live with the parent's record of
// the child, so that a child of a new parent starts at zero.
func TestD08_WhatCounts(t *testing.T) {
	s := supervision.Default().WithMaxRestarts(1, 0).WithRules(supervision.Rule{Reason: "crashed", Directive: supervision.Resume}).WithOtherwise(supervision.Restart)
	l := newLab(t, supervision.Default())
	top := l.spawn("top", newCounter().WithSupervision(s).WithChildren(Child{"kid", newCounter()}))
	kid := l.at("top/kid")
	l.tell(kid, "crash", "crash", "crash", 1)
	if l.get(kid) != 1 {
		t.Error("not resumed")
	}
	l.tell(kid, "panic")
	if l.state("top/kid") != "running" {
		t.Error("the first restart is refused")
	}
	l.tell(top, "crash") // its children are stopped and started anew
	kid = l.at("top/kid")
	l.tell(kid, "panic")
	if l.state("top/kid") != "running" {
		t.Error("a new child does not start at zero")
	}
	l.tell(kid, "panic")
	if l.state("top/kid") != "gone" {
		t.Error("the second restart is allowed")
	}
}

// All-for-one: every directive but resume concerns all; a stop that is not a failure
// concerns nobody else; permission is asked of every child.
func TestD07_AllForOne(t *testing.T) {
	three := func(s supervision.Strategy) *lab {
		l := newLab(t, s.WithKind(supervision.AllForOne))
		for _, name := range []string{"a", "b", "c"} {
			l.tell(l.spawn(name, newCounter()), 5)
		}
		return l
	}
	states := func(l *lab) string { return l.state("a") + " " + l.state("b") + " " + l.state("c") }

	l := three(supervision.Stopping())
	l.tell(l.at("b"), "crash")
	if got := states(l); got != "gone gone gone" {
		t.Errorf("stop: %s", got)
	}
	l = three(otherwise(supervision.Resume))
	l.tell(l.at("b"), "crash")
	if l.get(l.at("a")) != 5 || l.get(l.at("b")) != 5 || l.table.Get(l.at("a").UID()).Incarnation() != 0 {
		t.Error("resume concerns others")
	}
	l = three(supervision.Default())
	l.Stop(l.at("b"))
	l.run()
	if got := states(l); got != "running gone running" {
		t.Errorf("a plain stop: %s", got)
	}
	// a has used up its budget of 2 as a sibling, though it never failed.
	l = three(supervision.Default().WithMaxRestarts(2, 0))
	l.tell(l.at("b"), "crash")
	l.tell(l.at("c"), "crash")
	if got := states(l); got != "running running running" {
		t.Errorf("two restarts: %s", got)
	}
	l.seen()
	l.spawn("d", newCounter()) // has not been restarted yet, but the others have
	l.tell(l.at("d"), "crash")
	if e := l.next(EventFailed); e.Directive != supervision.Stop || e.Note == "" || states(l) != "gone gone gone" || l.state("d") != "gone" {
		t.Errorf("%v %q: %s %s", e.Directive, e.Note, states(l), l.state("d"))
	}
}

// Rest-for-one concerns those that were started after the failed one, with the delays
// and refusals of all-for-one.
func TestD07_DelaysOfGroups(t *testing.T) {
	for _, c := range []struct {
		kind supervision.Kind
		want string // while b's delay lasts
	}{{supervision.OneForOne, "running restarting running"}, {supervision.RestForOne, "running restarting restarting"}, {supervision.AllForOne, "restarting restarting restarting"}} {
		l := newLab(t, delayed(t, supervision.Backoff{}).WithKind(c.kind))
		for _, name := range []string{"a", "b", "c"} {
			l.tell(l.spawn(name, newCounter()), 5)
		}
		l.tell(l.at("b"), "crash")
		states := l.state("a") + " " + l.state("b") + " " + l.state("c")
		if states != c.want || l.next(EventFailed).Delay != 200*time.Millisecond {
			t.Errorf("%v: %s, want %s", c.kind, states, c.want)
		}
		l.tell(l.at("c"), 1) // is kept
		l.pass(200 * time.Millisecond)
		held := []int{l.get(l.at("a")), l.get(l.at("b")), l.get(l.at("c"))}
		want := map[supervision.Kind][]int{supervision.OneForOne: {5, 0, 6}, supervision.RestForOne: {5, 0, 1}, supervision.AllForOne: {0, 0, 1}}[c.kind]
		if !slices.Equal(held, want) {
			t.Errorf("%v: %v, want %v", c.kind, held, want)
		}
	}
	l := newLab(t, supervision.Default().WithKind(supervision.RestForOne).WithMaxRestarts(1, 0))
	for _, name := range []string{"a", "b", "c"} {
		l.spawn(name, newCounter())
	}
	l.tell(l.at("c"), "crash")
	l.tell(l.at("b"), "crash") // c's budget is spent
	if states := l.state("a") + " " + l.state("b") + " " + l.state("c"); states != "running gone gone" {
		t.Errorf("refused: %s", states)
	}
}

// Two of a group that fail at once are one restart for each: the second failure is
// overtaken by the first's decision.
func TestD07_FailuresAtOnce(t *testing.T) {
	for kind, order := range map[supervision.Kind][]string{supervision.AllForOne: {"b", "c", "a"}, supervision.RestForOne: {"a", "c", "b"}} {
		l := newLab(t, supervision.Default().WithKind(kind).WithMaxRestarts(1, 0))
		for _, name := range []string{"a", "b", "c"} {
			l.spawn(name, newCounter())
		}
		for _, name := range order {
			l.fails(name)
		}
		l.run()
		for _, name := range []string{"a", "b", "c"} {
			if c := l.table.Get(l.at(name).UID()); c.life.State() != life.Running || c.Incarnation() != 1 {
				t.Errorf("%v: %s is %v in incarnation %d", kind, name, c.life.State(), c.Incarnation())
			}
		}
	}
}

// Stopping: every failure stops, a bug of the host escalates.
func TestD09_StoppingStrategy(t *testing.T) {
	for _, k := range abi.FailureKinds() {
		l := newLab(t, supervision.Stopping())
		l.tell(l.spawn("a", newFaulty()), fail(k))
		want := supervision.Stop
		if k == abi.FailureHost {
			want = supervision.Escalate
		}
		if e := l.next(EventFailed); e.Directive != want {
			t.Errorf("%v: %v", k, e.Directive)
		}
	}
}

// The end of Akka's FaultHandlingTest: the supervisor fails with what its child has
// failed with. Its restart stops the child; with kept children that lives on, at 0.
func TestD10_EscalatedRestart(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newLab(t, supervision.Default().WithKeepChildren(keep))
		l.spawn("top", parentOf(otherwise(supervision.Escalate)))
		top := l.table.Get(l.at("top").UID())
		counter := newCounter()
		kid := must(top.spawn(nil, "kid", &counter, top.nextHostRef()))(l.t).ref()
		l.tell(kid, 42)
		l.tell(kid, "crash")
		if top.Incarnation() != 1 {
			t.Error("top is not restarted")
		}
		if !keep {
			if l.state("top/kid") != "gone" {
				t.Error("the child lives")
			}
			continue
		}
		if l.get(kid) != 0 || l.table.Get(kid.UID()).Incarnation() != 1 {
			t.Error("the child is not restarted")
		}
		l.tell(kid, 1, "crash", 2) // and again: nothing is left suspended
		if l.get(kid) != 2 {
			t.Error("the second time")
		}
	}
}

// An escalated failure that is resumed resumes the child, too.
func TestD10_EscalatedResume(t *testing.T) {
	l := newLab(t, otherwise(supervision.Resume))
	top := l.spawn("top", newCounter().WithSupervision(otherwise(supervision.Escalate)).WithChildren(Child{"kid", newCounter()}))
	kid := l.at("top/kid")
	l.tell(top, 7)
	l.tell(kid, 42, "crash", 1)
	if l.get(kid) != 43 || l.get(top) != 7 {
		t.Errorf("%d, %d", l.get(kid), l.get(top))
	}
	// A child that has panicked cannot be resumed: it is restarted, under the limits of
	// its own supervisor.
	l.seen()
	l.tell(kid, "panic", 1)
	es := l.seen(EventFailed, EventEscalated)
	if len(es) != 3 || es[2].Ref != kid || es[2].Directive != supervision.Restart || !strings.HasPrefix(es[2].Note, "resume is not possible, restarting: ") {
		t.Errorf("%+v", es)
	}
	if l.get(kid) != 1 || l.get(top) != 7 || l.View().Stats().Crashes != 2 || l.totalOf(kid) != 2 {
		t.Errorf("%d, %d, %d crashes", l.get(kid), l.get(top), l.View().Stats().Crashes)
	}
}

// A failing actor suspends itself and all descendants until the decision: messages
// wait, system messages do not.
func TestD11_Suspension(t *testing.T) {
	l := newLab(t, otherwise(supervision.Suspend))
	top := l.spawn("top", newCounter().WithChildren(Child{"mid", newCounter().WithChildren(Child{"leaf", newCounter()})}))
	mid, leaf := l.at("top/mid"), l.at("top/mid/leaf")
	l.tell(top, "crash")
	l.tell(top, 1)
	l.tell(mid, 2)
	l.tell(leaf, 3)
	for path, want := range map[string]string{"top": "failed", "top/mid": "running", "top/mid/leaf": "running"} {
		if c := l.table.Get(l.at(path).UID()); c.life.State().String() != want || c.box.Len() != 1 || c.life.Open() {
			t.Errorf("%s: %v, %d wait", path, c.life.State(), c.box.Len())
		}
	}
	if err := l.Operate().Decide(top, supervision.Resume); err != nil {
		t.Fatal(err)
	}
	l.run()
	if l.get(top) != 1 || l.get(mid) != 2 || l.get(leaf) != 3 {
		t.Error("what has waited is lost")
	}
	// Stopping a suspended subtree needs nobody's decision.
	l.tell(top, "crash")
	l.Stop(leaf)
	l.Stop(top)
	l.run()
	if l.state("top") != "gone" {
		t.Error(l.View().Tree())
	}
}

// A child that fails while its supervisor has failed waits until that goes on.
func TestD11_ChildOfASuspendedSupervisor(t *testing.T) {
	for _, directive := range []supervision.Directive{supervision.Resume, supervision.Restart} {
		l := newLab(t, supervision.Default().WithRules(supervision.Rule{Reason: "told to", Directive: supervision.Suspend}).WithKeepChildren(true))
		top := l.spawn("top", newCounter().WithSupervision(otherwise(supervision.Resume)).WithChildren(Child{"kid", newCounter()}))
		kid := l.at("top/kid")
		l.tell(kid, 5)
		l.fails("top")
		l.fails("top/kid")
		l.run()
		if l.state("top/kid") != "failed" || l.state("top") != "failed" {
			t.Fatal(l.View().Tree())
		}
		l.Operate().Decide(top, directive)
		l.run()
		want := 5 // its own supervisor's directive
		if directive == supervision.Restart {
			want = 0 // restarted with it
		}
		if got := l.get(kid); got != want {
			t.Errorf("%v: it holds %d", directive, got)
		}
		l.tell(kid, 1, "crash", 1)
		if got := l.get(kid); got != want+2 {
			t.Errorf("%v: then it holds %d", directive, got)
		}
	}
}

// An actor started below a suspended one is suspended as well, and goes on with it.
func TestD11_StartedWhileSuspended(t *testing.T) {
	l := newLab(t, otherwise(supervision.Suspend))
	top := l.spawn("top", newCounter().WithSupervision(supervision.Default()).WithChildren(Child{"mid", newCounter().WithChildren(Child{"leaf", newCounter()})}))
	mid := l.at("top/mid")
	l.Tell(mid, "crash") // mid restarts while top is suspended, and starts its leaf anew
	l.Tell(top, "crash")
	l.run()
	l.Operate().Decide(top, supervision.Resume)
	l.run()
	if leaf := l.at("top/mid/leaf"); l.get(leaf) != 0 || l.get(mid) != 0 || l.get(top) != 0 {
		t.Error(l.View().Tree())
	}
	for path := range map[string]int{"top": 0, "top/mid": 0, "top/mid/leaf": 0} {
		if n := l.table.Get(l.at(path).UID()).life.Suspended(); n != 0 {
			t.Errorf("%s is suspended %d times", path, n)
		}
	}
}

// Every failure is an event with what was decided, also where the log is silent.
func TestD12_Reports(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}))
	ref := l.spawn("a", newCounter())
	l.Tell(ref, 1)
	l.TellFrom(ref, ref, "crash")
	l.Tell(ref, 2)
	l.run()
	e := l.next(EventFailed)
	if e.Ref != ref || e.Failure.Kind != abi.FailureGuestError || e.Failure.Reason != "crashed" || e.Directive != supervision.Restart ||
		e.Delay != 200*time.Millisecond || e.Failures != 1 || e.Incarnation != 0 || e.Mail == nil || e.Mail.Waiting != 1 || e.Mail.Sender != ref.UID() {
		t.Errorf("%+v, %+v", e, e.Mail)
	}
	if n := len(l.seen(EventFailed, EventEscalated)); n != 0 || e.Silent || e.Mail.Kind != abi.KindMessage || e.Mail.Redelivered != 0 {
		t.Errorf("%d more, %+v", n, e.Mail)
	}
	// Then it begins again, for this reason, and the next failure is the second one.
	l.pass(200 * time.Millisecond)
	if r := l.next(EventRestarted); r.Ref != ref || r.Incarnation != 1 || r.Failure != e.Failure {
		t.Errorf("%+v", r)
	}
	l.tell(ref, "panic")
	if e := l.next(EventFailed); e.Failure.Kind != abi.FailureNativePanic || e.Failures != 2 || e.Delay != 400*time.Millisecond || e.Incarnation != 1 || e.Mail.Waiting != 0 || e.Mail.Sender != 0 {
		t.Errorf("%+v, %+v", e, e.Mail)
	}
	// A silent strategy marks the report, and every other one leaves it unmarked.
	l = newLab(t, supervision.Default())
	l.spawn("top", parentOf(supervision.Default().WithSilence(true), Child{"kid", newCounter()}))
	l.tell(l.at("top/kid"), "crash")
	if e := l.next(EventFailed); !e.Silent {
		t.Errorf("%+v", e)
	}
	// Without anybody who listens it is counted all the same.
	if st := l.View().Stats(); st.Crashes != 1 {
		t.Errorf("%d crashes", st.Crashes)
	}
}

// Top-level actors: the guardian's strategy, and no special rule.
func TestD13_TopLevelActors(t *testing.T) {
	l := newLab(t, supervision.Default().WithMaxRestarts(1, 0))
	ref := l.spawn("a", newCounter())
	l.tell(ref, "crash", "crash")
	if l.state("a") != "gone" || l.Cause() != nil {
		t.Error(l.View().Tree())
	}
}

// Watch and recreate: the recipe where a restart is impossible, since the actor does
// not start.
func TestD15_WatchAndRecreate(t *testing.T) {
	l := newLab(t, supervision.Default())
	starts := 0
	fragile := Native(func() Actor { return &starter{&starts} })
	l.spawn("top", Native(func() Actor { return &recreator{fragile: fragile} }))
	if starts != 3 || l.state("top/kid") != "running" {
		t.Errorf("%d starts, then %s", starts, l.state("top/kid"))
	}
	var directives []supervision.Directive
	for _, e := range l.seen(EventFailed) {
		directives = append(directives, e.Directive)
	}
	if !slices.Equal(directives, []supervision.Directive{supervision.Stop, supervision.Stop}) {
		t.Errorf("%v", directives)
	}
}

// starter starts the third time.
type starter struct{ starts *int }

func (s *starter) Started(*Context) error {
	if *s.starts++; *s.starts < 3 {
		return errors.New("not yet")
	}
	return nil
}
func (s *starter) Receive(*Context, Message) error { return nil }

type recreator struct{ fragile Props }

func (r *recreator) Started(ctx *Context) error { return r.again(ctx) }

func (r *recreator) Receive(ctx *Context, m Message) error {
	if m.Kind == abi.KindTerminated {
		return r.again(ctx) // the name is free again
	}
	return ErrUnhandled
}

func (r *recreator) again(ctx *Context) error {
	kid, err := ctx.Spawn("kid", r.fragile)
	if err != nil {
		return err
	}
	return ctx.Watch(kid)
}
