package blob

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// world is a system with the service.
type world struct {
	t       testing.TB
	sys     *host.System
	running *service.Running
	dir     string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	w.sys = sys
	if w.running, err = Service.Start(sys, &service.Env{Base: w.dir, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, &Settings{Folder: "blobs"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sys.Close(context.Background())
		if err := w.running.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// asking is an actor in Go that asks the service for what it is asked, [op, args].
type asking struct {
	w    *world
	open map[uint64]*host.Reply
	n    uint64
}

func (a *asking) Receive(ctx *host.Context, m host.Message) error {
	if reply, ok := a.open[m.Correlation]; ok && m.Sender == a.w.running.Ref() {
		delete(a.open, m.Correlation)
		if err := m.Err(); err != nil {
			return reply.Fail(err.(*host.ReplyError).Reason)
		}
		return reply.Send(host.Raw(append([]byte{}, m.Payload...)))
	}
	reply, err := ctx.Later()
	if err != nil {
		return err
	}
	a.n++
	a.open[a.n] = reply
	return ctx.Ask(a.w.running.Ref(), host.Raw(append([]byte{}, m.Payload...)), a.n, time.Minute)
}

func (w *world) actor(name string, g *Grant, b service.Bounds) host.Ref {
	w.t.Helper()
	return w.spawn(name, host.Native(func() host.Actor { return &asking{w: w, open: map[uint64]*host.Reply{}} }), g, b)
}

func (w *world) spawn(name string, p host.Props, g *Grant, b service.Bounds) host.Ref {
	w.t.Helper()
	if g != nil {
		p = p.WithGrant("blob", Service.Grant(*g, b))
	}
	ref, err := w.sys.Spawn(name, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return ref
}

func (w *world) guest(name, typ string, g *Grant) host.Ref {
	w.t.Helper()
	return w.spawn(name, host.GuestOf(servicetest.Module(w.t), typ), g, service.Bounds{})
}

// ask is what an actor answers, or the text of its error.
func ask[T any](w *world, who host.Ref, payload any) (T, string) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	v, err := host.AskAs[T](ctx, w.sys, who, payload)
	if err != nil {
		return v, strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	return v, ""
}
