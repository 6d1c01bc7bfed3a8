package host

import (
	"context"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Reply is an answer that an actor in Go gives later: after its turn, from any
// goroutine, once. Services that wait for something are made with it. All methods may
// be called concurrently.
type Reply struct {
	actor       *actor
	uid         abi.Ref // of the handle, while it waits
	to          abi.Ref
	correlation uint64
	trace       []byte // headers of the answer, nil for none
	attached    *mailbox.Attached

	mu    sync.Mutex
	used  bool
	gone  chan struct{}
	after map[*func()]struct{} // called when it is gone
}

// Later is a handle for the answer to the current message. It fails with ErrLimit while Limits.Replies of the actor's
// handles are unused, and with ErrNoQuestion if the message is not a question. A handle that is never used counts until the
// asker gives up.
func (c *Context) Later() (*Reply, error) {
	if c.env == nil || c.env.Sender == 0 || c.env.Kind != abi.KindMessage {
		return nil, ErrNoQuestion
	}
	a := c.actor
	if a.replies.Add(1) > int32(a.props.limits.Replies) {
		a.replies.Add(-1)
		return nil, ErrLimit
	}
	r := &Reply{actor: a, uid: a.sys.outside.newRef(), to: c.env.Sender, correlation: c.env.Correlation, trace: c.scr.keep(), attached: a.attachedIn(c.env), gone: make(chan struct{})}
	a.sys.outside.put(r.uid, (*replyDoor)(r))
	a.sys.signal(c.scr, r.to, signal.Signal{Kind: signal.Observe, From: r.uid, Correlation: r.correlation})
	return r, nil
}

// Send answers. It fails with ErrUsed the second time, with ErrUnknown if the asker has given up, and otherwise as
// [System.Tell].
func (r *Reply) Send(v any) error { return r.send(abi.KindReply, v) }

// Fail answers with an error.
func (r *Reply) Fail(reason string) error { return r.send(abi.KindReplyError, reason) }

// Gone is closed when the asker no longer waits for the answer: the asker has stopped, has given up, or was answered by
// another actor, or the system has stopped.
func (r *Reply) Gone() <-chan struct{} { return r.gone }

// Context ends when Gone is closed, with the cause [ErrGone]. It has the values of
// [Head.Values]. Contexts derived from it take no goroutine.
func (r *Reply) Context() context.Context {
	values := context.Background()
	if r.attached != nil && r.attached.Context != nil {
		values = r.attached.Context
	}
	return &replyContext{values, r}
}

func (r *Reply) send(kind abi.Kind, v any) error {
	e, err := message.Envelope(v)
	if err != nil {
		return err
	}
	if !r.use() {
		e.Free()
		return ErrUsed
	}
	if !r.actor.sys.outside.remove(r.uid) {
		e.Free()
		return ErrUnknown
	}
	r.actor.answered()
	e.Kind, e.Sender, e.SenderPath, e.Correlation = kind, r.actor.uid, r.actor.path, r.correlation
	e.Value, e.Attached = nil, r.attached
	e.SetHeaders(r.trace)
	return r.actor.sys.deliver(nil, r.to, e)
}

func (r *Reply) use() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.used
	r.used = true
	return !was
}

// replyDoor is the handle as the system sees it.
type replyDoor Reply

func (d *replyDoor) ended(abi.Ref, string) bool {
	d.actor.answered()
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.gone)
	return true
}

func (d *replyDoor) shut() bool { return d.ended(0, "") }

func (d *replyDoor) take(*System, *mailbox.Envelope) (DeadReason, error, bool) {
	return DeadUnknown, ErrUnknown, false
}
func (d *replyDoor) fail(uint64, abi.Ref, error) bool  { return false }
func (d *replyDoor) delegate(uint64, abi.Ref, abi.Ref) {}
func (d *replyDoor) expire(int64) bool                 { return false }

// left ends the contexts that were derived from the handle's, without the lock of the shard: whoever ended the ask
// goes on when they have ended.
func (d *replyDoor) left() []abi.Ref {
	select {
	case <-d.gone:
	default:
		return nil // it was answered
	}
	d.mu.Lock()
	after := d.after
	d.after = nil
	d.mu.Unlock()
	for f := range after {
		(*f)()
	}
	return nil
}

// replyContext is a handle as a context.
type replyContext struct {
	context.Context
	reply *Reply
}

func (c *replyContext) Done() <-chan struct{} { return c.reply.gone }

func (c *replyContext) Err() error {
	select {
	case <-c.reply.gone:
		return ErrGone
	default:
		return nil
	}
}

// AfterFunc is what package context looks for: without it a derived context would need a
// goroutine that waits for Done.
func (c *replyContext) AfterFunc(f func()) (stop func() bool) {
	r, key := c.reply, &f
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.gone:
		go f()
		return func() bool { return false }
	default:
	}
	if r.after == nil {
		r.after = map[*func()]struct{}{}
	}
	r.after[key] = struct{}{}
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, waits := r.after[key]
		delete(r.after, key)
		return waits
	}
}

// Trace is like [Head.Trace], for the turn that has made the handle.
func (r *Reply) Trace(parent context.Context) context.Context {
	return r.actor.sys.in(parent, r.trace)
}
