//go:build !wasip1

package metrics

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

type counting struct{ batch Batch }

func (c *counting) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Text() {
	case "one":
		Add(ctx, "n_total", 2)
		Set(ctx, "g", -0.5)
		Observe(ctx, "h", 3)
	case "collect":
		for i := range 120 {
			c.batch.Set("g", float64(i))
			c.batch.Observe("h", 1)
		}
	case "send":
		c.batch.Send(ctx)
	case "none":
		c.batch.Send(ctx)
	}
	return nil
}

func init() { actor.Register("counting", func() actor.Actor { return &counting{} }) }

// values are what a message brings.
func values(t *testing.T, s actortest.Sent) (names []string, values []float64) {
	t.Helper()
	if s.Path != Path {
		t.Errorf("it goes to %q", s.Path)
	}
	r := abi.NewReader(s.Payload)
	for range r.Array() {
		if r.Array() != 2 {
			t.Fatal("an update is not a pair")
		}
		names, values = append(names, r.Text()), append(values, r.Float())
	}
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	return names, values
}

func TestMessages(t *testing.T) {
	a := actortest.Spawn(t, "counting")
	turn := a.Send(actor.Text("one"))
	if len(turn.Sent) != 3 {
		t.Fatalf("%d messages", len(turn.Sent))
	}
	for i, want := range []struct {
		name string
		v    float64
	}{{"n_total", 2}, {"g", -0.5}, {"h", 3}} {
		if names, v := values(t, turn.Sent[i]); len(names) != 1 || names[0] != want.name || v[0] != want.v {
			t.Errorf("%v %v, want %v", names, v, want)
		}
	}
	if n := len(a.Send(actor.Text("collect")).Sent); n != 0 {
		t.Errorf("%d messages before they are sent", n)
	}
	turn = a.Send(actor.Text("send"))
	total := 0
	for _, s := range turn.Sent {
		names, _ := values(t, s)
		if total += len(names); len(names) > MaxBatch {
			t.Errorf("%d values in a message", len(names))
		}
	}
	if total != 240 || len(turn.Sent) != 3 {
		t.Errorf("%d values in %d messages", total, len(turn.Sent))
	}
	if n := len(a.Send(actor.Text("none")).Sent); n != 0 {
		t.Errorf("%d messages of nothing", n)
	}
}
