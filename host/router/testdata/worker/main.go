// The guest of the tests of routers: "worker" does what messages tell it, "boss" sends to a
// router. The tests of host/router have the same worker in Go.
package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

type worker struct {
	name string
	n    int
}

func (w *worker) Started(ctx *actor.Context) error {
	path, _, _ := strings.Cut(ctx.Path(), "#")
	w.name = path[strings.LastIndexByte(path, '/')+1:]
	return nil
}

func (w *worker) Receive(ctx *actor.Context, m *actor.Message) error {
	w.n++
	switch text := m.Text(); text {
	case "who":
		return ctx.Reply(actor.Text(w.name + " " + strconv.Itoa(w.n)))
	case "crash":
		return errors.New("crashed")
	case "stop":
		ctx.StopSelf()
	case "error":
		return ctx.ReplyError("no")
	case "mute":
	case "slow": // answers after 100 ms
		ctx.After(1, 100*time.Millisecond, actor.Text(strconv.FormatUint(uint64(ctx.Sender()), 10)+" "+strconv.FormatUint(ctx.Correlation(), 10)))
	default:
		if m.Kind() == actor.KindTimer {
			w := strings.Fields(text)
			to, _ := strconv.ParseUint(w[0], 10, 64)
			correlation, _ := strconv.ParseUint(w[1], 10, 64)
			return ctx.Answer(actor.Ref(to), correlation, actor.Text("slow"))
		}
		ctx.TellPath("/user/probe", actor.Text(w.name+":"+text))
	}
	return nil
}

// boss sends or asks: "tell PATH TEXT", "ask PATH TEXT"; what it is answered it says.
type boss struct{}

func (boss) Receive(ctx *actor.Context, m *actor.Message) error {
	w := strings.SplitN(m.Text(), " ", 3)
	if w[0] == "tell" {
		ctx.TellPath(w[1], actor.Text(w[2]))
		return nil
	}
	ctx.AskPath(w[1], actor.Text(w[2]), time.Minute, func(ctx *actor.Context, m *actor.Message) error {
		ctx.TellPath("/user/probe", actor.Text("answer "+m.Text()))
		return nil
	})
	return nil
}

func init() {
	actor.Register("worker", func() actor.Actor { return &worker{} })
	actor.Register("boss", func() actor.Actor { return boss{} })
}

func main() {}
