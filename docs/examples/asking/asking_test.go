package asking

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/guide/asking.md, with guests that take their messages in batches.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := bundle.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(ctx, m, bundle.Options{Compiler: "go", CacheDir: servicetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	buyer, err := sys.Lookup("/user/buyer")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := sys.Lookup("/user/shops")
	if err != nil {
		t.Fatal(err)
	}
	if price, err := host.AskAs[int64](ctx, sys, pool, "price"); err != nil || price != 17 {
		t.Fatal(price, err)
	}
	shops := sys.Select("/user/shops/*")
	var refs []uint64
	for _, s := range shops {
		refs = append(refs, uint64(s.UID()))
	}
	if len(shops) != 3 {
		t.Fatal(shops)
	}
	if err := sys.Tell(buyer, refs); err != nil {
		t.Fatal(err)
	}
	if n, err := host.AskAs[int64](ctx, sys, buyer, "two"); err != nil || n < 2 {
		t.Error(n, err)
	}
	if got, err := host.AskAs[string](ctx, sys, buyer, "busy"); err != nil || got != "bought after 3 attempts" {
		t.Error(got, err)
	}
	// The guest that is asked reads the time that is left: that of the nested ask.
	if got, err := host.AskAs[string](ctx, sys, buyer, "left"); err != nil || got != "true" {
		t.Error(got, err)
	}
	in := sys.Inbox(0)
	defer in.Close()
	if err := in.Tell(buyer, "pipe"); err != nil {
		t.Fatal(err)
	}
	if m, err := in.Receive(ctx); err != nil || m.Sender.UID() != buyer.UID() || m.Decode(new(int64)) != nil {
		t.Error(m, err)
	}

	if got, err := Prices(ctx, sys, shops); err != nil || len(got) < 2 {
		t.Error(got, err)
	}
	if got, err := host.AskAs[string](ctx, sys, shops[1], host.Headed{Value: "busy", Headers: map[string]string{"idempotency-key": "o1"}}); got != "" || !strings.Contains(err.Error(), "busy") {
		t.Error(got, err)
	}
	if _, err := Buy(ctx, sys, shops[1], "o2"); err == nil || !strings.Contains(err.Error(), "busy") { // which is not listed
		t.Error(err)
	}
	short, stop := context.WithTimeout(ctx, 30*time.Millisecond)
	defer stop()
	_, err = sys.Ask(short, shops[0], "never")
	if got := Why(err); !errors.Is(err, host.ErrTimeout) || !strings.HasPrefix(got, "0 did not answer a string within ") {
		t.Error(got)
	}
	reader, err := sys.Spawn("reader", Reader(shops))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"file", "contents"}, {"shops", "3 shops, <nil>"}} {
		if err := in.Tell(reader, c[0]); err != nil {
			t.Fatal(err)
		}
		m, err := in.Receive(ctx)
		var got string
		if err != nil || m.Decode(&got) != nil || got != c[1] {
			t.Error(got, err)
		}
	}
	if err := Lookup(sys, in.Ref(), nil); !errors.Is(err, host.ErrUnknown) { // an inbox is not an actor
		t.Error(err)
	}
}
