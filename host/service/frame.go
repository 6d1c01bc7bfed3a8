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
	"github.com/wasmactors/wasmactors/supervision"
)

// errClosing is the cause that ends the context of a request when the service closes.
var errClosing = errors.New("service: it is closing")

// frame is the actor of a service, over all its incarnations. Each incarnation has a session of its own:
// a provider, and the requests that it works on.
type frame[G any] struct {
	name   string
	env    *Env
	open   func() (Provider[G], error)
	atOnce int
	denied occasional // events of those without a grant
	faults occasional // lines of the log
	ref    atomic.Pointer[host.Ref]
	counts counts
	waits  atomic.Int64 // requests that wait for room in their grant

	mu      sync.Mutex
	now     *session[G] // the last one; nil: none is open
	outage  Outage      // Since is zero: it serves
	opening int         // goroutines that close a session and open another
	attempt int         // the last one of them
	over    bool        // the system has ended
	settled *sync.Cond  // of opening
	one     sync.Mutex  // held by the one that is at it
}

func newFrame[G any](name string, env *Env, atOnce int, open func() (Provider[G], error)) *frame[G] {
	f := &frame[G]{name: name, env: env, open: open, atOnce: atOnce}
	f.settled = sync.NewCond(&f.mu)
	return f
}

// Most children, and watches of them, that a service's actor may have.
const mostChildren = 1 << 20

func (f *frame[G]) props() host.Props {
	begun := false
	return host.Native(func() host.Actor {
		i := &incarnation[G]{frame: f, again: begun}
		begun = true
		return i
	}).WithMailbox(fair.New).WithLifetime(supervision.Permanent).
		WithLimits(host.Limits{Replies: 2*f.atOnce + 1, Children: mostChildren, Watches: mostChildren})
}

func (f *frame[G]) self() host.Ref {
	if ref := f.ref.Load(); ref != nil {
		return *ref
	}
	return host.Ref{}
}

// receive handles a message; s is the session, nil if none is open.
func (f *frame[G]) receive(ctx *host.Context, m host.Message, s *session[G]) error {
	if m.Kind != abi.KindMessage {
		return host.ErrUnhandled
	}
	wanted := m.Correlation != 0 && !m.Sender.IsZero()
	granted, _ := ctx.Head().Grant(f.name).(*Granted[G])
	if granted == nil {
		f.turnAway(ctx, wanted, "", f.refuse(m.Sender, &f.denied, Deny("", "%s is not granted", f.name)))
		return nil
	}
	op, args, err := split(m.Payload)
	if err != nil {
		f.turnAway(ctx, wanted, "", err)
		return nil
	}
	if s == nil {
		f.turnAway(ctx, wanted, op, Errorf(Unavailable, "%s has failed, and is being started again", f.name))
		return nil
	}
	r := &Request[G]{Op: op, Args: args, Sender: m.Sender, Grant: &granted.grant, Effect: ctx.Head().Effect(), frame: f, granted: granted, wanted: wanted, begun: f.env.Clock.Now()}
	size := int64(len(m.Payload))
	if err := granted.budget.admit(f.env.Clock.Now(), size); err != nil {
		f.turnAway(ctx, wanted, op, err)
		return nil
	}
	if s.inline != nil {
		if answer, err, ok := s.serveNow(r); ok {
			granted.budget.leave(0, size)
			f.answer(ctx, wanted, answer, f.seen(r, err))
			return nil
		}
	}
	if err := s.later(ctx, r, size); err != nil {
		granted.budget.leave(0, size)
		f.turnAway(ctx, wanted, op, err)
	}
	return nil
}

// turnAway answers a request that does not reach the provider.
func (f *frame[G]) turnAway(ctx *host.Context, wanted bool, op string, err error) {
	f.counts.turnedAway(op, err)
	f.answer(ctx, wanted, nil, err)
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
	f.counts.add(r.Op, err, f.env.Clock.Now().Sub(r.begun))
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
