package main

import (
	"time"

	"ergo.services/ergo"
	"ergo.services/ergo/act"
	"ergo.services/ergo/gen"
)

type ergoWorld struct {
	node gen.Node
	hand gen.PID
}

func openErgo(*env) (world, error) {
	o := gen.NodeOptions{}
	o.Network.Mode = gen.NetworkModeDisabled
	o.Log.Level = gen.LogLevelDisabled
	o.Log.DefaultLogger.Disable = true
	node, err := ergo.StartNode("bench@localhost", o)
	if err != nil {
		return nil, err
	}
	return &ergoWorld{node: node}, nil
}

type ergoActor struct {
	act.Actor
	b    behaviour
	from gen.PID
}

func (a *ergoActor) Init(args ...any) error {
	switch b := args[0].(type) {
	case behaviour:
		a.b = b
	case func() behaviour:
		a.b = b()
	}
	return nil
}

// named is a message in another's name: ergo's own sends name the process that sends.
type named struct {
	from addr
	m    any
}

func (a *ergoActor) HandleMessage(from gen.PID, m any) error {
	if n, ok := m.(*named); ok {
		from, _ = n.from.(gen.PID)
		m = n.m
	}
	a.from = from
	a.b.receive((*ergoTurn)(a), m)
	if a.b == nil {
		return gen.TerminateReasonNormal
	}
	return nil
}

func (a *ergoActor) HandleCall(from gen.PID, _ gen.Ref, m any) (any, error) {
	t := &ergoCall{ergoTurn: (*ergoTurn)(a)}
	a.from = from
	a.b.receive(t, m)
	return t.answer, nil
}

type ergoTurn ergoActor

func (t *ergoTurn) keep() addr          { return t.sender() }
func (t *ergoTurn) self() addr          { return t.PID() }
func (t *ergoTurn) sender() addr        { return t.from }
func (t *ergoTurn) send(to addr, m any) { _ = t.Send(to, m) }
func (t *ergoTurn) respond(any)         {}
func (t *ergoTurn) stop()               { t.b = nil }
func (t *ergoTurn) spawn(b behaviour) addr {
	pid, err := t.Spawn(newErgoActor, gen.ProcessOptions{}, b)
	if err != nil {
		panic(err)
	}
	return pid
}

// ergoCall is the turn of a call, whose answer is what the handler returns.
type ergoCall struct {
	*ergoTurn
	answer any
}

func (t *ergoCall) respond(m any) { t.answer = m }

func newErgoActor() gen.ProcessBehavior { return &ergoActor{} }

func (w *ergoWorld) spawn(b behaviour) addr {
	pid, err := w.node.Spawn(newErgoActor, gen.ProcessOptions{}, b)
	if err != nil {
		panic(err)
	}
	return pid
}

func (w *ergoWorld) tell(from, to addr, m any) {
	err := w.node.Send(to, &named{from, m})
	if _, victim := to.(gen.Atom); err != nil && !victim { // its name is free between two lives
		panic(err)
	}
}

// ergoHand is the process that asks: nodes cannot.
type ergoHand struct{ act.Actor }

func newErgoHand() gen.ProcessBehavior { return &ergoHand{} }

type errand struct {
	do   func(*ergoHand) error
	done chan error
}

func (h *ergoHand) HandleMessage(_ gen.PID, m any) error {
	if e, ok := m.(*errand); ok {
		e.done <- e.do(h)
	}
	return nil
}

func (w *ergoWorld) ask(to addr, m any) error { return w.askMany(1, to, m) }

func (w *ergoWorld) askMany(n int, to addr, m any) error {
	if w.hand == (gen.PID{}) {
		var err error
		if w.hand, err = w.node.Spawn(newErgoHand, gen.ProcessOptions{}); err != nil {
			return err
		}
	}
	e := &errand{func(h *ergoHand) error {
		for range n {
			if _, err := h.Call(to, m); err != nil {
				return err
			}
		}
		return nil
	}, make(chan error, 1)}
	if err := w.node.Send(w.hand, e); err != nil {
		return err
	}
	return <-e.done
}

// ergoSupervisor restarts its one child, which has a name that outlives it.
type ergoSupervisor struct{ act.Supervisor }

func (s *ergoSupervisor) Init(args ...any) (act.SupervisorSpec, error) {
	spec := act.SupervisorSpec{
		Type:     act.SupervisorTypeOneForOne,
		Children: []act.SupervisorChildSpec{{Name: "victim", Factory: newErgoActor, Args: args}},
	}
	spec.Restart.Strategy = act.SupervisorStrategyPermanent
	spec.Restart.Intensity, spec.Restart.Period = 65535, 1
	return spec, nil
}

func (w *ergoWorld) crasher(make func() behaviour) addr {
	_, err := w.node.Spawn(func() gen.ProcessBehavior { return &ergoSupervisor{} }, gen.ProcessOptions{}, make)
	if err != nil {
		return nil
	}
	time.Sleep(10 * time.Millisecond)
	return gen.Atom("victim")
}

func (w *ergoWorld) losesMail() {}

func (w *ergoWorld) close() error { return nil }

var ergoContestant = &contestant{
	name: "ergo", title: "ergo", version: module("ergo.services/ergo"),
	opens: openWorld(openErgo),
	lacks: map[string]string{},
}
