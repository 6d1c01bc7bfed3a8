//go:build !wasip1

package actor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// tally is a type of which there are several versions, as modules have them.
type tally struct {
	n, started int64
	send, fail bool
}

var thisTally *tally

func (s *tally) Started(*Context) error { s.started++; return nil }

func (s *tally) Receive(ctx *Context, msg *Message) error {
	switch {
	case msg.Is("rate"):
		ctx.AtRate(7, time.Second, Text("beat"))
	case msg.Is("ask"):
		ctx.Ask(9, Null, time.Second, func(*Context, *Message) error { return nil })
	case msg.Is("send"):
		s.send = true
	case msg.Is("fail"):
		s.fail = true
	default:
		s.n++
	}
	return nil
}

func (s *tally) Save(ctx *Context, w *abi.Writer) error {
	if s.send {
		ctx.Tell(9, Null)
	}
	if s.fail {
		return errors.New("not now")
	}
	w.Int(s.n)
	return nil
}

func (s *tally) Load(_ *Context, r *abi.Reader) error {
	s.n = r.Int()
	if s.n < 0 {
		return errors.New("below zero")
	}
	return nil
}

func times(by int64) Migration {
	return func(r *abi.Reader, w *abi.Writer) error { w.Int(r.Int() * by); return nil }
}

func init() {
	fresh := func() Actor { thisTally = &tally{}; return thisTally }
	Register("tally1", fresh, Saves(1))
	Register("tally4", fresh, Saves(4).Migrate(1, times(2)).Migrate(2, times(3)).Migrate(3, times(5)))
	Register("gap", fresh, Saves(4).Migrate(1, times(2)).Migrate(3, times(5)))
	Register("unsaved", fresh)
	Register("around", Intercepted(fresh, func(next Behavior) Behavior { return next }), Saves(1))
}

func beginAs(f *fake, t *testing.T, typ string, state *abi.State) []abi.Command {
	t.Helper()
	s := abi.Start{Type: typ, Path: "wasm://s/user/a#5", Self: 5, Args: []byte{0xf6}, State: state}
	return f.run(t, abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &s)})
}

func saveOf(f *fake, t *testing.T) abi.Command {
	t.Helper()
	cmds := f.run(t, abi.Envelope{Kind: abi.KindSave, Payload: []byte{0xf6}})
	if len(cmds) != 2 || cmds[1].Op != abi.OpEnd {
		t.Fatalf("%+v", cmds)
	}
	return cmds[0]
}

func stateOf(c abi.Command) *abi.State {
	return &abi.State{Version: c.Key, Payload: append([]byte(nil), c.Payload...), Own: append([]byte(nil), c.Options...)}
}

// A state goes from version to version, step by step; what the SDK keeps for itself goes with it.
func TestStateGoesOver(t *testing.T) {
	f := begun(t)
	beginAs(f, t, "tally1", nil)
	f.run(t, text("x"), text("x"), text("rate"))
	drawn := ctx.rand.Uint64()
	next := ctx.rand
	for range 3 { // asks that are over
		ctx.asks.take(ctx.asks.add(nil))
	}
	saved := saveOf(f, t)
	if saved.Op != abi.OpSaved || saved.Key != 1 || string(saved.Payload) != "\x02" {
		t.Fatalf("%+v", saved)
	}
	if cmds := beginAs(f, t, "tally4", stateOf(saved)); len(cmds) != 1 {
		t.Fatalf("a load has asked for something: %+v", cmds)
	}
	if thisTally.n != 2*2*3*5 || thisTally.started != 0 {
		t.Errorf("%+v", thisTally)
	}
	if ctx.asks.last != 3 || len(ctx.rates) != 1 || ctx.rates[0].key != 7 || ctx.rates[0].period != int64(time.Second) || string(ctx.rates[0].payload) != "\x64beat" {
		t.Errorf("asks %d, rates %+v", ctx.asks.last, ctx.rates)
	}
	if got := ctx.rand.Uint64(); got == drawn || got != next.Uint64() {
		t.Errorf("the numbers do not go on")
	}
	if ctx.start.State != nil {
		t.Error("the state is kept")
	}
	if again := saveOf(f, t); again.Key != 4 || string(again.Payload) != "\x18\x3c" {
		t.Errorf("%+v", again)
	}
}

func TestStateRefusals(t *testing.T) {
	f := begun(t)
	state := func(version uint64, payload, own string) *abi.State {
		return &abi.State{Version: version, Payload: []byte(payload), Own: []byte(own)}
	}
	for name, c := range map[string]struct {
		typ   string
		state *abi.State
		want  string
	}{
		"later":           {"tally1", state(2, "\x01", "\xa0"), "reads up to version 1"},
		"no step":         {"gap", state(1, "\x01", "\xa0"), "no migration leads from version 2"},
		"not registered":  {"unsaved", state(1, "\x01", "\xa0"), "without actor.Saves"},
		"its own error":   {"tally1", state(1, "\x20", "\xa0"), "below zero"},
		"another type":    {"tally1", state(1, "\x61a", "\xa0"), "type"},
		"rest":            {"tally1", state(1, "\x01\x01", "\xa0"), ""},
		"rest in a step":  {"tally4", state(1, "\x01\x01", "\xa0"), ""},
		"own":             {"tally1", state(1, "\x01", "\xa1"), ""},
		"own, rates":      {"tally1", state(1, "\x01", "\xa1\x65rates\x81\x81\x01"), "malformed"},
		"own, period":     {"tally1", state(1, "\x01", "\xa1\x65rates\x81\x84\x01\x01\x00\x40"), "malformed"},
		"own, unknown":    {"tally1", state(1, "\x01", "\xa1\x61x\x82\x01\x02"), "-"},
		"own, empty":      {"around", state(1, "\x01", "\xa0"), "-"},
		"the first start": {"unsaved", nil, "-"},
	} {
		cmds := beginAs(f, t, c.typ, c.state)
		failed := cmds[0].Op == abi.OpFail
		if failed != (c.want != "-") || failed && !strings.Contains(string(cmds[0].Reason), c.want) {
			t.Errorf("%s: %v %s", name, cmds[0].Op, cmds[0].Reason)
		}
	}
	for send, want := range map[string]string{"ask": "it waits for 1 answers", "fail": "not now"} {
		beginAs(f, t, "around", nil)
		f.run(t, text(send))
		if c := saveOf(f, t); c.Op != abi.OpFail || !strings.Contains(string(c.Reason), want) {
			t.Errorf("%s: %v %s", send, c.Op, c.Reason)
		}
	}
	beginAs(f, t, "unsaved", nil)
	if cmds := f.run(t, abi.Envelope{Kind: abi.KindSave, Payload: []byte{0xf6}}); len(cmds) != 1 || thisTally.n != 1 {
		t.Errorf("a type that does not save: %+v, %+v", cmds, thisTally)
	}
}

func TestStateMistakes(t *testing.T) {
	for name, f := range map[string]func(){
		"version 0": func() { Saves(0) },
		"from 0":    func() { Saves(2).Migrate(0, nil) },
		"to itself": func() { Saves(2).Migrate(2, nil) },
		"twice":     func() { Saves(3).Migrate(1, nil).Migrate(1, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is allowed", name)
				}
			}()
			f()
		}()
	}
}
