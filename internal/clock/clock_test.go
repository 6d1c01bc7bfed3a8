package clock

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

func TestRealFires(t *testing.T) {
	c := Real()
	if d := time.Since(c.Now()); d < 0 || d > time.Minute {
		t.Fatalf("off by %v", d)
	}
	done := make(chan struct{})
	timer := c.AfterFunc(time.Nanosecond, func() { close(done) })
	<-done
	if timer.Stop() {
		t.Fatal("Stop of a timer that has fired")
	}
	timer = c.AfterFunc(time.Hour, func() { t.Error("fired") })
	if !timer.Stop() || timer.Stop() {
		t.Fatal("only the first Stop keeps a timer from firing")
	}
}

func TestVirtualOrder(t *testing.T) {
	v := NewVirtual(epoch)
	var got []string
	add := func(name string, d time.Duration) Timer {
		return v.AfterFunc(d, func() { got = append(got, fmt.Sprint(name, "@", v.Now().Sub(epoch))) })
	}
	add("c", 3*time.Second)
	add("a1", time.Second)
	stopped := add("x", time.Second)
	add("a2", time.Second)
	add("now", 0)
	add("past", -time.Hour)
	if !stopped.Stop() || stopped.Stop() {
		t.Fatal("only the first Stop keeps a timer from firing")
	}
	if n := v.Advance(-time.Second); n != 2 {
		t.Fatalf("what is due at once: %d", n)
	}
	if n := v.Advance(time.Second); n != 2 {
		t.Fatalf("the first second: %d", n)
	}
	if when, ok := v.Next(); !ok || !when.Equal(epoch.Add(3*time.Second)) || v.Pending() != 1 {
		t.Fatalf("next %v, %v; pending %d", when, ok, v.Pending())
	}
	if n := v.AdvanceToNext(); n != 1 {
		t.Fatalf("the last: %d", n)
	}
	if v.AdvanceToNext() != 0 || v.Pending() != 0 || v.Now() != epoch.Add(3*time.Second) {
		t.Fatal("nothing is left, and the clock stays")
	}
	if _, ok := v.Next(); ok {
		t.Fatal("nothing comes next")
	}
	if want := "[now@0s past@0s a1@1s a2@1s c@3s]"; fmt.Sprint(got) != want {
		t.Fatalf("%v, want %v", got, want)
	}
}

func TestVirtualTimersMadeOnTheWay(t *testing.T) {
	v := NewVirtual(epoch)
	var got []time.Duration
	var tick func()
	tick = func() {
		got = append(got, v.Now().Sub(epoch))
		v.AfterFunc(time.Second, tick)
	}
	v.AfterFunc(time.Second, tick)
	if n := v.Advance(3500 * time.Millisecond); n != 3 {
		t.Fatalf("%d ticks", n)
	}
	if fmt.Sprint(got) != "[1s 2s 3s]" || v.Now().Sub(epoch) != 3500*time.Millisecond {
		t.Fatalf("%v, now %v", got, v.Now())
	}
}

func TestVirtualStopFromCallback(t *testing.T) {
	v := NewVirtual(epoch)
	second := Timer(nil)
	var self Timer
	self = v.AfterFunc(time.Second, func() {
		if self.Stop() {
			t.Error("Stop of a timer that runs")
		}
		if !second.Stop() {
			t.Error("a later timer of the same deadline can still be stopped")
		}
	})
	second = v.AfterFunc(time.Second, func() { t.Error("fired") })
	v.Advance(time.Minute)
}

func TestVirtualNestedAdvance(t *testing.T) {
	v := NewVirtual(epoch)
	fired := 0
	v.AfterFunc(time.Second, func() {
		if n := v.Advance(time.Hour); n != 0 {
			t.Errorf("a nested Advance ran %d", n)
		}
	})
	v.AfterFunc(30*time.Minute, func() { fired++ })
	if n := v.Advance(time.Second); n != 2 || fired != 1 {
		t.Fatalf("ran %d, fired %d", n, fired)
	}
	if d := v.Now().Sub(epoch); d != time.Hour+time.Second {
		t.Fatalf("now at %v", d)
	}
}

func TestVirtualSurvivesPanic(t *testing.T) {
	v := NewVirtual(epoch)
	v.AfterFunc(time.Second, func() { panic("boom") })
	v.AfterFunc(2*time.Second, func() {})
	func() {
		defer func() { _ = recover() }()
		v.Advance(time.Hour)
	}()
	done := make(chan struct{})
	v.AfterFunc(0, func() { runtime.Goexit() })
	go func() {
		defer close(done)
		v.Advance(0)
	}()
	<-done
	if n := v.Advance(time.Second); n != 1 || v.Now() != epoch.Add(2*time.Second) {
		t.Fatalf("ran %d, now %v", n, v.Now())
	}
}

func TestVirtualRefusesNil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	NewVirtual(epoch).AfterFunc(0, nil)
}

// TestVirtualModel compares with a list that is sorted anew each time.
func TestVirtualModel(t *testing.T) {
	type entry struct {
		id    int
		when  time.Time
		timer Timer
	}
	rapid.Check(t, func(t *rapid.T) {
		v := NewVirtual(epoch)
		now := epoch
		var want []entry
		var fired, expect []int
		made := 0
		t.Repeat(map[string]func(*rapid.T){
			"after": func(t *rapid.T) {
				made++
				id := made
				d := time.Duration(rapid.IntRange(-1, 5).Draw(t, "d"))
				timer := v.AfterFunc(d, func() { fired = append(fired, id) })
				e := entry{id, now.Add(max(d, 0)), timer}
				at := len(want)
				for at > 0 && want[at-1].when.After(e.when) {
					at--
				}
				want = append(want[:at], append([]entry{e}, want[at:]...)...)
			},
			"stop": func(t *rapid.T) {
				if len(want) == 0 {
					return
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
				if !want[i].timer.Stop() || want[i].timer.Stop() {
					t.Fatal("only the first Stop counts")
				}
				want = append(want[:i:i], want[i+1:]...)
			},
			"advance": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(0, 6).Draw(t, "d"))
				now = now.Add(d)
				n := 0
				for len(want) > 0 && !want[0].when.After(now) {
					expect = append(expect, want[0].id)
					want = want[1:]
					n++
				}
				if got := v.Advance(d); got != n {
					t.Fatalf("ran %d, want %d", got, n)
				}
			},
			"": func(t *rapid.T) {
				if fmt.Sprint(fired) != fmt.Sprint(expect) || v.Pending() != len(want) || !v.Now().Equal(now) {
					t.Fatalf("fired %v, want %v; pending %d, want %d", fired, expect, v.Pending(), len(want))
				}
			},
		})
	})
}

// TestVirtualConcurrent: every timer fires or is stopped, exactly one of the two.
func TestVirtualConcurrent(t *testing.T) {
	v := NewVirtual(epoch)
	var mu sync.Mutex
	fired, stopped := 0, 0
	var wg sync.WaitGroup
	const each = 500
	for range 4 {
		wg.Go(func() {
			for i := range each {
				timer := v.AfterFunc(time.Duration(i%10), func() {
					mu.Lock()
					fired++
					mu.Unlock()
				})
				if i%3 == 0 && timer.Stop() {
					mu.Lock()
					stopped++
					mu.Unlock()
				}
			}
		})
		wg.Go(func() {
			for range each {
				v.Advance(1)
			}
		})
	}
	wg.Wait()
	v.Advance(time.Second)
	if fired+stopped != 4*each || v.Pending() != 0 {
		t.Fatalf("fired %d, stopped %d, pending %d of %d", fired, stopped, v.Pending(), 4*each)
	}
}
