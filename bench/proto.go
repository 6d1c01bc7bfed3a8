package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

type protoWorld struct{ root *actor.RootContext }

func openProto(*env) (world, error) {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.Level(100)}))
	})
	return &protoWorld{actor.NewActorSystemWithConfig(actor.Configure(quiet)).Root}, nil
}

type protoActor struct {
	b behaviour
	c actor.Context
}

func (a *protoActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *msg, *big, *six:
		a.c = c
		a.b.receive(a, m)
	}
}

func (a *protoActor) keep() addr { return a.sender() }
func (a *protoActor) self() addr { return a.c.Self() }
func (a *protoActor) sender() addr {
	return a.c.Sender()
}

// send is Request: a message that names its sender.
func (a *protoActor) send(to addr, m any) { a.c.Request(to.(*actor.PID), m) }
func (a *protoActor) respond(m any)       { a.c.Respond(m) }
func (a *protoActor) stop()               { a.c.Stop(a.c.Self()) }
func (a *protoActor) spawn(b behaviour) addr {
	return a.c.Spawn(actor.PropsFromProducer(func() actor.Actor { return &protoActor{b: b} }))
}

func (w *protoWorld) spawn(b behaviour) addr {
	return w.root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &protoActor{b: b} }))
}

func (w *protoWorld) tell(from, to addr, m any) {
	sender, _ := from.(*actor.PID)
	w.root.RequestWithCustomSender(to.(*actor.PID), m, sender)
}

func (w *protoWorld) ask(to addr, m any) error {
	_, err := w.root.RequestFuture(to.(*actor.PID), m, time.Minute).Result()
	return err
}

func (w *protoWorld) crasher(make func() behaviour) addr {
	return w.root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &protoActor{b: make()} },
		actor.WithGuardian(actor.NewRestartingStrategy())))
}

func (w *protoWorld) close() error { return nil }

var proto = &contestant{
	name: "proto", title: "proto.actor", version: module("github.com/asynkron/protoactor-go"),
	opens: openWorld(openProto),
}
