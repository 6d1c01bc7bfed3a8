package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/supervision"
)

// Resume gives a guest the state from before the failing turn.

func TestResumeGivesTheStateBefore(t *testing.T) { awakeOrNot(t, rowResumeGivesTheStateBefore) }

func rowResumeGivesTheStateBefore(t *testing.T) {
	for _, how := range []string{"panic x", "fail x"} {
		// Around every multiple of a checkpoint.
		for _, turns := range []int{0, 1, 2, instance.CheckpointTurns - 2, instance.CheckpointTurns - 1, instance.CheckpointTurns, instance.CheckpointTurns + 1, 2 * instance.CheckpointTurns, 5*instance.CheckpointTurns + 3} {
			for _, oneEntry := range []bool{false, true} {
				l := newLab(t, otherwise(supervision.Resume))
				ref := l.spawn("a", familyGuest(t, "worker"))
				for range turns {
					l.Tell(ref, 1)
					if !oneEntry {
						l.run()
					}
				}
				l.tell(ref, how)
				l.tell(ref, 1000, how, 1000)
				if got := l.get(ref); got != turns+2000 {
					t.Fatalf("%s after %d turns: it holds %d", how, turns, got)
				}
				if c := l.table.Get(ref.UID()); c.Incarnation() != 0 || len(l.seen(EventResumed)) != 2 {
					t.Fatalf("%s after %d turns: not resumed", how, turns)
				}
			}
		}
	}
}

// What is handled again does the same: its clock and its randomness are those of then.
// And what it had asked for then is not done twice.
func TestResumeRepeatsInSilence(t *testing.T) { awakeOrNot(t, rowResumeRepeatsInSilence) }

func rowResumeRepeatsInSilence(t *testing.T) {
	l := newLab(t, otherwise(supervision.Resume))
	sink := l.sinkhole()
	ref := l.spawn("a", familyGuest(t, "worker"))
	for range 2*instance.CheckpointTurns + 5 {
		l.tell(ref, "roll", "kids")
		l.pass(3*time.Microsecond + 1)
	}
	before, kids := l.get(ref), len(l.table.Get(ref.UID()).kids())
	l.tell(ref, "panic x", "panic x")
	if after := l.get(ref); before == 0 || after != before {
		t.Errorf("%d before, %d after", before, after)
	}
	if n := len(l.table.Get(ref.UID()).kids()); n != kids || kids != 2*instance.CheckpointTurns+5 || len(*sink) != 0 {
		t.Errorf("%d children before, %d after; %v", kids, n, *sink)
	}
	l.tell(ref, "kids") // the guest and the host agree on which child is next
	if n := len(l.table.Get(ref.UID()).kids()); n != kids+1 {
		t.Errorf("%d children, then %d", kids, n)
	}
}

// Timers and asks live on over a resume, unlike a restart.
func TestResumeKeepsTimersAndAsks(t *testing.T) { awakeOrNot(t, rowResumeKeepsTimersAndAsks) }

func rowResumeKeepsTimersAndAsks(t *testing.T) {
	for directive, want := range map[supervision.Directive]int{supervision.Resume: 101, supervision.Restart: 0} {
		l := newLab(t, otherwise(directive))
		ref := l.spawn("a", familyGuest(t, "worker"))
		l.tell(ref, 1, "later")
		l.tell(ref, "panic x")
		l.pass(time.Second)
		if got := l.get(ref); got != want || l.clock.Pending() != 0 {
			t.Errorf("%v: it holds %d", directive, got)
		}
		// An ask whose answer has not come when the crash does: the question, the crash
		// and the answer wait in this order.
		l.Tell(ref, "ask-self")
		l.Tell(ref, "panic x")
		l.run()
		got := l.get(ref) - want
		if asked := directive == supervision.Resume; asked != (got == 10) || l.clock.Pending() != 0 {
			t.Errorf("%v: the answer has added %d", directive, got)
		}
	}
}

// A child's failure that is escalated and resumed leaves the guest above as it is.
func TestResumeOfAnEscalatedFailure(t *testing.T) { awakeOrNot(t, rowResumeOfAnEscalatedFailure) }

func rowResumeOfAnEscalatedFailure(t *testing.T) {
	rules := supervision.Default().WithRules(supervision.Rule{Type: "worker", Directive: supervision.Escalate})
	l := newLab(t, otherwise(supervision.Resume))
	l.spawn("top", familyGuest(t, "boss").WithArgs(1).WithSupervision(rules))
	top := l.at("top")
	l.tell(top, "kid")
	kid := l.at("top/kid")
	l.tell(kid, 5, "fail x", 1)
	// Its own supervisor cannot answer resume, so nothing is kept for the kid.
	es := l.seen(EventFailed, EventEscalated)
	if len(es) != 3 || es[0].Directive != supervision.Escalate || es[1].Directive != supervision.Resume || es[2].Directive != supervision.Restart || es[2].Ref != kid {
		t.Fatalf("%+v", es)
	}
	if n := l.table.Get(top.UID()).Incarnation(); n != 0 || l.get(kid) != 1 {
		t.Errorf("top in incarnation %d, the kid holds %d", n, l.get(kid))
	}
}

// A resume that is not possible restarts, says so, and keeps to the limits.
func TestImpossibleResumeRestarts(t *testing.T) { awakeOrNot(t, rowImpossibleResumeRestarts) }

func rowImpossibleResumeRestarts(t *testing.T) {
	l := newLab(t, otherwise(supervision.Resume).WithMaxRestarts(1, 0))
	ref := l.spawn("a", newCounter())
	l.tell(ref, 5, "panic", 1)
	e := l.next(EventFailed)
	if e.Directive != supervision.Restart || e.Note != "resume is not possible, restarting: the actor has panicked" || l.get(ref) != 1 {
		t.Errorf("%v %q", e.Directive, e.Note)
	}
	l.tell(ref, "crash") // an error: it goes on as it is
	if e := l.next(EventFailed); e.Directive != supervision.Resume || l.get(ref) != 1 {
		t.Errorf("%v %q", e.Directive, e.Note)
	}
	l.tell(ref, "panic")
	if e := l.next(EventFailed); e.Directive != supervision.Stop || l.state("a") != "gone" {
		t.Errorf("%v %q", e.Directive, e.Note)
	}
	// A start that fails has no turn before it.
	l = newLab(t, otherwise(supervision.Resume).WithMaxRestarts(2, 0))
	l.spawn("b", familyGuest(t, "worker").WithArgs("fails to start"))
	var got []string
	for _, e := range l.seen(EventFailed) {
		got = append(got, e.Directive.String()+" "+e.Note)
	}
	const note = "restart resume is not possible, restarting: there was no turn before"
	if !slices.Equal(got, []string{note, note, "stop more restarts than allowed"}) {
		t.Errorf("%q", got)
	}
}

// An actor whose supervisor cannot answer resume keeps nothing for it.
func TestOnlyWhoCanBeResumedPays(t *testing.T) { awakeOrNot(t, rowOnlyWhoCanBeResumedPays) }

func rowOnlyWhoCanBeResumedPays(t *testing.T) {
	for _, d := range []supervision.Directive{supervision.Restart, supervision.Resume} {
		l := newLab(t, otherwise(d))
		ref := l.spawn("a", familyGuest(t, "worker"))
		l.tell(ref, 1)
		if kept := l.table.Get(ref.UID()).behaviour.(*guest).inst.States != nil; kept != (d == supervision.Resume) {
			t.Errorf("%v: kept: %v", d, kept)
		}
	}
}

// The pre_restart turn: where the instance can still be called, with sends only.
func TestPreRestart(t *testing.T) { awakeOrNot(t, rowPreRestart) }

func rowPreRestart(t *testing.T) {
	for how, want := range map[string][]string{
		"fail on purpose": {"pre-restart: guest_error: on purpose"}, // it has returned: it is sane
		"panic x":         nil,
	} {
		l := newLab(t, supervision.Default())
		sink := l.sinkhole()
		ref := l.spawn("a", familyGuest(t, "worker"))
		l.tell(ref, how)
		if !slices.Equal(*sink, want) || l.clock.Pending() != 0 || l.table.Get(ref.UID()).Incarnation() != 1 {
			t.Errorf("%s: %q, %d timers", how, *sink, l.clock.Pending())
		}
	}
	// Also of who is restarted for a sibling.
	l := newLab(t, supervision.Default().WithKind(supervision.AllForOne))
	sink := l.sinkhole()
	l.spawn("a", familyGuest(t, "worker"))
	l.tell(l.spawn("b", familyGuest(t, "worker")), "panic x")
	if len(*sink) != 1 || !strings.HasPrefix((*sink)[0], "pre-restart: guest_panic") {
		t.Errorf("%q", *sink)
	}
	// Not of one that has not started, nor twice.
	l = newLab(t, supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(3, 0))
	sink = l.sinkhole()
	l.spawn("c", familyGuest(t, "worker").WithArgs("fails to start"))
	if len(*sink) != 0 || l.state("c") != "gone" {
		t.Errorf("%q", *sink)
	}
}

// The kinds of failure of semantics 3.4 in guests, each with its default directive.
func TestC_3_4_DefaultDirectives(t *testing.T) { awakeOrNot(t, rowC_3_4_DefaultDirectives) }

func rowC_3_4_DefaultDirectives(t *testing.T) {
	engine := newEngine(t)
	restart, stop := supervision.Restart, supervision.Stop
	for _, c := range []struct {
		guest string // of testdata/hostile
		kind  abi.FailureKind
		want  supervision.Directive
	}{
		{"unreachable", abi.FailureTrap, restart}, {"write-outside", abi.FailureTrap, restart}, {"divide", abi.FailureTrap, restart},
		{"wrong-call", abi.FailureTrap, restart}, {"recurse", abi.FailureStackOverflow, restart}, {"loop", abi.FailureFuel, restart},
		{"grow-memory-and-touch", abi.FailureMemoryLimit, restart}, {"exit", abi.FailureExit, restart}, {"fails", abi.FailureGuestError, restart},
		{"panic-huge", abi.FailureGuestPanic, restart}, {"garbage", abi.FailureABIViolation, restart},
	} {
		l := newLab(t, supervision.Default())
		p := Guest(load(t, engine, "testdata/hostile/"+c.guest+".wasm"), "hostile").WithLimits(Limits{Fuel: 5_000_000, Memory: 4 << 20})
		ref := l.spawn("a", p)
		l.tell(ref, 1)
		e := l.next(EventFailed)
		if e.Failure.Kind != c.kind || e.Directive != c.want || l.table.Get(ref.UID()).Incarnation() != 1 {
			t.Errorf("%s: %v, %v; want %v, %v", c.guest, e.Failure, e.Directive, c.kind, c.want)
		}
	}
	// A start that fails, a kill, an unhandled end of a watched actor: stop.
	l := newLab(t, supervision.Default())
	l.spawn("a", familyGuest(t, "worker").WithArgs("fails to start"))
	b := l.spawn("b", familyGuest(t, "worker"))
	l.Operate().Kill(b)
	l.run()
	target := l.spawn("target", newCounter())
	c := l.spawn("c", familyGuest(t, "worker"))
	watching{l.table.Get(c.UID()), nil}.addRef(target.UID(), "")
	l.run()
	l.Stop(target)
	l.run()
	var got []string
	for _, e := range l.seen(EventFailed) {
		got = append(got, fmt.Sprint(e.Failure.Kind, " ", e.Directive))
	}
	if want := []string{"init " + stop.String(), "killed " + stop.String(), "death_pact " + stop.String()}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// A deadline, on the machine's clock.
	s := newSystem(t, NewConfig("deadline"))
	events := s.Subscribe(10, func(e *Event) bool { return e.Kind == EventFailed })
	ref := must(s.Spawn("a", Guest(load(t, engine, "testdata/hostile/loop.wasm"), "hostile").WithLimits(Limits{Fuel: 1 << 60, Deadline: 5 * time.Millisecond})))(t)
	if err := s.Tell(ref, 1); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.Failure.Kind != abi.FailureDeadline || e.Directive != restart {
		t.Errorf("%v, %v", e.Failure, e.Directive)
	}
	// The host's own bugs: escalate; see TestD03.
}
