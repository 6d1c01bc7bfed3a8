//go:build !wasip1

package kv_test

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// counter reads a value and writes it back, in the version that it has read.
type counter struct {
	errs []error
	seen []kv.Changed
}

func (c *counter) Receive(ctx *actor.Context, msg *actor.Message) error {
	if x, ok := kv.Changes(ctx, msg); ok {
		c.seen = append(c.seen, x)
		return nil
	}
	kv.In("n").Get(ctx, "k", func(ctx *actor.Context, e kv.Entry, err error) error {
		if err != nil {
			c.errs = append(c.errs, err)
			return nil
		}
		kv.In("n").Put(ctx, "k", append([]byte("new "), e.Value...), kv.Write{IfVersion: e.Version}, func(_ *actor.Context, _ uint64, err error) error {
			c.errs = append(c.errs, err)
			return nil
		})
		return nil
	})
	return nil
}

func TestRequests(t *testing.T) {
	w := actortest.NewWorld(t)
	fake := w.Serve("kv", func(c *actortest.Call) {
		switch c.Op {
		case "get":
			c.Answer(actor.Func(func(w *abi.Writer) { // with a key that the SDK does not know
				w.Map(3)
				w.Text("later")
				w.Array(0)
				w.Text("value")
				w.ByteString([]byte("v"))
				w.Text("version")
				w.Uint(7)
			}))
		case "put":
			c.Fail(service.Conflict, "it has changed")
		}
	})
	c := &counter{}
	actor.Register("kv-test", func() actor.Actor { return c })
	a := w.Spawn("kv-test")
	a.Send(actor.Text("go"))
	w.Run()
	calls := fake.Calls()
	if len(calls) != 2 || abi.NewReader(calls[1].Field("if_version")).Uint() != 7 || string(abi.NewReader(calls[1].Field("value")).ByteString()) != "new v" || abi.NewReader(calls[1].Field("namespace")).Text() != "n" {
		t.Fatalf("%+v", calls)
	}
	if len(c.errs) != 1 || !errors.Is(c.errs[0], service.ErrConflict) {
		t.Error(c.errs)
	}
}
