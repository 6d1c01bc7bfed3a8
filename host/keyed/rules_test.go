package keyed_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// leaves has the keeper ask a key's actor to end, which has not come to it yet, and returns its ref.
func (w *world) leaves(key string, idle time.Duration) host.Ref {
	w.t.Helper()
	ref := must(w.Lookup("/user/users/" + key))(w.t)
	w.clock.Advance(idle)
	if n := w.RunUntilIdle(1); n != 1 { // the keeper looks
		w.t.Fatalf("%d have run", n)
	}
	return ref
}

// post sends without letting anything happen.
func (w *world) post(to host.Ref, vs ...any) {
	w.t.Helper()
	for _, v := range vs {
		if err := w.Tell(to, v); err != nil {
			w.t.Fatal(err)
		}
	}
}

// idle counts from the end of a turn, and of what was under way, exactly: also if that has ended by itself, with no
// turn of the actor.
func TestIdleCountsExactly(t *testing.T) {
	const idle = time.Minute
	for _, c := range []struct {
		name string
		do   func(w *world, r host.Ref)
		at   time.Duration // the end of what keeps awake
	}{
		{"a turn", func(w *world, r host.Ref) { w.tell(r, "a", "x") }, 0},
		{"a timer that ends between two looks", func(w *world, r host.Ref) { w.tell(r, "a", "timer 90s") }, 90 * time.Second},
		{"an ask", func(w *world, r host.Ref) { w.tell(r, "a", "ask 61s") }, 61 * time.Second},
		{"a child that nobody watches", func(w *world, r host.Ref) {
			w.tell(r, "a", "child unwatched")
			w.clock.AfterFunc(100*time.Second, func() { _ = w.TellPath("/user/users/a/c", "end") })
		}, 100 * time.Second},
		{"an answer of another goroutine", func(w *world, r host.Ref) {
			must(w.Request(r, keyed.For("a", "later")))(w.t)
			w.run()
			w.clock.AfterFunc(100*time.Second, func() { _ = w.reply.Send("late") })
		}, 100 * time.Second},
		{"an asker that gives up", func(w *world, r host.Ref) {
			p := must(w.Request(r, keyed.For("a", "later")))(w.t)
			w.run()
			w.clock.AfterFunc(100*time.Second, p.Cancel)
		}, 100 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.start(keyed.New(w.worker()).WithIdle(idle))
			c.do(w, r)
			for n := c.at + idle - 1; n > 0; n -= time.Second {
				w.pass(min(n, time.Second))
			}
			w.there("a")
			w.pass(1)
			w.there()
		})
	}
}

// A message that reaches an actor after it was asked to end keeps it awake, with its state, and what the keeper has held
// back meanwhile follows.
func TestMessageKeepsAwakeWhoWasAskedToEnd(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.tell(r, "a", "0")
	a := w.leaves("a", time.Minute)
	w.post(a, "1")
	w.post(r, keyed.For("a", "2"))
	w.run()
	w.wants("a:0", "a:1", "a:2")
	if w.starts["a"] != 1 {
		t.Errorf("%d starts", w.starts["a"])
	}
	w.endsIn(time.Minute)
}

// A message that the actor has in its mailbox when the keeper looks is something to do.
func TestMessageThatWaitsIsWork(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.tell(r, "a", "0")
	a := must(w.Lookup("/user/users/a"))(t)
	w.clock.Advance(time.Minute) // the keeper is to look
	w.post(a, "1")
	w.run()
	w.there("a")
	w.endsIn(time.Minute)
}

// One that does not come to the request to end gets what was held back, behind a time.
func TestWhoDoesNotComeToItsEnd(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Hour))
	w.tell(r, "a", "0")
	a := must(w.Lookup("/user/users/a"))(t)
	if err := w.Operate().Pause(a, false); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.post(r, host.Headed{Value: "a", Headers: map[string]string{keyed.Header: "passivate"}})
	w.run()
	w.post(r, keyed.For("a", "1"))
	w.run()
	w.pass(time.Minute)
	if err := w.Operate().Unpause(a, false); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.wants("a:0", "a:1")
	if w.starts["a"] != 1 {
		t.Errorf("%d starts", w.starts["a"])
	}
}

// Whoever is asked by hand to end goes on if it has something to do.
func TestPassivateWaitsForWork(t *testing.T) {
	for _, verb := range []string{"timer 1h", "ask 1h", "later", "child", "hold"} {
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
		p := must(w.Request(r, keyed.For("a", verb)))(t)
		w.run()
		w.post(r, host.Headed{Value: "a", Headers: map[string]string{keyed.Header: "passivate"}})
		w.run()
		w.there("a")
		p.Cancel()
	}
}

// What waits for an actor that somebody stops is handled by the next one, before what has come since.
func TestWhatWaitsComesBack(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.tell(r, "a", "0")
	a := must(w.Lookup("/user/users/a"))(t)
	w.post(a, "1", "2")
	w.Stop(a)
	w.run()
	w.wants("a:0", "a:1", "a:2")
	w.leaves("a", time.Minute)
	w.post(r, keyed.For("a", "4"))
	if n := w.RunUntilIdle(1); n != 1 { // the actor ends
		t.Fatal(n)
	}
	w.run()
	w.wants("a:4")

	// The request to end is before the message that keeps the actor awake; it is stopped then.
	a = must(w.Lookup("/user/users/a"))(t)
	if err := w.Operate().Pause(a, false); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.post(r, host.Headed{Value: "a", Headers: map[string]string{keyed.Header: "passivate"}})
	w.run()
	w.post(r, keyed.For("a", "6"))
	w.run() // it waits at the keeper
	w.post(a, "5")
	w.Stop(a)
	w.run()
	w.wants("a:5", "a:6")
	if w.starts["a"] != 4 {
		t.Errorf("%d starts", w.starts["a"])
	}

	// One that is stopped before it has handled anything.
	w.post(r, keyed.For("c", "7"))
	if n := w.RunUntilIdle(1); n != 1 { // the keeper starts it
		t.Fatal(n)
	}
	w.Stop(must(w.Lookup("/user/users/c"))(t))
	w.run()
	w.wants("c:7")
}

// What a failure leaves behind is not handled by another one, nor what waits for one that ends before it has handled
// anything: else an actor could be started without end.
func TestFailuresTakeTheirMailWithThem(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithSupervision(supervision.Default().WithOtherwise(supervision.Stop)))
	w.tell(r, "a", "0")
	w.post(must(w.Lookup("/user/users/a"))(t), "crash", "1")
	w.run()
	w.pass(time.Hour)
	w.wants("a:0", "a:crash")
	if letters, n := w.DeadLetters(); n != 1 || letters[0].Reason != host.DeadStopped {
		t.Errorf("%+v", letters)
	}
	w.post(r, keyed.For("quits", "1"))
	if w.RunUntilIdle(1000) == 1000 || w.starts["quits"] != 1 {
		t.Errorf("%d starts", w.starts["quits"])
	}
	w.wants()
}

// One that waits for its delayed restart has nothing to do, and ends without it.
func TestDelayedRestartIsNoWork(t *testing.T) {
	w := newWorld(t)
	s := supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Hour), backoff.NoJitter())})
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute).WithSupervision(s))
	w.tell(r, "a", "crash")
	w.there("a")
	w.pass(2 * time.Minute)
	w.there()
}

// What a keeper holds back survives its restart.
func TestHeldBackSurvivesTheKeeper(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		w := newWorldThat(t, keeps)
		r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
		w.tell(r, "a", "0")
		a := must(w.Lookup("/user/users/a"))(t)
		if err := w.Operate().Pause(a, false); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.post(r, host.Headed{Value: "a", Headers: map[string]string{keyed.Header: "passivate"}})
		w.run()
		w.post(r, keyed.For("a", "1"))
		w.run()
		w.wants("a:0")
		if err := w.Operate().Restart(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		_ = w.Operate().Unpause(a, false)
		w.run()
		if got := strings.Join(w.heard, " "); got != "a:1" {
			t.Errorf("keeps children: %v: heard %q", keeps, got)
		}
	}
}

// After a restart of the keeper there may be as many actors as before, at once: those that have ended with
// the incarnation before take no place.
func TestRestartOfTheKeeperFreesItsPlaces(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(2))
	for range 5 {
		w.tell(r, "a", "0")
		w.tell(r, "b", "0")
		w.heard = nil
		w.post(r, keyed.For("a", "1"), keyed.For("b", "2"))
		if err := w.Operate().Restart(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		slices.Sort(w.heard)
		w.wants("a:1", "b:2")
	}
}

// A key that was promised the place of one that stays gets that of another, or is refused.
func TestPromisedPlaceThatIsTaken(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(1).WithAtLimit(keyed.Evict))
	w.tell(r, "a", "0")
	a := must(w.Lookup("/user/users/a"))(t)
	p := must(w.Request(r, keyed.For("b", "who")))(t)
	w.RunUntilIdle(1) // the keeper: a is to make room
	w.post(a, "timer 1h")
	w.run()
	w.there("a")
	select {
	case m := <-p.Answer():
		if got := answerOf(m); got != keyed.ErrFull.Error() {
			t.Errorf("%q", got)
		}
	default:
		t.Error("who was promised a place waits in vain")
		p.Cancel()
	}
}

// Actors that are idle keep nobody waiting for the system's rest: it is there before they end, however long that takes.
func TestIdleActorsAreRest(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(24 * time.Hour))
	w.tell(r, "a", "x")
	w.tell(r, "b", "x")
	before := w.clock.Now()
	if err := w.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := w.clock.Now(); now != before {
		t.Errorf("it has waited for %v", now.Sub(before))
	}
	w.there("a", "b")
	w.pass(24 * time.Hour)
	w.there()
	if n := w.clock.Pending(); n != 0 {
		t.Errorf("%d timers of a keeper that keeps nobody", n)
	}
}
