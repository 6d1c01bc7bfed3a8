package life

import (
	"testing"
	"time"
)

func TestSinceWhenAKeptActorIsIdle(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	var k Kept
	for _, c := range []struct {
		what          string
		worked, quiet bool
		now           int64
		want          int64 // seconds; 0: it is not idle
	}{
		{"it begins, and has nothing to do", false, true, 1, 1},
		{"it looks at a system message", false, true, 2, 1},
		{"it has handled a message, and waits for an answer", true, false, 3, 0},
		{"the answer does not come", false, false, 4, 0},
		{"nothing is under way any more", false, true, 5, 5},
		{"it has handled a message", true, true, 6, 6},
	} {
		if k.SpellOver(c.worked, c.quiet, at(c.now)); k.Rest.Load() != c.want*int64(time.Second) {
			t.Errorf("%s: idle since %v, not %d s", c.what, time.Duration(k.Rest.Load()), c.want)
		}
	}
}

func TestWhatComesBackToAKeeper(t *testing.T) {
	k := Kept{Begun: 3}
	for _, c := range []struct {
		ended  Ending
		failed bool
		turns  uint64
		want   bool
	}{
		{Ordered, true, 3, true},
		{ByItself, false, 4, true},
		{ByItself, false, 3, false},
		{ByItself, true, 4, false},
		{Escalated, true, 4, false},
	} {
		if got := k.ComesBack(c.ended, c.failed, c.turns); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
