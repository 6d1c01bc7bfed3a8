package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Deadlines travel with questions: the host notes in the envelope when the asker gives up, and a question whose time is over
// is not handled when its turn comes. A copy that is forwarded to another actor keeps the deadline. Only the host writes it,
// so no actor can change it. Other messages have no deadline, and pay nothing for it.

// expire drops a question whose asker has given up. An actor that has asked is notified by its own alarm.
func (a *actor) expire(scr *scratch, e *mailbox.Envelope) {
	reason := DeadExpired
	if e.Flags&mark.Incarnation != 0 {
		reason = DeadIncarnation
	}
	a.sys.deadLetter(reason, a.uid, a.path, e)
	if e.Flags&mark.Due != 0 {
		a.sys.willNotAnswer(scr, e.Sender, e.Correlation, a.uid, ErrTimeout)
	}
	scr.cache.Free(e)
}

// Deadline is when the asker of the current message gives up; false if that is not known: it
// is not a question, or one without a deadline, or a Lasting one.
func (h Head) Deadline() (time.Time, bool) {
	c := h.ctx
	if c.env == nil || c.env.Flags&mark.Due == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, c.env.Due), true
}

// Within is d, or the remaining time of the current message's asker if that is less:
// the timeout for an ask whose answer is needed only to answer this message. It is 0 if no time is left.
func (h Head) Within(d time.Duration) time.Duration {
	at, ok := h.Deadline()
	if !ok {
		return d
	}
	return max(0, min(d, at.Sub(h.ctx.actor.Now())))
}

// Lasting reports whether the current message is to be handled although the asker has given up: its
// sender has marked it so. If you re-ask in your own name, mark that question Lasting, too.
func (h Head) Lasting() bool {
	if h.ctx.env == nil {
		return false
	}
	if h.ctx.env.Flags&mark.Lasting != 0 {
		return true
	}
	v, ok := abi.FindHeader(h.ctx.env.Headers, abi.HeaderDeadline) // of a guest's ask; the host has heeded it then
	return ok && h.ctx.env.Flags&mark.Due == 0 && string(v) == abi.DeadlineNone
}

// stated are the headers of a message for a guest that is told of deadlines: the deadline is
// what the host says, or none. They are valid until the next call.
func (s *scratch) stated(e *mailbox.Envelope) []byte {
	s.heads = header.Stated(s.heads, e.Headers, e.Due, e.Flags&mark.Due != 0)
	if len(s.heads) <= 1 {
		return nil
	}
	return s.heads
}

// push writes an envelope into the guest's inbox.
func (g *guest) push(scr *scratch, x *sandbox.Instance, e *mailbox.Envelope, now int64) bool {
	if len(e.Headers) == 0 && e.Flags&mark.Due == 0 {
		return x.PushPlain(e.Kind, now, e.Sender, e.Correlation, e.Payload)
	}
	env := abi.Envelope{Kind: e.Kind, Time: now, Sender: e.Sender, Correlation: e.Correlation, Headers: e.Headers, Payload: e.Payload}
	if g.told {
		env.Headers = scr.stated(e)
	}
	return x.Push(&env)
}
