package host

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Supervisors that decide themselves, and operators that decide about suspended actors.

// judge is a supervisor in Go that is asked.
type judge struct {
	counter
	says  func(ctx *Context, child Ref, f *abi.Failure) supervision.Directive
	asked *int
}

func (j *judge) Decide(ctx *Context, child Ref, f *abi.Failure) supervision.Directive {
	*j.asked++
	return j.says(ctx, child, f)
}

func newJudge(asked *int, says func(*Context, Ref, *abi.Failure) supervision.Directive) Props {
	return Native(func() Actor { return &judge{says: says, asked: asked} }).WithSupervision(otherwise(supervision.Ask)).
		WithChildren(Child{"kid", newCounter()}, Child{"other", newCounter()})
}

func TestD02_AskedSupervisors(t *testing.T) {
	for says, want := range map[supervision.Directive]struct {
		directive supervision.Directive
		kid       string
		holds     int
	}{
		supervision.Resume: {supervision.Resume, "running", 5}, supervision.Restart: {supervision.Restart, "running", 0},
		supervision.Stop: {supervision.Stop, "gone", 0}, supervision.Suspend: {supervision.Suspend, "failed", 0},
		supervision.Escalate: {supervision.Escalate, "gone", 0},
		// Nothing, or nonsense: the default decider.
		0: {supervision.Restart, "running", 0}, supervision.Ask: {supervision.Restart, "running", 0}, 77: {supervision.Restart, "running", 0},
	} {
		asked := 0
		l := newLab(t, supervision.Stopping())
		l.spawn("top", newJudge(&asked, func(ctx *Context, child Ref, f *abi.Failure) supervision.Directive {
			if child.Name() != "kid" || f.Reason != "crashed" {
				t.Errorf("%v, %v", child, f)
			}
			return says
		}))
		kid := l.at("top/kid")
		l.tell(kid, 5)
		l.tell(kid, "crash")
		if e := l.next(EventFailed); e.Directive != want.directive || asked != 1 || l.state("top/kid") != want.kid {
			t.Errorf("%v: %v, asked %d times, %s", says, e.Directive, asked, l.state("top/kid"))
		}
		if want.kid == "running" && l.get(kid) != want.holds {
			t.Errorf("%v: it holds %d", says, l.get(kid))
		}
	}
}

// The limits and delays of the strategy hold for what was asked.
func TestD02_AskedUnderLimits(t *testing.T) {
	asked := 0
	l := newLab(t, supervision.Default())
	l.spawn("top", newJudge(&asked, func(*Context, Ref, *abi.Failure) supervision.Directive { return supervision.Restart }).
		WithSupervision(delayed(t, supervision.Backoff{}).WithOtherwise(supervision.Ask).WithMaxRestarts(1, 0)))
	kid := l.at("top/kid")
	l.tell(kid, "crash")
	if e := l.next(EventFailed); e.Delay != 200*ms {
		t.Errorf("%v", e.Delay)
	}
	l.pass(200 * ms)
	l.tell(kid, "crash")
	if e := l.next(EventFailed); e.Directive != supervision.Stop || e.Note == "" || asked != 2 {
		t.Errorf("%v %q", e.Directive, e.Note)
	}
}

// A deciding turn that fails: the supervisor fails, the child waits, and the default
// decider decides about it when the supervisor goes on.
func TestD02_FailingOverTheDecision(t *testing.T) { awakeOrNot(t, rowD02_FailingOverTheDecision) }

func rowD02_FailingOverTheDecision(t *testing.T) {
	for _, c := range []struct {
		above supervision.Directive
		keep  bool
		holds int // the kid; -1: another has taken its place
	}{{supervision.Restart, false, -1}, {supervision.Restart, true, 0}, {supervision.Stop, false, -2}} {
		asked := 0
		l := newLab(t, otherwise(c.above).WithKeepChildren(c.keep))
		l.spawn("top", newJudge(&asked, func(*Context, Ref, *abi.Failure) supervision.Directive { panic("no idea") }))
		kid := l.at("top/kid")
		l.tell(kid, 5, "crash")
		es := l.seen(EventFailed)
		if es[0].Ref.Name() != "top" || es[0].Failure.Kind != abi.FailureNativePanic || asked != 1 {
			t.Errorf("%+v, asked %d times", es, asked)
		}
		switch {
		case c.holds == -2:
			if l.state("top") != "gone" {
				t.Error(l.View().Tree())
			}
		case c.holds == -1:
			if l.at("top/kid") == kid || l.get(l.at("top/kid")) != 0 {
				t.Error(l.View().Tree())
			}
		default:
			if l.get(kid) != c.holds || l.get(l.at("top/other")) != 0 {
				t.Error(l.View().Tree())
			}
		}
	}
	// An error, and the supervisor is resumed: the default decider restarts the kid.
	l := newLab(t, otherwise(supervision.Resume))
	l.spawn("sink", newCounter())
	l.spawn("top", familyGuest(t, "boss").WithArgs(99).WithSupervision(otherwise(supervision.Ask)))
	top := l.at("top")
	l.tell(top, "kid")
	kid := l.at("top/kid")
	l.tell(kid, 5, "panic x", 2)
	var directives []string
	for _, e := range l.seen(EventFailed) {
		directives = append(directives, e.Ref.Name()+" "+e.Directive.String())
	}
	if !slices.Equal(directives, []string{"top resume", "kid restart"}) || l.get(kid) != 2 {
		t.Errorf("%v, %d", directives, l.get(kid))
	}
}

// A guest that is asked, with every answer; what its deciding turn sends goes out, and
// a decision outside such a turn counts for nothing.
func TestD02_AskedGuests(t *testing.T) { awakeOrNot(t, rowD02_AskedGuests) }

func rowD02_AskedGuests(t *testing.T) {
	for says, want := range map[int]struct {
		directive supervision.Directive
		state     string
		holds     int
	}{
		abi.DirectiveResume: {supervision.Resume, "running", 5}, abi.DirectiveRestart: {supervision.Restart, "running", 0},
		abi.DirectiveStop: {supervision.Stop, "gone", 0}, abi.DirectiveSuspend: {supervision.Suspend, "failed", 0},
		abi.DirectiveEscalate: {supervision.Escalate, "gone", 0}, 0: {supervision.Restart, "running", 0},
	} {
		l := newLab(t, supervision.Stopping())
		sink := l.sinkhole()
		l.spawn("top", familyGuest(t, "boss").WithArgs(says).WithSupervision(otherwise(supervision.Ask)))
		top := l.at("top")
		l.tell(top, "kid")
		kid := l.at("top/kid")
		l.tell(kid, 5)
		l.tell(kid, "fail on purpose")
		if e := l.next(EventFailed); e.Directive != want.directive || l.state("top/kid") != want.state {
			t.Errorf("%d: %v %q, %s", says, e.Directive, e.Note, l.state("top/kid"))
		}
		if !slices.Contains(*sink, "asked: on purpose") {
			t.Errorf("%d: %v", says, *sink)
		}
		if want.state == "running" && l.get(kid) != want.holds {
			t.Errorf("%d: it holds %d", says, l.get(kid))
		}
	}
}

// Asked supervisors that are suspended decide when they go on.
func TestD11_AskedWhileSuspended(t *testing.T) {
	asked := 0
	l := newLab(t, otherwise(supervision.Suspend))
	l.spawn("root", newCounter().WithChildren(Child{"top", newJudge(&asked, func(*Context, Ref, *abi.Failure) supervision.Directive { return supervision.Resume })}))
	kid := l.at("root/top/kid")
	l.tell(kid, 5)
	l.fails("root")
	l.fails("root/top/kid")
	l.run()
	if asked != 0 || l.state("root/top/kid") != "failed" {
		t.Errorf("asked %d times", asked)
	}
	l.Operate().Decide(l.at("root"), supervision.Resume)
	l.run()
	if asked != 1 || l.get(kid) != 5 {
		t.Errorf("asked %d times\n%v", asked, l.View().Tree())
	}
}

// An operator decides about a suspended actor, and only about such.
func TestOperatorDecides(t *testing.T) {
	l := newLab(t, otherwise(supervision.Suspend))
	for d, want := range map[supervision.Directive]int{supervision.Resume: 6, supervision.Restart: 1, supervision.Stop: -1} {
		ref := l.spawn("a"+d.String(), newCounter())
		l.tell(ref, 5)
		l.Operate().Decide(ref, d) // it has not failed
		l.run()
		if l.get(ref) != 5 {
			t.Fatalf("%v: it has been decided about, though it works", d)
		}
		l.tell(ref, "crash", 1)
		if l.state("a"+d.String()) != "failed" {
			t.Fatal("not suspended")
		}
		if err := l.Operate().Decide(ref, d); err != nil {
			t.Error(err)
		}
		l.run()
		if want < 0 {
			if l.state("a"+d.String()) != "gone" || !slices.Equal(l.letters(), []DeadReason{DeadStopped}) {
				t.Errorf("%v: %s, %v", d, l.state("a"+d.String()), l.letters())
			}
			if err := l.Operate().Decide(ref, d); !errors.Is(err, ErrUnknown) {
				t.Error(err)
			}
		} else if got := l.get(ref); got != want {
			t.Errorf("%v: it holds %d", d, got)
		}
	}
	for _, d := range []supervision.Directive{0, supervision.Escalate, supervision.Suspend, supervision.Ask} {
		if err := l.Operate().Decide(l.at("aresume"), d); !errors.Is(err, ErrBadDirective) {
			t.Errorf("%v: %v", d, err)
		}
	}
	// Resume of what cannot be resumed: a restart, under the limits of the supervisor.
	s := supervision.Default().WithRules(supervision.Rule{Reason: "panic", Directive: supervision.Suspend}).WithOtherwise(supervision.Restart).WithMaxRestarts(0, 0)
	l = newLab(t, s)
	ref := l.spawn("a", newCounter())
	l.tell(ref, "panic")
	l.Operate().Decide(ref, supervision.Resume)
	l.run()
	es := l.seen(EventFailed)
	if len(es) != 2 || es[1].Directive != supervision.Stop || l.state("a") != "gone" || strings.Contains(es[1].Note, "restarting") {
		t.Errorf("%+v", es)
	}
}
