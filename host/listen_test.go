package host

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// Listeners of a manual system hear at the end of a step, in the order in which they have begun; what they
// cause themselves, and what happens between steps, they hear at the next.
func TestListenersHearWithinSteps(t *testing.T) {
	s, err := New(NewConfig("test").WithManual().WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	started := func(e *Event) bool { return e.Kind == EventStarted }
	listen := func(name string, then func()) *Subscription {
		return s.Listen(10, started, func(e *Event) {
			heard = append(heard, name+":"+e.Ref.Name())
			if then != nil {
				then()
			}
		})
	}
	spawn := func(name string) {
		if _, err := s.Spawn(name, Func(func(*Context, Message) error { return nil })); err != nil {
			t.Error(err)
		}
	}
	wants := func(want ...string) {
		t.Helper()
		if !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
		heard = nil
	}
	s.RunUntilIdle(1000)
	once := sync.Once{}
	a := listen("a", func() { once.Do(func() { spawn("y") }) })
	b := listen("b", nil)
	spawn("x")
	wants()
	if !s.Step() {
		t.Error("nobody has run")
	}
	wants("a:x", "b:x")
	if !s.Step() {
		t.Error("who was started by a listener has not run")
	}
	wants("a:y", "b:y")
	if s.Step() {
		t.Error("there is nothing to do")
	}
	a.Close()
	spawn("z")
	s.RunUntilIdle(1000)
	wants("b:z")
	b.Close()
	if n := s.audience.Listeners(); n != 0 {
		t.Errorf("%d listen", n)
	}

	// What happens outside of steps is heard in the next, and that is something to do.
	s.Listen(10, func(e *Event) bool { return e.Kind == EventDeadLetter }, func(e *Event) { heard = append(heard, "letter") })
	_ = s.Tell(newRef(77, ""), 1)
	wants()
	if !s.Step() {
		t.Error("nothing to do")
	}
	wants("letter")
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// In an ordinary system they hear all, in order, and Close waits for them.
func TestListenersOfAnOrdinarySystem(t *testing.T) {
	s, err := New(NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	s.Listen(1000, func(e *Event) bool { return e.Kind == EventUnhandled }, func(e *Event) {
		time.Sleep(10 * time.Microsecond) // a slow one
		heard = append(heard, string(e.Dead.Payload))
	})
	ref, err := s.Spawn("a", Func(func(*Context, Message) error { return ErrUnhandled }))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 100 {
		if err := s.Tell(ref, i); err != nil {
			t.Fatal(err)
		}
		p, _ := Encode(i)
		want = append(want, string(p))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %d of %d", len(heard), len(want))
	}
}
