package reaper

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

type worker struct{ say func(string) }

func (w *worker) Receive(ctx *host.Context, m host.Message) error {
	w.say(ctx.Self().Name() + " works")
	return nil
}
func (w *worker) Stopped(ctx *host.Context) { w.say(ctx.Self().Name() + " ends") }

// TestReaper: group after group, each when the one before has ended, its mail handled; then all is done.
func TestReaper(t *testing.T) {
	s, err := host.New(host.NewConfig("test").WithManual().WithClock(host.NewVirtualClock(time.Unix(1_700_000_000, 0))))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var said []string
	spawn := func(name string) host.Ref {
		ref, err := s.Spawn(name, host.Native(func() host.Actor { return &worker{func(what string) { said = append(said, what) }} }))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	db, a, b, early := spawn("db"), spawn("a"), spawn("b"), spawn("early")
	r, err := s.Spawn("reaper", Reaper(func() { said = append(said, "done") }, []host.Ref{a, early}, nil, []host.Ref{b}, []host.Ref{db}))
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(early)
	s.RunUntilIdle(1000)
	_ = s.Tell(a, 1)
	_ = s.Tell(r, "end")
	_ = s.Tell(b, 1)
	s.RunUntilIdle(1000)
	_ = s.Tell(r, "end")
	s.RunUntilIdle(1000)
	if said[0] != "early ends" || said[len(said)-1] != "done" || len(said) != 7 {
		t.Errorf("%q", said)
	}
	for _, order := range [][2]string{{"a works", "a ends"}, {"b works", "b ends"}, {"a ends", "b ends"}, {"b ends", "db ends"}} {
		if i, j := slices.Index(said, order[0]), slices.Index(said, order[1]); i < 0 || j < i {
			t.Errorf("%q comes after %q: %q", order[0], order[1], said)
		}
	}
}

func TestTheSystemCloses(t *testing.T) {
	s, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Spawn("reaper", Reaper(CloseWhenDone(s)))
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Tell(r, "end")
	select {
	case <-s.Terminated():
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
	_ = s.Close(context.Background())
}
