package host

import (
	"context"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
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

// Later is a handle for the answer to the current message. It fails with ErrLimit while
// Limits.Replies of the actor's handles are unused, and with ErrNoQuestion if nobody
// waits for an answer. A handle that is never used counts until the asker gives up.
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
	if asker := a.sys.table.Get(r.to); asker != nil {
		if r.correlation != 0 && !asker.post(c.scr, sysMsg{kind: sysObserve, ref: r.uid, correlation: r.correlation}) {
			a.sys.outside.abandoned(r.uid)
		}
	} else if !a.sys.outside.observe(r.to, r.correlation, r.uid) {
		a.sys.outside.abandoned(r.uid)
	}
	return r, nil
}

// Send answers. It fails with ErrUsed the second time, with ErrUnknown if nobody waits
// any more, and otherwise as [System.Tell].
func (r *Reply) Send(v any) error { return r.send(abi.KindReply, v) }

// Fail answers with an error.
func (r *Reply) Fail(reason string) error { return r.send(abi.KindReplyError, reason) }

// Gone is closed when the asker no longer waits for the answer: the asker has ended, or has
// given up, or was answered by somebody else, or the system has ended.
func (r *Reply) Gone() <-chan struct{} { return r.gone }

// Context ends when Gone is closed, with the cause [ErrGone]. It has the values of
// [Context.Values]. Contexts derived from it take no goroutine.
func (r *Reply) Context() context.Context {
	values := context.Background()
	if r.attached != nil && r.attached.Context != nil {
		values = r.attached.Context
	}
	return &replyContext{values, r}
}

func (r *Reply) send(kind abi.Kind, v any) error {
	e, err := envelope(v)
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
	for f := range d.after {
		go (*f)() // not under the lock of the shard
	}
	d.after = nil
	return true
}

func (d *replyDoor) shut() bool { return d.ended(0, "") }

func (d *replyDoor) take(*System, *mailbox.Envelope) (DeadReason, error, bool) {
	return DeadUnknown, ErrUnknown, false
}
func (d *replyDoor) fail(uint64, abi.Ref, error) bool  { return false }
func (d *replyDoor) delegate(uint64, abi.Ref, abi.Ref) {}
func (d *replyDoor) expire(int64) bool                 { return false }
func (d *replyDoor) left() []abi.Ref                   { return nil }

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
