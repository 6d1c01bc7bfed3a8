//go:build !wasip1

package httpx_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// What docs/services/http.md shows begins here.

// prices answers the name of a thing with its price, as the shop says.
type prices struct{}

func (prices) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	to, correlation := msg.Sender(), msg.Correlation()
	httpx.Get(ctx, "https://api.example.com/v1/prices/"+msg.Text(), func(ctx *actor.Context, res *httpx.Response, err error) error {
		switch {
		case errors.Is(err, service.ErrBusy), errors.Is(err, service.ErrUnavailable):
			return ctx.AnswerError(to, correlation, "later")
		case err != nil:
			return ctx.AnswerError(to, correlation, err.Error())
		case !res.OK():
			return ctx.AnswerError(to, correlation, "unknown")
		}
		return res.ReadAll(ctx, 1<<20, 30*time.Second, func(ctx *actor.Context, body []byte, err error) error {
			if err != nil {
				return ctx.AnswerError(to, correlation, err.Error())
			}
			return ctx.Answer(to, correlation, actor.Text(string(body)))
		})
	})
	return nil
}

func init() { actor.Register("prices", func() actor.Actor { return prices{} }) }

func TestPrices(t *testing.T) {
	w := actortest.NewWorld(t)
	w.Serve(httpx.Service, func(c *actortest.Call) {
		url := abi.NewReader(c.Field("url")).Text()
		if url != "https://api.example.com/v1/prices/tea" {
			c.Fail(service.Busy, "come back")
			return
		}
		c.Answer(answer(200, body("3.50"), 1))
	})
	shop := w.Spawn("prices")
	if got := w.Ask(shop, actor.Text("tea")).Text(); got != "3.50" {
		t.Error(got)
	}
	if got := w.Ask(shop, actor.Text("gold")); got.Kind != actortest.ReplyError || got.Text() != "later" {
		t.Errorf("%+v", got)
	}
}

// It ends here.
