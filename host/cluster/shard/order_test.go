package shard

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/keyed"
)

// A message that waits in a region's mailbox while the directory gives it the shard is handled behind those that have waited for the
// shard, although the region learns of it with that message.
func TestABeginningKeepsOrder(t *testing.T) {
	s := newSim(7, map[string]int{}, broken{})
	s.calm = true
	defer s.close()
	s.start()
	l := s.lives[0]
	sent, news := uint64(0), 0
	for end := s.Clock.Now().Add(5 * time.Second); s.failure == "" && s.Clock.Now().Before(end); s.settle() {
		if l.state != nil && news < 8 { // it waits in the mailbox while the time passes
			sent++
			if err := l.system.Tell(l.region, keyed.For("k1", note{Op: "tell", Key: "k1", N: sent, From: "x"})); err != nil {
				t.Fatal(err)
			}
		}
		if s.Clock.AdvanceToNext(); l.state != nil && l.state.st.dirty.Load() {
			news++
		}
	}
	if s.failure != "" {
		t.Fatal(s.failure)
	}
	if got := s.last[[2]string{"x", "k1"}]; got != sent || sent < 10 || news < 2 {
		t.Errorf("%d of %d messages were handled; the directory has told of %d changes", got, sent, news)
	}
}
