package schedule

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"pgregory.net/rapid"
)

func later(d time.Duration) Entry { return Entry{AtNS: epoch.Add(d).UnixNano()} }

// A single time runs when it has come, to the nanosecond, wherever it lies between two seconds; its id
// and the run that the actor hears of have all of it.
func TestSingleTimesKeepTheirNanoseconds(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	w.clock.Advance(300 * time.Millisecond)
	w.set("same", later(300*time.Millisecond+1))
	w.set("half", later(700*time.Millisecond))
	w.set("next", later(1200*time.Millisecond))
	w.set("text", Entry{At: "2027-01-01T00:00:00.4Z"})
	w.set("local", Entry{At: "2027-01-01 01:00:00.45", Zone: "Europe/Berlin"})
	w.want("")
	w.clock.Advance(1)
	w.want("same@300.000001ms#1")
	w.pass(100*time.Millisecond-2, time.Second)
	w.want("")
	w.clock.Advance(1)
	w.want("text@400ms#1")
	w.pass(50*time.Millisecond, time.Second)
	w.want("local@450ms#1")
	w.pass(250*time.Millisecond, time.Second)
	w.want("half@700ms#1")
	w.pass(500*time.Millisecond-1, 100*time.Millisecond)
	w.want("")
	w.clock.Advance(1)
	w.want("next@1.2s#1")
	if n := w.items.n; n != 0 {
		t.Errorf("%d entries are left", n)
	}
	if got, want := runID("/user/a", "x", epoch.UnixNano()+5), "/user/a:x@2027-01-01T00:00:00.000000005Z"; got != want {
		t.Error(got)
	}
}

// Whatever was acknowledged runs once, and not before its time: periods and single times, in whatever
// steps time goes, across ends of the process.
func TestNeitherEarlyNorLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := &skewed{VirtualClock: host.NewVirtualClock(epoch.Add(time.Duration(rapid.Int64Range(0, 2e9).Draw(rt, "start"))))}
		quick := func(w *world) { w.quick = true }
		w := begin(t, t.TempDir(), clock, nil, quick)
		defer func() { _ = w.engine.close() }()
		due := map[string]time.Time{}
		ran := map[string]int{}
		look := func() {
			w.settledDown()
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, line := range w.sent {
				name, _, _ := strings.Cut(line, "@")
				ran[name]++
				if at := epoch.Add(offset(line)); at.After(w.clock.Now()) || name[0] == 's' && !at.Equal(due[name]) {
					rt.Fatalf("%s at %v, planned for %v", line, w.clock.Now(), due[name])
				}
			}
			w.sent = nil
		}
		every := Entry{Name: "every", Every: time.Second}
		first := w.clock.Now().Add(time.Second)
		w.set("every", every)
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			name := fmt.Sprint("s", i)
			due[name] = w.clock.Now().Add(time.Duration(rapid.Int64Range(1, 3e9).Draw(rt, "in")))
			w.set(name, Entry{AtNS: due[name].UnixNano(), Delivery: rapid.SampledFrom([]Delivery{Ask, Once, Tell}).Draw(rt, "delivery")})
			w.clock.Advance(time.Duration(rapid.Int64Range(0, 2e9).Draw(rt, "pass")))
			look()
			if rapid.Bool().Draw(rt, "crash") {
				before := w
				w = w.crash(time.Duration(rapid.Int64Range(0, 2e9).Draw(rt, "away")), nil, quick)
				_ = before.engine.close()
				look()
			}
		}
		w.clock.Advance(4 * time.Second)
		look()
		for name := range due {
			if ran[name] != 1 {
				rt.Fatalf("%s ran %d times: it was planned for %v", name, ran[name], due[name])
			}
		}
		if v, ok := w.find(owner{path: "/user/a"}, "/user/a", "every"); !ok || (v.Next-first.UnixNano())%int64(time.Second) != 0 {
			rt.Fatalf("the period has moved: %+v", v)
		}
	})
}

// A time that has passed is refused, and says so; it is not acknowledged and forgotten. An entry whose
// time has come meanwhile is still the one that was set.
func TestATimeThatHasPassedIsRefused(t *testing.T) {
	w := begin(t, "", nil, nil)
	w.clock.Advance(time.Second)
	enter := func(e Entry) error {
		e.Name = "x"
		spec, err := e.spec(w.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.engine.set(owner{"/user/a", 1, 10, nil}, e, spec, false)
		return err
	}
	for _, d := range []time.Duration{0, 999 * time.Millisecond, time.Second} {
		if err := enter(later(d)); service.CodeOf(err) != service.BadRequest || !strings.Contains(err.Error(), "has passed, it is 2027-01-01T00:00:01Z now") {
			t.Errorf("%v: %v", d, err)
		}
	}
	if w.items.n != 0 {
		t.Error("it was set")
	}
	if err := enter(later(time.Second + 1)); err != nil {
		t.Error(err)
	}
	w.hold["x"] = make(chan error)
	w.clock.Advance(1)
	for until := time.Now().Add(10 * time.Second); len(w.seenSent()) == 0; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("it does not run")
		}
	}
	if err := enter(later(time.Second + 1)); err != nil {
		t.Error("the same entry again:", err)
	}
	if err := enter(Entry{AtNS: later(time.Second + 1).AtNS, Payload: []byte{0x01}}); service.CodeOf(err) != service.BadRequest {
		t.Error("another one for a time that has run:", err)
	}
	w.hold["x"] <- nil
	w.mu.Lock()
	clear(w.hold)
	w.mu.Unlock()
	w.want("x@1.000000001s#1")
}

// A journal that was written when times were whole seconds means the same: what was done in a second is
// done.
func TestJournalOfSeconds(t *testing.T) {
	old := &record{Kind: wasSet, Owner: "/user/a", Entry: &Entry{Name: "x", Every: time.Minute}, Created: epoch.UnixNano() + 5e8, Seconds: epoch.Unix() + 120}
	r, err := decodeRecord(old.encode())
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t, "", nil, nil, func(w *world) {
		if err := w.load(r); err != nil {
			t.Fatal(err)
		}
	})
	w.clock.Advance(3 * time.Minute) // the second minute ended at 120.5 s, and had run at 120 s
	w.want("")
	w.clock.Advance(time.Second)
	w.want("x@3m0.5s#1")
}
