package sql

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// world is a system with the service and two databases, main and other.
type world struct {
	t       testing.TB
	sys     *host.System
	clock   *host.VirtualClock // nil: the machine's
	running *service.Running
	dir     string
}

func newWorld(t testing.TB, virtual bool, change func(*DatabaseSettings)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	cfg := host.NewConfig("test")
	if virtual {
		w.clock = host.NewVirtualClock(time.Unix(1e9, 0))
		cfg = cfg.WithClock(w.clock)
	}
	sys, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.sys = sys
	main := DatabaseSettings{File: "main.db"}
	if change != nil {
		change(&main)
	}
	w.running, err = Service.Start(sys, &service.Env{Base: w.dir, Log: discard}, &Settings{Databases: map[string]DatabaseSettings{"main": main, "other": {File: "other.db"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	db := w.running.Provider().(*provider).dbs["main"]
	if _, err := do(db, Write, "create table account(id integer primary key, name text unique, has integer not null)"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) close() {
	_ = w.sys.Close(context.Background())
	if err := w.running.Wait(context.Background()); err != nil {
		w.t.Error(err)
	}
}

var (
	onlyMain = Grant{Databases: map[string]string{"main": "rw"}}
	readMain = Grant{Databases: map[string]string{"main": "ro"}}
)

// actor is an actor in Go that asks the service for what it is asked: [op, args], of the service or of
// the actor whose ref it was told last.
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
	p := host.Native(func() host.Actor { return &asking{w: w, open: map[uint64]*host.Reply{}} })
	if g != nil {
		p = p.WithGrant("sql", Service.Grant(*g, b))
	}
	ref, err := w.sys.Spawn(name, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return ref
}

type m = map[string]any

// ask is the answer, or the text of the error.
func (w *world) ask(who host.Ref, payload any) (map[string]any, string) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	answer, err := w.sys.Ask(ctx, who, payload)
	if err != nil {
		return nil, strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	var out map[string]any
	if err := answer.Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return out, ""
}

func (w *world) guest(name, typ string, g *Grant) host.Ref {
	w.t.Helper()
	p := host.GuestOf(servicetest.Module(w.t), typ)
	if g != nil {
		p = p.WithGrant("sql", Service.Grant(*g, service.Bounds{}))
	}
	ref, err := w.sys.Spawn(name, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return ref
}

// askFor is what a guest answers, or the text of its error.
func askFor[T any](w *world, who host.Ref, payload any) (T, string) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	v, err := host.AskAs[T](ctx, w.sys, who, payload)
	if err != nil {
		return v, strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	return v, ""
}
