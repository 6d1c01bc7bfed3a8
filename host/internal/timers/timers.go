// Package timers has what an actor sends itself later: timers by key, and the receive timeout. The
// envelope of a timer carries the timer itself as its Value, so that a timer that was cancelled or
// replaced since is distinguished from the new one.
package timers

import (
	"cmp"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Owner is the actor that the timers belong to.
type Owner interface {
	Clock() clock.Clock
	// TurnTime is when the turn that runs has begun, as the actor sees it: what it asks for is due from then.
	TurnTime() time.Time
	Alarms() *alarm.Board
	// Insist takes an envelope of the host's own, even if the mailbox is full. It
	// is called on the clock's goroutine.
	Insist(e *mailbox.Envelope)
}

// Timer is a timer that was set.
type Timer struct {
	key     uint64
	period  time.Duration
	payload []byte
	headers []byte // of one that fires once
	due     time.Time
	pace    Pace
	once    alarm.Alarm // of one that fires once: it counts as pending
	tick    clock.Timer // of one with a period: it does not
}

// Pace says when a timer with a period fires again.
type Pace uint8

const (
	// FixedDelay: one period after the turn of the previous message has begun.
	FixedDelay Pace = iota
	// FixedRate: at the times of a grid that begins with the first one. Times that a turn was too slow
	// for are left out, so that no burst follows.
	FixedRate
)

// Set is an actor's timers. Only the actor's own run may use it. The zero value is
// empty.
type Set struct {
	byKey map[uint64]*Timer
	bytes int
}

// Len is the number of timers that are set.
func (s *Set) Len() int { return len(s.byKey) }

// Bytes is what their payloads and headers take.
func (s *Set) Bytes() int { return s.bytes }

// Has reports whether a timer with the key is set.
func (s *Set) Has(key uint64) bool { return s.byKey[key] != nil }

// Start sends a KindTimer with the key as its correlation after a delay, and then every
// period if that is not 0: a period begins when the turn of the previous message begins, so
// that a slow actor never has two messages of one timer waiting. It replaces a timer with the same key. A message
// without a period has headers, which must not be changed afterwards.
func (s *Set) Start(o Owner, key uint64, delay, period time.Duration, payload, headers []byte) {
	s.StartAt(o, o.TurnTime(), key, delay, period, FixedDelay, payload, headers)
}

// StartAt is Start with a pace, for a delay that begins at a time.
func (s *Set) StartAt(o Owner, at time.Time, key uint64, delay, period time.Duration, pace Pace, payload, headers []byte) {
	s.Cancel(key)
	if s.byKey == nil {
		s.byKey = map[uint64]*Timer{}
	}
	t := &Timer{key: key, period: period, pace: pace, payload: append([]byte(nil), payload...)}
	if period == 0 {
		t.headers = headers
	}
	s.byKey[key] = t
	s.bytes += len(t.payload) + len(t.headers)
	t.arm(o, at.Add(max(delay, 0)))
}

func (t *Timer) arm(o Owner, due time.Time) {
	c := o.Clock()
	t.due = due
	d := due.Sub(c.Now())
	if t.period == 0 {
		t.once = o.Alarms().After(c, d, func() { t.ring(o, due) })
	} else {
		t.tick = c.AfterFunc(max(d, 0), func() { t.ring(o, due) })
	}
}

// ring runs on the clock's goroutine. The timer may be due at another time by then: one that was let ring by Ring, too.
func (t *Timer) ring(o Owner, due time.Time) {
	e := mailbox.New()
	e.Kind, e.Correlation, e.Value, e.Due = abi.KindTimer, t.key, t, due.UnixNano()
	e.SetPayload(t.payload)
	e.SetHeaders(t.headers)
	o.Insist(e)
}

// Current reports whether the timer that has sent an envelope still counts, and was due when the envelope says. Of a timer with a period that has
// rung twice at one time, by itself and by Ring, the second envelope does not count: its turn would begin a period beside the one that runs.
func (s *Set) Current(e *mailbox.Envelope) bool {
	t := s.byKey[e.Correlation]
	return t != nil && e.Value == any(t) && (e.Due == 0 || e.Due == t.due.UnixNano()) // 0: of a snapshot that does not say it
}

// Begun is called when the turn of a timer's envelope begins, before anything
// that the turn itself sets: a timer that fires once is done, a period begins again.
func (s *Set) Begun(o Owner, e *mailbox.Envelope) {
	if !s.Current(e) {
		return
	}
	t := s.byKey[e.Correlation]
	if t.period == 0 {
		s.remove(t)
		return
	}
	at := o.TurnTime()
	if t.pace == FixedDelay {
		t.arm(o, at.Add(t.period))
		return
	}
	late := max(0, at.Sub(t.due)) // the turn's time may be from shortly before it fired
	t.arm(o, t.due.Add(late-late%t.period+t.period))
}

// Due is when a timer fires next; false if there is none.
func (s *Set) Due(key uint64) (time.Time, bool) {
	if t := s.byKey[key]; t != nil {
		return t.due, true
	}
	return time.Time{}, false
}

// Ring lets the timer with the key ring now, and not when it is due; false if there is none.
func (s *Set) Ring(o Owner, key uint64) bool {
	t := s.byKey[key]
	if t == nil {
		return false
	}
	t.once.Stop()
	if t.tick != nil {
		t.tick.Stop()
	}
	t.ring(o, t.due)
	return true
}

// Cancel cancels a timer, even if its envelope waits already.
func (s *Set) Cancel(key uint64) {
	t := s.byKey[key]
	if t == nil {
		return
	}
	s.remove(t)
	t.once.Stop()
	if t.tick != nil {
		t.tick.Stop()
	}
}

func (s *Set) remove(t *Timer) {
	delete(s.byKey, t.key)
	s.bytes -= len(t.payload) + len(t.headers)
}

// CancelAll cancels all timers.
func (s *Set) CancelAll() {
	for key := range s.byKey { // in which order makes no difference
		s.Cancel(key)
	}
}

// Receive is a receive timeout: it sends a KindReceiveTimeout when nothing was received for a
// while.
type Receive struct {
	after time.Duration
	due   time.Time
	timer clock.Timer
	epoch uint64 // how often the time was restarted
}

// rung marks the envelope of a receive timeout.
type rung struct {
	of    *Receive
	epoch uint64
}

// StartReceive begins one.
func StartReceive(o Owner, after time.Duration) *Receive {
	r := &Receive{after: after}
	r.Restart(o)
	return r
}

// After is the time without messages after which it fires.
func (r *Receive) After() time.Duration { return r.after }

// Restart restarts the time, at a message.
func (r *Receive) Restart(o Owner) {
	r.Stop()
	r.epoch++
	epoch := r.epoch
	r.due = o.TurnTime().Add(r.after)
	c := o.Clock()
	due := r.due
	r.timer = c.AfterFunc(max(due.Sub(c.Now()), 0), func() { r.ring(o, epoch, due) })
}

// LoadReceive is one that goes on from a snapshot: it is due at a time, or its envelope waits, see Mark.
func LoadReceive(o Owner, after time.Duration, due time.Time, waits bool) *Receive {
	r := &Receive{after: after, due: due}
	if c := o.Clock(); !waits {
		r.timer = c.AfterFunc(max(due.Sub(c.Now()), 0), func() { r.ring(o, 0, due) })
	}
	return r
}

// Due is when it fires.
func (r *Receive) Due() time.Time { return r.due }

// Mark is the Value of its envelopes.
func (r *Receive) Mark() any { return rung{r, r.epoch} }

func (r *Receive) ring(o Owner, epoch uint64, due time.Time) {
	e := mailbox.New()
	e.Kind, e.Value, e.Due = abi.KindReceiveTimeout, rung{r, epoch}, due.UnixNano()
	o.Insist(e)
}

// Ring lets it ring now, and not when it is due; false if there is none.
func (r *Receive) Ring(o Owner) bool {
	if r == nil {
		return false
	}
	r.Stop()
	r.ring(o, r.epoch, r.due)
	return true
}

// Stop ends it. A nil Receive means that there is none.
func (r *Receive) Stop() {
	if r != nil && r.timer != nil {
		r.timer.Stop()
	}
}

// Current reports whether an envelope is of this receive timeout, not of an earlier one,
// and nothing was received since it fired.
func (r *Receive) Current(e *mailbox.Envelope) bool {
	m, ok := e.Value.(rung)
	return ok && m.of == r && m.epoch == r.epoch
}

// State is a timer as a snapshot holds it.
type State struct {
	Key     uint64
	Due     time.Time     // when it fires next
	Period  time.Duration // 0: once
	Pace    Pace
	Waits   bool // its envelope waits in the mailbox
	Payload []byte
	Headers []byte
}

// Save is all timers that are set, in the order of their keys. Waits is for the caller to find out.
func (s *Set) Save() []State {
	out := make([]State, 0, len(s.byKey))
	for _, t := range s.byKey {
		out = append(out, State{Key: t.key, Due: t.due, Period: t.period, Pace: t.pace, Payload: t.payload, Headers: t.headers})
	}
	sortStates(out)
	return out
}

// Load sets the timers of a snapshot. Those whose envelopes wait do not ring again, see Mark.
func (s *Set) Load(o Owner, states []State) {
	for i := range states {
		st := &states[i]
		if !st.Waits {
			s.StartAt(o, st.Due, st.Key, 0, st.Period, st.Pace, st.Payload, st.Headers)
			continue
		}
		s.Cancel(st.Key)
		if s.byKey == nil {
			s.byKey = map[uint64]*Timer{}
		}
		t := &Timer{key: st.Key, period: st.Period, pace: st.Pace, payload: st.Payload, headers: st.Headers, due: st.Due}
		s.byKey[t.key] = t
		s.bytes += len(t.payload) + len(t.headers)
	}
}

// Mark is the Value of the envelopes of the timer with the key; nil if there is none.
func (s *Set) Mark(key uint64) any {
	if t := s.byKey[key]; t != nil {
		return t
	}
	return nil
}

func sortStates(s []State) {
	slices.SortFunc(s, func(a, b State) int { return cmp.Compare(a.Key, b.Key) })
}
