// The actors of the bundle.
package main

import (
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// user is one user, whose requests it answers.
type user struct{ *web.Mux }

func newUser() actor.Actor {
	u := user{web.NewMux()}
	u.Handle("/users/{id}", u.visit)
	return u
}

// visit counts a visit, and answers when the count is stored.
func (u user) visit(ctx *actor.Context, _ *web.Request, w *web.Response) error {
	later := w.Later()
	kv.Add(ctx, "visits/"+ctx.Name(), 1, kv.Write{}, func(ctx *actor.Context, n int64, err error) error {
		if err != nil {
			return later.Error(503, "come again later\n").Send(ctx)
		}
		return later.Text("hello " + ctx.Key() + ", visit " + strconv.FormatInt(n, 10) + "\n").Send(ctx)
	})
	return nil
}

func init() { actor.Register("user", newUser) }

func main() {}
