package network

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Outlet is the way of a system on one of several nodes to the others: its refs contain its node, and whatever is for a ref that
// nobody of its own has is given to the carrier, if there is one. So messages and signals between actors of one node cost what
// they cost without. Any goroutine may call its methods, Init before all others.
type Outlet struct {
	node    uint16 // 0: the system is alone
	time    Time
	carrier atomic.Pointer[Carrier] // nil: no other node can be reached
}

// Init says which node the system is, 0 for one that is alone, and what time it is.
func (o *Outlet) Init(node uint16, t Time) { o.node, o.time = node, t }

// Joined reports whether there is a carrier.
func (o *Outlet) Joined() bool { return o.carrier.Load() != nil }

// To is the carrier for a ref, nil if the ref is of this node or there is no carrier.
func (o *Outlet) To(to abi.Ref) Carrier {
	if c := o.carrier.Load(); c != nil && to.Node() != o.node && to.Node() != 0 {
		return *c
	}
	return nil
}

// leaving are messages that nobody sends at the moment.
var leaving = sync.Pool{New: func() any { return new(Message) }}

// Send gives a message for a ref of another node to the carrier; it is ErrUnknown if nobody carries it. The envelope
// stays the caller's.
func (o *Outlet) Send(to abi.Ref, e *mailbox.Envelope) error {
	c := o.To(to)
	if c == nil {
		return errs.ErrUnknown
	}
	m := leaving.Get().(*Message)
	defer leaving.Put(m)
	*m = Of(e, o.time)
	fits, err := m.Fits(), error(nil)
	if fits {
		err = c.Carry(to, m, nil)
	}
	*m = Message{}
	if !fits {
		return errs.ErrTooLarge
	}
	if err == nil || errors.Is(err, errs.ErrNodeLost) || errors.Is(err, errs.ErrMailboxFull) {
		return err
	}
	return errs.ErrUnknown
}

// Signal gives a signal for a ref of another node to the carrier; false if nobody carries it.
func (o *Outlet) Signal(to abi.Ref, m *signal.Signal) bool {
	c := o.To(to)
	if c == nil {
		return false
	}
	far := *m
	if m.Err != nil {
		far.Code, far.Reason = CodeAndText(m.Err)
		far.Path, far.Err = pathOf(m.From, m.Err), nil
	}
	if !isPath(m.From, far.Path) {
		far.Path = ""
	}
	return c.Carry(to, nil, &far) == nil
}

// CodeAndText are an error as it travels.
func CodeAndText(err error) (signal.Code, string) {
	if failed := (*errs.TurnError)(nil); errors.As(err, &failed) && failed.Failure != nil {
		return signal.Failed + signal.Code(failed.Failure.Kind), failed.Failure.Reason
	}
	return CodeOf(err), err.Error()
}

// pathOf is the full path of the actor whose turn has failed; empty if the error says none.
func pathOf(uid abi.Ref, err error) string {
	failed := (*errs.TurnError)(nil)
	if !errors.As(err, &failed) || failed.Failure == nil || failed.Ref.UID() != uid {
		return ""
	}
	return failed.Ref.URI()
}

// Elsewhere is where a message for the text of a ref, or the full path, of an actor on another node goes: to a ref, or to
// the other node, for the path below. ok is false if it is not on another node, or nobody carries messages there.
func (o *Outlet) Elsewhere(text string) (to abi.Ref, below string, ok bool) {
	node, elements, to, ok := ref.Far(text)
	if to == 0 {
		to, below = Root(node), strings.Join(elements, "/")
	}
	return to, below, ok && o.To(to) != nil
}
