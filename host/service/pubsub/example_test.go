package pubsub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of the documentation.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the guest once more")
	}
	m, err := bundle.LoadWith("testdata", nil, pubsub.Service)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: "go", Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := b.Start(nil, func(*host.System) {})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, v any) (n int, err error) {
		ref, err := sys.Lookup(path)
		if err != nil {
			t.Fatal(err)
		}
		return host.AskAs[int](t.Context(), sys, ref, v)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_ = sys.Idle(ctx)
	if n, err := ask("/user/shop", []any{"tea", 350}); n != 1 || err != nil {
		t.Errorf("%d boards, %v", n, err)
	}
	_ = sys.Idle(ctx)
	if n, err := ask("/user/board", "tea"); n != 350 || err != nil {
		t.Errorf("%d cents, %v", n, err)
	}
	if _, err := ask("/user/shop", []any{"tea.green", 350}); err == nil {
		t.Error("a topic that is not granted")
	}
	_ = sys.Close(context.Background())
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A program starts the service and grants it as a manifest does; its own actors use it as guests do.
func Example() {
	sys, _ := host.New(host.NewConfig("market"))
	topics, _ := pubsub.Service.Start(sys, nil, &pubsub.Settings{Subscriptions: 1000})

	grant := pubsub.Service.Grant(pubsub.Grant{Subscribe: []string{"prices.>"}, Publish: []string{"prices.*"}}, service.Bounds{Rate: 100})
	done := make(chan struct{})
	board := host.Func(func(ctx *host.Context, m host.Message) error {
		var event struct {
			_    struct{} `cbor:",toarray"`
			Kind string
			Body struct {
				N     uint64 `cbor:"n"`
				Topic string `cbor:"topic"`
				Value int    `cbor:"value"`
			}
		}
		ref, _ := ctx.Service("pubsub")
		switch {
		case m.Sender.IsZero(): // from the program
			return ctx.Ask(ref, []any{"subscribe", map[string]any{"pattern": "prices.*"}}, 1, time.Second)
		case m.Sender == ref: // the answer
			return ctx.Tell(ref, []any{"publish", map[string]any{"topic": "prices.tea", "value": 350}})
		}
		if err := m.Decode(&event); err != nil {
			return err
		}
		fmt.Println(event.Body.Topic, event.Body.Value)
		close(done)
		return ctx.Tell(m.Sender, []any{"ack", event.Body.N})
	})
	ref, _ := sys.Spawn("board", board.WithGrant("pubsub", grant))
	_ = sys.Tell(ref, nil)
	<-done

	_ = sys.Close(context.Background())
	_ = topics.Wait(context.Background())
	// Output: prices.tea 350
}
