package host

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
	"pgregory.net/rapid"
)

// stateOfGuest is a guest's state as bytes; the system is at rest.
func stateOfGuest(t testing.TB, s *System, ref Ref) []byte {
	t.Helper()
	return must(guestOf(s.table.Get(ref.UID())).save())(t)
}

// rich is a puppet that has counted to 5 and has a timer, an ask, a watch, a receive
// timeout, a stashed message and a child.
func rich(t *testing.T, l *stage) (ref Ref, p Props) {
	p = puppet(t, on(abi.KindTimer, toProbe("timer")), on(abi.KindAskTimeout, toProbe("timeout")), on(abi.KindTerminated, toProbe("ended")))
	silent := l.spawn("silent", Func(func(*Context, Message) error { return nil }))
	ref = l.spawn("rich", p)
	key := guestOf(l.table.Get(ref.UID())).childKey()
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
	p.state = &blob
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
	p.state = &blob
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
		p.state = &changed
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

// States go through bytes as they are, and the same state has the same bytes; other versions are refused by
// their number, whatever they have.
func TestStatesGoThroughBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, bytesOf := rapid.StringN(1, 20, 60), rapid.SliceOfN(rapid.Byte(), 1, 20)
		ref := rapid.Map(rapid.Uint64Min(1), func(n uint64) abi.Ref { return abi.Ref(n) })
		refs := func(name string) []abi.Ref {
			out := rapid.SliceOfNDistinct(ref, 0, 4, rapid.ID).Draw(t, name)
			slices.Sort(out)
			return out
		}
		s := saved.State{
			Version: saved.Version, Ref: ref.Draw(t, "ref"), Type: rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "type"), Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Turns: rapid.Uint64().Draw(t, "turns"), Spawned: rapid.Uint64().Draw(t, "spawned"), Guest: bytesOf.Draw(t, "guest"),
			Receive: rapid.Int64Range(0, int64(abi.MaxDuration)).Draw(t, "receive"),
		}
		for _, key := range refs("timers") {
			s.Timers = append(s.Timers, saved.Timer{Key: uint64(key), Due: rapid.Int64().Draw(t, "due"), Period: rapid.Int64Range(0, int64(abi.MaxDuration)).Draw(t, "period"), Payload: bytesOf.Draw(t, "payload")})
		}
		for _, key := range refs("asks") {
			s.Asks = append(s.Asks, saved.Ask{Correlation: uint64(key), Target: ref.Draw(t, "target"), Answerers: append([]abi.Ref{1}, refs("answerers")...), Due: rapid.Int64().Draw(t, "due")})
		}
		for _, w := range refs("watches") {
			s.Watches = append(s.Watches, saved.Watch{Ref: w, Path: text.Draw(t, "path")})
		}
		s.Lookouts = append(s.Lookouts, rapid.SliceOfNDistinct(text, 0, lookouts.Most, rapid.ID).Draw(t, "lookouts")...)
		slices.Sort(s.Lookouts)
		for range rapid.IntRange(0, 3).Draw(t, "stash") {
			s.Stash = append(s.Stash, saved.Mail{Kind: abi.KindMessage, Flags: mark.NoInfluence, Sender: ref.Draw(t, "sender"), SenderPath: text.Draw(t, "path"), Headers: bytesOf.Draw(t, "headers"), Payload: bytesOf.Draw(t, "payload")})
		}
		for i, k := range refs("children") {
			s.Children = append(s.Children, saved.Child{Ref: k, Name: fmt.Sprint("k", i), Type: "t", Args: bytesOf.Draw(t, "args"), Lifetime: 1, Significant: true, Record: supervision.ChildState{Failures: i, Ring: []int64{int64(i)}}})
		}
		b, err := saved.Encoder.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := saved.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&s, back) {
			t.Fatalf("%+v\nwas %+v", back, &s)
		}
		if again, _ := saved.Encoder.Marshal(back); !bytes.Equal(again, b) {
			t.Fatal("other bytes")
		}
	})
	for version, more := range map[int]bool{1: false, saved.Version + 1: true, 99: true} {
		m := map[int]any{1: version, 2: 1 << 40, 3: "t"}
		if more {
			m[15] = "something new"
		}
		b := must(saved.Encoder.Marshal(m))(t)
		want := fmt.Sprintf("version %d, this host reads versions %d to %d", version, saved.Oldest, saved.Version)
		if _, err := saved.Decode(b); !errors.Is(err, saved.ErrState) || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", version, err)
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
	p.state = &blob
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

// FuzzActorState: bytes are refused, or are those of a state.
func FuzzActorState(f *testing.F) {
	s := saved.State{
		Version: saved.Version, Ref: 1 << 40, Type: "t", Timers: []saved.Timer{{Key: 1, Due: 2, Payload: []byte{1}}}, Asks: []saved.Ask{{Correlation: 1, Answerers: []abi.Ref{2}}},
		Watches: []saved.Watch{{Ref: 3, Path: "/user/x"}}, Lookouts: []string{"/user/*", "./a?"}, Stash: []saved.Mail{{Payload: []byte{1}}}, Children: []saved.Child{{Ref: 4, Name: "k", Type: "t"}},
	}
	good, err := saved.Encoder.Marshal(&s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	s.Lookouts = []string{"./a?", "/user/*"}
	f.Add(must(saved.Encoder.Marshal(&s))(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := saved.Decode(b)
		if err != nil {
			if !errors.Is(err, saved.ErrState) {
				t.Fatal(err)
			}
			return
		}
		again, err := saved.Encoder.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := saved.Decode(again); err != nil {
			t.Fatalf("what was accepted is refused: %v", err)
		}
	})
}
