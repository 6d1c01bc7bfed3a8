// A boss whose workers run on other nodes.
package main

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// boss hires workers on nodes with the role back. It is told "hire ann", and then "who ann" and "crash ann", which it passes on.
type boss struct {
	crew map[string]actor.Ref
	gone []string
}

func (b *boss) Receive(ctx *actor.Context, m *actor.Message) error {
	switch m.Kind() {
	case actor.KindMessage:
	case actor.KindTerminated, actor.KindSpawnFailed:
		return b.lost(m)
	default:
		return actor.ErrUnhandled
	}
	op, name, _ := strings.Cut(m.Text(), " ")
	switch op {
	case "hire":
		b.hire(ctx, name)
		return ctx.Reply(actor.Text("hired"))
	case "gone":
		return ctx.Reply(actor.Text(strings.Join(b.gone, ", ")))
	case "stop":
		ctx.Stop(b.crew[name])
		return ctx.Reply(actor.Text("stopped"))
	}
	asker, question := ctx.Sender(), ctx.Correlation()
	ctx.Ask(b.crew[name], actor.Text(op), 5*time.Second, func(ctx *actor.Context, m *actor.Message) error {
		if m.Kind() != actor.KindReply {
			return ctx.AnswerError(asker, question, m.Text())
		}
		return ctx.Answer(asker, question, append(actor.Raw{}, m.Reader().Raw()...))
	})
	return nil
}

// hire starts a worker on another node, if there is one. The ref counts at once: what is sent to it waits for the worker.
func (b *boss) hire(ctx *actor.Context, name string) {
	b.crew[name] = ctx.SpawnWith("worker", name, nil, actor.SpawnOptions{Place: actor.OnRole("back")})
	ctx.Watch(b.crew[name])
}

// lost notes who has ended, and why: "node gone" if it is the node that is lost.
func (b *boss) lost(m *actor.Message) error {
	for name, ref := range b.crew {
		if ref == m.Sender() {
			delete(b.crew, name)
			b.gone = append(b.gone, name+": "+m.Text())
		}
	}
	return nil
}

// worker answers who it is: its node, its life, and how often it was asked.
type worker struct {
	life, asked uint64
}

func (w *worker) Started(ctx *actor.Context) error {
	w.life = ctx.Rand().Uint64() >> 1
	return nil
}

func (w *worker) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Is("crash") {
		return errors.New("the tool has slipped")
	}
	w.asked++
	return ctx.Reply(actor.Func(func(out *abi.Writer) {
		out.Array(3)
		out.Uint(uint64(abi.Ref(ctx.Self()).Node()))
		out.Uint(w.life)
		out.Uint(w.asked)
	}))
}

func main() {}

func init() {
	actor.Register("boss", func() actor.Actor { return &boss{crew: map[string]actor.Ref{}} })
	actor.Register("worker", func() actor.Actor { return &worker{} })
}
