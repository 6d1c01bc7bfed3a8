// The guest of the conformance tests: a worker that does what it is told, well or
// badly, and a boss that decides about its children as its arguments say.
package main

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// worker counts what it is told to add.
type worker struct {
	n     int64
	trail string // of hooks
}

func (w *worker) Started(ctx *actor.Context) error {
	if r := ctx.Args(); string(r.TextBytes()) == "fails to start" {
		return errors.New("no start today")
	}
	return nil
}

func (w *worker) Receive(ctx *actor.Context, m *actor.Message) error {
	switch m.Kind() {
	case actor.KindTimer, actor.KindReply:
		w.n += 100
		return nil
	}
	if n, ok := m.Int(); ok {
		w.n += n
		return nil
	}
	switch what, arg, _ := strings.Cut(m.Text(), " "); what {
	case "get":
		return ctx.Reply(actor.Int(w.n))
	case "panic":
		w.n = -1
		panic(arg)
	case "fail":
		w.n = -1
		return errors.New(arg)
	case "later":
		ctx.After(7, time.Second, nil)
	case "ask-self": // answered by a turn of its own
		ctx.Ask(ctx.Self(), actor.Text("answer"), time.Minute, func(ctx *actor.Context, m *actor.Message) error {
			w.n += 10
			return nil
		})
	case "answer":
		return ctx.Reply(actor.Int(1))
	case "kids":
		ctx.Spawn("worker", "", nil)
	case "roll": // state that depends on the actor's randomness and clock
		w.n += int64(ctx.Rand().Uint64()%1000) + ctx.Now().UnixNano()%1000
	case "reset":
		ctx.ResetBackoff()
	case "quit":
		ctx.StopSelf()
	default:
		return actor.ErrUnhandled
	}
	return nil
}

// PreRestart tells /user/sink.
func (w *worker) PreRestart(ctx *actor.Context, reason string) {
	ctx.TellPath("/user/sink", actor.Text("pre-restart: "+reason))
	ctx.After(9, 0, nil) // has no effect: in its last turn an actor can only send
}

// boss starts a worker and decides as its arguments say.
type boss struct{ decides, asked int64 }

func (b *boss) Started(ctx *actor.Context) error {
	b.decides = ctx.Args().Int()
	return nil
}

func (b *boss) Receive(ctx *actor.Context, m *actor.Message) error {
	switch m.Text() {
	case "asked":
		return ctx.Reply(actor.Int(b.asked))
	case "fail":
		return errors.New("told to")
	}
	ctx.Spawn("worker", m.Text(), nil)
	return nil
}

func (b *boss) Decide(ctx *actor.Context, child actor.Ref, f *abi.Failure) actor.Directive {
	b.asked++
	ctx.TellPath("/user/sink", actor.Text("asked: "+f.Reason))
	if b.decides == 99 {
		panic("cannot decide")
	}
	return actor.Directive(b.decides)
}

// carrier confirms what it has done with.
type carrier struct{ n int64 }

func (c *carrier) Receive(ctx *actor.Context, m *actor.Message) error {
	switch n, ok := m.Int(); {
	case ok:
		c.n += n
	case m.Is("get"):
		ctx.Confirm(m.ID())
		return ctx.Reply(actor.Int(c.n))
	default:
		panic(m.Text())
	}
	ctx.TellPath("/user/sink", actor.Text("carried"))
	ctx.Confirm(m.ID())
	return nil
}

func init() {
	actor.Register("carrier", func() actor.Actor { return &carrier{} })
	actor.Register("worker", func() actor.Actor { return &worker{} })
	actor.Register("boss", func() actor.Actor { return &boss{} })
}

func main() {}
