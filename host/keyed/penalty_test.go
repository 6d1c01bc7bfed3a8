package keyed_test

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
)

// Who has an actor again is not among those that have ended, and those are shown with when that was.
func TestPastKeys(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.tell(r, "a", "0")
	w.tell(r, "b", "0")
	began := w.clock.Now()
	w.pass(time.Minute)
	es := w.page(r, keyed.Page{Past: true})
	if len(es) != 2 || es[0].Key != "a" || !es[0].Since.Equal(began.Add(time.Minute)) {
		t.Errorf("%+v", es)
	}
	w.pass(time.Second)
	w.tell(r, "a", "0")
	if got := w.show(r, keyed.Page{Past: true}); got != "b past;" {
		t.Error(got)
	}
	if es := w.page(r, keyed.Page{}); len(es) != 1 || !es[0].Since.Equal(began.Add(time.Minute+time.Second)) {
		t.Errorf("%+v", es)
	}
}

// The delay after failures grows, and is the first one again after an actor that has lived for long.
func TestPenaltyIsThatOfFailuresInARow(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithSupervision(supervision.Default().WithOtherwise(supervision.Stop)))
	penalty := func(lives, want time.Duration) {
		t.Helper()
		w.pass(lives)
		w.tell(r, "a", "crash")
		w.pass(want - 1)
		w.asks(r, keyed.For("a", "who"), keyed.ErrFailed.Error())
		w.pass(1)
		w.asks(r, keyed.For("a", "who"), "a 1")
	}
	penalty(0, 100*time.Millisecond)
	penalty(0, 200*time.Millisecond)
	penalty(time.Minute-1, 400*time.Millisecond)
	penalty(time.Minute, 100*time.Millisecond)
	penalty(0, 200*time.Millisecond)
}

// A failure is forgotten a minute after its delay, also if something else is to be looked at only later.
func TestFailuresAreForgottenInTime(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Hour).WithSupervision(supervision.Default().WithOtherwise(supervision.Stop)))
	for _, others := range []string{"", "z awake;"} {
		if others != "" {
			w.tell(r, "z", "0")
		}
		w.tell(r, "a", "crash")
		if got := w.show(r, keyed.Page{}); got != "a failed;"+others {
			t.Error(got)
		}
		w.pass(time.Minute + 100*time.Millisecond - 1)
		if got := w.show(r, keyed.Page{}); got != "a failed;"+others {
			t.Error(got)
		}
		w.pass(1)
		if got := w.show(r, keyed.Page{}); got != others {
			t.Error(got)
		}
	}
}

// Looking after an actor that is busy, or used again and again, costs the keeper hardly more than a turn each time that it could have
// been idle.
func TestLooksAreRare(t *testing.T) {
	for _, busy := range []string{"timer 1000h", "again"} {
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
		w.tell(r, "a", busy)
		a := must(w.Lookup("/user/users/a"))(t)
		before := must(w.View().Info(r))(t).Turns
		const looks = 20
		for range looks {
			for second := range 60 {
				if w.pass(time.Second); busy == "again" && second%30 == 10 {
					w.post(a, "x")
					w.run()
				}
			}
		}
		w.there("a")
		if n := must(w.View().Info(r))(t).Turns - before; n > 2*looks+1 {
			t.Errorf("%s: %d turns for %d looks", busy, n, looks)
		}
	}
}
