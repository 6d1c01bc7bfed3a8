package instrcount

import (
	"context"
	"os"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// BenchmarkPanic is a panic of the SDK's, the reset, the start and one message.
func BenchmarkPanic(b *testing.B) {
	ctx := context.Background()
	code, err := os.ReadFile(guestInGo(b))
	if err != nil {
		b.Fatal(err)
	}
	e, err := sandbox.New(ctx, sandbox.NewConfig())
	if err != nil {
		b.Fatal(err)
	}
	image, err := e.Load(ctx, code, sandbox.ImageConfig{})
	if err != nil {
		b.Fatal(err)
	}
	x, err := sandbox.Get(image)
	if err != nil {
		b.Fatal(err)
	}
	start := abi.Start{Type: "ping", Path: "wasm://s/user/a#7", Self: 7 << 40, Parent: 1 << 40, Args: []byte{0xf6}}
	first := abi.Envelope{Kind: abi.KindStart, Time: 1_700_000_000_000_000_000, Payload: abi.AppendStart(nil, &start)}
	say := abi.Envelope{Time: 1_700_000_000_000_000_000, Sender: 9 << 40, Payload: number}
	for _, c := range []struct {
		name   string
		poison []byte
	}{{"panic", []byte{0xf5}}, {"error", []byte{0xf6}}, {"none", number}} {
		poison := abi.Envelope{Time: 1_700_000_000_000_000_000, Sender: 9 << 40, Payload: c.poison}
		b.Run(c.name, func(b *testing.B) {
			in := sandbox.Entry{Now: first.Time, TurnFuel: 1 << 40}
			var res sandbox.Result
			for b.Loop() {
				for _, e := range []*abi.Envelope{&first, &say, &poison} {
					if !x.Push(e) {
						b.Fatal("refused")
					}
					x.Run(&in, &res)
				}
				if (res.Failure == nil) == (c.name == "panic") {
					b.Fatal(res.Failure)
				}
				if err := x.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
