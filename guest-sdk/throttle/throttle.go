// Package throttle is a throttler for guests: at most N sends and asks of an actor start per interval, and the rest wait in
// a bounded queue, in order.
//
//	t := throttle.New(throttle.Rate{N: 10, Per: time.Second}, 1)
//	...
//	if t.Receive(ctx, msg) { // its timer
//		return nil
//	}
//	if err := t.Tell(ctx, to, actor.Text("ping")); err != nil {
//		return ctx.ReplyError(err.Error()) // the queue is full
//	}
//
// What waits is lost with the incarnation. docs/guide/throttler.md tells the rest.
package throttle

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/throttle"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Rate is how many may start in each interval.
type Rate = rules.Rate

// Defaults of Limit.
const (
	DefaultMessages = 1000
	DefaultBytes    = 1 << 20
)

// ErrFull is the error of a call for which there is no room in the queue.
var ErrFull = errors.New("throttle: the queue is full")

// Throttler is a throttler. Its methods are for its actor, within its turns.
type Throttler struct {
	meter    rules.Meter
	key      uint64
	messages int
	bytes    int
	paused   bool
	armed    bool

	ring    []start // at is the first of n
	at, n   int
	held    int // bytes
	scratch abi.Writer
}

// start is a message that waits.
type start struct {
	to      actor.Ref
	payload []byte
	timeout time.Duration
	then    func(*actor.Context, *actor.Message) error // nil: it is not a question
}

// kept is the largest payload memory that is reused, in bytes.
const kept = 256

// New makes a throttler whose timer has the given key. An invalid rate panics.
func New(r Rate, key uint64) *Throttler {
	if err := r.Check(); err != nil {
		panic(err.Error())
	}
	return &Throttler{meter: rules.NewMeter(r), key: key, messages: DefaultMessages, bytes: DefaultBytes}
}

// Limit bounds what waits, in messages and in bytes of payloads. 0 messages: what cannot start at once
// fails.
func (t *Throttler) Limit(messages, bytes int) *Throttler {
	t.messages, t.bytes = max(messages, 0), max(bytes, 0)
	return t
}

// Waiting is how many messages wait.
func (t *Throttler) Waiting() int { return t.n }

// SetRate changes the rate, also for the interval that is under way. An invalid one is an error, and
// changes nothing.
func (t *Throttler) SetRate(ctx *actor.Context, r Rate) error {
	if err := r.Check(); err != nil {
		return err
	}
	t.meter.SetRate(r)
	t.armed = false // for another time than the timer is set to
	t.pump(ctx)
	return nil
}

// Pause stops all starts until Resume.
func (t *Throttler) Pause() { t.paused = true }

// Resume ends a Pause.
func (t *Throttler) Resume(ctx *actor.Context) {
	t.paused = false
	t.pump(ctx)
}

// Take takes a voucher for work that the actor does itself; false if none is left, or if messages wait already.
func (t *Throttler) Take(ctx *actor.Context) bool {
	return !t.paused && t.n == 0 && t.meter.Take(ctx.Now())
}

// Tell sends a message, now or when there is a voucher. It fails with ErrFull.
func (t *Throttler) Tell(ctx *actor.Context, to actor.Ref, v actor.Encoder) error {
	if t.Take(ctx) {
		ctx.Tell(to, v)
		return nil
	}
	return t.put(ctx, start{to: to}, v)
}

// Ask asks, now or when there is a voucher; the timeout begins then. If then is nil, the answer is dropped. It
// fails with ErrFull.
func (t *Throttler) Ask(ctx *actor.Context, to actor.Ref, v actor.Encoder, timeout time.Duration, then func(*actor.Context, *actor.Message) error) error {
	if then == nil {
		then = func(*actor.Context, *actor.Message) error { return nil }
	}
	if t.Take(ctx) {
		ctx.Ask(to, v, timeout, then)
		return nil
	}
	return t.put(ctx, start{to: to, timeout: timeout, then: then}, v)
}

// put queues a message.
func (t *Throttler) put(ctx *actor.Context, s start, v actor.Encoder) error {
	if s.to == 0 {
		ctx.Tell(0, nil) // which says what is wrong
		return nil
	}
	if t.n >= t.messages {
		return ErrFull
	}
	if t.n == len(t.ring) {
		t.grow()
	}
	slot := &t.ring[(t.at+t.n)%len(t.ring)]
	t.scratch.Reset(slot.payload[:0])
	actor.Encode(&t.scratch, v)
	s.payload = t.scratch.Bytes()
	if t.held+len(s.payload) > t.bytes {
		return ErrFull
	}
	*slot = s
	t.n++
	t.held += len(s.payload)
	t.pump(ctx)
	return nil
}

func (t *Throttler) grow() {
	larger := make([]start, max(8, 2*len(t.ring)))
	for i := 0; i < t.n; i++ {
		larger[i] = t.ring[(t.at+i)%len(t.ring)]
	}
	t.ring, t.at = larger, 0
}

// Receive takes the timer's message; false for any other message.
func (t *Throttler) Receive(ctx *actor.Context, msg *actor.Message) bool {
	if msg.Kind() != actor.KindTimer || msg.Correlation() != t.key {
		return false
	}
	t.armed = false
	t.pump(ctx)
	return true
}

// pump starts what may start, and sets the timer for the rest.
func (t *Throttler) pump(ctx *actor.Context) {
	now := ctx.Now()
	for t.n > 0 && !t.paused && t.meter.Take(now) {
		s := &t.ring[t.at]
		if s.then != nil {
			ctx.Ask(s.to, actor.Raw(s.payload), s.timeout, s.then)
		} else {
			ctx.Tell(s.to, actor.Raw(s.payload))
		}
		t.held -= len(s.payload)
		payload := s.payload[:0]
		if cap(payload) > kept {
			payload = nil
		}
		*s = start{payload: payload}
		t.at = (t.at + 1) % len(t.ring)
		t.n--
	}
	if wait := t.meter.Wait(now); t.n > 0 && !t.paused && !t.armed {
		t.armed = true
		ctx.After(t.key, wait, nil)
	}
}
