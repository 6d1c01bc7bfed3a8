package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/fair"
)

// errClosing is the cause that ends the context of a request when the service closes.
var errClosing = errors.New("service: it is closing")

// frame is the actor of a service, over all its incarnations: it has no state that a restart
// would have to repair.
type frame[G any] struct {
	name     string
	env      *Env
	provider Provider[G]
	inline   Inline[G]    // nil: no operation is
	sequence Sequencer[G] // nil: the order does not matter
	atOnce   int
	denied   occasional // events of those without a grant
	faults   occasional // lines of the log
	ref      atomic.Pointer[host.Ref]
	counts   counts

	mu      sync.Mutex
	calls   map[*call]struct{}
	open    int // calls that are not answered yet
	closing bool
	idle    chan struct{} // closed when it closes and no call is left
}

// call is a request that Serve works on.
type call struct{ cancel context.CancelCauseFunc }

func newFrame[G any](name string, env *Env, p Provider[G], atOnce int) *frame[G] {
	f := &frame[G]{name: name, env: env, provider: p, atOnce: atOnce, calls: map[*call]struct{}{}, idle: make(chan struct{})}
	f.inline, _ = p.(Inline[G])
	f.sequence, _ = p.(Sequencer[G])
	return f
}

// Most children, and watches of them, that a service's actor may have.
const mostChildren = 1 << 20

func (f *frame[G]) props() host.Props {
	return host.Func(f.receive).WithMailbox(fair.New).
		WithLimits(host.Limits{Replies: f.atOnce + 1, Children: mostChildren, Watches: mostChildren})
}

func (f *frame[G]) self() host.Ref {
	if ref := f.ref.Load(); ref != nil {
		return *ref
	}
	return host.Ref{}
}

func (f *frame[G]) receive(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage {
		return host.ErrUnhandled
	}
	wanted := m.Correlation != 0 && !m.Sender.IsZero()
	granted, _ := ctx.Grant(f.name).(*Granted[G])
	if granted == nil {
		f.turnAway(ctx, wanted, "", f.refuse(m.Sender, &f.denied, Deny("", "%s is not granted", f.name)))
		return nil
	}
	op, args, err := split(m.Payload)
	if err != nil {
		f.turnAway(ctx, wanted, "", err)
		return nil
	}
	r := &Request[G]{Op: op, Args: args, Sender: m.Sender, Grant: &granted.grant, frame: f, granted: granted, wanted: wanted}
	size := int64(len(m.Payload))
	if err := granted.budget.admit(f.env.Clock.Now(), size); err != nil {
		f.turnAway(ctx, wanted, op, err)
		return nil
	}
	if f.inline != nil {
		if answer, err, ok := f.now(r); ok {
			granted.budget.leave(1, size)
			f.answer(ctx, wanted, answer, f.seen(r, err))
			return nil
		}
	}
	if err := f.later(ctx, r, size); err != nil {
		granted.budget.leave(1, size)
		f.turnAway(ctx, wanted, op, err)
	}
	return nil
}

// turnAway answers a request that does not reach the provider.
func (f *frame[G]) turnAway(ctx *host.Context, wanted bool, op string, err error) {
	f.counts.turnedAway(op, err)
	f.answer(ctx, wanted, nil, err)
}

// now is ServeNow, with panics as errors.
func (f *frame[G]) now(r *Request[G]) (answer any, err error, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			answer, err, ok = nil, f.panicked(r.Op, p), true
		}
	}()
	return f.inline.ServeNow(r)
}

// later makes Serve do the work.
func (f *frame[G]) later(ctx *host.Context, r *Request[G], size int64) *Error {
	base := ctx.Trace(ctx.Values())
	var reply *host.Reply
	c := &call{}
	if err := f.begin(c); err != nil {
		return err
	}
	if r.wanted {
		var err error
		if reply, err = ctx.Later(); err != nil {
			f.answered()
			f.end(c)
			return Errorf(Busy, "too many requests of all actors are in progress")
		}
		base = reply.Trace(reply.Context())
	}
	// The mailbox reuses the payload when the turn ends.
	r.Args = append([]byte(nil), r.Args...)
	work, cancel := context.WithCancelCause(base)
	f.mu.Lock()
	if c.cancel = cancel; f.closing {
		cancel(errClosing)
	}
	f.mu.Unlock()
	if f.sequence != nil {
		f.sequence.Accepted(r)
	}
	timer := f.env.Clock.AfterFunc(r.granted.budget.bounds.Timeout, func() { cancel(context.DeadlineExceeded) })
	go func() {
		answer, err := f.serve(work, r)
		timer.Stop()
		payload, err := f.encode(r, answer, ended(work, err))
		err = f.seen(r, err)
		// First the room is given back, then the answer is sent: the receiver may ask again at once.
		r.granted.budget.leave(1, size)
		f.answered()
		switch {
		case reply == nil:
		case err != nil:
			_ = reply.Fail(err.Error())
		default:
			_ = reply.Send(host.Raw(payload)) // an error says that nobody waits any more
		}
		cancel(nil)
		f.end(c)
	}()
	return nil
}

// begin adds a call, unless there are too many, or the service closes.
func (f *frame[G]) begin(c *call) *Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closing:
		return Errorf(Unavailable, "%s is closing", f.name)
	case f.open >= f.atOnce:
		return Errorf(Busy, "%d requests of all actors are in progress, which is the limit", f.atOnce)
	}
	f.calls[c] = struct{}{}
	f.open++
	return nil
}

// answered gives back the room that begin has taken.
func (f *frame[G]) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

// working is how many requests are under way.
func (f *frame[G]) working() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// unfinished is how many calls have something left to do.
func (f *frame[G]) unfinished() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// end is called when a call has nothing left to do.
func (f *frame[G]) end(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, c)
	if f.closing && len(f.calls) == 0 {
		close(f.idle)
	}
}

// stop ends all calls; idle is closed when they have returned.
func (f *frame[G]) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return
	}
	f.closing = true
	if len(f.calls) == 0 {
		close(f.idle)
	}
	for c := range f.calls {
		if c.cancel != nil {
			c.cancel(errClosing)
		}
	}
}

// serve is Serve, with panics as errors.
func (f *frame[G]) serve(ctx context.Context, r *Request[G]) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, f.panicked(r.Op, p)
		}
	}()
	return f.provider.Serve(ctx, r)
}

func (f *frame[G]) panicked(op string, p any) error {
	f.fault("a service has panicked", "op", op, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &Error{Code: Internal, Text: "the service has failed"}
}

// fault writes to the log what the operator of the service should repair. A guest may know how to
// cause it, and could fill a disk with it.
func (f *frame[G]) fault(text string, args ...any) {
	if ok, silent := f.faults.allow(f.env.Clock.Now()); ok {
		if silent > 0 {
			args = append(args, "more_before", silent)
		}
		f.env.Log.Error(text, args...)
	}
}

// ended gives an error that was caused by the end of the request's context the matching code.
func ended(ctx context.Context, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) || ctx.Err() == nil {
		return err
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		return &Error{Code: Timeout, Text: "the request took longer than timeout of the grant", Err: err}
	case errors.Is(cause, errClosing):
		return &Error{Code: Unavailable, Text: "the service is closing", Err: err}
	}
	return &Error{Code: Cancelled, Text: "the asker no longer waits for the answer", Err: err}
}

// seen makes an error one for the guest, counts the request, and reports a denial.
func (f *frame[G]) seen(r *Request[G], err error) error {
	f.counts.add(r.Op, err)
	if err == nil {
		return nil
	}
	var known *Error
	if !errors.As(err, &known) {
		f.fault("a request has failed", "op", r.Op, "actor", r.Sender.Path(), "error", err)
		return &Error{Code: Internal, Text: "the service has failed", Err: err}
	}
	if known.Code == Denied {
		return f.refuse(r.Sender, &r.granted.denied, known)
	}
	return known
}

// refuse tells the operator of the system, and the guest, which key would allow it.
func (f *frame[G]) refuse(sender host.Ref, told *occasional, e *Error) *Error {
	key := "capabilities." + f.name
	if e.Key != "" {
		key += "." + e.Key
	}
	if ok, _ := told.allow(f.env.Clock.Now()); ok {
		f.env.System.Refused(sender, host.Refusal{What: f.name, Reason: e.Text, Denied: true, Key: key})
	}
	return &Error{Code: Denied, Key: e.Key, Text: e.Text + "; " + key + " in the manifest would allow it"}
}

// answer ends a request within the turn.
func (f *frame[G]) answer(ctx *host.Context, wanted bool, answer any, err error) {
	switch {
	case !wanted:
	case err != nil:
		_ = ctx.ReplyError(err.Error())
	default:
		if ctx.Reply(answer) != nil { // it cannot be encoded
			_ = ctx.ReplyError((&Error{Code: Internal, Text: "the answer cannot be encoded"}).Error())
		}
	}
}

// encode is the answer to a request after the turn, encoded.
func (f *frame[G]) encode(r *Request[G], answer any, err error) ([]byte, error) {
	if err != nil || !r.wanted {
		return nil, err
	}
	payload, err := host.Encode(answer)
	if err != nil {
		f.fault("an answer cannot be encoded", "op", r.Op, "error", err)
		return nil, &Error{Code: Internal, Text: "the answer cannot be encoded"}
	}
	return payload, nil
}

// plain is the message of a decoder, without its prefix about the decoder.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "cbor: "), "unmarshal error: ")
}
