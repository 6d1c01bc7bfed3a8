package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// timer is one that an actor has set. What it sends carries it as Value, so that
// one that was cancelled or replaced meanwhile is told from its successor.
type timer struct {
	key     uint64
	period  time.Duration
	payload []byte
	clock   clock.Timer
}

// setTimer sends a KindTimer later; the same key replaces.
func (c *cell) setTimer(key uint64, delay, period time.Duration, payload []byte) error {
	c.cancelTimer(key)
	if len(c.timers) >= c.limits.Timers {
		return ErrLimit
	}
	if c.timers == nil {
		c.timers = map[uint64]*timer{}
	}
	t := &timer{key: key, period: period, payload: append([]byte(nil), payload...)}
	c.timers[key] = t
	if period == 0 {
		c.pending.Add(1)
	}
	t.clock = c.sys.cfg.clock.AfterFunc(max(delay, 0), func() { c.fire(t) })
	return nil
}

// fire runs on the clock's goroutine.
func (c *cell) fire(t *timer) {
	e := mailbox.New()
	e.Kind, e.Correlation, e.Value = abi.KindTimer, t.key, t
	e.SetPayload(t.payload)
	c.insist(e)
	if t.period == 0 {
		c.pending.Add(-1)
	}
}

// insist delivers an envelope of the host's own, also to a mailbox that is full.
func (c *cell) insist(e *mailbox.Envelope) {
	if c.mbox.Push(e) == nil {
		c.wake(nil)
	} else if !c.post(nil, sysMsg{kind: sysLate, env: e}) {
		e.Free()
	}
}

// timerDelivered is called when the message of a timer is being handled: a
// period begins again, so that a slow actor never has two of one timer waiting.
func (c *cell) timerDelivered(key uint64) {
	t := c.timers[key]
	if t == nil {
		return
	}
	if t.period == 0 {
		delete(c.timers, key)
		return
	}
	t.clock = c.sys.cfg.clock.AfterFunc(t.period, func() { c.fire(t) })
}

func (c *cell) cancelTimer(key uint64) {
	t := c.timers[key]
	if t == nil {
		return
	}
	delete(c.timers, key)
	if t.clock.Stop() && t.period == 0 {
		c.pending.Add(-1)
	}
}

func (c *cell) cancelTimers() {
	for key := range c.timers {
		c.cancelTimer(key)
	}
}

// receiveTimer sends a KindReceiveTimeout when nothing was received for a while.
type receiveTimer struct {
	after time.Duration
	clock clock.Timer
}

func (c *cell) setReceiveTimeout(d time.Duration) {
	if c.receive != nil {
		c.receive.clock.Stop()
		c.receive = nil
	}
	if d > 0 {
		c.receive = &receiveTimer{after: d}
		c.receive.arm(c)
	}
}

func (r *receiveTimer) arm(c *cell) {
	r.clock = c.sys.cfg.clock.AfterFunc(r.after, func() {
		e := mailbox.New()
		e.Kind = abi.KindReceiveTimeout
		if c.mbox.Push(e) != nil {
			e.Free()
		}
		c.wake(nil)
	})
}

// touch begins the time anew at a message; those that do not influence it, and
// its own, aside.
func (r *receiveTimer) touch(c *cell, e *mailbox.Envelope) {
	if e.Flags&flagNoInfluence != 0 {
		return
	}
	r.clock.Stop()
	r.arm(c)
}

// addAsk notes an ask of the actor's own.
func (c *cell) addAsk(correlation uint64, timeout time.Duration) error {
	if _, taken := c.asks[correlation]; taken || correlation == 0 || len(c.asks) >= c.limits.Asks {
		return ErrLimit
	}
	if c.asks == nil {
		c.asks = map[uint64]clock.Timer{}
	}
	c.pending.Add(1)
	c.asks[correlation] = c.sys.cfg.clock.AfterFunc(timeout, func() {
		e := mailbox.New()
		e.Kind, e.Correlation = abi.KindAskTimeout, correlation
		e.SetPayload([]byte{0xf6})
		c.insist(e)
	})
	return nil
}

func (c *cell) dropAsk(correlation uint64) {
	if t, ok := c.asks[correlation]; ok {
		delete(c.asks, correlation)
		t.Stop()
		c.pending.Add(-1)
	}
}

func (c *cell) dropAsks() {
	for correlation := range c.asks {
		c.dropAsk(correlation)
	}
}
