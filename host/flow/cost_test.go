package flow_test

import (
	"context"
	"testing"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
)

// BenchmarkBetweenActors is an element that travels between two actors, and a message: compare them in one run.
func BenchmarkBetweenActors(b *testing.B) {
	sys, err := host.New(host.NewConfig("bench"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sys.Close(context.Background()) }()
	b.Run("message", func(b *testing.B) { messages(b, sys, b.N) })
	b.Run("element", func(b *testing.B) { streamed(b, sys, b.N) })
}

// messages are n messages from one actor to another, 16 at a time, each batch of which is answered.
func messages(b *testing.B, sys *host.System, n int) {
	done := make(chan struct{})
	to, err := sys.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		var v int
		if err := m.Decode(&v); err != nil {
			return err
		}
		if v%16 == 15 {
			return ctx.Reply(nil)
		}
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	sent := 0
	from, err := sys.Spawn("", host.Func(func(ctx *host.Context, _ host.Message) error {
		for range 16 {
			if err := ctx.Tell(to, sent); err != nil {
				return err
			}
			sent++
		}
		if sent > n {
			close(done)
			ctx.Stop(to)
			ctx.Stop(ctx.Self())
		}
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	if err := sys.Tell(from, nil); err != nil {
		b.Fatal(err)
	}
	<-done
}

// streamed are n elements from one actor to another.
func streamed(b *testing.B, sys *host.System, n int) {
	from, err := sys.Spawn("", hostflow.Props(flow.Serve("x", flow.Range(1, n), ints)))
	if err != nil {
		b.Fatal(err)
	}
	if err := hostflow.Run(context.Background(), sys, "", flow.To(flow.TakeFrom(from.UID(), "x", ints, flow.Window{}), flow.Ignore[int]())); err != nil {
		b.Fatal(err)
	}
	sys.Stop(from)
}
