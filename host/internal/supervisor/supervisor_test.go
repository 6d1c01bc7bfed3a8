package supervisor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// kinds of the orders that a child was given.
func orders(k *kid) (out []OrderKind) {
	for _, o := range k.given {
		out = append(out, o.Kind)
	}
	return out
}

// Every directive as an order to the actors that it concerns, for every kind of strategy. The second
// of three children fails.
func TestDirectivesAreOrders(t *testing.T) {
	type given [3][]OrderKind
	no, stop, restart, resume := []OrderKind(nil), []OrderKind{Stop}, []OrderKind{Restart}, []OrderKind{Resume}
	for _, c := range []struct {
		kind      supervision.Kind
		directive supervision.Directive
		want      given
	}{
		{supervision.OneForOne, supervision.Resume, given{no, resume, no}},
		{supervision.OneForOne, supervision.Restart, given{no, restart, no}},
		{supervision.OneForOne, supervision.Stop, given{no, stop, no}},
		{supervision.OneForOne, supervision.Escalate, given{no, no, no}},
		{supervision.OneForOne, supervision.Suspend, given{no, no, no}},
		{supervision.AllForOne, supervision.Resume, given{no, resume, no}},
		{supervision.AllForOne, supervision.Restart, given{restart, restart, restart}},
		{supervision.AllForOne, supervision.Stop, given{stop, stop, stop}},
		{supervision.RestForOne, supervision.Resume, given{no, resume, no}},
		{supervision.RestForOne, supervision.Restart, given{no, []OrderKind{Restart, Begin}, []OrderKind{Restart, Begin}}},
		{supervision.RestForOne, supervision.Stop, given{no, stop, stop}},
	} {
		p := newParent(t, supervision.Default().WithKind(c.kind).WithOtherwise(c.directive), "a", "b", "c")
		b := p.kid("b")
		kids := []*kid{p.kid("a"), b, p.kid("c")}
		p.fails(b)
		p.rest()
		for i, k := range kids {
			if got := orders(k); !slices.Equal(got, c.want[i]) {
				t.Errorf("%v, %v: %s is told %v, want %v", c.kind, c.directive, k.name, got, c.want[i])
			}
			for _, o := range k.given {
				if o.Kind == Stop && (o.ByItself != (k == b) || (o.Reason == withSibling) != (k != b)) {
					t.Errorf("%v: %+v", k.name, o)
				}
				if o.Kind == Restart && o.Failure != boom {
					t.Errorf("%v: %+v", k.name, o)
				}
			}
		}
		if !slices.Equal(p.made, []string{"b: " + c.directive.String()}) {
			t.Errorf("told: %v", p.made)
		}
		if escalated := c.directive == supervision.Escalate; escalated != (p.failed == boom && p.above) {
			t.Errorf("%v: %v", c.directive, p.failed)
		}
	}
}

// The child whose failure was escalated is known until it is asked for, or it has gone.
func TestEscalated(t *testing.T) {
	p := newParent(t, supervision.Default().WithOtherwise(supervision.Escalate), "a", "b")
	b := p.kid("b")
	p.fails(b)
	p.rest()
	if m := p.s.Escalated(); m != b.member {
		t.Error(m)
	}
	if p.s.Escalated() != nil {
		t.Error("twice")
	}
	p.state = life.Running
	p.fails(b)
	p.rest()
	p.stopped(b, false)
	p.rest()
	p.adopt("b")
	if p.s.Escalated() != nil {
		t.Error("another one of the name")
	}
}

// A limit that another one of the group is over is the group's.
func TestLimitOfAGroup(t *testing.T) {
	p := newParent(t, supervision.Default().WithKind(supervision.AllForOne).WithOtherwise(supervision.Restart).WithMaxRestarts(1, time.Minute), "a", "b", "c")
	p.fails(p.kid("b"))
	p.rest()
	p.trace, p.made = nil, nil
	p.fails(p.kid("a"))
	p.rest()
	if got := strings.Join(p.trace, ", "); got != "stop a, stop b, stop c" || p.made[0] != "a: stop" {
		t.Error(got, p.made)
	}
	// So is one that only its siblings are over: a child that is new has had no restart.
	p = newParent(t, supervision.Default().WithKind(supervision.AllForOne).WithOtherwise(supervision.Restart).WithMaxRestarts(1, time.Minute), "a", "b")
	p.fails(p.kid("a"))
	p.rest()
	p.adopt("c")
	p.fails(p.kid("c"))
	p.rest()
	if p.made[1] != "c: stop" || p.notes[1] != "more restarts of a sibling than allowed" || p.s.Family.Len() != 0 {
		t.Error(p.made, p.notes)
	}
	// Those that are never restarted are not asked.
	p = newParent(t, supervision.Default().WithKind(supervision.AllForOne).WithOtherwise(supervision.Restart).WithMaxRestarts(0, time.Minute), "a")
	p.kid("a").life = supervision.Temporary
	p.fails(p.kid("a"))
	p.rest()
	if !slices.Equal(p.trace, []string{"stop a"}) {
		t.Error(p.trace)
	}
}

// An asked supervisor decides; what it does not decide the default decides; a failing
// decision fails the supervisor, and the child is decided about when it goes on.
func TestAsking(t *testing.T) {
	ask := supervision.Default().WithOtherwise(supervision.Ask)
	for verdict, want := range map[supervision.Directive]OrderKind{
		supervision.Resume: Resume, supervision.Restart: Restart, supervision.Stop: Stop, 0: Restart, supervision.Ask: Restart, 77: Restart,
	} {
		p := newParent(t, ask, "a")
		p.verdict = verdict
		a := p.kid("a")
		p.fails(a)
		p.rest()
		if len(p.asked) != 1 || !slices.Equal(orders(a), []OrderKind{want}) {
			t.Errorf("%v: %v", verdict, orders(a))
		}
	}
	p := newParent(t, ask, "a")
	a := p.kid("a")
	p.verdict = supervision.Suspend
	p.fails(a)
	p.rest()
	if m := p.s.Family.Find("a"); len(a.given) != 0 || !m.Suspended {
		t.Errorf("suspend: %v", orders(a))
	}
	p = newParent(t, ask, "a")
	a = p.kid("a")
	p.verdict, p.fault = supervision.Stop, boom
	p.fails(a)
	p.rest()
	if p.failed != boom || p.above || len(a.given) != 0 || p.s.Undecided() != 1 {
		t.Errorf("%v, %v", p.failed, orders(a))
	}
	if total := p.s.Family.Find("a").Record.Total(); total != 0 || len(p.made) != 0 {
		t.Errorf("%d failures, decided %v, before anything was", total, p.made)
	}
	p.state = life.Running
	p.s.Reconsider(p)
	p.rest()
	if !slices.Equal(orders(a), []OrderKind{Restart}) || len(p.asked) != 1 || p.s.Undecided() != 0 {
		t.Errorf("%v, asked %v", orders(a), p.asked)
	}
	// Who is suspended is asked when it goes on.
	p = newParent(t, ask, "a")
	p.verdict, p.burden = supervision.Stop, 1
	p.fails(p.kid("a"))
	p.rest()
	if len(p.asked) != 0 || p.s.Undecided() != 1 {
		t.Error(p.asked)
	}
	p.burden = 0
	p.s.Reconsider(p)
	p.rest()
	if len(p.asked) != 1 {
		t.Error(p.asked)
	}
}

// A report waits while the supervisor has failed itself; one that crossed an order, or that
// comes while the supervisor stops, or of somebody else's child, is nothing.
func TestReportsThatCross(t *testing.T) {
	p := newParent(t, supervision.Default().WithOtherwise(supervision.Restart), "a")
	a := p.kid("a")
	p.state = life.Failed
	p.fails(a)
	p.rest()
	p.s.Reconsider(p) // it has not gone on
	if len(p.inbox) != 0 {
		t.Error("the report goes round while nobody can decide")
	}
	p.rest()
	if len(a.given) != 0 || p.s.Undecided() != 1 {
		t.Error(orders(a))
	}
	p.state = life.Running
	p.s.Reconsider(p)
	p.rest()
	if len(a.given) != 1 {
		t.Error(orders(a))
	}
	p.s.Report(p, a.member, &Report{Failure: boom, Orders: 0}) // before that restart
	stranger := &kid{name: "a"}
	p.s.Report(p, &member{Child: stranger}, &Report{Failure: boom})
	if len(stranger.given) != 0 {
		t.Error("a decision about somebody else's child:", orders(stranger))
	}
	p.state = life.Stopping
	p.s.Report(p, a.member, &Report{Failure: boom, Orders: a.orders})
	if len(a.given) != 1 || p.s.Undecided() != 0 {
		t.Error(orders(a))
	}
}

// Where a resume is impossible there is a restart, which is counted once.
func TestImpossibleResume(t *testing.T) {
	p := newParent(t, supervision.Default().WithOtherwise(supervision.Resume), "a")
	a := p.kid("a")
	p.s.Report(p, a.member, &Report{Failure: boom, Reason: "no state"})
	if !slices.Equal(orders(a), []OrderKind{Restart}) {
		t.Error(orders(a))
	}
	const why = "resume is not possible, restarting: "
	if p.notes[0] != why+"no state" {
		t.Errorf("%q", p.notes)
	}
	record := &p.s.Family.Find("a").Record
	if record.Total() != 1 {
		t.Error(record.Total())
	}
	p.next(a)
	p.s.Report(p, a.member, &Report{Failure: boom, Orders: 1})
	p.next(a)
	if got := orders(a); got[1] != Resume || record.Total() != 2 {
		t.Error(got, record.Total())
	}
	p.s.Report(p, a.member, &Report{Failure: boom, Orders: 2, Again: true, Directive: supervision.Restart, Reason: "it failed"})
	if got := orders(a); got[2] != Restart || record.Total() != 2 || p.notes[2] != why+"it failed" {
		t.Errorf("%v, %d, %q", got, record.Total(), p.notes)
	}
	// A directive that was decided is not a question.
	p.s.Report(p, a.member, &Report{Failure: boom, Orders: 3, Directive: supervision.Stop})
	if got := orders(a); got[3] != Stop {
		t.Error(got)
	}
	// Nor does it matter that a resume was impossible where none was decided.
	p = newParent(t, supervision.Stopping(), "a")
	a = p.kid("a")
	p.s.Report(p, a.member, &Report{Failure: boom, Reason: "no state"})
	if !slices.Equal(orders(a), []OrderKind{Stop}) || p.notes[0] != "" {
		t.Errorf("%v, %q", orders(a), p.notes)
	}
}

// A refusal is told, and comes before all other notes.
func TestRefusalsAreTold(t *testing.T) {
	p := newParent(t, supervision.Default().WithOtherwise(supervision.Resume).WithMaxRestarts(0, 0), "a")
	p.s.Report(p, p.kid("a").member, &Report{Failure: boom, Reason: "no state"})
	if p.made[0] != "a: stop" || p.notes[0] != "more restarts than allowed" {
		t.Errorf("%v, %q", p.made, p.notes)
	}
}

// How long a child has lived is looked up when it fails: a long life starts its backoff
// anew, and a child that has not begun has not lived.
func TestLivesOfChildren(t *testing.T) {
	policy := backoff.WithJitter(backoff.Table(time.Second, time.Minute), backoff.NoJitter())
	for lived, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: time.Minute, time.Hour: time.Second} {
		p := newParent(t, supervision.Default().WithOtherwise(supervision.Restart).WithBackoff(supervision.Backoff{Policy: policy, ResetAfter: time.Minute}), "a")
		a := p.kid("a")
		for range 2 {
			if lived > 0 {
				a.started = p.now.Add(-lived)
			}
			p.fails(a)
			p.rest()
		}
		if a.delay != want {
			t.Errorf("lived %v: waits %v, want %v", lived, a.delay, want)
		}
	}
}

// The own end of a permanent child is decided like a failure.
func TestOwnEnds(t *testing.T) {
	p := newParent(t, supervision.Default(), "a")
	a := p.kid("a")
	a.life = supervision.Permanent
	p.s.Report(p, a.member, &Report{Ended: true, Reason: "quit"})
	if len(a.given) != 1 || a.given[0].Kind != Restart || a.given[0].Failure.Kind != abi.FailureExit || !strings.Contains(a.given[0].Failure.Reason, "quit") {
		t.Errorf("%+v", a.given)
	}
}

// Who is left suspended is an operator's to decide about, once, and nobody else is.
func TestOperatorDecides(t *testing.T) {
	for d, want := range map[supervision.Directive]OrderKind{supervision.Resume: Resume, supervision.Restart: Restart, supervision.Stop: Stop} {
		p := newParent(t, supervision.Default().WithOtherwise(supervision.Suspend).WithKeepChildren(true), "a", "b")
		a := p.kid("a")
		p.fails(a)
		p.rest()
		p.s.Decide(p, p.kid("b").member, d)
		p.s.Decide(p, &member{Child: &kid{name: "a"}}, d)
		p.state = life.Stopping
		p.s.Decide(p, a.member, d)
		p.state = life.Running
		if len(a.given)+len(p.kid("b").given) != 0 {
			t.Errorf("%v: %v", d, a.given)
		}
		p.s.Decide(p, a.member, d)
		p.s.Decide(p, a.member, d)
		if !slices.Equal(orders(a), []OrderKind{want}) || d == supervision.Restart && !a.given[0].Keep {
			t.Errorf("%v: %+v", d, a.given)
		}
	}
}

// ResetBackoff forgets failures of that child.
func TestResetBackoff(t *testing.T) {
	p := newParent(t, supervision.Default().WithOtherwise(supervision.Restart).WithBackoff(supervision.Backoff{Policy: tenSeconds(t)}), "a")
	a := p.kid("a")
	p.fails(a)
	p.rest()
	record := &p.s.Family.Find("a").Record
	p.s.ResetBackoff(&member{Child: &kid{name: "x"}})
	p.s.ResetBackoff(&member{Child: &kid{name: "a"}})
	if record.Failures() != 1 {
		t.Error(record.Failures())
	}
	p.s.ResetBackoff(a.member)
	if record.Failures() != 0 || record.Total() != 1 {
		t.Error(record.Failures(), record.Total())
	}
}

// The own end of a significant child stops its supervisor: any, or the last one.
func TestSignificantChildren(t *testing.T) {
	for _, c := range []struct {
		when supervision.Shutdown
		ends string
		own  bool
		want string
	}{
		{supervision.ShutdownNever, "ab", true, ""},
		{supervision.ShutdownAny, "c", true, ""},
		{supervision.ShutdownAny, "a", true, "its significant child a has ended"},
		{supervision.ShutdownAny, "a", false, ""},
		{supervision.ShutdownAll, "a", true, ""},
		{supervision.ShutdownAll, "ba", true, "its significant child a has ended"},
	} {
		p := newParent(t, supervision.Default().WithShutdown(c.when), "a", "b", "c")
		p.kid("a").significant, p.kid("b").significant = true, true
		for _, n := range c.ends {
			p.stopped(p.kid(string(n)), c.own)
		}
		p.rest()
		if p.quit != c.want {
			t.Errorf("%v, %s: %q", c.when, c.ends, p.quit)
		}
	}
	p := newParent(t, supervision.Default().WithShutdown(supervision.ShutdownAny), "a", "b")
	a := p.kid("a")
	a.significant = true
	p.state = life.Restarting
	if left := p.s.Stopped(p, a.member, true); left != 1 || p.quit != "" {
		t.Error(left, p.quit)
	}
	if left := p.s.Stopped(p, a.member, true); left != 1 {
		t.Error("twice", left)
	}
}

// What belongs to an incarnation of the supervisor does not outlive it.
func TestEndIncarnation(t *testing.T) {
	p := newParent(t, restForOne(), "a", "b")
	p.fails(p.kid("a"))
	p.rest1()
	if p.s.Strategy().Kind() != supervision.RestForOne || p.s.sequence == nil {
		t.Fatal("no restart is under way")
	}
	p.s.EndIncarnation()
	if p.s.sequence != nil {
		t.Error("the restart goes on")
	}
	p = newParent(t, supervision.Default().WithOtherwise(supervision.Escalate), "a")
	p.fails(p.kid("a"))
	p.rest()
	p.s.EndIncarnation()
	if p.s.Escalated() != nil {
		t.Error("the child is remembered")
	}
	p.state = life.Failed
	p.s.undecided = []undecided[*kid]{{}}
	p.s.Close()
	if p.s.Undecided() != 0 {
		t.Error("undecided")
	}
}

// A shared window counts what fails, and not the siblings that are restarted with it.
func TestSharedWindowChargesNoSiblings(t *testing.T) {
	s := supervision.Default().WithKind(supervision.AllForOne).WithOtherwise(supervision.Restart).WithMaxRestarts(3, time.Minute).WithShared(true)
	p := newParent(t, s, "a", "b", "c", "d")
	for i := range 3 {
		p.fails(p.kid([]string{"a", "b", "c"}[i]))
		p.rest()
		if err := p.atRest(); err != nil || p.s.Family.Len() != 4 {
			t.Fatalf("failure %d: %v, %v", i+1, err, p.made)
		}
	}
	p.fails(p.kid("d"))
	p.rest()
	if p.failed == nil {
		t.Error(p.made)
	}
}

// A renewal restarts one child now, whatever the strategy and its limits, and only something
// that changes with it starts the count of failures again.
func TestRenew(t *testing.T) {
	s := restForOne().WithMaxRestarts(1, 0).WithKeepChildren(true).WithBackoff(supervision.Backoff{Policy: tenSeconds(t)})
	p := newParent(t, s, "a", "b")
	a, b := p.kid("a"), p.kid("b")
	p.fails(b)
	p.rest()
	b.given = nil
	record := &p.s.Family.Find("b").Record
	for i, renewal := range []any{nil, "another recipe", nil} {
		p.s.Renew(p, b.member, boom, renewal, 1)
		p.rest()
		if len(b.given) != i+1 || len(a.given) != 0 {
			t.Fatalf("%v, %v", orders(a), orders(b))
		}
		if o := b.given[i]; o.Kind != Restart || !o.Now || !o.Keep || o.Hold || o.Failure != boom || o.Renewal != renewal || o.Delay != 0 {
			t.Errorf("renewal %v: %+v", renewal, o)
		}
		if want := 1 - min(i, 1); record.Failures() != want || record.Total() != 1 {
			t.Errorf("renewal %v: %d failures of %d, want %d", renewal, record.Failures(), record.Total(), want)
		}
	}
	p.s.Renew(p, &member{Child: &kid{name: "b"}}, boom, nil, 1)
	p.s.Renew(p, &member{Child: &kid{name: "x"}}, boom, nil, 1)
	p.state = life.Stopping
	p.s.Renew(p, b.member, boom, nil, 1)
	if len(b.given) != 3 || len(a.given) != 0 {
		t.Errorf("a stranger's, or while the supervisor stops: %v, %v", orders(a), orders(b))
	}
}

// A restart in order that has not reached a child, or not begun it, renews it as well, but
// with nothing else. The one that it waits for says when it has begun.
func TestRenewWithinARestartInOrder(t *testing.T) {
	p := newParent(t, restForOne(), "a", "b", "c")
	a, c := p.kid("a"), p.kid("c")
	p.fails(a)
	p.rest1() // c is told to end; a and b will be
	p.s.Renew(p, a.member, boom, nil, 1)
	p.s.Renew(p, a.member, boom, nil, 2)
	if len(a.given) != 0 || a.renewed != 0 {
		t.Errorf("a child that will end: %v, %d orders are dealt with", orders(a), a.renewed)
	}
	p.s.Renew(p, c.member, boom, nil, 1)
	if got := c.given[len(c.given)-1]; len(c.given) != 2 || !got.Hold {
		t.Errorf("the child that is waited for: %+v", c.given)
	}
	p.until(func() bool { return p.s.sequence.waits.Child != c })
	given := len(c.given)
	p.s.Renew(p, c.member, boom, nil, 1)
	if len(c.given) != given {
		t.Errorf("a child that waits to begin: %v", orders(c))
	}
	p.s.Renew(p, c.member, boom, "another recipe", 1)
	if got := c.given[len(c.given)-1]; len(c.given) != given+1 || !got.Hold || got.Renewal == nil {
		t.Errorf("with another recipe: %+v", c.given)
	}
	p.rest()
	if err := p.atRest(); err != nil {
		t.Errorf("%v: %s", err, strings.Join(p.trace, ", "))
	}
	if a.renewed != 3 || c.renewed != 3 {
		t.Errorf("%d and %d orders are dealt with, of 3 and 3", a.renewed, c.renewed)
	}
}

// Orders to restart a child whose turn in a restart in order comes later are dealt with when it is told to end,
// or to stop, and once.
func TestRenewalsThatWaitForARestartInOrder(t *testing.T) {
	for n, life := range map[int]supervision.Lifetime{1: supervision.Permanent, 2: supervision.Temporary} {
		p := newParent(t, restForOne(), "a", "b", "c")
		b := p.kid("b")
		b.life = life
		p.fails(p.kid("a"))
		p.rest1() // c is told to end
		p.s.Renew(p, b.member, boom, nil, int32(n))
		p.until(func() bool {
			if len(b.given) == 0 && b.renewed != 0 {
				t.Fatalf("%v: dealt with before it was told anything", life)
			}
			return len(b.given) > 0
		})
		if b.renewed != n || len(b.given) != 1 {
			t.Errorf("%v: %d orders of %d are dealt with when it was told %v", life, b.renewed, n, orders(b))
		}
		p.rest()
		p.fails(p.kid("a"))
		p.rest()
		if err := p.atRest(); err != nil || b.renewed != n {
			t.Errorf("%v: %v, %d orders of %d", life, err, b.renewed, n)
		}
	}
}

// A start that was refused for lack of room is tried again later, and that is said; a stop after it is a stop.
func TestNoRoomIsSaid(t *testing.T) {
	for directive, want := range map[supervision.Directive]string{supervision.Restart: "there is no room, trying again later", supervision.Stop: ""} {
		p := newParent(t, supervision.Default().WithOtherwise(directive), "a")
		a := p.kid("a")
		m := p.s.Family.Find("a")
		p.s.Report(p, a.member, &Report{Failure: unstarted, Orders: m.Orders, Crowded: true})
		if len(p.notes) != 1 || p.notes[0] != want || len(a.given) != 1 || (a.given[0].Delay > 0) != (directive == supervision.Restart) {
			t.Errorf("%v: %q, %+v", directive, p.notes, a.given)
		}
	}
}

// What is noted about a child is looked up as it stands, and looking changes nothing.
func TestLookAtAChild(t *testing.T) {
	s := supervision.Default().WithOtherwise(supervision.Suspend).WithBackoff(supervision.Backoff{Policy: tenSeconds(t), ResetAfter: time.Minute})
	p := newParent(t, s, "a")
	a := p.kid("a")
	p.fails(a)
	p.rest()
	for _, c := range []struct {
		lived    time.Duration
		failures int
	}{{0, 1}, {time.Second, 1}, {time.Hour, 0}} {
		if c.lived > 0 {
			a.started = p.now.Add(-c.lived)
		}
		for range 2 {
			r, left, ok := p.s.Look(a.member, p.now)
			if !ok || !left || r.Total != 1 || r.Failures != c.failures {
				t.Errorf("lived %v: %+v, left suspended %v, %v", c.lived, r, left, ok)
			}
		}
	}
	if n := p.s.Family.Find("a").Record.Failures(); n != 1 {
		t.Errorf("looking has changed the count to %d", n)
	}
	if _, left, ok := p.s.Look(&member{Child: &kid{name: "a"}}, p.now); ok || left {
		t.Error("it is not a child")
	}
}

// A failure that is not decided about is told of once, with the reason.
func TestUndecided(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(p *parent)
		want  string
	}{
		{"the supervisor stops", func(p *parent) {
			p.fails(p.kid("a"))
			p.state = life.Stopping
			p.rest()
		}, "nothing was decided: its supervisor stops"},
		{"it stops while the failure waits for it to go on", func(p *parent) {
			p.state = life.Failed
			p.fails(p.kid("a"))
			p.rest()
			p.state = life.Stopping
			p.s.Stop(p)
			p.s.Stop(p)
		}, "nothing was decided: its supervisor stops"},
		{"an order was under way", func(p *parent) {
			p.fails(p.kid("a"))
			p.s.Order(p, p.s.Family.Find("a"), Order{Kind: Stop})
			p.rest()
		}, "nothing was decided: an order of its supervisor was under way"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newParent(t, supervision.Default(), "a", "b")
			c.given(p)
			if !slices.Equal(p.made, []string{"a: none"}) || !slices.Equal(p.notes, []string{c.want}) {
				t.Errorf("%q, %q", p.made, p.notes)
			}
		})
	}
	// One that could not be resumed was told of when that was decided.
	p := newParent(t, supervision.Default(), "a")
	a := p.kid("a")
	p.state = life.Stopping
	p.s.Report(p, a.member, &Report{Failure: boom, Orders: a.orders, Again: true})
	if len(p.made) != 0 {
		t.Errorf("%q", p.made)
	}
}
