package host

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// stateOfGuest is a guest's state as bytes; the system is at rest.
func stateOfGuest(t testing.TB, s *System, ref Ref) []byte {
	t.Helper()
	return must(guestOf(s.table.Get(ref.uid)).save())(t)
}

// rich is a puppet that has counted to 5 and has a timer, an ask, a watch, a receive
// timeout, a stashed message and a child.
func rich(t *testing.T, l *stage) (ref Ref, p Props) {
	p = puppet(t, on(abi.KindTimer, toProbe("timer")), on(abi.KindAskTimeout, toProbe("timeout")), on(abi.KindTerminated, toProbe("ended")))
	silent := l.spawn("silent", Func(func(*Context, Message) error { return nil }))
	ref = l.spawn("rich", p)
	key := guestOf(l.table.Get(ref.uid)).childKey()
	l.say(ref, script(rec(recAdd, 5, nil)))
	l.say(ref, script(now(
		abi.AppendTimer(nil, 3, uint64(2*time.Second), 0, encoded("tick")),
		abi.AppendAsk(nil, silent.uid, "", 9, uint64(3*time.Second), nil, encoded("what?")),
		abi.AppendWatch(nil, silent.uid, ""),
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
	saved := stateOfGuest(t, l.System, ref)
	if again := stateOfGuest(t, l.System, ref); !bytes.Equal(saved, again) {
		t.Error("the same state has other bytes")
	}
	secret := l.Secret()

	m := newStage(t, func(c Config) Config { return c.WithSecret(secret) })
	silent := m.spawn("silent", Func(func(*Context, Message) error { return nil }))
	m.clock.Advance(time.Second) // while it was away
	p.state = saved
	back := m.spawn("rich", p)
	if back.uid != ref.uid {
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
	if a := m.table.Get(back.uid); a.stash.Len() != 1 {
		t.Errorf("%d stashed", a.stash.Len())
	}
	s, err := decodeState(saved)
	if err != nil || len(s.Children) != 1 || s.Children[0].Name != "kid" || s.Spawned != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What is not the actor's state is refused, and says why.
func TestForeignStates(t *testing.T) {
	l := newStage(t, nil)
	ref, p := rich(t, l)
	saved := stateOfGuest(t, l.System, ref)
	begin := func(p Props, name string) error {
		l.raw()
		l.spawn(name, p)
		for _, e := range l.raw(EventFailed) {
			return e.Failure
		}
		return nil
	}
	p.state = saved
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
		s, err := decodeState(spoil(bytes.Clone(saved)))
		if err == nil {
			_, err = sandbox.DecodeSnapshot(puppetImage(t), s.Guest)
		}
		if err == nil && i != 2 {
			t.Errorf("%d is accepted", i)
		}
	}
}

// FuzzActorState: bytes are refused, or are those of a state.
func FuzzActorState(f *testing.F) {
	s := actorState{
		Version: stateVersion, Ref: 1 << 40, Type: "t", Timers: []timerState{{Key: 1, Due: 2, Payload: []byte{1}}}, Asks: []askState{{Correlation: 1, Answerers: []abi.Ref{2}}},
		Watches: []watchState{{Ref: 3, Path: "/user/x"}}, Stash: []mailState{{Payload: []byte{1}}}, Children: []childState{{Ref: 4, Name: "k", Type: "t"}},
	}
	good, err := stateEncoder.Marshal(&s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			if !errors.Is(err, errState) {
				t.Fatal(err)
			}
			return
		}
		again, err := stateEncoder.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeState(again); err != nil {
			t.Fatalf("what was accepted is refused: %v", err)
		}
	})
}
