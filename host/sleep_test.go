package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// answer asks in a manual system.
func answer(t *testing.T, sys *System, ref Ref, v any) (got any) {
	t.Helper()
	p := must(sys.Request(ref, v))(t)
	if err := sys.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Abandon()
	m, ok := <-p.Answer()
	if !ok {
		t.Fatalf("no answer from %v\n%+v", ref, sys.View().Stats())
	}
	if err := m.Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

// Idle guests give their instances back and do not notice: they count on where they
// were, their timers and the like come, and they hear of their end.
func TestIdleGuestsSleep(t *testing.T) {
	v := NewVirtualClock(time.Unix(1000, 0))
	engine := newEngine(t)
	sys := newSystem(t, NewConfig("sleepy").WithManual().WithClock(v).WithIdleAfter(time.Minute))
	var refs []Ref
	for i := range 20 {
		refs = append(refs, must(sys.Spawn(fmt.Sprint("g", i), echo(t, engine)))(t))
	}
	sys.RunUntilIdle(1 << 20)
	count := func() (n int) {
		sys.RunUntilIdle(1 << 20)
		return sys.View().Stats().Asleep
	}
	if n := count(); n != 0 {
		t.Fatalf("%d sleep from the start", n)
	}
	v.Advance(59 * time.Second)
	if n := count(); n != 0 {
		t.Fatalf("%d sleep before the time", n)
	}
	v.Advance(time.Second) // the first sweep finds them used
	for range 3 {
		_ = sys.Tell(refs[0], "busy")
		count()
		v.Advance(time.Minute)
	}
	if n := count(); n != 19 {
		t.Errorf("%d sleep, not all but the busy one", n)
	}
	for _, r := range refs {
		if got := answer(t, sys, r, "hello"); got != "hello" {
			t.Errorf("%v", got)
		}
	}
	if n := count(); n != 0 {
		t.Errorf("%d sleep after a question", n)
	}
}

// More guests than instances take turns.
func TestMoreGuestsThanInstances(t *testing.T) {
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(4)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	sys := newSystem(t, NewConfig("crowded").WithManual().WithClock(NewVirtualClock(time.Unix(1000, 0))).WithMostAwake(2))
	var refs []Ref
	for i := range 50 {
		refs = append(refs, must(sys.Spawn(fmt.Sprint("g", i), echo(t, engine)))(t))
		sys.RunUntilIdle(1 << 20)
	}
	for round := range 3 {
		for _, r := range refs {
			// The echo does not like 0.
			if got := answer(t, sys, r, round+1); fmt.Sprint(got) != fmt.Sprint(round+1) {
				t.Fatalf("%v, not %d", got, round+1)
			}
		}
	}
	if s := sys.View().Stats(); s.Asleep < 46 || s.Crashes != 0 {
		t.Errorf("%+v", s)
	}
}
