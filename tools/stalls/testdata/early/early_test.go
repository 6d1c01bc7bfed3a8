package early

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestLooksTooEarly is the kind of test that fails once in a while: five milliseconds are enough for
// another goroutine, nearly always.
func TestLooksTooEarly(t *testing.T) {
	for range 50 {
		var done atomic.Bool
		go done.Store(true)
		time.Sleep(5 * time.Millisecond)
		if !done.Load() {
			t.Fatal("not done")
		}
	}
}

func TestWaits(t *testing.T) {
	for range 5 {
		done := make(chan struct{})
		go close(done)
		<-done
	}
}
