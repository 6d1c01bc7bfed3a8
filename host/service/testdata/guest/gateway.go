package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

func init() {
	actor.Register("gateway-api", func() actor.Actor { return newAPI() })
	actor.Register("gateway-room", func() actor.Actor { return newRoom() })
}

// api answers the requests of the gateway's tests.
type api struct {
	*web.Mux
	waiting []*web.Response
	gone    []string
	n       int
}

func newAPI() *api {
	a := &api{Mux: web.NewMux()}
	a.Handle("GET /hello", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		w.Text("hello")
		return nil
	})
	a.Handle("GET /users/{id}", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		w.JSON(`{"id":` + strconv.Quote(r.PathValue("id")) + `,"q":` + strconv.Quote(r.Query("q")) + `}`)
		return nil
	})
	a.Handle("POST /echo", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		w.Type(r.Header("Content-Type")).Bytes(r.Body())
		return nil
	})
	a.Handle("/show/{rest...}", show)
	a.Handle("GET /crash", func(*actor.Context, *web.Request, *web.Response) error { panic("no luck") })
	a.Handle("GET /fail", func(*actor.Context, *web.Request, *web.Response) error { return errors.New("sorry") })
	a.Handle("GET /later", a.later)
	a.Handle("GET /never", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		a.waiting = append(a.waiting, w.Later())
		return nil
	})
	a.Handle("GET /waiting", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		w.Text(strconv.Itoa(len(a.waiting)))
		return nil
	})
	a.Handle("POST /raw", func(ctx *actor.Context, r *web.Request, w *web.Response) error {
		w.Later() // the body is the answer
		return ctx.Reply(actor.Raw(r.Body()))
	})
	a.Handle("GET /error", func(ctx *actor.Context, r *web.Request, w *web.Response) error {
		w.Later()
		return ctx.ReplyError(r.Query("text"))
	})
	a.Handle("GET /gone", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		w.Text(strings.Join(a.gone, ","))
		return nil
	})
	a.Gone(func(_ *actor.Context, id string) error { a.gone = append(a.gone, id); return nil })
	a.Handle("GET /count", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		a.n++
		w.Text(strconv.Itoa(a.n))
		return nil
	})
	a.Handle("GET /large", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		n, _ := strconv.Atoi(r.Query("n"))
		w.Text(strings.Repeat("x", n))
		return nil
	})
	a.Handle("GET /spin", func(*actor.Context, *web.Request, *web.Response) error {
		for {
			a.n++
		}
	})
	return a
}

func (a *api) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() == actor.KindTimer || msg.Is("answer") {
		for _, w := range a.waiting {
			w.Text("at last").Send(ctx)
		}
		a.waiting = nil
		return nil
	}
	return a.Mux.Receive(ctx, msg)
}

func (a *api) later(ctx *actor.Context, _ *web.Request, w *web.Response) error {
	a.waiting = append(a.waiting, w.Header("x-later", "yes").Later())
	ctx.After(1, 10*time.Millisecond, nil)
	return nil
}

// show answers with all that it knows of the request.
func show(_ *actor.Context, r *web.Request, w *web.Response) error {
	var b strings.Builder
	b.WriteString(r.Method() + " " + r.Path() + "?" + r.RawQuery() + "\nrest " + r.PathValue("rest") + "\nroute " + r.Route() + "\n")
	kind, name := r.User()
	if kind != "" {
		b.WriteString("user " + kind + " " + name + "\n")
	}
	if c := r.Claim("scope"); c != nil {
		b.WriteString("scope " + c.Text() + "\n")
	}
	b.WriteString("remote " + r.Remote() + "\n")
	r.Headers(func(k, v []byte) { b.WriteString(string(k) + ": " + string(v) + "\n") })
	w.Header("x-one", "1").Header("x-one", "2").Text(b.String())
	return nil
}

// room counts its requests.
type room struct {
	*web.Mux
	n int
}

func newRoom() *room {
	r := &room{Mux: web.NewMux()}
	r.Handle("/rooms/{room}", func(ctx *actor.Context, q *web.Request, w *web.Response) error {
		if q.Query("stop") != "" {
			ctx.StopSelf()
			w.Text("bye")
			return nil
		}
		r.n++
		w.Text(q.PathValue("room") + " " + strconv.Itoa(r.n))
		return nil
	})
	r.Handle("/rooms/{room}/crash", func(*actor.Context, *web.Request, *web.Response) error { panic("a room crashes") })
	return r
}
