package outside

import (
	"context"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Reply is an answer that an actor in Go gives later: after its turn, from any
// goroutine, once. Services that wait for something are made with it. All methods may
// be called concurrently.
type Reply struct {
	t   *Table
	uid abi.Ref // of the handle, while it waits
	q   Question

	mu    sync.Mutex
	used  bool
	gone  chan struct{}
	after map[*func()]struct{} // called when it is gone
}

// Owner is the actor that answers.
type Owner interface {
	// Answered is called when the handle was used, or the asker does not wait for the answer any more. Any goroutine may
	// call it.
	Answered()
}

// Question is what a handle answers, and in whose name.
type Question struct {
	By          Owner
	From        abi.Ref // of By
	Path        string
	To          abi.Ref
	Correlation uint64
	Trace       []byte // headers of the answer, nil for none
	Attached    *mailbox.Attached
}

// NewReply is a handle for the answer to a question. The caller has the asker observed by its ref.
func (t *Table) NewReply(q Question) (r *Reply, observer abi.Ref) {
	r = &Reply{t: t, uid: t.NewRef(), q: q, gone: make(chan struct{})}
	t.Put(r.uid, (*replyDoor)(r))
	return r, r.uid
}

// Send answers. It fails with ErrUsed the second time, with ErrUnknown if the asker has given up, and otherwise as
// System.Tell.
func (r *Reply) Send(v any) error { return r.send(abi.KindReply, v) }

// Fail answers with an error.
func (r *Reply) Fail(reason string) error { return r.send(abi.KindReplyError, reason) }

// Gone is closed when the asker no longer waits for the answer: the asker has stopped, has given up, or was answered by
// another actor, or the system has stopped.
func (r *Reply) Gone() <-chan struct{} { return r.gone }

// Context ends when Gone is closed, with the cause ErrGone. It has the values of
// Head.Values. Contexts derived from it take no goroutine.
func (r *Reply) Context() context.Context {
	values := context.Background()
	if r.q.Attached != nil && r.q.Attached.Context != nil {
		values = r.q.Attached.Context
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
		return errs.ErrUsed
	}
	if !r.t.Remove(r.uid) {
		e.Free()
		return errs.ErrUnknown
	}
	r.q.By.Answered()
	e.Kind, e.Sender, e.SenderPath, e.Correlation = kind, r.q.From, r.q.Path, r.q.Correlation
	e.Value, e.Attached = nil, r.q.Attached
	e.SetHeaders(r.q.Trace)
	return r.t.kernel.Deliver(r.q.To, e)
}

func (r *Reply) use() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.used
	r.used = true
	return !was
}

// replyDoor is the handle as a Receiver.
type replyDoor Reply

// Ended implements Receiver.
func (d *replyDoor) Ended(abi.Ref, string) bool {
	d.q.By.Answered()
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.gone)
	return true
}

// Shut implements Receiver.
func (d *replyDoor) Shut() bool { return d.Ended(0, "") }

// Take implements Receiver.
func (d *replyDoor) Take(*Table, *mailbox.Envelope) (event.DeadReason, error, bool) {
	return event.DeadUnknown, errs.ErrUnknown, false
}

// Fail implements Receiver.
func (d *replyDoor) Fail(uint64, abi.Ref, error) bool { return false }

// Delegate implements Receiver.
func (d *replyDoor) Delegate(uint64, abi.Ref, abi.Ref) {}

// Observe implements Receiver.
func (d *replyDoor) Observe(uint64, abi.Ref) bool { return false }

// Expire implements Receiver.
func (d *replyDoor) Expire(int64) (over, swept bool) { return false, false }

// Left ends the contexts that were derived from the handle's, without the lock of the shard: whoever ended the ask
// goes on when they have ended.
func (d *replyDoor) Left() []abi.Ref {
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
		return errs.ErrGone
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

// Trace is like Head.Trace, for the turn that has made the handle.
func (r *Reply) Trace(parent context.Context) context.Context {
	return r.t.kernel.In(parent, r.q.Trace)
}
