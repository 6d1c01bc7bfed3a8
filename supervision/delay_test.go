package supervision

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// When the count of failures starts again: semantics 1.4 and 3.5.

// lives is one life of a child: started, failed, and the delay that is to follow, in ms.
type lives struct{ started, failed, want int }

func runLives(t *testing.T, name string, s Strategy, all []lives) {
	t.Helper()
	var c Child
	for i, l := range all {
		c.Started(at(l.started))
		if d := s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureTrap), at(l.failed), rnd); d.Delay != time.Duration(l.want)*time.Millisecond {
			t.Errorf("%s: failure %d: %v, want %d ms", name, i, d.Delay, l.want)
		}
	}
}

func TestC_1_4_ResetPolicies(t *testing.T) {
	const ms = time.Millisecond
	// after-min-stable: a life of minBackoff resets. Its weak spot: a child that always
	// dies a little later never gets beyond the first delay.
	runLives(t, "min-stable", delays(t, Backoff{ResetAfter: 200 * ms}), []lives{{0, 199, 200}, {400, 599, 400}, {1000, 1200, 200}, {1400, 1601, 200}, {1900, 2101, 200}})
	// Ours by default: a life as long as the last delay.
	runLives(t, "as long as the last delay", delays(t, Backoff{}), []lives{{0, 250, 200}, {450, 649, 400}, {1049, 1400, 800}, {2200, 2999, 1600}, {4599, 6199, 200}})
	runLives(t, "after a time", delays(t, Backoff{ResetAfter: time.Second}), []lives{{0, 999, 200}, {1199, 2198, 400}, {2598, 3598, 200}})
	runLives(t, "never", delays(t, Backoff{Reset: ResetNever}), []lives{{0, 1e6, 200}, {2e6, 3e6, 400}, {4e6, 5e6, 800}})
	runLives(t, "manual", delays(t, Backoff{Reset: ResetManual}), []lives{{0, 1e6, 200}, {2e6, 3e6, 400}})
}

// A life is measured against the last delay of a restart, whatever was decided in between;
// where there was none, or it was 0, nothing is reset.
func TestStableLivesAreMeasuredAgainstTheLastDelay(t *testing.T) {
	delayed := delays(t, Backoff{})
	table := Default().WithBackoff(Backoff{Policy: backoff.WithJitter(backoff.Table(0, time.Second, time.Minute), backoff.NoJitter())})
	for _, c := range []struct {
		name  string
		s     Strategy
		steps []step
	}{
		{"a failure that resumed", delayed, []step{{Restart, 0, 1, 200}, {Restart, 201, 202, 400}, {Resume, 602, 1002, 0}, {Restart, 602, 1003, 200}}},
		{"no delay yet", delayed, []step{{Resume, 0, 1000, 0}, {Restart, 0, 2000, 400}}},
		{"delays of 0", table, []step{{Restart, 0, 1000, 0}, {Restart, 1000, 2000, 1000}, {Restart, 3000, 3999, 60_000}}},
	} {
		var child Child
		for i, x := range c.steps {
			child.Started(at(x.started))
			if d := c.s.Directed(x.d, &child, &Group{}, Transient, at(x.failed), rnd); d.Delay != time.Duration(x.want)*time.Millisecond {
				t.Errorf("%s: failure %d: %v, want %d ms", c.name, i, d.Delay, x.want)
			}
		}
	}
}

// step is a life of a child, in ms: started, failed, what was decided, the delay that follows.
type step struct {
	d                     Directive
	started, failed, want int
}

// Reset by hand, under any policy. A start alone resets nothing.
func TestC_3_5_ManualReset(t *testing.T) {
	for _, policy := range []ResetPolicy{ResetManual, ResetNever, ResetAfterStable} {
		s := delays(t, Backoff{Reset: policy, ResetAfter: time.Hour})
		var c Child
		fail := func(ms int) time.Duration {
			c.Started(at(ms))
			return s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureTrap), at(ms+1), rnd).Delay
		}
		fail(0)
		if d := fail(10); d != 400*time.Millisecond {
			t.Errorf("%v: %v", policy, d)
		}
		c.Reset()
		if d := fail(20); d != 200*time.Millisecond || c.Failures() != 1 || c.Total() != 3 {
			t.Errorf("%v: %v after the reset, %d, %d", policy, d, c.Failures(), c.Total())
		}
	}
}

// Giving up: one failure more than allowed since the last reset.
func TestC_1_4_GiveUp(t *testing.T) {
	for up, want := range map[GiveUp]Directive{GiveUpStop: Stop, GiveUpEscalate: Escalate, GiveUpSuspend: Suspend} {
		s := delays(t, Backoff{MaxFailures: 3, GiveUp: up, ResetAfter: time.Second})
		var c Child
		for i, step := range []struct {
			started, failed int
			want            Directive
		}{{0, 1, Restart}, {10, 11, Restart}, {20, 1020, Restart}, {1100, 1101, Restart}, {1200, 1201, Restart}, {1300, 1301, want}} {
			c.Started(at(step.started))
			d := s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureTrap), at(step.failed), rnd)
			if d.Directive != step.want || (d.Refused != "") != (step.want == want) || d.Directive != Restart && d.Delay != 0 {
				t.Errorf("%v: failure %d: %+v, want %v", up, i, d, step.want)
			}
		}
	}
}

// The least limit there is: the second failure is one too many.
func TestGivesUpAtTheSecondFailure(t *testing.T) {
	s := delays(t, Backoff{MaxFailures: 1, Reset: ResetNever})
	if got := fails(s, &Child{}, &Group{}, 0, 1); !slices.Equal(got, []Directive{Restart, Stop}) {
		t.Error(got)
	}
}

// Asking costs nothing until the answer is known.
func TestAskCountsOnce(t *testing.T) {
	s := delays(t, Backoff{Reset: ResetNever}).WithOtherwise(Ask).WithMaxRestarts(1, 0)
	var c Child
	var g Group
	d := s.Failed(&c, &g, Transient, "t", failure(abi.FailureTrap), at(0), rnd)
	if d.Directive != Ask || d.Failures != 1 || c.Failures() != 0 {
		t.Errorf("%+v", d)
	}
	if d = s.Directed(Restart, &c, &g, Transient, at(0), rnd); d.Directive != Restart || d.Delay != 200*time.Millisecond || d.Failures != 1 {
		t.Errorf("%+v", d)
	}
	if d = s.Directed(Restart, &c, &g, Transient, at(1), rnd); d.Directive != Stop {
		t.Errorf("the limit holds for what was asked, too: %+v", d)
	}
}

func TestBackoffCheck(t *testing.T) {
	good, _ := delays(t, Backoff{}).Backoff()
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for i, spoil := range []func(*Backoff){
		func(b *Backoff) { b.Policy = nil }, func(b *Backoff) { b.On = 4 }, func(b *Backoff) { b.Reset = 3 }, func(b *Backoff) { b.GiveUp = 3 },
		func(b *Backoff) { b.Meanwhile = 3 }, func(b *Backoff) { b.ResetAfter = -1 }, func(b *Backoff) { b.MaxFailures = -1 },
		func(b *Backoff) { b.Stash = -1 }, func(b *Backoff) { b.Grace = -1 },
	} {
		b := good
		spoil(&b)
		if b.Check() == nil {
			t.Errorf("%d is accepted: %+v", i, b)
		}
	}
}

// Who can be answered with resume pays for it, and nobody else.
func TestCanResume(t *testing.T) {
	rule := func(d Directive) Strategy { return Default().WithRules(Rule{Directive: d}) }
	for _, c := range []struct {
		name string
		s    Strategy
		want bool
	}{
		{"default", Default(), false}, {"stopping", Stopping(), false}, {"restart", rule(Restart), false}, {"escalate", rule(Escalate), false},
		{"resume", rule(Resume), true}, {"ask", rule(Ask), true}, {"suspend, then an operator", rule(Suspend), true},
		{"otherwise", Default().WithOtherwise(Resume), true}, {"a function", Default().WithDecider(func(string, *abi.Failure) Directive { return 0 }), true},
	} {
		if got := c.s.CanResume(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestGiveUpAndMeanwhileNames(t *testing.T) {
	for i, name := range GiveUps() {
		if g, ok := ParseGiveUp(name); !ok || g != GiveUp(i) {
			t.Error(name)
		}
	}
	for i, name := range Meanwhiles() {
		if m, ok := ParseMeanwhile(name); !ok || m != Meanwhile(i) {
			t.Error(name)
		}
	}
}
