package fsm_test

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/fsm"
)

// What follows is the machine of testdata/machine, in Go.

func textOf(m host.Message) (s string) {
	_ = m.Decode(&s)
	return s
}

type machine = fsm.Machine[int]

func probe(m *machine, text string) {
	_ = m.Context().At("/user/probe").Tell(text)
}

func describe(e fsm.Event) string {
	switch e.Kind {
	case fsm.Received:
		if e.Message.Kind == abi.KindMessage {
			return textOf(e.Message)
		}
		return "kind " + strconv.Itoa(int(e.Message.Kind))
	case fsm.Timer:
		return "timer " + e.Name + " " + textOf(e.Message)
	}
	return e.Kind.String()
}

// run does what a message says: a step with its modifiers, behind orders that end with ';'.
func run(m *machine, e fsm.Event) (fsm.Next[int], error) {
	text := describe(e)
	if e.Kind != fsm.Received {
		probe(m, string(m.State())+" "+text)
		return m.Stay(), nil
	}
	orders := strings.Split(text, ";")
	for _, order := range orders[:len(orders)-1] {
		w := strings.Fields(order)
		switch w[0] {
		case "set": // set NAME MS TEXT [repeat]
			ms, _ := strconv.Atoi(w[2])
			if err := m.SetTimer(w[1], w[3], time.Duration(ms)*time.Millisecond, len(w) > 4); err != nil {
				return m.Stay(), err
			}
		case "cancel":
			m.CancelTimer(w[1])
		case "active":
			probe(m, w[1]+" active: "+strconv.FormatBool(m.TimerActive(w[1])))
		case "timeout": // timeout STATE MS
			ms, _ := strconv.Atoi(w[2])
			if err := m.SetStateTimeout(fsm.State(w[1]), time.Duration(ms)*time.Millisecond); err != nil {
				return m.Stay(), err
			}
		case "subscribe":
			if !m.Subscribe(e.Message.Sender) {
				probe(m, "full")
			}
		case "unsubscribe":
			m.Unsubscribe(e.Message.Sender)
		case "data":
			probe(m, string(m.State())+" has "+strconv.Itoa(m.Data()))
		case "log":
			for _, x := range m.Log() {
				probe(m, "log "+string(x.State)+" "+x.Kind.String())
			}
		}
	}
	w := strings.Fields(orders[len(orders)-1])
	var n fsm.Next[int]
	switch w[0] {
	case "stay":
		n = m.Stay()
	case "goto":
		n = m.Goto(fsm.State(w[1]))
	case "stop":
		n = m.Stop(map[string]fsm.Reason{"normal": {}, "shutdown": {Kind: fsm.Shutdown}, "failure": {Kind: fsm.Failure, Text: "bad"}}[w[1]])
	case "fail":
		return m.Goto("B").Using(99), errors.New("as told")
	case "nothing":
		m.Goto("B")
		return n, nil
	default:
		return m.Unhandled(), nil
	}
	for i := 1; i+1 < len(w); i++ {
		number, _ := strconv.Atoi(w[i+1])
		switch w[i] {
		case "using":
			n = n.Using(number)
		case "max":
			n = n.ForMax(time.Duration(number) * time.Millisecond)
			if number < 0 {
				n = n.ForMax(fsm.Forever)
			}
		case "reply":
			n = n.Replying(w[i+1])
		}
	}
	return n, nil
}

func observe(name string) func(m *machine, from, to fsm.State) {
	return func(m *machine, from, to fsm.State) {
		defer func() { m.Goto("C").Using(1000) }() // what an observer says does not count
		probe(m, name+" "+string(from)+"->"+string(to)+" in "+string(m.State())+" "+strconv.Itoa(m.Data())+"->"+strconv.Itoa(m.NextData()))
	}
}

func second(m *machine, e fsm.Event) (fsm.Next[int], error) {
	if describe(e) == "chained" {
		probe(m, "second handler of "+string(m.State()))
		return m.Stay(), nil
	}
	return m.Unhandled(), nil
}

var script = fsm.Define("A", func(ctx *host.Context) (int, error) { return 1, nil }).
	When("A", run, fsm.To("B", "told"), fsm.To("C", "")).
	When("B", run, fsm.To("A", "")).
	When("C", run, fsm.To("A", "")).
	When("A", second).
	StateTimeout("B", time.Second).
	InitialTimeout(500*time.Millisecond).
	Unhandled(func(m *machine, e fsm.Event) (fsm.Next[int], error) { return m.Stay(), errors.New("not the last") }).
	Unhandled(func(m *machine, e fsm.Event) (fsm.Next[int], error) {
		if describe(e) == "odd" {
			probe(m, "odd in "+string(m.State()))
			return m.Stay(), nil
		}
		return m.Unhandled(), nil
	}).
	OnTransition("A", "B", observe("first")).
	OnTransition(fsm.Any, fsm.Any, observe("any")).
	OnTermination(func(m *machine, r fsm.Reason) { probe(m, "not the last") }).
	OnTermination(func(m *machine, r fsm.Reason) {
		probe(m, "ends in "+string(m.State())+" with "+strconv.Itoa(m.Data())+": "+strconv.Itoa(int(r.Kind))+r.Text)
	}).
	Log(3)
