package testkit

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long an expectation waits if it is given no time.
func (p *Probe) patience() time.Duration {
	if n := len(p.within); n > 0 {
		return max(p.within[n-1].Sub(p.k.Now()), 0)
	}
	return p.k.Dilated(p.k.o.expect)
}

// Remaining is what is left of the innermost Within. The test fails outside of any.
func (p *Probe) Remaining() time.Duration {
	p.t.Helper()
	if len(p.within) == 0 {
		p.t.Fatalf("testkit: the probe %s: Remaining outside of Within", p.name)
	}
	return p.patience()
}

// Within runs f, which must take from least to most. Expectations of this probe that are given no time
// wait until most is over; so do those in another Within inside, which cannot get
// more time than is left. If the last expectation was ExpectNone or ReceiveWhile, it is not checked
// whether f has taken longer than most, because these take all the time there is.
func (p *Probe) Within(least, most time.Duration, f func()) {
	p.t.Helper()
	begun := p.k.Now()
	most = p.k.Dilated(most)
	if n := len(p.within); n > 0 {
		most = min(most, p.patience())
	}
	if least > most {
		p.t.Fatalf("testkit: the probe %s: at least %v, and %v are left", p.name, least, most)
	}
	p.within = append(p.within, begun.Add(most))
	p.unended = false
	func() {
		defer func() { p.within = p.within[:len(p.within)-1] }()
		f()
	}()
	took := p.k.since(begun)
	switch {
	case took < least:
		p.t.Fatalf("testkit: the probe %s: it took %v, expected at least %v%s", p.name, took, least, p.k.waits())
	case took > most && !p.unended:
		p.t.Fatalf("testkit: the probe %s: it took %v, expected at most %v%s", p.name, took, most, p.k.waits())
	}
}

// Await waits until a condition holds, for what is left of Within or the usual time. It checks
// every DefaultInterval, and after everything that the system does.
func (p *Probe) Await(what string, is func() bool) {
	p.t.Helper()
	p.k.await(p.patience(), what, is)
}

// Await waits until a condition holds, for d at most, the usual time if d is 0. It checks every
// DefaultInterval, and after everything that the system does.
func (k *Kit) Await(d time.Duration, what string, is func() bool) {
	k.t.Helper()
	k.await(k.orUsual(d), what, is)
}

func (k *Kit) orUsual(d time.Duration) time.Duration {
	if d <= 0 {
		d = k.o.expect
	}
	return k.Dilated(d)
}

func (k *Kit) await(d time.Duration, what string, is func() bool) {
	k.t.Helper()
	if !k.poll(d, is) {
		k.t.Fatalf("testkit: expected within %v: %s%s", d, what, k.waits())
	}
}

// poll is until for conditions that the system's timers do not bring about.
func (k *Kit) poll(d time.Duration, is func() bool) bool {
	k.t.Helper()
	looked := false
	look := func() bool {
		if looked { // at the end of the interval before
			looked = false
			return false
		}
		return is()
	}
	for end := k.Now().Add(d); ; {
		left := end.Sub(k.Now())
		if k.until(min(left, DefaultInterval), look) {
			return true
		}
		looked = true
		if left <= DefaultInterval {
			return false
		}
	}
}

// AwaitAssert repeats f until it does not fail, for d at most, the usual time if d is 0; every
// DefaultInterval, and after everything that the system does. When time is over the test fails with the last failure of f.
func (k *Kit) AwaitAssert(d time.Duration, f func(t testing.TB)) {
	k.t.Helper()
	d = k.orUsual(d)
	var said string
	if !k.poll(d, func() (ok bool) { said, ok = attempt(k.t, f); return ok }) {
		k.t.Fatalf("testkit: not within %v: %s%s", d, said, k.waits())
	}
}

// attempt runs f as a test of its own, and returns its message if it fails.
func attempt(t testing.TB, f func(testing.TB)) (said string, ok bool) {
	a := &attempted{TB: t}
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f(a)
	}()
	<-done
	if panicked != nil {
		panic(panicked)
	}
	return strings.Join(a.said, "; "), !a.failed
}

// attempted is a test whose failure is not that of the real test.
type attempted struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   []string
}

func (a *attempted) say(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
	if text = strings.TrimSpace(text); text != "" {
		a.said = append(a.said, text)
	}
}

func (a *attempted) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *attempted) Helper()                      {}
func (a *attempted) Fail()                        { a.say("") }
func (a *attempted) FailNow()                     { a.say(""); runtime.Goexit() }
func (a *attempted) Error(args ...any)            { a.say(fmt.Sprintln(args...)) }
func (a *attempted) Errorf(f string, x ...any)    { a.say(fmt.Sprintf(f, x...)) }
func (a *attempted) Fatal(args ...any)            { a.say(fmt.Sprintln(args...)); runtime.Goexit() }
func (a *attempted) Fatalf(f string, x ...any)    { a.say(fmt.Sprintf(f, x...)); runtime.Goexit() }
func (a *attempted) Log(args ...any)              {}
func (a *attempted) Logf(format string, x ...any) {}
