package rerun

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/runtime"
)

func show(t testing.TB, r *recorder.Recording, o Options, at int64) *Show {
	t.Helper()
	o.Modules = modules(t)
	s, err := OpenShow(t.Context(), compiled(t), r, o, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// standing is what of a moment two replays must agree on.
func standing(m *Moment) string {
	var b strings.Builder
	fmt.Fprintln(&b, m.At, m.Turns, m.Failed, m.Ended, m.Difference)
	for _, x := range m.Actors {
		fmt.Fprintln(&b, x.Of.Path, x.Of.Ref, x.Of.Number, x.Sum, x.Since, x.Failure, x.FailedAt, x.Chain)
	}
	return b.String()
}

// turnsUntil counts the turns that a recording has up to a time, without running them.
func turnsUntil(t *testing.T, r *recorder.Recording, at int64) (n int) {
	t.Helper()
	for c := r.Cursor(); ; {
		x, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if x == nil {
			return n
		}
		if x.Kind == recorder.Entry && x.Now <= at {
			if n += x.Done; x.Failed {
				n++
			}
		}
	}
}

// Without a time it begins before the actors are stopped, also where they do much while they stop.
func TestShowBeginsBeforeTheEnd(t *testing.T) {
	w := newBareWorld(t, setting{workers: 3})
	props := host.Guest(load(t, "puppet", modules(t)[0], runtime.ImageConfig{}), "puppet").WithCapabilities(host.Capabilities{Send: []string{"/**"}})
	names := []string{"a", "b", "c", "d", "e"}
	for n, name := range names {
		next := "/user/" + names[(n+1)%len(names)]
		late := send(next, script(rec(recAdd, 1)))
		w.spawn(name, props.WithArgs(script(rec(byte(abi.KindStop), 0, late, late, late))))
	}
	for n := range 50 {
		for _, name := range names {
			ref, err := w.Lookup("/user/" + name)
			if err == nil {
				err = w.Tell(ref, script(rec(recAdd, byte(n))))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := w.end()
	s := show(t, r, Options{}, 0)
	m := s.Now()
	if r.Ending == 0 || m.At > r.Ending {
		t.Errorf("it begins at %d, the actors are stopped at %d", m.At, r.Ending)
	}
	if len(m.Actors) != len(names) || m.Turns != 51*len(names) {
		t.Errorf("%d actors live after %d turns", len(m.Actors), m.Turns)
	}
	if _, end := s.Span(); end <= m.At {
		t.Error("the end is not behind it")
	}
}

// Of a file that has begun when actors were stopped already, the first entry is shown, and not the end, where none lives.
func TestShowOfAFileThatBeginsWithTheEnd(t *testing.T) {
	w := newBareWorld(t, setting{})
	w.r.Ending(1)
	w.r.Ending(time.Now().Add(time.Hour).UnixNano()) // the first one counts
	for _, name := range []string{"a", "b", "c"} {
		w.spawn(name, host.Guest(load(t, "puppet", modules(t)[0], runtime.ImageConfig{}), "puppet"))
	}
	if err := w.Idle(t.Context()); err != nil { // they have started
		t.Fatal(err)
	}
	r := w.end()
	s := show(t, r, Options{}, 0)
	begin, end := s.Span()
	if m := s.Now(); r.Ending != 1 || m.At != begin || begin >= end || len(m.Actors) == 0 {
		t.Errorf("it ends at %d, from %d to %d: %d actors at %d", r.Ending, begin, end, len(m.Actors), m.At)
	}
}

// Whatever way a time is reached, from before it or from behind, what is there is what a straight replay to that time has.
func TestShowMovesForwardAndBack(t *testing.T) {
	w := newWorld(t, setting{workers: 3})
	w.load(11, 150)
	r := w.end()
	s := show(t, r, Options{}, 0)
	begin, end := s.Span()
	if m := s.Now(); m.At >= end || len(m.Actors) < 8 || m.Turns != turnsUntil(t, r, m.At) {
		t.Errorf("before the end: %+v", m)
	}
	if m, err := s.Goto(t.Context(), end); err != nil || m.At != end || len(m.Actors) > 0 || m.Turns != turnsUntil(t, r, end) || m.Difference != nil {
		t.Fatalf("at the end: %+v", m)
	}
	random := rand.New(rand.NewPCG(5, 0))
	times := []int64{begin, end, begin}
	for range thorough.SlowOf(3, 8) {
		times = append(times, begin+random.Int64N(end-begin))
	}
	for _, at := range times {
		m, err := s.Goto(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if m != s.Now() || m.At != at {
			t.Errorf("asked for %d it shows %d", at, s.Now().At)
		}
		if want := turnsUntil(t, r, at); m.Turns != want {
			t.Errorf("%d turns up to %d, the recording has %d", m.Turns, at-begin, want)
		}
		straight := show(t, r, Options{}, at)
		if a, b := standing(m), standing(straight.Now()); a != b {
			t.Errorf("at %d:\n%s\na straight replay:\n%s", at-begin, a, b)
		}
		report := equal(t, compiled(t), r, Options{Until: Until{Time: at}})
		var living []Actor
		for _, x := range m.Actors {
			living = append(living, Actor{x.Of.Path, x.Of.Type, x.Of.Number, x.Turns, fmt.Sprintf("%016x", uint64(x.Chain))})
		}
		if !reflect.DeepEqual(living, report.Living) {
			t.Errorf("at %d: %v, replay --until has %v", at-begin, living, report.Living)
		}
	}
}

// What cannot be shown is an error, and what is shown stays.
func TestShowStaysWhereItWas(t *testing.T) {
	w := newWorld(t, setting{workers: 2})
	w.load(12, 50)
	r := w.end()
	s := show(t, r, Options{}, 0)
	begin, end := s.Span()
	middle, err := s.Goto(t.Context(), begin+(end-begin)/2)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{begin - 1, end + 1, 0, -1 << 63, 1<<63 - 1} {
		if _, err := s.Goto(t.Context(), at); !errors.Is(err, ErrTime) || s.Now() != middle {
			t.Errorf("%d: %v", at, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, at := range []int64{begin, end} {
		if _, err := s.Goto(over, at); !errors.Is(err, context.Canceled) || s.Now() != middle {
			t.Errorf("%d: %v", at, err)
		}
	}
	s.moving.Lock()
	_, err = s.Goto(t.Context(), end)
	s.moving.Unlock()
	if !errors.Is(err, ErrMoving) || s.Now() != middle {
		t.Error(err)
	}
	again, err := s.Goto(t.Context(), middle.At) // what was left half done is done anew
	if err != nil || standing(again) != standing(middle) {
		t.Errorf("%v\n%s\nbefore:\n%s", err, standing(again), standing(middle))
	}
}

// Where a recording does not come out as recorded, that is said, and the times before it can be shown.
func TestShowEndsAtADifference(t *testing.T) {
	w := newWorld(t, setting{workers: 2})
	w.load(13, 50)
	r := w.end()
	entries, wrong := 0, true
	s := show(t, r, Options{plant: func(in *sandbox.Entry) {
		if entries++; wrong && entries > 100 {
			in.Most = max(in.Most-1, 0)
		}
	}}, 0)
	m := s.Now()
	if m.Difference == nil || m.Turns == 0 {
		t.Fatalf("%+v", m)
	}
	wrong = false
	begin, _ := s.Span()
	if m, err := s.Goto(t.Context(), begin); err != nil || m.Difference != nil || m.Turns != turnsUntil(t, r, begin) {
		t.Errorf("%+v %v", m, err)
	}
}

// A trace has the messages of an actor behind a time, in and out, and does not move what is shown.
func TestShowTraces(t *testing.T) {
	w := newWorld(t, setting{workers: 2})
	w.load(14, 80)
	r := w.end()
	s := show(t, r, Options{}, 0)
	begin, end := s.Span()
	now := s.Now()
	shown := 0 // that are not behind the time that is shown
	count := func(path string, after int64) (in, out, failed int) {
		t.Helper()
		shown = 0
		err := s.Trace(t.Context(), path, after, 0, func(m *Traced) bool {
			if m.Time <= after || !isAt(m.Of.Path, path) {
				t.Errorf("at %d behind %d: %s", m.Time, after, m.Of.Path)
			}
			if !m.Out && m.Time <= now.At {
				shown++
			}
			switch {
			case m.Out:
				out++
				if m.Peer == 0 && m.Path == "" {
					t.Errorf("%v to nobody", m.Kind)
				}
			case m.Failure != nil:
				failed++
				fallthrough
			default:
				in++
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return in, out, failed
	}
	in, out, failed := count("/user/a", begin-1)
	var a *Standing
	for i := range now.Actors {
		if isAt(now.Actors[i].Of.Path, "/user/a") {
			a = &now.Actors[i]
		}
	}
	if a == nil || uint64(shown) != a.Turns || in <= shown || uint64(failed) != a.Crashes || out == 0 {
		t.Errorf("%d in, %d of them shown, %d out, %d failed: %+v", in, shown, out, failed, a)
	}
	if later, _, _ := count("/user/a", begin+(end-begin)/2); later >= in || later == 0 {
		t.Errorf("%d messages, %d in the second half", in, later)
	}
	if in, _, _ := count("/user/a", end); in != 0 {
		t.Errorf("%d messages behind the end", in)
	}
	if err := s.Trace(t.Context(), "/user/a", 0, now.At, func(m *Traced) bool {
		if m.Time > now.At {
			t.Errorf("%d is later than %d", m.Time, now.At)
		}
		return true
	}); err != nil {
		t.Error(err)
	}
	few := 0
	if err := s.Trace(t.Context(), "/user/a", 0, 0, func(*Traced) bool { few++; return few < 3 }); err != nil || few != 3 {
		t.Errorf("%d messages: %v", few, err)
	}
	if err := s.Trace(t.Context(), "/user/nobody", 0, 0, func(*Traced) bool { return true }); !errors.Is(err, ErrNoActor) {
		t.Error(err)
	}
	if s.Now() != now {
		t.Error("it has moved")
	}
	if got := (&Show{names: names{1: "/user/x (2)", 2: "/user/y"}}); got.path(1) != "/user/x" || got.path(2) != "/user/y" || got.path(abi.Ref(3)) != "" {
		t.Error(got.path(1), got.path(2))
	}
}
