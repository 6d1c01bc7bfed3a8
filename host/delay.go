package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// What becomes of messages while a restart is delayed, and for the grace after it:
// see supervision.Backoff.

// grace is the time after a delayed restart in which the new incarnation has to
// prove itself.
type grace struct {
	held  []*mailbox.Envelope // what has waited, if newer ones may overtake
	timer clock.Timer
}

// backoff returns the supervisor's backoff if there is one.
func (c *cell) backoff() (supervision.Backoff, bool) {
	if c.parent == nil {
		return supervision.Backoff{}, false
	}
	return c.parent.props.strategy.Backoff()
}

// shutGate begins a delay: from now on messages meet the policy.
func (c *cell) shutGate() {
	b, ok := c.backoff()
	if !ok {
		return
	}
	c.keep = b.Stash
	c.gate.Store(uint32(b.Meanwhile))
}

func (c *cell) openGate() {
	c.keep = 0
	c.gate.Store(uint32(supervision.MeanwhileKeep))
}

// refusedByGate deals with a message that comes during a delay, if it is not to be
// kept: whoever is answered needs no dead letter. Any goroutine.
func (c *cell) refusedByGate(scr *scratch, e *mailbox.Envelope) (refused, answered bool) {
	if !isMail(e) {
		return false, false
	}
	if supervision.Meanwhile(c.gate.Load()) == supervision.MeanwhileReply && e.Kind == abi.KindMessage && e.Sender != 0 {
		b, _ := c.backoff()
		r := mailbox.New()
		r.Kind, r.Sender, r.Correlation = abi.KindReplyError, c.uid, e.Correlation
		reason := b.Reply
		if reason == "" {
			reason = "the actor is about to be restarted"
		}
		r.Payload = appendText(r.Payload, reason)
		_ = c.sys.deliver(scr, e.Sender, r)
		return true, true
	}
	return true, false
}

// isMail reports whether an envelope is a message that somebody has sent, and not the
// host's own.
func isMail(e *mailbox.Envelope) bool {
	switch e.Kind {
	case abi.KindMessage, abi.KindReply, abi.KindReplyError:
		return e.Flags&flagControl == 0
	}
	return false
}

// trim evicts the oldest messages beyond what is kept during a delay. What the host
// itself has put there is no message; it waits aside.
func (c *cell) trim() {
	for c.mbox.Len() > c.keep {
		e := c.mbox.Pop()
		if e == nil {
			return
		}
		if isMail(e) {
			c.dead(DeadEvicted, e)
		} else {
			c.late = append(c.late, e)
		}
	}
}

// beginGrace holds back what has waited for a delayed restart.
func (c *cell) beginGrace() {
	b, ok := c.backoff()
	if !ok || b.Grace <= 0 {
		return
	}
	g := &grace{}
	if b.Overtake {
		for e := c.mbox.Pop(); e != nil; e = c.mbox.Pop() {
			g.held = append(g.held, e)
		}
	} else {
		c.held = true
	}
	c.grace = g
	c.pending.Add(1)
	g.timer = c.sys.cfg.clock.AfterFunc(b.Grace, func() {
		c.pending.Add(-1)
		c.post(nil, sysMsg{kind: sysGraceOver, grace: g})
	})
}

// endGrace lets what has waited in, or, if the incarnation is over, leaves it to the
// next one.
func (c *cell) endGrace() {
	g := c.grace
	if g == nil {
		return
	}
	c.grace, c.held = nil, false
	if g.timer.Stop() {
		c.pending.Add(-1)
	}
	if len(g.held) > 0 {
		c.mbox.PushFront(g.held...)
	}
}
