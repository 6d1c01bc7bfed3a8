package main

import (
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// newWeb is what answers behind the gateway, as the native handler beside it does.
func newWeb() actor.Actor {
	m := web.NewMux()
	var buf []byte
	m.Handle("GET /users/{id}", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		buf = append(buf[:0], `{"id":`...)
		buf = web.AppendJSON(buf, r.PathValue("id"))
		buf = append(buf, `,"q":`...)
		buf = web.AppendJSON(buf, r.Query("q"))
		w.Type("application/json").Bytes(append(buf, '}'))
		return nil
	})
	m.Handle("GET /boom", func(*actor.Context, *web.Request, *web.Response) error { panic("boom") })
	return m
}

func init() { actor.Register("web", newWeb) }
