//go:build !wasip1

package actor

import (
	"errors"
	"math/rand"
	"slices"
	"testing"
)

// TestB34_BehaviorsAreAStack: random changes have the uppermost of a list handle; the lowest stays.
func TestB34_BehaviorsAreAStack(t *testing.T) {
	var last int
	make := func(n int) Behavior { return func(*Context, *Message) error { last = n; return nil } }
	for seed := range int64(100) {
		rnd := rand.New(rand.NewSource(seed))
		var b Behaviors
		if err := b.Receive(nil, nil); !errors.Is(err, ErrUnhandled) {
			t.Fatal("nobody handles, and yet: ", err)
		}
		b.Unbecome()
		var model []int
		for n := 1; n < 100; n++ {
			switch rnd.Intn(3) {
			case 0:
				b.Become(make(n))
				model = append(model[:max(0, len(model)-1)], n)
			case 1:
				b.BecomeStacked(make(n))
				model = append(model, n)
			case 2:
				b.Unbecome()
				model = model[:max(min(1, len(model)), len(model)-1)]
			}
			last = 0
			err := b.Receive(nil, nil)
			if want := slices.Concat([]int{0}, model)[len(model)]; last != want || (err == nil) != (len(model) > 0) {
				t.Fatalf("seed %d: %d handles, want %d, %v", seed, last, want, err)
			}
		}
	}
}

func TestBehaviorsHaveABound(t *testing.T) {
	var b Behaviors
	defer func() {
		if recover() == nil || len(b.stack) != MaxBehaviors {
			t.Error("there is no bound")
		}
	}()
	for range MaxBehaviors + 1 {
		b.BecomeStacked(func(*Context, *Message) error { return nil })
	}
}
