package turn

import (
	"errors"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
)

// TestHammerAnswer: an answer from another goroutine is had once, at whatever time it comes: by Ask, or by a call of wake, or of the one
// that Await has put in its place.
func TestHammerAnswer(t *testing.T) {
	rounds := 200_000
	if testing.Short() || race.Enabled {
		rounds = 20_000
	}
	var (
		turn   Turn
		answer = errors.New("no")
		ask    = make(chan struct{})
		done   sync.WaitGroup
		by     [3]int // Ask, wake, another wake
	)
	done.Go(func() {
		for range ask {
			turn.Answer(answer)
		}
	})
	for i := range rounds {
		woken := make(chan int, 2)
		err, there := turn.Ask(func(*Turn) {
			if i%5 == 0 {
				turn.Answer(answer)
				return
			}
			ask <- struct{}{}
		}, func() { woken <- 1 })
		if there {
			by[0]++
			if err != answer {
				t.Fatalf("round %d: %v", i, err)
			}
			continue
		}
		if i%2 == 0 {
			turn.Await(func() { woken <- 2 })
		}
		by[<-woken]++
		if err, there := turn.Answered(); !there || err != answer {
			t.Fatalf("round %d: %v, there: %v", i, err, there)
		}
		if i%2 == 1 && len(woken) > 0 {
			t.Fatalf("round %d: woken twice", i)
		}
	}
	close(ask)
	done.Wait()
	if by[0] < rounds/5 || by[1]+by[2] == 0 {
		t.Errorf("%v: not all ways were taken", by)
	}
}
