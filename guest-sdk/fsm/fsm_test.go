//go:build !wasip1

package fsm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/fsm"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

type account struct{ balance, moves int64 }

// turnstile has what the usual message does: a transition with data, a timeout, an observer, a log.
var turnstile = fsm.Define("Locked", func(ctx *actor.Context) (account, error) { return account{}, nil }).
	When("Locked", func(m *fsm.Machine[account], e fsm.Event) (fsm.Next[account], error) {
		d := m.Data()
		d.balance++
		return m.Goto("Open").Using(d).Replying(actor.Raw{0xf5}), nil
	}, fsm.To("Open", "coin")).
	When("Open", func(m *fsm.Machine[account], e fsm.Event) (fsm.Next[account], error) {
		d := m.Data()
		d.moves++
		if err := m.SetTimer("t", nil, time.Second, false); err != nil {
			return m.Stay(), err
		}
		m.CancelTimer("t")
		return m.Goto("Locked").Using(d).ForMax(fsm.Forever), nil
	}, fsm.To("Locked", "push")).
	StateTimeout("Open", time.Second).
	OnTransition(fsm.Any, fsm.Any, func(m *fsm.Machine[account], from, to fsm.State) {
		if m.NextData() == m.Data() && m.State() != from {
			panic("it observes nothing")
		}
	}).
	Log(16)

// asker fires the machine that is its part when an answer comes.
type asker struct{ *fsm.Machine[int] }

var asking = fsm.Define[int]("Idle", nil).
	When("Idle", func(m *fsm.Machine[int], e fsm.Event) (fsm.Next[int], error) {
		if e.Kind == fsm.Fired && e.Name == "answered" {
			n, _ := e.Message.Int()
			return m.Goto("Done").Using(int(n)), nil
		}
		return m.Unhandled(), nil
	}, fsm.To("Done", "answered")).
	When("Done", func(m *fsm.Machine[int], e fsm.Event) (fsm.Next[int], error) { return m.Stay(), nil })

func (a *asker) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Is("go") {
		ctx.Ask(ctx.Sender(), actor.Text("how much?"), time.Second, func(ctx *actor.Context, msg *actor.Message) error {
			return a.Fire(ctx, "answered", msg)
		})
		return nil
	}
	return a.Machine.Receive(ctx, msg)
}

func init() {
	turnstile.Register("turnstile")
	actor.Register("asker", func() actor.Actor { return &asker{asking.New()} })
}

// once is a host of entries with one message.
type once struct{ begun bool }

func (h *once) Next(int) bool {
	h.begun = !h.begun
	return h.begun
}
func (*once) Flush([]byte)      { panic("a flush") }
func (*once) Log(int, []byte)   {}
func (*once) Panic(text []byte) { panic(string(text)) }

// A message that a machine handles allocates nothing in the guest: not for the step, its data, its answer,
// its timers, nor for those who observe.
func TestAMessageAllocatesNothing(t *testing.T) {
	h := &once{}
	bridge.Current = h
	enter := func(state any, e abi.Envelope) any {
		h.begun = false
		state, _ = bridge.Loop.Turn(state, abi.AppendEnvelope(nil, &e))
		return state
	}
	state := enter(nil, abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &abi.Start{Type: "turnstile", Path: "x", Self: 9, Args: []byte{0xf6}})})
	envelope := abi.AppendEnvelope(nil, &abi.Envelope{Kind: abi.KindMessage, Time: 1 << 60, Sender: 1 << 40, Correlation: 3, Payload: []byte{0x64, 'c', 'o', 'i', 'n'}})
	handle := func() {
		h.begun = false
		state, _ = bridge.Loop.Turn(state, envelope)
	}
	for range 20 {
		handle()
	}
	n := testing.AllocsPerRun(1000, handle)
	m := bridge.Loop.Actor(state).(*fsm.Machine[account])
	if d := m.Data(); n != 0 || d.balance < 500 || d.moves < 500 || len(m.Log()) != 16 {
		t.Errorf("%v allocations, in state %s with %+v", n, m.State(), d)
	}
}

// An answer to an ask reaches the machine as an event that it has fired.
func TestFire(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	turn := a.Send(actor.Text("go"))
	if len(turn.Sent) != 1 {
		t.Fatalf("%+v", turn)
	}
	a.Answer(turn.Sent[0], actor.Int(12))
	if m := a.Actor().(*asker).Machine; m.State() != "Done" || m.Data() != 12 {
		t.Errorf("%s %d", m.State(), m.Data())
	}
}

// What subscribers get can be read again, and nothing else is taken for it.
func TestNewsOfTransitions(t *testing.T) {
	encode := func(v actor.Encoder) []byte {
		var w abi.Writer
		v.MarshalCBOR(&w)
		return slices.Clone(w.Bytes())
	}
	state, transition := fsm.CurrentState{State: "A"}, fsm.Transition{From: "A", To: "B"}
	var s fsm.CurrentState
	var x fsm.Transition
	read := func(d actor.Decoder, b []byte) error {
		r := abi.NewReader(b)
		d.UnmarshalCBOR(r)
		return r.Done()
	}
	if err := read(&s, encode(state)); err != nil || s != state {
		t.Errorf("%+v %v", s, err)
	}
	if err := read(&x, encode(transition)); err != nil || x != transition {
		t.Errorf("%+v %v", x, err)
	}
	if read(&x, encode(state)) == nil || read(&s, encode(transition)) == nil || read(&s, encode(actor.Text("A"))) == nil {
		t.Error("one is taken for the other")
	}
}

// A definition that is wrong is refused when the module is made, and says where.
func TestWrongDefinitionsPanic(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), `names the state "Nowhere"`) {
			t.Errorf("%v", r)
		}
	}()
	fsm.Define[int]("A", nil).When("A", nil, fsm.To("Nowhere", "")).Register("wrong")
}
