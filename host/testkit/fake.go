package testkit

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Fake stands in for a service: an actor below /system that answers as the test says.
type Fake struct {
	k       *Kit
	name    string
	ref     host.Ref
	handler func(*Call)

	mu    sync.Mutex
	calls []*Call
}

// Call is a request that a [Fake] has received. It is answered once: by the handler, or later by the test.
type Call struct {
	Op     string
	Args   []byte // CBOR
	Sender host.Ref
	Grant  any       // what the sender was granted
	Wanted bool      // somebody waits for the answer
	At     time.Time // by the system's clock

	fake  *Fake
	reply *host.Reply // nil: nobody waits
}

// Serve puts a fake in a service's place. Start it before the actors that use it, and grant it with
// [Fake.For], as a manifest would. Requests are recorded and passed to the handler, within the fake's turn; it may answer at
// once, in virtual time ([Call.AnswerAfter]), from a goroutine ([Call.Go]), or never. A nil handler leaves
// it to the test. As by a real service a request is refused, and does not reach the handler, if its sender has no grant, or
// if it is not [op, args].
func (k *Kit) Serve(name string, handler func(*Call)) *Fake {
	k.t.Helper()
	f := &Fake{k: k, name: name, handler: handler}
	ref, err := k.sys.SpawnService(name, host.Func(f.receive).WithLimits(host.Limits{Replies: maxProbe}))
	if err != nil {
		k.t.Fatalf("testkit: the fake %s: %v", name, err)
	}
	f.ref = ref
	k.Run()
	return f
}

// For adds a grant of the service to an actor's props.
func (f *Fake) For(p host.Props) host.Props { return p.WithGrant(f.name, granted{}) }

// granted is the grant of a fake.
type granted struct{}

// Ref is the ref to which requests are sent.
func (f *Fake) Ref() host.Ref { return f.ref }

// Calls are the requests received so far.
func (f *Fake) Calls() []*Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// receive is a turn of the fake.
func (f *Fake) receive(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage {
		return host.ErrUnhandled
	}
	c := &Call{fake: f, Sender: m.Sender, Grant: ctx.Head().Grant(f.name), At: ctx.Now()}
	reply, err := ctx.Later()
	switch {
	case err == nil && m.Correlation != 0:
		c.reply, c.Wanted = reply, true
	case err != nil && !errors.Is(err, host.ErrNoQuestion):
		return err
	}
	if c.Grant == nil {
		c.Fail(service.Denied, "the sender has no grant for the service "+f.name)
		return nil
	}
	r := abi.NewReader(slices.Clone(m.Payload))
	if n := r.Array(); n == 2 && r.OK() {
		c.Op, c.Args = strings.Clone(r.Text()), slices.Clone(r.Raw())
	} else {
		r.Fail(abi.ErrArity)
	}
	if err := r.Done(); err != nil {
		c.Fail(service.BadRequest, "a request is [op, args]: "+err.Error())
		return nil
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	if f.handler != nil {
		f.handler(c)
	}
	f.k.tell()
	return nil
}

// Decode reads the arguments into v as fxamacker/cbor does. If they are something else the test fails.
func (c *Call) Decode(v any) {
	c.fake.k.t.Helper()
	if err := (host.Message{Payload: c.Args}).Decode(v); err != nil {
		c.fake.k.t.Errorf("testkit: the arguments of %s %s: %v: %s", c.fake.name, c.Op, err, value(c.Args))
	}
}

// Answer answers the request. The error says that it was answered already, or that the asker has given up.
func (c *Call) Answer(v any) error {
	if c.reply == nil {
		return host.ErrNoQuestion
	}
	return c.reply.Send(v)
}

// Fail answers with an error, as services do.
func (c *Call) Fail(code service.Code, text string) {
	if c.reply != nil {
		_ = c.reply.Fail(service.Errorf(code, "%s", text).Error()) // nobody may wait any more
	}
}

// AnswerAfter answers when d has passed by the system's clock.
func (c *Call) AnswerAfter(d time.Duration, v any) {
	c.fake.k.clock.AfterFunc(d, func() { _ = c.Answer(v) })
}

// Go runs f in a goroutine of its own and answers with what it returns: an error of service.Errorf
// with its code. Virtual time stands still until f is done.
func (c *Call) Go(f func() (any, error)) {
	c.fake.k.Go("the fake "+c.fake.name, func() {
		v, err := f()
		switch {
		case c.reply == nil:
		case err != nil:
			var coded *service.Error
			if !errors.As(err, &coded) {
				coded = service.Errorf(service.Internal, "%v", err)
			}
			_ = c.reply.Fail(coded.Error())
		default:
			_ = c.reply.Send(v)
		}
	})
}
