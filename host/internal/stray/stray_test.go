package stray

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// The bucket lets the burst pass and then its rate, as the arithmetic in stray.go and in
// docs/security.md has it.
func TestGuessesAreCounted(t *testing.T) {
	tr, now := &Guesses{}, int64(time.Hour)
	for i := range Burst {
		if !tr.Count(now) {
			t.Fatalf("guess %d is refused", i)
		}
	}
	for range 10 {
		if tr.Count(now) {
			t.Fatal("one more passes")
		}
	}
	passed := 0
	for range 1000 {
		now += int64(10 * time.Second / 1000)
		if tr.Count(now) {
			passed++
		}
	}
	if passed > 10*Rate {
		t.Errorf("%d pass in ten seconds", passed)
	}
}

// Refs that somebody had lately are remembered, the last ones at least; older ones are not
// for ever.
func TestRecents(t *testing.T) {
	var r Recents
	for i := range abi.Ref(3 * MostRecent) {
		r.Add(i+1, strings.Repeat("x", int(i%(recentPath+2))))
		if path, ok := r.Find(i + 1); !ok || len(path) != int(i%(recentPath+2))%(recentPath+1) {
			t.Fatal(i, path)
		}
	}
	for i := range abi.Ref(MostRecent) {
		if _, ok := r.Find(3*MostRecent - i); !ok {
			t.Fatalf("the last but %d is forgotten", i)
		}
	}
	if _, ok := r.Find(1); ok || len(r.now)+len(r.old) > 2*MostRecent {
		t.Errorf("%d are remembered", len(r.now)+len(r.old))
	}
}
