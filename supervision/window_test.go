package supervision

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"pgregory.net/rapid"
)

// Restart permission: semantics 3.3 and D06 to D08.

// fails lets a child fail at some times and returns what was decided.
func fails(s Strategy, c *Child, g *Group, times ...int) (ds []Directive) {
	for _, ms := range times {
		ds = append(ds, s.Failed(c, g, Transient, "t", failure(abi.FailureTrap), at(ms), rnd).Directive)
	}
	return ds
}

// Between two windows up to 2N-1 restarts lie within a moment, as the worked row of
// the tumbling window says; the sliding one refuses there.
func TestC_3_3_TumblingAndSlidingDiffer(t *testing.T) {
	row := []int{0, 998, 999, 1001, 1002, 1003}
	s := Default().WithMaxRestarts(3, time.Second)
	if got := fails(s, &Child{}, &Group{}, row...); !slices.Equal(got, []Directive{Restart, Restart, Restart, Restart, Restart, Restart}) {
		t.Errorf("tumbling: %v", got)
	}
	if got := fails(s.WithSliding(true), &Child{}, &Group{}, row...); !slices.Equal(got, []Directive{Restart, Restart, Restart, Restart, Stop, Stop}) {
		t.Errorf("sliding: %v", got) // at 1001 the one at 0 is out; 998, 999, 1001 are within the second before 1002
	}
}

// The edge belongs to the window, in both kinds: Akka's now-start <= W, OTP's
// inPeriod.
func TestC_3_3_TheEdgeIsInside(t *testing.T) {
	for _, sliding := range []bool{false, true} {
		s := Default().WithMaxRestarts(1, time.Second).WithSliding(sliding)
		if got := fails(s, &Child{}, &Group{}, 0, 1000); got[1] != Stop {
			t.Errorf("sliding %v: %v", sliding, got)
		}
		if got := fails(s, &Child{}, &Group{}, 0, 1001); got[1] != Restart {
			t.Errorf("sliding %v: %v", sliding, got)
		}
	}
}

// OTP's {intensity, period} = {3, 5 s}: three restarts in any five seconds, and no
// more.
func TestSlidingWindowAsOTP(t *testing.T) {
	s := Default().WithMaxRestarts(3, 5*time.Second).WithSliding(true)
	for _, c := range []struct {
		at   []int
		want []Directive
	}{
		{[]int{0, 1000, 2000, 3000}, []Directive{Restart, Restart, Restart, Stop}},
		{[]int{0, 1000, 2000, 5001, 6001, 7001, 8000}, []Directive{Restart, Restart, Restart, Restart, Restart, Restart, Stop}},
	} {
		if got := fails(s, &Child{}, &Group{}, c.at...); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.at, got, c.want)
		}
	}
	never := Default().WithMaxRestarts(0, time.Second).WithSliding(true)
	if got := fails(never, &Child{}, &Group{}, 0); got[0] != Stop {
		t.Errorf("intensity 0: %v", got)
	}
}

// A window slides up to the number of restarts that it remembers; beyond, it tumbles,
// and lets more through across its boundary.
func TestSlidingWindowUpToItsBound(t *testing.T) {
	for n, want := range map[int]bool{maxRing: false, maxRing + 1: true} {
		s := Default().WithMaxRestarts(n, time.Second).WithSliding(true)
		var c Child
		for i := range n {
			ms := 0
			if i > 0 {
				ms = 999
			}
			if !s.Permit(&c, at(ms)) {
				t.Fatalf("restart %d of %d is refused", i+1, n)
			}
		}
		if first, second := s.Permit(&c, at(1001)), s.Permit(&c, at(1002)); !first || second != want {
			t.Errorf("%d in a second: %v, %v across the boundary", n, first, second)
		}
	}
}

// A window as long as there can be holds the first restart, too.
func TestLongestWindow(t *testing.T) {
	for _, n := range []int{-1, 1} {
		var c Child
		s := Default().WithMaxRestarts(n, backoff.Max)
		if first, second := s.Permit(&c, at(0)), s.Permit(&c, at(1)); !first || second {
			t.Errorf("%d restarts: the first %v, the second %v", n, first, second)
		}
	}
}

// A shared window counts the restarts of all children and escalates beyond the
// limit; one of the child's own does neither.
func TestSharedWindow(t *testing.T) {
	s := Default().WithMaxRestarts(2, time.Second)
	var a, b Child
	var g Group
	fails(s, &a, &g, 0, 1)
	if got := fails(s, &b, &g, 2, 3, 4); !slices.Equal(got, []Directive{Restart, Restart, Stop}) {
		t.Errorf("own windows: %v", got)
	}
	for _, c := range []struct {
		exceeded, want Directive
	}{{0, Escalate}, {Stop, Stop}, {Escalate, Escalate}} {
		s := s.WithShared(true).WithExceeded(c.exceeded)
		var a, b Child
		var g Group
		fails(s, &a, &g, 0)
		fails(s, &b, &g, 1)
		d := s.Failed(&a, &g, Transient, "t", failure(abi.FailureTrap), at(2), rnd)
		if d.Directive != c.want || d.Refused == "" || s.Exceeded() != c.want {
			t.Errorf("exceeded %v: %+v", c.exceeded, d)
		}
	}
	// All-for-one under a shared window: a restart of a sibling is free, as often as it happens.
	s = s.WithShared(true)
	var sibling Child
	for i := range 5 {
		if !s.Permit(&sibling, at(0)) {
			t.Errorf("a sibling is asked for its restart %d", i+1)
		}
	}
	if own := Default().WithMaxRestarts(1, 0).WithExceeded(Escalate); fails(own, &Child{}, &Group{}, 0, 1)[1] != Escalate {
		t.Error("exceeded does not apply to a window of the child's own")
	}
}

// AllForOne asks every child: each has a budget of its own, and a new child starts
// at zero.
func TestC_3_3_PermitCountsForEachChild(t *testing.T) {
	s := Default().WithKind(AllForOne).WithMaxRestarts(2, 0)
	var a, b, fresh Child
	if !s.Permit(&a, at(0)) || !s.Permit(&a, at(1)) || s.Permit(&a, at(2)) {
		t.Error("a")
	}
	if !s.Permit(&b, at(2)) || !s.Permit(&fresh, at(3)) {
		t.Error("b and a new child have used nothing")
	}
}

// The tumbling window does what the source's counter does, whatever comes.
func TestTumblingWindowIsTheSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-1, 4).Draw(t, "n")
		within := rapid.SampledFrom([]int{0, 1, 500, 1000}).Draw(t, "within")
		s := Default().WithMaxRestarts(n, time.Duration(within)*time.Millisecond)
		var c Child
		count, start, now, open := 0, 0, 0, false
		for range 40 {
			now += rapid.IntRange(0, 700).Draw(t, "gap")
			want := true
			limit := n
			if n < 0 {
				limit = 1
			}
			switch { // ChildRestartStats.requestRestartPermission
			case n == 0:
				want = false
			case within == 0 && n < 0:
			case within == 0:
				count++
				want = count <= n
			case open && now-start <= within:
				count++
				want = count <= limit
			default:
				open, count, start = true, 1, now
			}
			if got := s.Permit(&c, at(now)); got != want {
				t.Fatalf("N = %d, W = %d, at %d: %v, want %v", n, within, now, got, want)
			}
		}
	})
}
