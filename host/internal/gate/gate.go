// Package gate holds an actor's messages back while it waits for its next
// incarnation, the delay, and shortly after that has begun, the grace. The rules are
// those of supervision.Backoff.
package gate

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Queue is what a gate needs of a mailbox.
type Queue interface {
	Pop() *mailbox.Envelope
	PushFront(...*mailbox.Envelope)
	Len() int
}

// Owner is the actor, within its run where nothing else is said.
type Owner interface {
	Alarms() *alarm.Board
	Clock() clock.Clock // of its alarms
	Now() time.Time
	// Post sends the actor a system message. Any goroutine may call it.
	Post(m sysmail.Msg)
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

// TrimBox is Trim of an actor's mailbox, which may have an order of its own.
func (g *Gate) TrimBox(b *box.Box, evict func(*mailbox.Envelope)) {
	if b.Hosted != nil {
		b.Hosted.Trim(g.bound)
	} else {
		g.Trim(b, mark.IsMail, evict)
	}
}

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

// BeginGrace holds back what has waited for a delayed restart: if newer messages may overtake it only that, otherwise
// newer ones, too. A message GraceOver, with what identifies the grace, says when it is over. Without a grace in b nothing
// happens.
func (g *Gate) BeginGrace(o Owner, m *life.Machine, q Queue, b supervision.Backoff) {
	if b.Grace <= 0 {
		return
	}
	s := &grace{all: !b.Overtake}
	if b.Overtake {
		for e := q.Pop(); e != nil; e = q.Pop() {
			s.held = append(s.held, e)
		}
	}
	g.begin(o, m, s, o.Now().Add(b.Grace))
}

func (g *Gate) begin(o Owner, m *life.Machine, s *grace, due time.Time) {
	if g.grace = s; s.all {
		m.Hold(life.Grace)
	}
	s.due = due
	s.alarm = o.Alarms().After(o.Clock(), due.Sub(o.Now()), func() {
		o.Post(sysmail.Msg{Kind: sysmail.GraceOver, Own: sysmail.Own{Due: s}})
	})
}

// Due is when the grace ends, if there is one.
func (g *Gate) Due() time.Time { return g.grace.due }

// LoadGrace has a grace of a checkpoint go on, with what it holds back.
func (g *Gate) LoadGrace(o Owner, m *life.Machine, all bool, held []*mailbox.Envelope, due time.Time) {
	g.begin(o, m, &grace{all: all, held: held}, due)
}

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

// EndGrace lets messages through, and puts what has waited back, before everything newer; at the end of an
// incarnation it is for the next one.
func (g *Gate) EndGrace(m *life.Machine, q Queue) {
	m.LetGo(life.Grace)
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
