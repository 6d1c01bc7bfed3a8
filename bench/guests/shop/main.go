// A shop: an order asks for the stock and the price of its item, pays at a server outside, and is kept under its key
// and as a row. bench/shop.go has the same in plain Go.
package main

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/sql"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

const patience = 10 * time.Second

// shop takes orders.
type shop struct {
	*web.Mux
	bank   string // the URL
	orders int
}

func newShop() actor.Actor {
	s := &shop{Mux: web.NewMux()}
	s.Handle("POST /orders/{item}", s.order)
	return s
}

// Started implements actor.Starter.
func (s *shop) Started(ctx *actor.Context) error {
	s.bank = ctx.Args().Text()
	sql.Exec(ctx, "main", sql.Do("create table if not exists orders (id text primary key, item text, price int)"), patience, nothing)
	return nil
}

func nothing(_ *actor.Context, _ *sql.Result, err error) error { return err }

// order answers when all that it asks has answered.
func (s *shop) order(ctx *actor.Context, r *web.Request, w *web.Response) error {
	item := r.PathValue("item")
	s.orders++
	id := ctx.Name() + "-" + strconv.Itoa(s.orders)
	later := w.Later()
	waits, price := 2, int64(0)
	answer := func(ctx *actor.Context, err error) error {
		if err != nil {
			return err
		}
		if waits--; waits > 0 {
			return nil
		}
		return later.Type("application/json").Bytes([]byte(`{"item":"` + item + `","price":` + strconv.FormatInt(price, 10) + `}`)).Send(ctx)
	}
	keep := func(ctx *actor.Context, _ *httpx.Response, err error) error {
		if err != nil {
			return err
		}
		waits = 2
		kv.Put(ctx, id, []byte(item), kv.Write{}, func(ctx *actor.Context, _ uint64, err error) error { return answer(ctx, err) })
		sql.Exec(ctx, "main", sql.Do("insert into orders values (?, ?, ?)", sql.Text(id), sql.Text(item), sql.Int(price)), patience, func(ctx *actor.Context, _ *sql.Result, err error) error { return answer(ctx, err) })
		return nil
	}
	pay := func(ctx *actor.Context, _ *actor.Message) error {
		if waits--; waits == 0 {
			httpx.Post(ctx, s.bank, "text/plain", []byte(id), keep)
		}
		return nil
	}
	ctx.AskPath("/user/stock", actor.Text(item), patience, pay)
	ctx.AskPath("/user/prices", actor.Text(item), patience, func(ctx *actor.Context, m *actor.Message) error {
		price = m.Reader().Int()
		return pay(ctx, m)
	})
	return nil
}

// items answers with a number of an item: so many are left, or so much it costs.
type items map[string]int64

func (n items) Receive(ctx *actor.Context, msg *actor.Message) error {
	item := msg.Text()
	n[item]++
	return ctx.Reply(actor.Int(n[item]))
}

// prices answers with what an item costs.
type prices struct{}

func (prices) Receive(ctx *actor.Context, msg *actor.Message) error {
	return ctx.Reply(actor.Int(int64(100 + len(msg.Text()))))
}

func init() {
	actor.Register("shop", newShop)
	actor.Register("items", func() actor.Actor { return items{} })
	actor.Register("prices", func() actor.Actor { return prices{} })
}

func main() {}
