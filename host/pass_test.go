package host

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/trail"
)

// What is passed on is the message itself; the turn may go on to forward it and to answer, and a
// turn that fails has passed on nothing, whatever becomes of the message.
func TestPass(t *testing.T) {
	l := newStage(t, nil)
	var at, got *byte
	sink := l.spawn("sink", Func(func(_ *Context, m Message) error {
		got = &m.Payload[0]
		l.got = append(l.got, "sink "+describe(m))
		return nil
	}))
	fails := 0
	passer := l.spawn("passer", Func(func(ctx *Context, m Message) error {
		at = &m.Payload[0]
		if err := errors.Join(ctx.Head().Pass(sink), ctx.Head().Pass(l.probe), ctx.Forward(l.probe), ctx.Reply("answer")); err != nil {
			return err
		}
		if fails > 0 {
			fails--
			return errors.New("fails")
		}
		return nil
	}).WithCrashedMessage(RedeliverCrashed(5)))
	l.say(passer, strings.Repeat("x", 200))
	if at != got {
		t.Error("the message was copied")
	}
	x := strings.Repeat("x", 200)
	slices.Sort(l.got)
	l.wants("message "+x, "message "+x, "reply answer", "sink message "+x)

	fails = 2
	l.say(passer, "y")
	slices.Sort(l.got)
	l.wants("message y", "message y", "reply answer", "sink message y")

	// A question that is passed on may be answered by the receiver.
	echo := l.spawn("echo", Func(func(ctx *Context, m Message) error { return ctx.Reply("from echo") }))
	front := l.spawn("front", Func(func(ctx *Context, m Message) error { return ctx.Head().Pass(echo) }))
	p := must(l.Request(front, 1))(t)
	l.run()
	if m := <-p.Answer(); m.Err() != nil || m.Sender != echo {
		t.Errorf("%v", m)
	}
	// Envelopes come back to the stock once: many messages do not mix.
	for range 200 {
		l.post(front, "z")
	}
	l.run()
	if err := (&Context{}).Head().Pass(echo); !errors.Is(err, ErrNoQuestion) {
		t.Error(err)
	}
}

// Headers of a message from Go, with a trace and without one; a header can be left out.
func TestHeaded(t *testing.T) {
	for _, traced := range []bool{false, true} {
		l := newStage(t, func(c Config) Config {
			if traced {
				c = c.WithTracer(&spanTexts{})
			}
			return c
		})
		a := l.spawn("a", Func(func(ctx *Context, m Message) error {
			return errors.Join(ctx.Forward(l.probe), ctx.Head().ForwardWithout(l.probe, "b"), ctx.Head().Pass(l.probe))
		}))
		l.mail = nil
		l.say(a, Headed{Value: Marked{Value: 7, Marks: Suppressed}, Headers: map[string]string{"b": "2", "a": "1"}})
		if len(l.mail) != 3 {
			t.Fatalf("%d messages", len(l.mail))
		}
		for i, m := range l.mail {
			x, okX := abi.FindHeader(m.Headers, "a")
			y, okY := abi.FindHeader(m.Headers, "b")
			if string(x) != "1" || !okX || okY != (i != 1) || okY && string(y) != "2" || trail.Has(m.Headers) != traced {
				t.Errorf("message %d has %q", i, m.Headers)
			}
			var n int
			if err := m.Decode(&n); err != nil || n != 7 {
				t.Errorf("%d, %v", n, err)
			}
		}
		for _, h := range []map[string]string{{strings.Repeat("k", abi.MaxHeaderKey+1): ""}, {"k": strings.Repeat("v", abi.MaxHeaderValue+1)}, {"\xff": ""}, {"k": "\xff"}} {
			if err := l.Tell(a, Headed{Value: 1, Headers: h}); err == nil {
				t.Errorf("%q is accepted", h)
			}
		}
		many := map[string]string{}
		for i := range abi.MaxHeaders + 1 {
			many[string(rune('a'+i))] = ""
		}
		if err := l.Tell(a, Headed{Value: 1, Headers: many}); err == nil {
			t.Error("too many headers are accepted")
		}
	}
}

// How busy an actor is, to whoever asks.
func TestLoad(t *testing.T) {
	l := newStage(t, nil)
	var within Load
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		within, _ = ctx.System().Load(ctx.Self())
		return nil
	}))
	l.post(a, 1)
	l.post(a, 2)
	if got, ok := l.Load(a); !ok || got != (Load{Waiting: 2, Open: true}) {
		t.Errorf("%+v, %v", got, ok)
	}
	l.run()
	if within != (Load{Running: true, Open: true}) {
		t.Errorf("%+v", within)
	}
	if err := l.Operate().Pause(a, false); err != nil {
		t.Fatal(err)
	}
	l.run()
	if got, _ := l.Load(a); got.Open {
		t.Errorf("%+v", got)
	}
	l.Stop(a)
	l.run()
	if _, ok := l.Load(a); ok {
		t.Error("one that has stopped has a load")
	}
	l.Wake(a) // nobody
}

// A mailbox that holds messages back has its actor look again.
func TestWake(t *testing.T) {
	l := newStage(t, nil)
	var held *holding
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		if ctx.Head().Mailbox() != Mailbox(held) {
			t.Error("another mailbox")
		}
		return ctx.Forward(l.probe)
	}).WithMailbox(func(MailboxLimits) Mailbox { held = &holding{hold: true}; return held }))
	l.say(a, 1)
	l.wants()
	held.hold = false
	l.run()
	l.wants()
	l.Wake(a)
	l.run()
	l.wants("message 1")
}

// holding shows nothing while it holds.
type holding struct {
	plainBox
	hold bool
}

func (h *holding) Peek() *Envelope {
	if h.hold {
		return nil
	}
	return h.plainBox.Peek()
}
func (h *holding) Empty() bool { return h.Peek() == nil }

// plainBox is a mailbox for one goroutine.
type plainBox struct{ es []*Envelope }

func (p *plainBox) Push(e *Envelope) error { p.es = append(p.es, e); return nil }
func (p *plainBox) Force(e *Envelope) bool { p.es = append(p.es, e); return true }
func (p *plainBox) Peek() *Envelope {
	if len(p.es) == 0 {
		return nil
	}
	return p.es[0]
}
func (p *plainBox) Pop() *Envelope {
	e := p.Peek()
	if e != nil {
		p.es = p.es[1:]
	}
	return e
}
func (p *plainBox) PushFront(es ...*Envelope) { p.es = append(es, p.es...) }
func (p *plainBox) Close(drain func(*Envelope)) {
	for _, e := range p.es {
		drain(e)
	}
	p.es = nil
}
func (p *plainBox) Len() int     { return len(p.es) }
func (p *plainBox) Bytes() int64 { return 0 }

// Draws are the actor's own, and with a seed the same.
func TestDraw(t *testing.T) {
	draws := func(seed uint64) (all []uint64) {
		l := newStage(t, func(c Config) Config { return c.WithSeed(seed) })
		for _, name := range []string{"a", "b"} {
			l.spawn(name, Native(func() Actor { return drawer{&all} }))
		}
		return all
	}
	x, y, z := draws(1), draws(1), draws(2)
	if len(x) != 4 || x[0] != y[0] || x[3] != y[3] || x[0] == z[0] || x[0] == x[1] || x[0] == x[2] {
		t.Errorf("%v %v %v", x, y, z)
	}
}

type drawer struct{ all *[]uint64 }

func (d drawer) Started(ctx *Context) error {
	*d.all = append(*d.all, ctx.Head().Draw(), ctx.Head().Draw())
	return nil
}
func (drawer) Receive(*Context, Message) error { return nil }
