package main

import (
	"io"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/anthdm/hollywood/actor"
)

type hollywoodWorld struct {
	engine *actor.Engine
	next   int
}

func openHollywood(*env) (world, error) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.Level(100)})))
	e, err := actor.NewEngine(actor.NewEngineConfig())
	return &hollywoodWorld{engine: e}, err
}

// hollywoodActor is the receiver, and its turn.
type hollywoodActor struct {
	b        behaviour
	c        *actor.Context
	children int
}

func (a *hollywoodActor) Receive(c *actor.Context) {
	switch m := c.Message().(type) {
	case *msg, *big, *six:
		a.c = c
		a.b.receive(a, m)
	}
}

func (a *hollywoodActor) keep() addr { return a.sender() }
func (a *hollywoodActor) self() addr { return a.c.PID() }
func (a *hollywoodActor) sender() addr {
	return a.c.Sender()
}
func (a *hollywoodActor) send(to addr, m any) { a.c.Send(to.(*actor.PID), m) }
func (a *hollywoodActor) respond(m any)       { a.c.Respond(m) }
func (a *hollywoodActor) stop()               { a.c.Engine().Stop(a.c.PID()) }
func (a *hollywoodActor) spawn(b behaviour) addr {
	a.children++
	return a.c.SpawnChild(func() actor.Receiver { return &hollywoodActor{b: b} }, "b", actor.WithID(strconv.Itoa(a.children)))
}

func (w *hollywoodWorld) spawn(b behaviour) addr {
	w.next++
	return w.engine.Spawn(func() actor.Receiver { return &hollywoodActor{b: b} }, "bench", actor.WithID(strconv.Itoa(w.next)))
}

func (w *hollywoodWorld) tell(from, to addr, m any) {
	sender, _ := from.(*actor.PID)
	w.engine.SendWithSender(to.(*actor.PID), m, sender)
}

func (w *hollywoodWorld) ask(to addr, m any) error {
	_, err := w.engine.Request(to.(*actor.PID), m, time.Minute).Result()
	return err
}

func (w *hollywoodWorld) crasher(make func() behaviour) addr {
	w.next++
	return w.engine.Spawn(func() actor.Receiver { return &hollywoodActor{b: make()} }, "victim",
		actor.WithID(strconv.Itoa(w.next)), actor.WithMaxRestarts(math.MaxInt32), actor.WithRestartDelay(0))
}

func (w *hollywoodWorld) close() error { return nil }

var hollywood = &contestant{
	name: "hollywood", title: "hollywood", version: module("github.com/anthdm/hollywood"),
	opens: openWorld(openHollywood),
}
