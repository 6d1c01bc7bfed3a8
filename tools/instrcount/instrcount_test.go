package instrcount_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/tools/instrcount"
)

// count runs the test again as the child. Its own part is between the marks.
func count(t *testing.T) []instrcount.Window {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	windows, err := instrcount.Self(ctx, "-test.run=^"+t.Name()+"$")
	if errors.Is(err, instrcount.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return windows
}

// sink keeps the result of loop.
var sink int

//go:noinline
func loop(n int) {
	sum := 0
	for i := range n {
		sum += i * i
	}
	sink = sum
}

// TestALoopCostsItsIterations: twice the work is twice the instructions, exactly so
// in every window, and they are in the function that does the work.
func TestALoopCostsItsIterations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector adds instructions of its own")
	}
	if instrcount.Counting() {
		for _, n := range []int{0, 1000, 2000, 1000} {
			instrcount.Begin()
			loop(n)
			instrcount.End()
		}
		return
	}
	w := count(t)
	if len(w) != 4 {
		t.Fatalf("got %d windows, want 4", len(w))
	}
	one, two, again := w[1].Total-w[0].Total, w[2].Total-w[0].Total, w[3].Total-w[0].Total
	if one != again || one < 3000 || one > 8000 {
		t.Errorf("1000 iterations cost %d and %d", one, again)
	}
	if d := two - 2*one; d < -8 || d > 8 {
		t.Errorf("1000 iterations cost %d, 2000 %d", one, two)
	}
	if w[1].Guest != 0 {
		t.Errorf("%d instructions of a guest", w[1].Guest)
	}
	if f := w[2].Functions(); len(f) == 0 || !strings.HasSuffix(f[0].Name, ".loop") || f[0].Instructions < two*9/10 {
		t.Errorf("functions: %v", f)
	}
}

// TestOtherThreadsAreNotCounted: what goroutines on other threads do meanwhile does
// not change the figure, and they go on afterwards.
func TestOtherThreadsAreNotCounted(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector adds instructions of its own")
	}
	if instrcount.Counting() {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		}()
		for range 3 {
			time.Sleep(time.Millisecond)
			instrcount.Begin()
			loop(2000)
			instrcount.End()
		}
		close(stop)
		<-stopped
		return
	}
	w := count(t)
	if len(w) != 3 || w[0].Total != w[1].Total || w[1].Total != w[2].Total {
		t.Errorf("windows of the same work: %v", totals(w))
	}
}

func totals(w []instrcount.Window) (n []int) {
	for i := range w {
		n = append(n, w[i].Total)
	}
	return n
}

// TestAStuckChildEnds: a child that waits for a thread that stands still is killed
// with the context.
func TestAStuckChildEnds(t *testing.T) {
	if instrcount.Counting() {
		c := make(chan int)
		go func() { time.Sleep(time.Millisecond); c <- 1 }()
		instrcount.Begin()
		time.Sleep(time.Hour)
		<-c
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := instrcount.Self(ctx, "-test.run=^TestAStuckChildEnds$")
	if errors.Is(err, instrcount.ErrUnsupported) {
		t.Skip(err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestAFailingChildIsAnError: with what it has written.
func TestAFailingChildIsAnError(t *testing.T) {
	if instrcount.Counting() {
		t.Fatal("as it was told")
	}
	_, err := instrcount.Self(t.Context(), "-test.run=^TestAFailingChildIsAnError$")
	if errors.Is(err, instrcount.ErrUnsupported) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "as it was told") {
		t.Errorf("got %v", err)
	}
}

//go:noinline
func outer(n int) { middle(n); loop(1) }

//go:noinline
func middle(n int) {
	loop(1)
	inlined(n)
}

// inlined is in its caller, so it has no calls.
func inlined(n int) { loop(n) }

// TestStacks: what was under way at each call of a function, whatever has returned before.
func TestStacks(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has calls of its own")
	}
	if instrcount.Counting() {
		instrcount.Begin()
		outer(5)
		loop(1)
		instrcount.End()
		return
	}
	w := count(t)
	if len(w) != 1 {
		t.Fatalf("%d windows", len(w))
	}
	const here = "github.com/wasmactors/wasmactors/tools/instrcount_test"
	var got []string
	for _, s := range w[0].Stacks(here + ".loop") {
		var names []string
		for _, p := range s {
			if p.Package == here && p.File == "instrcount_test.go" {
				names = append(names, p.Function)
			}
		}
		got = append(got, strings.Join(names, " "))
	}
	want := []string{"TestStacks outer middle loop", "TestStacks outer middle loop", "TestStacks outer loop", "TestStacks loop"}
	if !slices.Equal(got, want) {
		t.Errorf("stacks: %q, want %q", got, want)
	}
	if s := w[0].Stacks(here + ".inlined"); s != nil {
		t.Errorf("calls of what has none: %v", s)
	}
}
