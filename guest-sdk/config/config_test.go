//go:build !wasip1

package config_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/config"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// reader asks for everything when it starts.
type reader struct {
	n      int64
	d      time.Duration
	b      bool
	secret string
	errs   []error
}

var one *reader

func init() { actor.Register("reader", func() actor.Actor { return one }) }

func (x *reader) Started(ctx *actor.Context) error {
	note := func(err error) error { x.errs = append(x.errs, err); return nil }
	config.Int(ctx, "n", func(_ *actor.Context, v int64, err error) error { x.n = v; return note(err) })
	config.Duration(ctx, "d", func(_ *actor.Context, v time.Duration, err error) error { x.d = v; return note(err) })
	config.Bool(ctx, "b", func(_ *actor.Context, v bool, err error) error { x.b = v; return note(err) })
	config.Secret(ctx, "s", func(_ *actor.Context, v []byte, err error) error { x.secret = string(v); return note(err) })
	config.Int(ctx, "d", func(_ *actor.Context, _ int64, err error) error { return note(err) })
	return nil
}

func (x *reader) Receive(*actor.Context, *actor.Message) error { return actor.ErrUnhandled }

func TestTypes(t *testing.T) {
	w := actortest.NewWorld(t)
	w.Serve("config", func(c *actortest.Call) {
		r := abi.NewReader(c.Args)
		r.Map()
		r.Text()
		switch r.Text() {
		case "n":
			c.Answer(actor.Int(-7))
		case "d":
			c.Answer(actor.Text("90s"))
		case "b":
			c.Answer(actor.Text("true"))
		case "s":
			c.Answer(actor.Func(func(w *abi.Writer) { w.ByteString([]byte("hidden")) }))
		}
	})
	one = &reader{}
	w.Spawn("reader")
	if one.n != -7 || one.d != 90*time.Second || !one.b || one.secret != "hidden" {
		t.Errorf("%+v", one)
	}
	if len(one.errs) != 5 || one.errs[0] != nil || !errors.Is(one.errs[4], service.ErrBadRequest) {
		t.Error(one.errs)
	}
}
