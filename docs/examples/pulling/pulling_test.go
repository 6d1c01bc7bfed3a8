package pulling

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// TestPulling: fast workers get more than a slow one; the piece of one that ends goes to another, first; what is
// too much is refused; a worker that fails comes back and wants more.
func TestPulling(t *testing.T) {
	s, err := host.New(host.NewConfig("test").WithManual().WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)).
		WithClock(host.NewVirtualClock(time.Unix(1_700_000_000, 0))))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	spawn := func(p host.Props) host.Ref {
		ref, err := s.Spawn("", p)
		if err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(1000)
		return ref
	}
	master := spawn(Master(5))
	var done []int
	work := func(n int) error {
		p, err := s.Request(master, n)
		if err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(1000)
		return (<-p.Answer()).Err()
	}
	for n := range 5 {
		if err := work(n); err != nil {
			t.Error(err)
		}
	}
	if err := work(5); err == nil {
		t.Error("there is no bound")
	}
	// A slow worker has not done its piece yet: it does not say that it wants another.
	slow := spawn(host.Native(func() host.Actor { return &sleeper{master} }))
	fast := spawn(Worker(master, func(_ *host.Context, m host.Message) error {
		var n int
		_ = m.Decode(&n)
		done = append(done, n)
		if n == 100 {
			return errors.New("as told")
		}
		return nil
	}))
	if want := []int{1, 2, 3, 4}; !slices.Equal(done, want) {
		t.Errorf("done %v, want %v", done, want)
	}
	_ = work(6)
	s.Stop(slow)
	s.RunUntilIdle(1000)
	_ = work(100)
	_ = work(7)
	if want := []int{1, 2, 3, 4, 6, 0, 100, 7}; !slices.Equal(done, want) {
		t.Errorf("done %v, want %v", done, want)
	}
	_ = fast
}

type sleeper struct{ master host.Ref }

func (s *sleeper) Started(ctx *host.Context) error         { return ctx.Tell(s.master, Want) }
func (*sleeper) Receive(*host.Context, host.Message) error { return nil }
