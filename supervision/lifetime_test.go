package supervision

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Which ends of a child are answered with a restart, as in OTP: lifetime by end.
func TestLifetimesByEnds(t *testing.T) {
	for _, c := range []struct {
		life          Lifetime
		failed, ended Directive
	}{{Transient, Restart, Stop}, {Permanent, Restart, Restart}, {Temporary, Stop, Stop}} {
		var child Child
		var g Group
		if d := Default().Failed(&child, &g, c.life, "t", failure(abi.FailureTrap), at(0), rnd); d.Directive != c.failed || d.Alone != (c.life == Temporary) {
			t.Errorf("%v has failed: %+v, want %v", c.life, d, c.failed)
		}
		if d := Default().Stopped(&child, &g, c.life, at(0), rnd); d.Directive != c.ended || d.Alone != (c.life != Permanent) {
			t.Errorf("%v has ended: %+v, want %v", c.life, d, c.ended)
		}
		// What the decider says besides a restart holds for all of them.
		for _, order := range []Directive{Resume, Stop, Escalate, Suspend, Ask} {
			s := Default().WithOtherwise(order)
			if d := s.Failed(&child, &g, c.life, "t", failure(abi.FailureTrap), at(0), rnd); d.Directive != order {
				t.Errorf("%v, %v: %+v", c.life, order, d)
			}
		}
	}
}

// A permanent child's own stops use the same budget as its failures.
func TestPermanentChildrenMeetTheLimit(t *testing.T) {
	s := Default().WithMaxRestarts(2, 0)
	var c Child
	var g Group
	s.Failed(&c, &g, Permanent, "t", failure(abi.FailureTrap), at(0), rnd)
	if d := s.Stopped(&c, &g, Permanent, at(1), rnd); d.Directive != Restart {
		t.Errorf("%+v", d)
	}
	if d := s.Stopped(&c, &g, Permanent, at(2), rnd); d.Directive != Stop || d.Refused == "" {
		t.Errorf("%+v", d)
	}
}

// Which ends are delayed: the triggers of actor-ts, and Akka's onFailure and onStop,
// are a lifetime and On together.
func TestC_1_4_Triggers(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		on            Ends
		life          Lifetime
		failed, ended Directive
		crash, stop   time.Duration
	}{
		{"any", OnAny, Permanent, Restart, Restart, 200 * ms, 200 * ms},
		{"any, by default", 0, Permanent, Restart, Restart, 200 * ms, 200 * ms},
		{"failure", OnFailure, Transient, Restart, Stop, 200 * ms, 0},
		{"Akka's onStop: exceptions restart at once", OnStop, Permanent, Restart, Restart, 0, 200 * ms},
		{"Akka's onFailure", OnFailure, Transient, Restart, Stop, 200 * ms, 0},
	} {
		s := delays(t, Backoff{On: c.on})
		if d := s.Failed(&Child{}, &Group{}, c.life, "t", failure(abi.FailureTrap), at(0), rnd); d.Directive != c.failed || d.Delay != c.crash {
			t.Errorf("%s: failed: %+v", c.name, d)
		}
		if d := s.Stopped(&Child{}, &Group{}, c.life, at(0), rnd); d.Directive != c.ended || d.Delay != c.stop {
			t.Errorf("%s: ended: %+v", c.name, d)
		}
	}
	// 'stop': only clean stops are answered with another start; a crash is the end.
	s := delays(t, Backoff{On: OnStop}).WithOtherwise(Stop)
	if d := s.Failed(&Child{}, &Group{}, Permanent, "t", failure(abi.FailureTrap), at(0), rnd); d.Directive != Stop {
		t.Errorf("stop: %+v", d)
	}
	// Ends that are not delayed do not make the delays of the others longer.
	s = delays(t, Backoff{On: OnStop, Reset: ResetNever, MaxFailures: 2})
	var child Child
	for i := range 5 {
		s.Failed(&child, &Group{}, Permanent, "t", failure(abi.FailureTrap), at(i), rnd)
	}
	if d := s.Stopped(&child, &Group{}, Permanent, at(6), rnd); d.Directive != Restart || d.Delay != 200*ms || child.Total() != 6 {
		t.Errorf("%+v, %d in all", d, child.Total())
	}
}

func TestLifetimeAndShutdownNames(t *testing.T) {
	for _, name := range Lifetimes() {
		if l, ok := ParseLifetime(name); !ok || l.String() != name {
			t.Error(name)
		}
	}
	for _, name := range Shutdowns() {
		if s, ok := ParseShutdown(name); !ok || s.String() != name {
			t.Error(name)
		}
	}
	if _, ok := ParseLifetime("eternal"); ok || Lifetime(9).String() != "unknown" || Shutdown(9).String() != "unknown" {
		t.Error("unknown names")
	}
}
