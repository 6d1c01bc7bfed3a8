package main

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

func init() {
	actor.Register("gateway-live", func() actor.Actor { return newLive() })
}

// live has what goes on for longer than a request: bodies in parts, WebSockets, events.
type live struct {
	mux     *web.Mux
	sockets web.Sockets
	events  web.Events
	n       int
	closed  []string
}

func newLive() *live {
	l := &live{mux: web.NewMux()}
	l.mux.Handle("POST /digest", digest)
	l.mux.Handle("POST /mirror", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		if ref, _ := r.Stream(); ref != 0 {
			w.Stream(ref)
			return nil
		}
		w.Bytes(r.Body())
		return nil
	})
	l.mux.Handle("GET /closed", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		w.Text(strings.Join(l.closed, ","))
		return nil
	})
	l.mux.Handle("GET /count", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		w.Text(strconv.Itoa(l.sockets.Len()) + " " + strconv.Itoa(l.events.Len()))
		return nil
	})
	l.mux.Handle("POST /publish", func(ctx *actor.Context, r *web.Request, w *web.Response) error {
		l.n++
		e := web.Event{Name: r.Query("name"), ID: strconv.Itoa(l.n), Data: string(r.Body())}
		l.events.Each(func(c *web.Conn) { web.SendEvent(ctx, c.Ref(), e) })
		return nil
	})
	l.mux.Handle("POST /end", func(ctx *actor.Context, _ *web.Request, _ *web.Response) error {
		l.events.Each(func(c *web.Conn) { web.CloseEvents(ctx, c.Ref()) })
		return nil
	})
	l.mux.Handle("POST /crash", func(*actor.Context, *web.Request, *web.Response) error { panic("on request") })
	l.sockets = web.Sockets{Open: l.open, Text: l.text, Binary: l.binary, Close: l.close}
	l.events = web.Events{Open: l.openEvents, Close: func(_ *actor.Context, _ *web.Conn) error {
		l.closed = append(l.closed, "events")
		return nil
	}}
	return l
}

func (l *live) Receive(ctx *actor.Context, msg *actor.Message) error {
	err := l.sockets.Receive(ctx, msg)
	if err == actor.ErrUnhandled {
		err = l.events.Receive(ctx, msg)
	}
	if err == actor.ErrUnhandled {
		err = l.mux.Receive(ctx, msg)
	}
	return err
}

func digest(ctx *actor.Context, r *web.Request, w *web.Response) error {
	h, n := fnv.New64a(), 0
	ref, _ := r.Stream()
	if ref == 0 {
		h.Write(r.Body())
		w.Text(strconv.Itoa(len(r.Body())) + " " + strconv.FormatUint(h.Sum64(), 16))
		return nil
	}
	later := w.Later()
	stream.Each(ctx, ref, 10*time.Second, func(_ *actor.Context, part []byte) error {
		n += len(part)
		h.Write(part)
		return nil
	}, func(ctx *actor.Context, err error) error {
		if err != nil {
			return later.Error(400, err.Error()).Send(ctx)
		}
		return later.Text(strconv.Itoa(n) + " " + strconv.FormatUint(h.Sum64(), 16)).Send(ctx)
	})
	return nil
}

func (l *live) open(ctx *actor.Context, r *web.Request, c *web.Conn) error {
	if r.Query("refuse") != "" {
		c.Refuse(403, "not you")
		return nil
	}
	for _, p := range c.Protocols() {
		if p == "chat" {
			c.SetProtocol(p)
		}
	}
	if c.Resumed() {
		web.SendText(ctx, c.Ref(), "resumed "+c.State().Text())
	} else if name := r.Query("name"); name != "" {
		c.SetState(ctx, actor.Text(name))
	}
	return nil
}

func (l *live) text(ctx *actor.Context, c *web.Conn, b []byte) error {
	switch word, rest, _ := strings.Cut(string(b), " "); word {
	case "crash":
		panic("a message crashes")
	case "name":
		c.SetState(ctx, actor.Text(rest))
	case "close":
		code, _ := strconv.Atoi(rest)
		web.CloseSocket(ctx, c.Ref(), code, "you asked for it")
	case "flood":
		n, _ := strconv.Atoi(rest)
		for i := 0; i < n; i++ {
			web.SendText(ctx, c.Ref(), "flood "+strconv.Itoa(i)+strings.Repeat(".", 1000))
		}
	case "pour":
		n, _ := strconv.Atoi(rest)
		return l.pour(ctx, c.Ref(), 0, n)
	case "all":
		l.sockets.Each(func(to *web.Conn) { web.SendText(ctx, to.Ref(), rest) })
	case "count":
		l.n++
		web.SendText(ctx, c.Ref(), strconv.Itoa(l.n))
	default:
		web.SendText(ctx, c.Ref(), string(b))
	}
	return nil
}

// pour sends as fast as the client takes it.
func (l *live) pour(ctx *actor.Context, to actor.Ref, i, n int) error {
	if i == n {
		web.SendText(ctx, to, "done")
		return nil
	}
	web.WriteText(ctx, to, "pour "+strconv.Itoa(i)+strings.Repeat(".", 1000), 20*time.Second, func(ctx *actor.Context, err error) error {
		if err != nil {
			l.closed = append(l.closed, err.Error())
			return nil
		}
		return l.pour(ctx, to, i+1, n)
	})
	return nil
}

func (l *live) binary(ctx *actor.Context, c *web.Conn, b []byte) error {
	web.SendBinary(ctx, c.Ref(), b)
	return nil
}

func (l *live) close(_ *actor.Context, _ *web.Conn, code int, reason string) error {
	l.closed = append(l.closed, strconv.Itoa(code)+" "+reason)
	return nil
}

func (l *live) openEvents(ctx *actor.Context, r *web.Request, c *web.Conn) error {
	if r.Query("refuse") != "" {
		c.Refuse(403, "not you")
		return nil
	}
	text := "hello"
	if c.Resumed() {
		text = "again"
	}
	web.SendEvent(ctx, c.Ref(), web.Event{Name: "greeting", Data: text + " " + c.LastEventID()})
	return nil
}
