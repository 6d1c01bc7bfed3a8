package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// Later is a handle for the answer to the current message. It fails with ErrLimit while Limits.Replies of the actor's
// handles are unused, and with ErrNoQuestion if the message is not a question. A handle that is never used counts until the
// asker gives up.
func (c *Context) Later() (*Reply, error) {
	if c.env == nil || c.env.Sender == 0 || c.env.Kind != abi.KindMessage {
		return nil, ErrNoQuestion
	}
	a := c.actor
	if a.replies.Add(1) > int32(a.rules.Load().limits.Replies) {
		a.replies.Add(-1)
		return nil, ErrLimit
	}
	r, observer := a.sys.outside.NewReply(outside.Question{
		By: a, From: a.uid, Path: a.path, To: c.env.Sender, Correlation: c.env.Correlation, Trace: c.scr.keep(), Attached: a.rules.Load().attachedIn(c.env),
	})
	a.sys.signal(c.scr, c.env.Sender, signal.Signal{Kind: signal.Observe, From: observer, Correlation: c.env.Correlation})
	return r, nil
}
