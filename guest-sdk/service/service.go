// Package service makes requests to the services of the host that an actor was granted under capabilities in
// the manifest. Each service has a package with functions of its own (guest-sdk/pubsub and its like); this one is
// what they are made with, and what to use for a service of your own.
//
//	service.Ask(ctx, "kv", "get", key("user/7"), time.Second, func(ctx *actor.Context, m *actor.Message, err error) error {
//		if errors.Is(err, service.ErrNotFound) { ... }
//		...
//	})
//
// A request leaves when the turn has ended, like any message: a turn that fails has asked for
// nothing. The answer comes in a later turn.
package service

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Then gets an answer, whose payload m has, or an error, which is an *Error. With an error m is
// nil. m is valid until Then returns. What Then returns is what the turn returns.
type Then = func(ctx *actor.Context, m *actor.Message, err error) error

// Ask requests something of the service that the actor has been granted under a name, and calls then
// with the answer, in a later turn. Without a grant then is called at once with ErrDenied, and
// an error that it returns fails this turn. Nil for args is null. Timeouts are 1 ms to 24 h. A
// restart forgets requests under way, and the service ends its work on them.
func Ask(ctx *actor.Context, name, op string, args actor.Encoder, timeout time.Duration, then Then) {
	ref, ok := ctx.Service(name)
	if !ok {
		ctx.Fail(then(ctx, nil, ungranted(name)))
		return
	}
	AskRef(ctx, ref, op, args, timeout, then)
}

// AskRef is Ask to an actor of a service whose ref came in an answer: a stream, a subscription.
func AskRef(ctx *actor.Context, ref actor.Ref, op string, args actor.Encoder, timeout time.Duration, then Then) {
	r := request{op, args}
	ctx.Ask(ref, &r, timeout, func(ctx *actor.Context, m *actor.Message) error {
		switch m.Kind() {
		case actor.KindReply:
			return then(ctx, m, nil)
		case actor.KindReplyError:
			return then(ctx, nil, parse(m.Text()))
		}
		return then(ctx, nil, &Error{Timeout, "no answer to " + op + " within " + timeout.String()})
	})
}

// Tell makes a request without waiting for an answer. Without a grant it writes a warning to the log
// and does nothing else; with one, there is still no telling whether the service did it.
func Tell(ctx *actor.Context, name, op string, args actor.Encoder) {
	ref, ok := ctx.Service(name)
	if !ok {
		ctx.Warn(op + " was not requested: " + ungranted(name).Error())
		return
	}
	TellRef(ctx, ref, op, args)
}

// TellRef is Tell to an actor of a service whose ref came in an answer.
func TellRef(ctx *actor.Context, ref actor.Ref, op string, args actor.Encoder) {
	r := request{op, args}
	ctx.Tell(ref, &r)
}

func ungranted(name string) *Error {
	return &Error{Denied, "the actor was started without the service " + name + ": add " + name + " to its capabilities in the manifest, unless the host does not run it"}
}

// request is [op, args].
type request struct {
	op   string
	args actor.Encoder
}

// MarshalCBOR implements actor.Encoder.
func (r *request) MarshalCBOR(w *abi.Writer) {
	w.Array(2)
	w.Text(r.op)
	if r.args == nil {
		w.Null()
		return
	}
	r.args.MarshalCBOR(w)
}
