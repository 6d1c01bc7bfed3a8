package supervision

import (
	"reflect"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"pgregory.net/rapid"
)

// A child that went through its state is decided about as the one that did not.
func TestChildState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default().WithMaxRestarts(rapid.IntRange(-1, 5).Draw(t, "restarts"), time.Duration(rapid.IntRange(0, 1000).Draw(t, "within"))*time.Millisecond).WithSliding(rapid.Bool().Draw(t, "sliding"))
		var a, b Child
		var g Group
		ms := 1
		for range rapid.IntRange(0, 30).Draw(t, "failures") {
			ms += rapid.IntRange(0, 400).Draw(t, "pause")
			a.Started(at(ms))
			b.Started(at(ms))
			x := s.Failed(&a, &g, Transient, "t", failure(abi.FailureTrap), at(ms), rnd)
			y := s.Failed(&b, &g, Transient, "t", failure(abi.FailureTrap), at(ms), rnd)
			if x != y {
				t.Fatalf("%+v, through its state %+v", x, y)
			}
			again, ok := b.State().Child()
			if !ok {
				t.Fatalf("%+v is refused", b.State())
			}
			b = again
		}
	})
	for i, bad := range []ChildState{{Failures: -1}, {Total: -1}, {Delay: -1}, {Count: -1}, {Next: 1}, {Next: -1}, {Ring: make([]int64, maxRing+1)}, {Ring: make([]int64, 3), Next: 3}} {
		if _, ok := bad.Child(); ok {
			t.Errorf("%d is accepted", i)
		}
	}
	if _, ok := (ChildState{Ring: make([]int64, maxRing), Next: maxRing - 1}).Child(); !ok {
		t.Error("the longest ring is refused")
	}
	if c, ok := (&Child{}).State().Child(); !ok || !reflect.DeepEqual(c, Child{}) {
		t.Errorf("a child that has never failed: %+v", c)
	}
}
