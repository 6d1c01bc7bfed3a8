//go:build !wasip1

package actortest

import (
	"math/rand/v2"
	"path"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Fault is something that goes wrong with messages in a [World]: begin with [World.Fault], say which messages, and
// end with what happens to them. If several faults meet a message, the one made first counts. To timers and
// notices of ends only Crash applies, to starts and stops no fault.
type Fault struct {
	w     *World
	path  string
	from  string
	match func(Sent) bool
	nth   int
	every int
	odds  float64
	rnd   *rand.Rand
	act   action
	delay time.Duration

	seen map[string]int // messages by receiver
	hits int
	over bool
}

type action uint8

const (
	crash action = iota + 1
	drop
	delay
	duplicate
	reorder
)

// Fault begins a fault of the actors, probes and fakes (/system/ and the name of the service) at a path, in
// which "*" stands for any run of characters within an element. Unless it is narrowed it is about all messages that are
// sent from now on.
func (w *World) Fault(to string) *Fault {
	w.t.Helper()
	if _, err := path.Match(to, ""); err != nil {
		w.t.Fatalf("actortest: a fault of %q: %v", to, err)
	}
	return &Fault{w: w, path: to, rnd: rand.New(rand.NewPCG(w.config.seed, uint64(len(w.faults)))), seen: map[string]int{}}
}

// From limits the fault to messages from the actors at a path.
func (f *Fault) From(path string) *Fault { f.from = path; return f }

// Matching limits the fault to messages that match.
func (f *Fault) Matching(match func(Sent) bool) *Fault { f.match = match; return f }

// Nth limits the fault to the n-th of those messages of each actor, from 1.
func (f *Fault) Nth(n int) *Fault { f.nth = n; return f }

// Every limits the fault to every n-th of those messages of each actor.
func (f *Fault) Every(n int) *Fault { f.every = n; return f }

// Chance limits the fault to each of those messages with a probability from 0 to 1, by the world's [Seed].
func (f *Fault) Chance(p float64) *Fault { f.odds = p; return f }

// Crash makes the turn of the message fail once everything else of it is done: it then has no effect.
func (f *Fault) Crash() *Fault { return f.begin(crash) }

// Drop loses the message without a trace.
func (f *Fault) Drop() *Fault { return f.begin(drop) }

// Delay delivers the message later. Those that follow overtake it.
func (f *Fault) Delay(d time.Duration) *Fault { f.delay = d; return f.begin(delay) }

// Duplicate delivers the message twice.
func (f *Fault) Duplicate() *Fault { return f.begin(duplicate) }

// Reorder lets the next message to the same receiver overtake this one. If none comes, it is delivered when there is
// nothing else to do.
func (f *Fault) Reorder() *Fault { return f.begin(reorder) }

// Hits is how many messages the fault has met.
func (f *Fault) Hits() int { return f.hits }

// End ends the fault. What it holds back is still delivered.
func (f *Fault) End() { f.over = true }

func (f *Fault) begin(a action) *Fault {
	f.act = a
	f.w.faults = append(f.w.faults, f)
	return f
}

// meets counts a message, and reports whether the fault meets it.
func (f *Fault) meets(to string, s Sent) bool {
	if f.over {
		return false
	}
	if ok, _ := path.Match(f.path, to); !ok {
		return false
	}
	if f.from != "" {
		if ok, _ := path.Match(f.from, f.w.pathOf(s.From)); !ok {
			return false
		}
	}
	if f.match != nil && !f.match(s) {
		return false
	}
	f.seen[to]++
	n := f.seen[to]
	if f.nth > 0 && n != f.nth || f.every > 0 && n%f.every != 0 || f.odds > 0 && f.rnd.Float64() >= f.odds {
		return false
	}
	f.hits++
	return true
}

// met is the fault that a message meets, nil if it meets none.
func (w *World) met(crashes bool, to string, s Sent) *Fault {
	for _, f := range w.faults {
		if (f.act == crash) == crashes && f.meets(to, s) {
			return f
		}
	}
	return nil
}

// pathOf is the path of an actor, "" if that is not known.
func (w *World) pathOf(ref actor.Ref) string {
	if a := w.actors[ref]; a != nil {
		return a.Path()
	}
	if f := w.fakes[ref]; f != nil {
		return "/system/" + f.path
	}
	if p := w.probeAt(Target{To: ref}); ref != 0 && p != nil {
		return p.Path()
	}
	return ""
}

// enqueue puts a message on its way, unless it meets a fault.
func (w *World) enqueue(to string, s step) {
	f := w.met(false, to, s.sent)
	if f != nil && f.act == reorder {
		w.held = append(w.held, s)
		return
	}
	switch {
	case f == nil:
		w.queue = append(w.queue, s)
	case f.act == duplicate:
		w.queue = append(w.queue, s, s)
	case f.act == delay:
		w.After(f.delay, func() { w.queue = append(w.queue, s) })
		return
	default:
		return
	}
	for i := 0; i < len(w.held); { // it has overtaken those
		if h := w.held[i]; h.to == s.to && h.fake == s.fake && h.probe == s.probe {
			w.queue = append(w.queue, h)
			w.held = append(w.held[:i:i], w.held[i+1:]...)
		} else {
			i++
		}
	}
}

// letPassed delivers what nothing has overtaken, and reports whether there was anything.
func (w *World) letPassed() bool {
	w.queue = append(w.queue, w.held...)
	any := len(w.held) > 0
	w.held = nil
	return any
}

// crashes is the failure of a turn that meets a fault.
func (w *World) crashes(a *Actor, e abi.Envelope) *abi.Failure {
	switch e.Kind {
	case abi.KindStart, abi.KindStop, abi.KindPreRestart:
		return nil
	}
	s := Sent{Target: Target{To: a.Ref()}, From: e.Sender, Correlation: e.Correlation, Payload: e.Payload, headers: e.Headers}
	if w.met(true, a.Path(), s) == nil {
		return nil
	}
	return &abi.Failure{Kind: abi.FailureTrap, Reason: "a fault of the test"}
}
