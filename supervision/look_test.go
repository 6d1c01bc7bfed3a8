package supervision

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// What a look says of the window is what decides: a restart is refused if and only if as many
// count as are allowed; and looking changes nothing.
func TestLookAtTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "restarts")
		s := Default().WithMaxRestarts(most, time.Duration(rapid.IntRange(1, 1000).Draw(t, "within"))*time.Millisecond).
			WithSliding(rapid.Bool().Draw(t, "sliding")).WithShared(rapid.Bool().Draw(t, "shared"))
		var c Child
		var g Group
		ms := 1
		for range rapid.IntRange(0, 30).Draw(t, "failures") {
			ms += rapid.IntRange(0, 400).Draw(t, "pause")
			before := s.Look(&c, &g, at(ms))
			if before != s.Look(&c, &g, at(ms)) {
				t.Fatal("looking changes something")
			}
			d := s.Failed(&c, &g, Transient, "t", failure(abi.FailureTrap), at(ms), rnd)
			if refused := d.Directive != Restart; refused != (before.InWindow >= most) {
				t.Fatalf("%v with %d of %d", d, before.InWindow, most)
			}
			if after := s.Look(&c, &g, at(ms)); after.Failures != d.Failures || after.Total != c.Total() {
				t.Fatalf("%+v, %+v", after, d)
			}
		}
	})
}

// A count that would be reset at the next failure is shown as reset.
func TestLookAtAStableChild(t *testing.T) {
	s := Default().WithBackoff(Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Second), backoff.NoJitter()), ResetAfter: 10 * time.Second})
	var c Child
	var g Group
	s.Failed(&c, &g, Transient, "t", failure(abi.FailureTrap), at(0), rnd)
	c.Started(at(1000))
	for ms, want := range map[int]Record{1000: {1, 1, 0, time.Second}, 10_999: {1, 1, 0, time.Second}, 11_000: {0, 1, 0, 0}} {
		if got := s.Look(&c, &g, at(ms)); got != want {
			t.Errorf("%d ms: %+v, want %+v", ms, got, want)
		}
	}
}

// Without a window all restarts of a child's life count, however long ago they were.
func TestLookWithoutAWindow(t *testing.T) {
	s := Default().WithMaxRestarts(3, 0)
	var c Child
	fails(s, &c, &Group{}, 0, 1)
	if r := s.Look(&c, &Group{}, at(1_000_000_000)); r.InWindow != 2 {
		t.Errorf("%d restarts count", r.InWindow)
	}
}
