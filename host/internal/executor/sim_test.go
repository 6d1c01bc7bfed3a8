package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

func newSim() (*clock.Virtual, *Sim) {
	v := clock.NewVirtual(time.Unix(0, 0))
	return v, NewSim(v)
}

// TestOneAtATime: tasks run in the order in which they were started, one at a time, and those that wait go on first.
func TestOneAtATime(t *testing.T) {
	for range 50 {
		_, s := newSim()
		var got []string // no lock: only one of them runs
		add := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
		ch := make(chan int, 8)
		for i := range 3 {
			Go(s, func() {
				add("begin %d", i)
				v, _ := Take(s, ch)
				add("%d takes %d", i, v)
			})
		}
		Go(s, func() {
			for i := range 3 {
				ch <- i
			}
			Go(s, func() { add("later") })
			add("sent")
		})
		if err := s.Rest(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{"begin 0", "begin 1", "begin 2", "sent", "0 takes 0", "1 takes 1", "2 takes 2", "later"}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// TestTimersAreTasks: what time brings about runs when the simulation goes on, not within Advance.
func TestTimersAreTasks(t *testing.T) {
	v, s := newSim()
	var got []string
	Go(s, func() {
		if Pause(s, time.Second, nil) {
			got = append(got, "a second")
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	AfterDone(s, ctx, func() { got = append(got, "done") })
	stop := AfterDone(s, ctx, func() { t.Error("it was stopped") })
	rest(t, s)
	if !stop() || stop() {
		t.Error("only the first stop counts")
	}
	v.Advance(time.Second)
	if len(got) != 0 {
		t.Fatal("a task has run within Advance")
	}
	rest(t, s)
	cancel()
	rest(t, s)
	if want := []string{"a second", "done"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

func rest(t *testing.T, s *Sim) {
	t.Helper()
	if err := s.Rest(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestWaitsByOtherMeans: a task that waits for others by a library's means ends all the same, and counts until then.
func TestWaitsByOtherMeans(t *testing.T) {
	_, s := newSim()
	var group sync.WaitGroup
	ended := false
	group.Add(1)
	Go(s, func() { Join(s, &group); ended = true })
	Go(s, group.Done)
	rest(t, s)
	if !ended {
		t.Fatal("it rests, and a task has yet to go on")
	}
	s.patience = 10 * time.Millisecond
	silent := make(chan struct{})
	Go(s, func() { <-silent }) // says nothing of it
	Go(s, func() { close(silent) })
	rest(t, s)
}

// TestWorkCounts: nobody rests while a task works, however long that takes, and an end of the patience names it.
func TestWorkCounts(t *testing.T) {
	_, s := newSim()
	release := make(chan struct{})
	Go(s, func() { <-release })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Rest(ctx); err == nil {
		t.Fatal("it rests while a task works")
	}
	close(release)
	rest(t, s)
}

// TestRelease: after the end everything goes on by itself.
func TestRelease(t *testing.T) {
	_, s := newSim()
	ch, done := make(chan int), make(chan int, 2)
	Go(s, func() { v, _ := Take(s, ch); done <- v })
	ctx, cancel := context.WithCancel(t.Context())
	AfterDone(s, ctx, func() { done <- 2 })
	rest(t, s)
	s.Release()
	ch <- 1
	if got := <-done; got != 1 {
		t.Fatal(got)
	}
	cancel()
	<-done
	Go(s, func() { done <- 3 })
	<-done
}

// TestWithoutSimulation: with any other clock they are goroutines, channels and timers.
func TestWithoutSimulation(t *testing.T) {
	c := clock.Real()
	ch, over := make(chan int, 1), make(chan struct{})
	Go(c, func() { Put(c, ch, 7) })
	if v, which := Take(c, ch, over); v != 7 || which != 0 {
		t.Fatal(v, which)
	}
	close(over)
	if _, which := Take(c, ch, nil, over); which != 2 {
		t.Fatal(which)
	}
	ch <- 1
	if which := Put(c, ch, 1, over); which != 1 {
		t.Fatal(which)
	}
	close(ch)
	<-ch
	if _, which := Take(c, ch); which != -1 {
		t.Fatal(which)
	}
	ctx, cancel := WithTimeout(c, t.Context(), time.Nanosecond)
	defer cancel()
	if <-ctx.Done(); context.Cause(ctx) != context.DeadlineExceeded {
		t.Fatal(context.Cause(ctx))
	}
}
