//go:build !wasip1

package httpx_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest/fake"
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
	servers := http.NewServeMux()
	servers.HandleFunc("GET api.example.com/v1/prices/tea", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "3.50") })
	web := fake.NewHTTP(w, servers)
	shop := w.Spawn("prices")
	if got := w.Ask(shop, actor.Text("tea")).Text(); got != "3.50" {
		t.Error(got)
	}
	web.FailOnce(service.Busy)
	if got := w.Ask(shop, actor.Text("tea")); got.Kind != actortest.ReplyError || got.Text() != "later" {
		t.Errorf("%+v", got)
	}
}

// It ends here.
