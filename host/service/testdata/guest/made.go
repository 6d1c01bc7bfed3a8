package main

import (
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

func init() {
	actor.Register("gateway-made", func() actor.Actor { return newMade() })
	actor.Register("gateway-child", func() actor.Actor { return failing{} })
}

// made shows what the props of an actor on demand have come to. do says of which key.
type made struct {
	*web.Mux
	child *web.Response // waits for the end of the child
	n     int
}

func newMade() *made {
	m := &made{Mux: web.NewMux()}
	m.Handle("GET /made/{name}", m.do)
	return m
}

func (m *made) do(ctx *actor.Context, q *web.Request, w *web.Response) error {
	switch q.Query("do") {
	case "args":
		w.Text(ctx.Args().Text())
	case "granted":
		_, ok := ctx.Service("pubsub")
		w.Text(strconv.FormatBool(ok))
	case "spin":
		for range 1_000_000 {
			m.n++
		}
		w.Text("done")
	case "fail once":
		if ctx.Cause() == "" {
			panic("the first time")
		}
		w.Text("the second time")
	case "child":
		ref := ctx.Spawn("gateway-child", "", nil)
		ctx.Watch(ref)
		ctx.Tell(ref, nil)
		m.child = w.Later()
	}
	return nil
}

func (m *made) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() == actor.KindTerminated && m.child != nil {
		return m.child.Text("the child has ended").Send(ctx)
	}
	return m.Mux.Receive(ctx, msg)
}

// failing fails over each message.
type failing struct{}

func (failing) Receive(*actor.Context, *actor.Message) error { panic("on purpose") }
