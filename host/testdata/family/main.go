// The guest of the conformance tests: a worker that does what it is told, well or
// badly, and a boss that decides about its children as its arguments say.
package main

import (
	"encoding/binary"
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
	case "order": // of a map, as Go draws it
		order := ""
		for name := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10} {
			order += name
		}
		ctx.TellPath("/user/sink", actor.Text(order))
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

// porter moves large byte strings. What it does with one says the first byte.
type porter struct {
	args  actor.Bytes
	count int64
}

func (p *porter) Started(ctx *actor.Context) error {
	if ctx.Args().Peek() != abi.TypeBytes {
		return nil
	}
	return ctx.DecodeArgs(&p.args)
}

func (p *porter) Receive(ctx *actor.Context, m *actor.Message) error {
	p.count++
	r := m.Reader()
	b := r.ByteString()
	if r.Done() != nil || len(b) == 0 {
		return actor.ErrUnhandled
	}
	switch b[0] {
	case 'c':
		return ctx.Reply(actor.Int(p.count))
	case 'e': // as it is
		return ctx.Reply(actor.Raw(m.Payload()))
	case 'b': // encoded once more, beside others
		ctx.Tell(ctx.Self(), actor.Text("small"))
		ctx.TellPath("./nobody", actor.Bytes(b))
		ctx.Reply(actor.Bytes(b))
		ctx.Tell(ctx.Self(), actor.Text("small"))
	case 'a': // what a child has as its arguments
		child := ctx.Spawn("porter", "", actor.Bytes(b))
		asker, correlation := ctx.Sender(), m.Correlation()
		ctx.Ask(child, actor.Bytes("g"), time.Minute, func(ctx *actor.Context, m *actor.Message) error {
			ctx.Stop(child)
			return ctx.Answer(asker, correlation, actor.Raw(m.Payload()))
		})
	case 'g':
		return ctx.Reply(p.args)
	case 't': // as a timer's message
		ctx.After(5, 0, actor.Bytes(append([]byte{'c'}, b...)))
		return ctx.Reply(actor.Int(int64(len(b))))
	case 'r': // to and fro, as often as the number behind it says
		n := binary.LittleEndian.Uint32(b[1:])
		if n == 0 {
			panic("done")
		}
		binary.LittleEndian.PutUint32(b[1:], n-1)
		ctx.Tell(ctx.Sender(), actor.Raw(m.Payload()))
	case 'p':
		ctx.Reply(actor.Bytes(b))
		panic("dropped it")
	}
	return nil
}

func init() {
	actor.Register("porter", func() actor.Actor { return &porter{} })
	actor.Register("carrier", func() actor.Actor { return &carrier{} })
	actor.Register("worker", func() actor.Actor { return &worker{} })
	actor.Register("boss", func() actor.Actor { return &boss{} })
}

func main() {}
