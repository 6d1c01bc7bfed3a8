package testkit

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Fault is something that goes wrong with messages of an actor: begin with [Kit.Fault], say which
// messages, and end with what happens to them. If several faults meet a message, the one made first
// counts. To the host's own messages (ends of watched actors, timers) only Crash applies; starts, restarts and ends meet no fault.
type Fault struct {
	k     *Kit
	path  glob.Path
	from  *glob.Path
	match Matcher
	nth   int
	every int
	odds  float64
	rnd   *rand.Rand
	act   action
	delay time.Duration
	fail  abi.Failure

	seen map[abi.Ref]int // messages by actor
	hits int
	over bool
}

// action is what happens to a message.
type action uint8

const (
	crash action = iota + 1
	drop
	delay
	duplicate
	reorder
)

// Fault begins a fault of the actors at a path; "*" and "?" stand for parts of an element, "**" at the end for all
// below. Unless it is narrowed it is about all messages that come from now on.
func (k *Kit) Fault(path string) *Fault {
	k.faults.mu.Lock()
	defer k.faults.mu.Unlock()
	k.faults.made++
	return &Fault{k: k, path: glob.CompilePath(path), rnd: rand.New(rand.NewPCG(k.o.seed, k.faults.made)), seen: map[abi.Ref]int{}}
}

// From limits the fault to messages from the actors at a path.
func (f *Fault) From(path string) *Fault { p := glob.CompilePath(path); f.from = &p; return f }

// Matching limits the fault to messages that match: a value, or a [Matcher].
func (f *Fault) Matching(want any) *Fault { f.match = matcherOf(want); return f }

// Nth limits the fault to the n-th of those messages of each actor, from 1.
func (f *Fault) Nth(n int) *Fault { f.nth = n; return f }

// Every limits the fault to every n-th of those messages of each actor.
func (f *Fault) Every(n int) *Fault { f.every = n; return f }

// Chance limits the fault to each of those messages with a probability from 0 to 1, by the kit's seed.
func (f *Fault) Chance(p float64) *Fault { f.odds = p; return f }

// Crash makes the turn of the message fail once everything else of it is done: it has then sent nothing, and
// the supervisor gets a trap. CrashWith chooses another failure.
func (f *Fault) Crash() *Fault {
	f.k.t.Helper()
	return f.CrashWith(abi.Failure{Kind: abi.FailureTrap, Reason: "a fault of the test"})
}

// CrashWith is Crash with the given failure.
func (f *Fault) CrashWith(failure abi.Failure) *Fault {
	f.k.t.Helper()
	f.fail = failure
	return f.begin(crash)
}

// Drop loses the message without a trace: it is not a dead letter, and an asker waits in vain.
func (f *Fault) Drop() *Fault { f.k.t.Helper(); return f.begin(drop) }

// Delay delivers the message later. Those that follow overtake it.
func (f *Fault) Delay(d time.Duration) *Fault { f.k.t.Helper(); f.delay = d; return f.begin(delay) }

// Duplicate delivers the message twice.
func (f *Fault) Duplicate() *Fault { f.k.t.Helper(); return f.begin(duplicate) }

// Reorder lets the next message overtake this one. If none comes it is delivered when there is
// nothing else to do; in real time a hundredth of a second later.
func (f *Fault) Reorder() *Fault { f.k.t.Helper(); return f.begin(reorder) }

// Hits is how many messages the fault has met.
func (f *Fault) Hits() int {
	f.k.faults.mu.Lock()
	defer f.k.faults.mu.Unlock()
	return f.hits
}

// End ends the fault. What it holds back is still delivered.
func (f *Fault) End() {
	f.k.faults.mu.Lock()
	defer f.k.faults.mu.Unlock()
	f.over = true
}

// begin makes the fault take effect.
func (f *Fault) begin(a action) *Fault {
	f.k.t.Helper()
	switch {
	case f.act != 0:
		f.k.t.Fatal("testkit: one fault does one thing")
	case f.nth < 0 || f.every < 0 || f.odds < 0 || f.odds > 1 || f.delay < 0:
		f.k.t.Fatal("testkit: a fault counts from 1, and a chance is from 0 to 1")
	}
	f.k.faults.mu.Lock()
	defer f.k.faults.mu.Unlock()
	f.act = a
	f.k.faults.all = append(f.k.faults.all, f)
	return f
}

// meets counts a message, and reports whether the fault meets it. The lock is held.
func (f *Fault) meets(to place, from string, m host.Message) bool {
	switch {
	case f.over || !f.path.Match(to.elements):
		return false
	case f.from != nil && !f.from.Match(elementsOf(from)):
		return false
	case f.match != nil && !f.match.Match(m):
		return false
	}
	f.seen[to.uid]++
	n := f.seen[to.uid]
	if f.nth > 0 && n != f.nth || f.every > 0 && n%f.every != 0 || f.odds > 0 && f.rnd.Float64() >= f.odds {
		return false
	}
	f.hits++
	return true
}

// place is where a message goes.
type place struct {
	uid      abi.Ref
	elements []string
}

// elementsOf are the elements of a path without the system.
func elementsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// faults are the faults of a kit.
type faults struct {
	k *Kit

	mu    sync.Mutex
	all   []*Fault
	made  uint64
	doors []*door // that hold something back
}

func (f *faults) init(k *Kit) { f.k = k }

// turn is asked at the end of each turn.
func (f *faults) turn(t *host.Turn) *abi.Failure {
	switch t.Kind {
	case abi.KindStart, abi.KindStop, abi.KindPreRestart:
		return nil
	}
	hit := f.of(true, place{t.Actor.UID(), elementsOf(t.Actor.Path())}, t.Sender.Path(), host.Message{Kind: t.Kind, Sender: t.Sender, Correlation: t.Correlation, Payload: t.Payload})
	if hit == nil {
		return nil
	}
	failure := hit.fail
	return &failure
}

// of is the fault that a message meets, nil if it meets none.
func (f *faults) of(crashes bool, to place, from string, m host.Message) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.all {
		if (x.act == crash) == crashes && x.meets(to, from, m) {
			return x
		}
	}
	return nil
}

// held is how many messages are held back.
func (f *faults) held() (n int) {
	f.mu.Lock()
	doors := f.doors
	f.mu.Unlock()
	for _, d := range doors {
		d.mu.Lock()
		n += len(d.late) + len(d.passed)
		d.mu.Unlock()
	}
	return n
}

// release delivers what was held back to be overtaken, when nothing has overtaken it. It reports whether there was
// anything.
func (f *faults) release() bool {
	f.mu.Lock()
	doors := f.doors
	f.mu.Unlock()
	any := false
	for _, d := range doors {
		any = d.letPassed() || any
	}
	return any
}
