package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// settled marks an envelope that was stashed: the book-keeping of its timer, ask or
// watch was done when it was handled for the first time.
type settled struct {
	incarnation uint64
	lasting     bool   // it is the next incarnation's, too
	path        string // terminated: whose end it is
}

// stashCurrent keeps a copy of the current message aside.
func (c *cell) stashCurrent(e *mailbox.Envelope) error {
	if e.Flags&flagHeld != 0 {
		return ErrStashed
	}
	if len(c.stash) >= c.limits.Stash {
		c.sys.deadLetter(DeadStashFull, c.uid, c.path, e)
		return ErrLimit
	}
	e.Flags |= flagHeld
	k := cloneEnvelope(e)
	k.Flags &^= flagHeld
	switch e.Kind {
	case abi.KindTerminated:
		k.Value = settled{lasting: true, path: endedPath(e)}
	case abi.KindTimer, abi.KindAskTimeout, abi.KindReceiveTimeout:
		k.Value = settled{incarnation: c.incarnation}
	case abi.KindReply, abi.KindReplyError:
		if e.Correlation != 0 {
			k.Value = settled{incarnation: c.incarnation}
		}
	}
	c.stash = append(c.stash, k)
	return nil
}

// unstash puts everything stashed back to the front, in order.
func (c *cell) unstash() {
	if len(c.stash) > 0 {
		c.mbox.PushFront(c.stash...)
		clear(c.stash)
		c.stash = c.stash[:0]
	}
}

func cloneEnvelope(e *mailbox.Envelope) *mailbox.Envelope {
	k := mailbox.New()
	k.Kind, k.Flags, k.Time, k.Sender, k.Correlation, k.Value = e.Kind, e.Flags, e.Time, e.Sender, e.Correlation, e.Value
	k.SetPayload(e.Payload)
	k.SetHeaders(e.Headers)
	return k
}
