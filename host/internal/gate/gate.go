// Package gate holds an actor's messages back while it waits for its next
// incarnation, the delay, and shortly after that has begun, the grace. The rules are
// those of supervision.Backoff.
package gate

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Queue is what a gate needs of a mailbox.
type Queue interface {
	Pop() *mailbox.Envelope
	PushFront(...*mailbox.Envelope)
	Len() int
}

// Gate is the gate of one actor. Policy is for any goroutine, everything else is for the actor's
// own run. The zero value is open.
type Gate struct {
	policy atomic.Uint32 // supervision.Meanwhile
	bound  int           // messages that wait during a delay; 0: as many as the mailbox holds
	grace  *grace
}

type grace struct {
	held  []*mailbox.Envelope // what has waited, if newer ones may overtake it
	all   bool                // everything is held back, newer ones too
	alarm alarm.Alarm
	due   time.Time
}

// Close begins a delay.
func (g *Gate) Close(b supervision.Backoff) {
	g.bound = b.Stash
	g.policy.Store(uint32(b.Meanwhile))
}

// Open ends a delay.
func (g *Gate) Open() {
	g.bound = 0
	g.policy.Store(uint32(supervision.MeanwhileKeep))
}

// Policy says what happens to a message that comes now; it costs a load. Any goroutine
// may ask.
func (g *Gate) Policy() supervision.Meanwhile { return supervision.Meanwhile(g.policy.Load()) }

// Bounded reports whether the number of waiting messages is bounded.
func (g *Gate) Bounded() bool { return g.bound > 0 }

// Bound is how many messages may wait, if that is Bounded.
func (g *Gate) Bound() int { return g.bound }

// Trim passes the oldest messages beyond the bound to evict. The host's own
// envelopes in the queue neither count nor lose their places.
func (g *Gate) Trim(q Queue, isMessage func(*mailbox.Envelope) bool, evict func(*mailbox.Envelope)) {
	if g.bound == 0 || q.Len() <= g.bound {
		return
	}
	var all []*mailbox.Envelope
	messages := 0
	for e := q.Pop(); e != nil; e = q.Pop() {
		all = append(all, e)
		if isMessage(e) {
			messages++
		}
	}
	kept := all[:0]
	for _, e := range all {
		if messages > g.bound && isMessage(e) {
			messages--
			evict(e)
			continue
		}
		kept = append(kept, e)
	}
	q.PushFront(kept...)
}

// BeginGrace holds back what has waited for a delayed restart: with overtake only that,
// otherwise newer messages, too.
func (g *Gate) BeginGrace(q Queue, overtake bool) {
	s := &grace{all: !overtake}
	if overtake {
		for e := q.Pop(); e != nil; e = q.Pop() {
			s.held = append(s.held, e)
		}
	}
	g.grace = s
}

// SetAlarm sets the alarm that ends the grace, and when that is.
func (g *Gate) SetAlarm(a alarm.Alarm, due time.Time) { g.grace.alarm, g.grace.due = a, due }

// Due is when the grace ends, if there is one.
func (g *Gate) Due() time.Time { return g.grace.due }

// LoadGrace is BeginGrace from a snapshot, with what was held back.
func (g *Gate) LoadGrace(all bool, held []*mailbox.Envelope) { g.grace = &grace{all: all, held: held} }

// Grace identifies the present grace, nil if there is none, so that its alarm can be distinguished
// from an earlier one's.
func (g *Gate) Grace() any {
	if g.grace == nil {
		return nil
	}
	return g.grace
}

// Holds reports whether the grace holds everything back.
func (g *Gate) Holds() bool { return g.grace != nil && g.grace.all }

// EndGrace puts what has waited back, before everything newer; at the end of an
// incarnation it is for the next one.
func (g *Gate) EndGrace(q Queue) {
	s := g.grace
	if s == nil {
		return
	}
	g.grace = nil
	s.alarm.Stop()
	if len(s.held) > 0 {
		q.PushFront(s.held...)
	}
}

// Held looks at what an overtaking grace holds, oldest first.
func (g *Gate) Held(f func(*mailbox.Envelope)) {
	if g.grace == nil {
		return
	}
	for _, e := range g.grace.held {
		f(e)
	}
}
