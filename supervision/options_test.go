package supervision

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Every option is what was set, and nothing else changes.
func TestOptionsAreKept(t *testing.T) {
	s := Default()
	if _, ok := s.Backoff(); ok || s.KeepChildren() || s.Silent() || s.Shutdown() != ShutdownNever || s.Kind() != OneForOne || s.Shared() || s.Sliding() {
		t.Errorf("%+v", s)
	}
	s = s.WithKind(RestForOne).WithKeepChildren(true).WithSilence(true).WithShutdown(ShutdownAll).WithShared(true).WithSliding(true).
		WithBackoff(Backoff{Stash: 7}).WithMaxRestarts(3, time.Second)
	b, ok := s.Backoff()
	n, w := s.MaxRestarts()
	if !ok || b.Stash != 7 || !s.KeepChildren() || !s.Silent() || s.Shutdown() != ShutdownAll || s.Kind() != RestForOne || !s.Shared() || !s.Sliding() || n != 3 || w != time.Second {
		t.Errorf("%+v", s)
	}
	if n, w := s.WithMaxRestarts(-7, -time.Second).MaxRestarts(); n != Unlimited || w != 0 {
		t.Error(n, w)
	}
}

// A rule needs a directive, and decides by what it names.
func TestRules(t *testing.T) {
	for d := range Directive(12) {
		if err := (Rule{Directive: d}).Check(); (err == nil) != (d >= Resume && d <= Ask) {
			t.Errorf("%v: %v", d, err)
		}
	}
	f := &abi.Failure{Kind: abi.FailureTrap, Reason: "unreachable", Message: "no such account"}
	for _, c := range []struct {
		r    Rule
		want bool
	}{
		{Rule{}, true},
		{Rule{Reason: "unreach*"}, true}, {Rule{Reason: "*account"}, true}, {Rule{Reason: "account"}, false},
		{Rule{Type: "acc?unt*"}, true}, {Rule{Type: "other"}, false},
		{Rule{Kinds: []abi.FailureKind{abi.FailureTrap}}, true}, {Rule{Kinds: []abi.FailureKind{abi.FailureInit}}, false},
	} {
		if got := c.r.Matches("account", f); got != c.want {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
}

// Names beyond the last one do not panic.
func TestNamesOfWhatThereIsNot(t *testing.T) {
	for _, s := range []string{Directive(200).String(), Lifetime(200).String(), Shutdown(200).String(), Kind(200).String(),
		Directive(len(directiveNames)).String(), Lifetime(len(lifetimeNames)).String(), Shutdown(len(shutdownNames)).String(), Kind(len(kindNames)).String()} {
		if s == "" {
			t.Error("no name")
		}
	}
	if s := Directive(200).String(); s != "none" {
		t.Errorf("a directive that there is not: %s", s)
	}
}

// Recall takes back what was counted, and nothing that was not.
func TestRecall(t *testing.T) {
	policy, err := backoff.Spec{Min: time.Second, Max: time.Minute, Jitter: "none"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for on, want := range map[Ends]int{OnFailure: 1, OnStop: 0} {
		s := Default().WithOtherwise(Restart).WithBackoff(Backoff{Policy: policy, On: on})
		var c Child
		var g Group
		now := time.Unix(1000, 0)
		for range 2 {
			s.Failed(&c, &g, Transient, "", &abi.Failure{}, now, nil)
			if c.Total() != 1 || c.Failures() != want {
				t.Errorf("on %v: %d failures of %d, want %d", on, c.Failures(), c.Total(), want)
			}
			c.Recall()
			if c.Total() != 0 || c.Failures() != 0 {
				t.Errorf("on %v: %d of %d are left", on, c.Failures(), c.Total())
			}
		}
	}
	// Only the last of several is taken back.
	s := Default().WithBackoff(Backoff{Policy: policy, Reset: ResetNever})
	var c Child
	for range 4 {
		s.Failed(&c, &Group{}, Transient, "", failure(abi.FailureTrap), at(0), nil)
	}
	if c.Recall(); c.Failures() != 3 || c.Total() != 3 {
		t.Errorf("%d of %d are left of four", c.Failures(), c.Total())
	}
	// A reset since then has taken it back already.
	c = Child{}
	c.counted, c.total = true, 1
	if c.Recall(); c.Failures() != 0 {
		t.Error(c.Failures())
	}
}

// The end of a temporary child, stopped or failing, is its own; a stop of any other is the group's.
func TestWhoseEndItIs(t *testing.T) {
	for _, c := range []struct {
		d     Directive
		life  Lifetime
		want  Directive
		alone bool
	}{
		{Stop, Temporary, Stop, true}, {Stop, Transient, Stop, false}, {Stop, Permanent, Stop, false}, {Restart, Temporary, Stop, true},
		{Resume, Temporary, Resume, false}, {Escalate, Temporary, Escalate, false}, {Restart, Transient, Restart, false},
	} {
		d := Default().WithKind(AllForOne).Directed(c.d, new(Child), new(Group), c.life, time.Unix(1000, 0), nil)
		if d.Directive != c.want || d.Alone != c.alone {
			t.Errorf("%v of a %v child: %+v", c.d, c.life, d)
		}
	}
}

// The edges of a backoff's options.
func TestBackoffCheckEdges(t *testing.T) {
	policy, err := backoff.Spec{Min: time.Second, Max: time.Minute}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	if err := (Backoff{Policy: policy, On: OnAny, Reset: ResetManual, GiveUp: GiveUpSuspend, Meanwhile: MeanwhileReply}).Check(); err != nil {
		t.Error(err)
	}
}
