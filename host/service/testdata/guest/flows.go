package main

import (
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/blob"
	guestflow "github.com/wasmactors/wasmactors/guest-sdk/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
	"github.com/wasmactors/wasmactors/guest-sdk/sql"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

// Streams from services: each element is told to the actor that is the first of the arguments, and then "end".
func init() {
	texts := func(typ string, source func(arg string) flow.Source[string]) {
		guestflow.Register(typ, func(ctx *actor.Context) flow.Stream {
			r := ctx.Args()
			r.Array()
			to := abi.Ref(r.Uint())
			return flow.To(source(r.Text()), guestflow.Tell(to, flow.Texts, actor.Text("end")))
		})
	}
	lines := func(src flow.Source[[]byte]) flow.Source[string] { return flow.Lines(src, 1<<16) }
	texts("flow-blob", func(name string) flow.Source[string] { return lines(guestflow.Blob(name, blob.Range{}, time.Second)) })
	texts("flow-rows", func(query string) flow.Source[string] {
		return guestflow.Rows("main", sql.Statement{SQL: query}, time.Second, func(row *sql.Row) string { return row.Text() })
	})
	texts("flow-topic", func(pattern string) flow.Source[string] {
		return flow.TakeWhile(guestflow.Topic(pattern, 2, pubsub.Options{}, pubsub.Event.Text), func(s string) bool { return s != "last" })
	})
	texts("flow-frames", func(arg string) flow.Source[string] {
		address, hello, _ := strings.Cut(arg, " ")
		src := guestflow.Frames(address, tcp.Options{Framing: tcp.Lines("", 0), Window: 1024}, time.Second, func(ctx *actor.Context, c *tcp.Conn) {
			c.Write(ctx, []byte(hello))
		})
		return flow.Take(flow.Map(src, func(b []byte) string { return string(b) }), 1000)
	})
}
