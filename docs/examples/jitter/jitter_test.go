package jitter

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

func TestTriangular(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	policy := backoff.WithJitter(backoff.Constant(time.Second), Triangular(0.5))
	const n = 100_000
	var sum time.Duration
	near := 0
	for range n {
		d := policy.Delay(0, rnd)
		if d < time.Second/2 || d >= 3*time.Second/2 {
			t.Fatalf("%v is out of range", d)
		}
		if d >= 3*time.Second/4 && d < 5*time.Second/4 {
			near++
		}
		sum += d
	}
	if mean := sum / n; mean < 990*time.Millisecond || mean > 1010*time.Millisecond {
		t.Errorf("the mean is %v", mean)
	}
	if near < n*74/100 || near > n*76/100 { // three quarters; of a uniform one half
		t.Errorf("%d of %d are near the base", near, n)
	}
	if d := backoff.WithJitter(backoff.Constant(backoff.Max), Triangular(1)).Delay(0, rand.New(rand.NewPCG(3, 4))); d < 0 {
		t.Errorf("%v", d)
	}
}

// A system waits with it before a restart.
func TestSupervision(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(0, 0))
	s, err := host.New(host.NewConfig("app").WithManual().WithClock(clock).WithSeed(1).WithGuardian(Supervision()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	starts := 0
	ref, err := s.Spawn("faulty", host.Native(func() host.Actor { starts++; return faulty{} }))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Tell(ref, "fail"); err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	clock.Advance(70*time.Millisecond - 1)
	if s.RunUntilIdle(1000); starts != 1 {
		t.Errorf("%d starts before the shortest delay is over", starts)
	}
	clock.Advance(60 * time.Millisecond)
	if s.RunUntilIdle(1000); starts != 2 {
		t.Errorf("%d starts after the longest", starts)
	}
}

type faulty struct{}

func (faulty) Receive(*host.Context, host.Message) error { return errors.New("failed") }
