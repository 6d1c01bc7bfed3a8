package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// A turn that stores more than a key may have has failed by itself: that is no failure of the host, whose failures escalate. What a turn deletes
// again has to be written, too.
func TestATooLargeTurnIsItsOwnFailure(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	ask := func(n note) (err error) {
		p, err := l.system.Request(l.region, keyed.For("k0", n))
		if err != nil {
			t.Fatal(err)
		}
		s.pass(5 * time.Second) // the actor ends then
		select {
		case m := <-p.Answer():
			return m.Err()
		default:
			return errors.New("no answer")
		}
	}
	refused := 0
	for size := uint64(MaxBytes - 400); size < MaxBytes+40; size += 40 {
		err := ask(note{Add: size, Size: size})
		var failed *host.TurnError
		switch {
		case err == nil: // the key has room for one only
			l.journal.Erase("carts", "k0", 10*time.Second, func(done error) { err = done })
			if s.pass(5 * time.Second); err != nil {
				t.Fatal(err)
			}
		case !errors.As(err, &failed) || failed.Failure.Kind != abi.FailureMemoryLimit:
			t.Errorf("%d bytes: %v", size, err)
		default:
			refused++
		}
	}
	var failed *host.TurnError
	if err := ask(note{Add: 1, Size: MaxBytes / 3, Before: 3}); !errors.As(err, &failed) || failed.Failure.Kind != abi.FailureMemoryLimit {
		t.Errorf("what is deleted in the same turn: %v", err)
	}
	if err := ask(note{Add: 1, Size: MaxBytes / 3, Before: 1}); err != nil {
		t.Errorf("the key cannot be used any more: %v", err)
	}
	if refused == 0 {
		t.Error("nothing was too large")
	}
}
