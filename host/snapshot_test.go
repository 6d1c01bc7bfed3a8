package host

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// stateOfGuest is a guest's state as bytes; the system is at rest.
func stateOfGuest(t testing.TB, s *System, ref Ref) []byte {
	t.Helper()
	return must(saved.Bytes(guestOf(s.table.Get(ref.UID())).saveTo))(t)
}

// rich is a puppet that has counted to 5 and has a timer, an ask, a watch, a receive
// timeout, a stashed message and a child.
func rich(t *testing.T, l *stage) (ref Ref, p Props) {
	p = puppet(t, on(abi.KindTimer, toProbe("timer")), on(abi.KindAskTimeout, toProbe("timeout")), on(abi.KindTerminated, toProbe("ended")))
	silent := l.spawn("silent", Func(func(*Context, Message) error { return nil }))
	ref = l.spawn("rich", p)
	key := childKeyOf(guestOf(l.table.Get(ref.UID())))
	l.say(ref, script(rec(recAdd, 5, nil)))
	l.say(ref, script(now(
		abi.AppendTimer(nil, 3, uint64(2*time.Second), 0, encoded("tick")),
		abi.AppendAsk(nil, silent.UID(), "", 9, uint64(3*time.Second), nil, encoded("what?")),
		abi.AppendWatch(nil, silent.UID(), ""),
		abi.AppendSpawn(nil, abi.ChildRef(key, 0, 0), "puppet", "kid", nil, nil),
	)))
	l.say(ref, script(now(abi.AppendStash(nil))))
	return ref, p
}

// A guest that went through bytes counts on, and its timers, asks and watches come at the
// times that they were set for.
func TestStateThroughBytes(t *testing.T) {
	l := newStage(t, nil)
	ref, p := rich(t, l)
	blob := stateOfGuest(t, l.System, ref)
	if again := stateOfGuest(t, l.System, ref); !bytes.Equal(blob, again) {
		t.Error("the same state has other bytes")
	}
	secret := l.Secret()

	m := newStage(t, func(c Config) Config { return c.WithSecret(secret) })
	silent := m.spawn("silent", Func(func(*Context, Message) error { return nil }))
	m.clock.Advance(time.Second) // while it was away
	p.rare = p.rare.With(func(r *seldom.Props) { r.State = &blob })
	back := m.spawn("rich", p)
	if back.UID() != ref.UID() {
		t.Fatal("the refs differ")
	}
	m.say(back, script(rec(recReport, 0, nil)))
	m.wants("reply 5")
	m.pass(999 * time.Millisecond)
	m.wants()
	m.pass(time.Millisecond)
	m.wants("message timer")
	m.pass(time.Second)
	m.wants("message timeout")
	m.Stop(silent)
	m.run()
	m.wants("message ended")
	if a := m.table.Get(back.UID()); a.work.Stash.Len() != 1 {
		t.Errorf("%d stashed", a.work.Stash.Len())
	}
	s, err := saved.Decode(blob)
	if err != nil || len(s.Children) != 1 || s.Children[0].Name != "kid" || s.Spawned != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Whom a guest looks out for goes through bytes: who has come meanwhile is watched, and who comes later, once
// each, and nobody whom it does not look out for any more or may not send to.
func TestLookoutsGoThroughBytes(t *testing.T) {
	idle := Func(func(*Context, Message) error { return nil })
	p := puppet(t, on(abi.KindTerminated, toProbe("ended"))).WithCapabilities(Capabilities{Send: []string{"/user/probe", "/user/rich", "/user/a*", "/user/b*"}})
	l := newStage(t, nil)
	for i := range 4 { // a ref counts those that were started before
		l.spawn(fmt.Sprint("x", i), idle)
	}
	ref := l.spawn("rich", p)
	l.say(ref, script(now(
		abi.AppendWatch(nil, 0, "+/user/*"), abi.AppendWatch(nil, 0, "+../a*"), abi.AppendWatch(nil, 0, "+/user/b*"), abi.AppendWatch(nil, 0, "+./k*"), abi.AppendUnwatch(nil, 0, "+/user/b*"), abi.AppendUnwatch(nil, 0, "+/user/*"),
	)))
	l.spawn("a1", idle)
	blob := stateOfGuest(t, l.System, ref)
	if s, err := saved.Decode(blob); err != nil || !slices.Equal(s.Lookouts, []string{"../a*", "./k*"}) {
		t.Fatalf("%q, %v", s.Lookouts, err)
	}

	m := newStage(t, func(c Config) Config { return c.WithSecret(l.Secret()) })
	there := []Ref{m.spawn("a1", idle), m.spawn("a2", idle), m.spawn("b1", idle), m.spawn("c1", idle)}
	p.rare = p.rare.With(func(r *seldom.Props) { r.State = &blob })
	back := m.spawn("rich", p)
	if again := stateOfGuest(t, m.System, back); !slices.Equal(must(saved.Decode(again))(t).Lookouts, []string{"../a*", "./k*"}) {
		t.Error("it looks out for others, when it is blob again")
	}
	m.wants("message ended") // the a1 that it watched before has gone
	there = append(there, m.spawn("a3", idle), m.spawn("b2", idle))
	for _, r := range there {
		m.Stop(r)
		m.run()
	}
	m.wants("message ended", "message ended", "message ended") // a1, a2, a3
	m.Stop(back)
	m.run()
	if n := m.lookouts.Len(); n != 0 {
		t.Errorf("%d patterns are left", n)
	}

	for what, spoil := range map[string]func(s *saved.State){
		"out of order": func(s *saved.State) { s.Lookouts = []string{"b*", "a*"} }, "twice": func(s *saved.State) { s.Lookouts = []string{"a*", "a*"} },
		"empty": func(s *saved.State) { s.Lookouts = []string{""} }, "long": func(s *saved.State) { s.Lookouts = []string{strings.Repeat("a", abi.MaxPath+1)} },
		"no path": func(s *saved.State) { s.Lookouts = []string{"a*"} }, "of an incarnation": func(s *saved.State) { s.Lookouts = []string{"/user/a*#7"} },
		"too many": func(s *saved.State) {
			for i := range lookouts.Most + 1 {
				s.Lookouts = append(s.Lookouts, fmt.Sprintf("/user/x%d*", i))
			}
		},
		"costly": func(s *saved.State) {
			s.Lookouts = []string{"/user/*" + strings.Repeat("a", lookouts.MostBehindStar+1)}
		},
	} {
		s := must(saved.Decode(blob))(t)
		s.Lookouts = nil
		spoil(s)
		n := newStage(t, func(c Config) Config { return c.WithSecret(l.Secret()) })
		changed := must(saved.Encoder.Marshal(s))(t)
		p.rare = p.rare.With(func(r *seldom.Props) { r.State = &changed })
		for i := range 4 {
			n.spawn(fmt.Sprint("x", i), idle)
		}
		n.raw()
		n.spawn("rich", p)
		if len(n.raw(EventFailed)) != 1 || n.lookouts.Len() != 0 {
			t.Errorf("%s: it is accepted, or something of it is left", what)
		}
	}
}

// What is not the actor's state is refused, and says why.
func TestForeignStates(t *testing.T) {
	l := newStage(t, nil)
	ref, p := rich(t, l)
	blob := stateOfGuest(t, l.System, ref)
	begin := func(p Props, name string) error {
		l.raw()
		l.spawn(name, p)
		for _, e := range l.raw(EventFailed) {
			return e.Failure
		}
		return nil
	}
	p.rare = p.rare.With(func(r *seldom.Props) { r.State = &blob })
	if err := begin(p, "other"); err == nil { // another ref
		t.Error("another actor takes it")
	}
	for i, spoil := range []func(b []byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { return append(b, 0) },
		func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		func([]byte) []byte { return []byte{0xa0} },
		func([]byte) []byte { return []byte{} },
	} {
		s, err := saved.Decode(spoil(bytes.Clone(blob)))
		if err == nil {
			_, err = sandbox.DecodeSnapshot(puppetImage(t), s.Guest, 0)
		}
		if err == nil && i != 2 {
			t.Errorf("%d is accepted", i)
		}
	}
}
