//go:build !wasip1

package actor_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

var said []string

func around(name string) actor.Interceptor {
	return func(next actor.Behavior) actor.Behavior {
		n := int64(0) // state of the incarnation
		var r actor.Replacement
		return func(ctx *actor.Context, msg *actor.Message) error {
			n++
			said = append(said, name+" before")
			if msg.Is("stop at " + name) {
				return ctx.Reply(actor.Int(n)) // handled completely
			}
			var err error
			if msg.Is("change") {
				err = r.Next(ctx, msg, actor.Text("changed by "+name), next)
				if !msg.Is("change") {
					panic("the outer one has lost its message")
				}
			} else if text := msg.Text(); len(text) > 8 && text[:8] == "changed " {
				err = r.Next(ctx, msg, actor.Text(text+" and "+name), next)
			} else {
				err = next(ctx, msg)
			}
			after := name + " after"
			if err != nil {
				after += ": " + err.Error()
			}
			said = append(said, after)
			return err
		}
	}
}

// core implements all that an actor may.
type core struct{}

func (core) Receive(ctx *actor.Context, msg *actor.Message) error {
	said = append(said, "core "+msg.Text())
	if msg.Is("changed by outer and inner") && msg.Sender() == 77 {
		panic("as told")
	}
	if msg.Is("fail") {
		return errors.New("no")
	}
	return ctx.Reply(actor.Text(msg.Text()))
}
func (core) Started(*actor.Context) error            { said = append(said, "started"); return nil }
func (core) Stopped(*actor.Context)                  { said = append(said, "stopped") }
func (core) PreRestart(_ *actor.Context, why string) { said = append(said, "restart "+why) }
func (core) Decide(*actor.Context, actor.Ref, *abi.Failure) actor.Directive {
	return actor.Escalate
}

// plain has no methods but Receive.
type plain struct{ n, size int }

func (p *plain) Receive(_ *actor.Context, msg *actor.Message) error {
	p.n++
	p.size += len(msg.Payload()) + len(msg.Reader().ByteString())
	return nil
}

func init() {
	actor.Register("intercepted", actor.Intercepted(func() actor.Actor { return core{} }, around("outer"), around("inner")))
	actor.Register("intercepted-plain", actor.Intercepted(func() actor.Actor { return &plain{} }))
	actor.Register("intercepted-much", actor.Intercepted(func() actor.Actor { return &plain{} }, func(next actor.Behavior) actor.Behavior {
		var r actor.Replacement
		return func(ctx *actor.Context, msg *actor.Message) error {
			if err := r.Next(ctx, msg, actor.Raw("\x4a0123456789"), next); err != nil {
				return err
			}
			return r.Next(ctx, msg, actor.Raw("\x500123456789012345"), next)
		}
	}))
}

// TestK23_Interceptors: the first one is outermost, what one does not hand on nobody inside sees, what comes
// after comes in the opposite order, also after an error.
func TestK23_Interceptors(t *testing.T) {
	wants := func(want ...string) {
		t.Helper()
		if !slices.Equal(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
		said = nil
	}
	said = nil
	a := actortest.Spawn(t, "intercepted")
	wants("started")
	a.Send(actor.Text("x"))
	wants("outer before", "inner before", "core x", "inner after", "outer after")
	if got := a.Send(actor.Text("stop at inner")).Reply().Int(); got != 2 {
		t.Errorf("%d", got)
	}
	wants("outer before", "inner before", "outer after")
	a.Send(actor.Text("stop at outer"))
	wants("outer before")
	if got := a.Send(actor.Text("change")).Reply().Text(); got != "changed by outer and inner" {
		t.Errorf("%q", got)
	}
	wants("outer before", "inner before", "core changed by outer and inner", "inner after", "outer after")
	if a.Send(actor.Text("fail")).Failure == nil {
		t.Error("an error is swallowed")
	}
	wants("outer before", "inner before", "core fail", "inner after: no", "outer after: no")
	a.Restart()
	wants("started")
	if f := a.Deliver(actortest.Message{Sender: 77, Body: actor.Text("change")}).Failure; f == nil {
		t.Errorf("%+v", f) // within two replacements
	}
	a.Restart()
	if got := a.Send(actor.Text("stop at outer")).Reply().Int(); got != 1 {
		t.Errorf("the state of an interceptor outlives its incarnation: %d", got)
	}
	said = nil
	a.Stop()
	wants("stopped")
	b := actortest.Spawn(t, "intercepted")
	if d := b.Decide(5, abi.Failure{Kind: abi.FailureGuestError}).Decided; d != actor.Escalate {
		t.Errorf("decided %v", d)
	}
	p := actortest.Spawn(t, "intercepted-plain") // which has none of the methods
	if d := p.Decide(5, abi.Failure{Kind: abi.FailureGuestError}).Decided; d != actor.DefaultDirective {
		t.Errorf("decided %v", d)
	}
	p.Stop()
}

type oneEntry struct{ begun bool }

func (h *oneEntry) Next(int) bool {
	h.begun = !h.begun
	return h.begun
}
func (*oneEntry) Flush([]byte)      { panic("a flush") }
func (*oneEntry) Log(int, []byte)   {}
func (*oneEntry) Panic(text []byte) { panic(string(text)) }

// An intercepted message allocates nothing, though its payload is replaced twice.
func TestInterceptorsDoNotAllocate(t *testing.T) {
	h, old := &oneEntry{}, bridge.Current
	bridge.Current = h
	defer func() { bridge.Current = old }()
	var state any
	enter := func(e []byte) {
		h.begun = false
		state, _ = bridge.Loop.Turn(state, e)
	}
	enter(abi.AppendEnvelope(nil, &abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &abi.Start{Type: "intercepted-much", Path: "x", Self: 9, Args: []byte{0xf6}})}))
	message := abi.AppendEnvelope(nil, &abi.Envelope{Kind: abi.KindMessage, Time: 1 << 60, Sender: 1 << 40, Payload: []byte{0xf6}})
	enter(message)
	if n := testing.AllocsPerRun(500, func() { enter(message) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
