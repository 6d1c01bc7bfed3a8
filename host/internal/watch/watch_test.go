package watch

import (
	"maps"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"pgregory.net/rapid"
)

func TestBothSides(t *testing.T) {
	var s Set
	if s.Unwatch(1) || s.Watching(1) || s.Len() != 0 || len(s.Watched())+len(s.Watchers()) != 0 {
		t.Error("not empty")
	}
	s.RemoveWatcher(1)
	for _, r := range []abi.Ref{3, 1, 2} {
		if !s.Watch(r, "/p") {
			t.Error(r)
		}
		s.AddWatcher(r + 10)
	}
	if s.Watch(1, "/q/longer") || s.Bytes() != 6 || s.Path(1) != "/p" || s.Path(9) != "" || s.Len() != 3 {
		t.Error("watched twice")
	}
	if !s.Unwatch(2) || s.Unwatch(2) || s.Bytes() != 4 || s.Watching(2) || !s.Watching(3) {
		t.Error("unwatched")
	}
	s.AddWatcher(11)
	s.RemoveWatcher(12)
	if !slices.Equal(s.Watched(), []abi.Ref{1, 3}) || !slices.Equal(s.Watchers(), []abi.Ref{11, 13}) {
		t.Error(s.Watched(), s.Watchers())
	}
	s.Clear()
	if len(s.Watched())+len(s.Watchers())+s.Bytes() != 0 {
		t.Error("not cleared")
	}
}

// Watchers are a set, whichever of them came first or has gone.
func TestWatchersAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		model := map[abi.Ref]bool{}
		for range 30 {
			ref := abi.Ref(1 + rapid.IntRange(0, 5).Draw(t, "ref"))
			if rapid.Bool().Draw(t, "adds") {
				s.AddWatcher(ref)
				model[ref] = true
			} else {
				s.RemoveWatcher(ref)
				delete(model, ref)
			}
			if got, want := s.Watchers(), slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}
