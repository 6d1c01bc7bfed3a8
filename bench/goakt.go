package main

import (
	"context"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tochemey/goakt/v4/actor"
	"github.com/tochemey/goakt/v4/errors"
	"github.com/tochemey/goakt/v4/log"
	"github.com/tochemey/goakt/v4/supervisor"
)

type goaktWorld struct {
	ctx    context.Context
	system actor.ActorSystem
	next   atomic.Int64
}

func openGoakt(e *env) (world, error) {
	s, err := actor.NewActorSystem("bench", actor.WithLogger(log.DiscardLogger), actor.WithActorInitMaxRetries(1))
	if err != nil {
		return nil, err
	}
	if err := s.Start(e.ctx); err != nil {
		return nil, err
	}
	return &goaktWorld{ctx: e.ctx, system: s}, nil
}

type goaktActor struct {
	w *goaktWorld
	b behaviour
	c *actor.ReceiveContext
	// make renews the behaviour at every start, of those that crash.
	make func() behaviour
}

func (a *goaktActor) PreStart(*actor.Context) error {
	if a.make != nil {
		a.b = a.make()
	}
	return nil
}
func (a *goaktActor) PostStop(*actor.Context) error { return nil }
func (a *goaktActor) Receive(c *actor.ReceiveContext) {
	switch m := c.Message().(type) {
	case *msg, *big, *six:
		a.c = c
		a.b.receive(a, m)
	}
}

func (a *goaktActor) keep() addr          { return a.sender() }
func (a *goaktActor) self() addr          { return a.c.Self() }
func (a *goaktActor) sender() addr        { return a.c.Sender() }
func (a *goaktActor) send(to addr, m any) { a.c.Tell(to.(*actor.PID), m) }
func (a *goaktActor) respond(m any)       { a.c.Response(m) }
func (a *goaktActor) stop()               { a.c.Shutdown() }
func (a *goaktActor) spawn(b behaviour) addr {
	return a.c.Spawn(a.w.name(), &goaktActor{w: a.w, b: b}, actor.WithLongLived())
}

func (w *goaktWorld) name() string { return "a" + strconv.FormatInt(w.next.Add(1), 10) }

func (w *goaktWorld) must(a *goaktActor, o ...actor.SpawnOption) addr {
	pid, err := w.system.Spawn(w.ctx, w.name(), a, append(o, actor.WithLongLived())...)
	if err != nil {
		panic(err)
	}
	return pid
}

func (w *goaktWorld) spawn(b behaviour) addr { return w.must(&goaktActor{w: w, b: b}) }

func (w *goaktWorld) tell(from, to addr, m any) {
	var err error
	if sender, ok := from.(*actor.PID); ok {
		err = sender.Tell(w.ctx, to.(*actor.PID), m)
	} else {
		err = actor.Tell(w.ctx, to.(*actor.PID), m)
	}
	_ = err // an actor that is being restarted refuses; a lost message shows in the verification
}

func (w *goaktWorld) ask(to addr, m any) error {
	_, err := actor.Ask(w.ctx, to.(*actor.PID), m, time.Minute)
	return err
}

func (w *goaktWorld) crasher(make func() behaviour) addr {
	s := supervisor.NewSupervisor(
		supervisor.WithDirective(&errors.PanicError{}, supervisor.RestartDirective),
		supervisor.WithRetry(math.MaxInt32, time.Hour))
	return w.must(&goaktActor{w: w, make: make}, actor.WithSupervisor(s))
}

func (w *goaktWorld) losesMail() {}

func (w *goaktWorld) close() error { return nil }

var goakt = &contestant{
	name: "goakt", title: "goakt", version: module("github.com/tochemey/goakt/v4"),
	opens: openWorld(openGoakt),
}
