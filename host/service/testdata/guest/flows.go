package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/blob"
	guestflow "github.com/wasmactors/wasmactors/guest-sdk/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
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
	texts("flow-entries", func(prefix string) flow.Source[string] {
		return flow.Map(guestflow.Entries(kv.Store{}, kv.Query{Prefix: prefix}), func(e kv.Entry) string { return e.Key })
	})
	texts("flow-body", func(url string) flow.Source[string] {
		return lines(guestflow.Body(&httpx.Request{URL: url}, time.Minute))
	})
	texts("flow-events", func(url string) flow.Source[string] {
		events := flow.Events(lines(guestflow.Body(&httpx.Request{URL: url}, time.Minute)))
		return flow.Map(events, func(e flow.Event) string { return e.Type + " " + e.ID + " " + e.Data })
	})
	// Keys that are stored, four at a time: the store sets the pace.
	guestflow.Register("flow-store", func(ctx *actor.Context) flow.Stream {
		keys := flow.Map(flow.Range(1, 500), func(n int) string { return "key " + strconv.Itoa(1000+n) })
		under, most := 0, 0
		return flow.To(keys, guestflow.Store(4, func(ctx *actor.Context, key string, done func(*actor.Context, error) error) {
			under++
			most = max(most, under)
			kv.Put(ctx, key, []byte(key), kv.Write{}, func(ctx *actor.Context, _ uint64, err error) error {
				under--
				if most > 4 {
					err = errors.New("too many at once")
				}
				return done(ctx, err)
			})
		}))
	})
	texts("flow-frames", func(arg string) flow.Source[string] {
		address, hello, _ := strings.Cut(arg, " ")
		src := guestflow.Frames(address, tcp.Options{Framing: tcp.Lines("", 0), Window: 1024}, time.Second, func(ctx *actor.Context, c *tcp.Conn) {
			c.Write(ctx, []byte(hello))
		})
		return flow.Take(flow.Map(src, func(b []byte) string { return string(b) }), 1000)
	})
}
