// Services is the guest that the services are tested with. Each service has a file of its own with the
// types NAME-..., registered there in init. Here is what serves all of them.
package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

func main() {}

func init() {
	actor.Register("service-asker", func() actor.Actor { return asker{} })
	actor.Register("service-forwarder", func() actor.Actor { return forwarder{} })
}

// order is [service, op, args], or [ref, op, args], and optionally the timeout in ns.
type order struct {
	name    string
	ref     actor.Ref
	op      string
	args    actor.Raw
	timeout time.Duration
}

// UnmarshalCBOR implements actor.Decoder.
func (o *order) UnmarshalCBOR(r *abi.Reader) {
	n := r.Array()
	if n != 3 && n != 4 {
		r.Fail(abi.ErrArity)
		return
	}
	if r.Peek() == abi.TypeText {
		o.name = r.Text()
	} else {
		o.ref = r.Ref()
	}
	o.op, o.args, o.timeout = r.Text(), append(actor.Raw{}, r.Raw()...), 10*time.Second
	if n == 4 {
		o.timeout = time.Duration(r.Int())
	}
}

// asker does the request that it is asked for and answers with the answer, or with the error's text.
// Asked for "services" it answers with a map of those that it knows among http, kv, blob, sql, schedule,
// config, secrets, pubsub and gateway. A tell of an order becomes a tell.
type asker struct{}

var known = []string{"http", "kv", "blob", "sql", "schedule", "config", "secrets", "pubsub", "gateway"}

func (asker) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	if msg.Is("services") {
		return ctx.Reply(actor.Func(func(w *abi.Writer) {
			refs := map[string]actor.Ref{}
			for _, name := range known {
				if ref, ok := ctx.Service(name); ok {
					refs[name] = ref
				}
			}
			w.Map(len(refs))
			for _, name := range abi.SortedTextKeys(refs) {
				w.Text(name)
				w.Ref(refs[name])
			}
		}))
	}
	var o order
	if err := msg.Decode(&o); err != nil {
		return ctx.ReplyError(err.Error())
	}
	if msg.Sender() == 0 || msg.Correlation() == 0 {
		if o.ref != 0 {
			service.TellRef(ctx, o.ref, o.op, o.args)
		} else {
			service.Tell(ctx, o.name, o.op, o.args)
		}
		return nil
	}
	to, correlation := msg.Sender(), msg.Correlation()
	then := func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return ctx.AnswerError(to, correlation, err.Error())
		}
		return ctx.Answer(to, correlation, actor.Raw(m.Payload()))
	}
	if o.ref != 0 {
		service.AskRef(ctx, o.ref, o.op, o.args, o.timeout, then)
	} else {
		service.Ask(ctx, o.name, o.op, o.args, o.timeout, then)
	}
	return nil
}

// forwarder forwards every message to the service that its arguments name, in the name of who has sent
// it; arguments that are a ref name an actor.
type forwarder struct{}

func (forwarder) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := ctx.Args()
	if r.Peek() == abi.TypeUint {
		ctx.Forward(r.Ref())
		return nil
	}
	ref, ok := ctx.Service(r.Text())
	if !ok {
		return ctx.ReplyError("no grant")
	}
	ctx.Forward(ref)
	return nil
}
