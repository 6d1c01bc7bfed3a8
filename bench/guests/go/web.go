package main

import (
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// newWeb is what answers behind the gateway, as the native handler beside it does.
func newWeb() actor.Actor {
	m := web.NewMux()
	m.Handle("GET /users/{id}", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		w.JSON(`{"id":` + strconv.Quote(r.PathValue("id")) + `,"q":` + strconv.Quote(r.Query("q")) + `}`)
		return nil
	})
	m.Handle("GET /boom", func(*actor.Context, *web.Request, *web.Response) error { panic("boom") })
	return m
}

func init() { actor.Register("web", newWeb) }
