package simnet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

var _ service.Shared = (*Shared)(nil)

func yes() bool { return true }

// room is a world of machines with the numbers from 1.
type room struct {
	*World
	m []*Machine
}

func newRoom(n int) *room {
	r := &room{World: New(1)}
	for i := range n {
		m := r.ExactMachine(func() uint16 { return uint16(i + 1) })
		m.Receive(func(uint16, []byte) {})
		r.m = append(r.m, m)
	}
	return r
}

// put puts a value and returns what came back within d.
func (r *room) put(s *Shared, key, value string, revision uint64, stay int64) (at uint64, ok bool, err error) {
	err = errors.New("no answer")
	s.Put(key, []byte(value), revision, stay, func(a uint64, o bool, e error) { at, ok, err = a, o, e })
	r.pass(3 * time.Second)
	return at, ok, err
}

func (r *room) get(s *Shared, key string) (value string, at uint64) {
	s.Get(key, func(b []byte, a uint64, err error) {
		if value, at = string(b), a; err != nil {
			value = err.Error()
		}
	})
	r.pass(3 * time.Second)
	return value, at
}

func (r *room) pass(d time.Duration) {
	for end := r.Clock.Now().Add(d); ; r.Clock.AdvanceToNext() {
		if next, ok := r.Clock.Next(); !ok || next.After(end) {
			r.Clock.Advance(end.Sub(r.Clock.Now()))
			return
		}
	}
}

// Values are compared and set, forgotten when their time is over, and seen by all machines and by nobody under another name.
func TestShared(t *testing.T) {
	r := newRoom(2)
	a, b := r.m[0].Shared("kv", time.Second, yes), r.m[1].Shared("kv", time.Second, yes)
	at, ok, err := r.put(a, "k", "1", 0, 0)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, ok, err := r.put(b, "k", "2", 0, 0); ok || err != nil {
		t.Error("a value was replaced at a revision that it does not have", err)
	}
	if v, rev := r.get(b, "k"); v != "1" || rev != at {
		t.Errorf("%q at %d", v, rev)
	}
	if v, _ := r.get(r.m[1].Shared("pubsub", time.Second, yes), "k"); v != "" {
		t.Errorf("under another name there is %q", v)
	}
	if at, ok, _ = r.put(b, "k", "3", at, 10); !ok {
		t.Error("not replaced")
	}
	r.pass(10 * time.Second)
	if v, rev := r.get(a, "k"); v != "" || rev != 0 {
		t.Errorf("after its time there is %q at %d", v, rev)
	}
	if next, ok, _ := r.put(a, "k", "4", 0, 0); !ok || next <= at {
		t.Errorf("%d after %d", next, at)
	}
}

// A watch is told of what there is, then that this is all, then of each change in order; also one that was cut off, afterwards.
func TestSharedWatch(t *testing.T) {
	r := newRoom(2)
	a, b := r.m[0].Shared("kv", time.Second, yes), r.m[1].Shared("kv", time.Second, yes)
	_, _, _ = r.put(a, "x", "1", 0, 0)
	var told []string
	stop := b.Watch(func(key string, value []byte, _ uint64) { told = append(told, key+"="+string(value)) }, func() { told = append(told, "ready") })
	r.pass(time.Second)
	at, _, _ := r.put(a, "y", "2", 0, 0)
	r.m[1].Detach(true)
	at, _, _ = r.put(a, "y", "3", at, 0)
	_, _, _ = r.put(a, "x", "4", 1, 0)
	if want := "x=1 ready y=2"; strings.Join(told, " ") != want {
		t.Errorf("%v, not %s", told, want)
	}
	r.m[1].Detach(false)
	r.pass(time.Second)
	if want := "x=1 ready y=2 y=3 x=4"; strings.Join(told, " ") != want {
		t.Errorf("%v, not %s", told, want)
	}
	stop()
	_, _, _ = r.put(a, "y", "5", at, 0)
	if len(told) != 5 {
		t.Errorf("after its end it was told %v", told)
	}
}

// A machine that is cut off from the directory reaches other machines, and a node that must not act changes nothing.
func TestDetach(t *testing.T) {
	r := newRoom(2)
	var got []byte
	r.m[1].Receive(func(_ uint16, b []byte) { got = b })
	acts := false
	s := r.m[0].Shared("kv", time.Second, func() bool { return acts })
	if _, _, err := r.put(s, "k", "1", 0, 0); !errors.Is(err, ErrDirectory) {
		t.Errorf("a node that must not act writes: %v", err)
	}
	acts = true
	r.m[0].Detach(true)
	if _, _, err := r.put(s, "k", "1", 0, 0); !errors.Is(err, ErrDirectory) {
		t.Errorf("cut off, it writes: %v", err)
	}
	r.m[0].Send(2, []byte("x"))
	failed := false
	r.m[0].Put("members.1", nil, 0, func(_ uint64, err error) { failed = err != nil })
	r.pass(3 * time.Second)
	if string(got) != "x" || !failed {
		t.Errorf("%q, failed: %v", got, failed)
	}
	r.m[0].Detach(false)
	if _, ok, err := r.put(s, "k", "1", 0, 0); !ok {
		t.Error(err)
	}
}

// What a machine that was buried still tries has no effect, and does not stop those that go on.
func TestBury(t *testing.T) {
	r := newRoom(2)
	got := false
	r.m[1].Receive(func(uint16, []byte) { got = true })
	s := r.m[0].Shared("kv", time.Second, yes)
	r.m[0].AfterFunc(time.Millisecond, func() { t.Error("it runs") })
	r.m[0].Bury()
	r.m[0].Send(2, []byte("x"))
	r.m[0].Put("k", []byte("1"), 0, func(uint64, error) { t.Error("it is answered") })
	r.m[0].Watch(func(cluster.Entry) { t.Error("it is told") })
	s.Put("k", []byte("1"), 0, 0, func(uint64, bool, error) { t.Error("it is answered") })
	var seen []string
	r.m[1].Watch(func(e cluster.Entry) { seen = append(seen, e.Key) })
	r.m[1].Put("k", []byte("2"), 0, func(_ uint64, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	r.pass(3 * time.Second)
	if got || !slices.Equal(seen, []string{"k"}) {
		t.Errorf("a packet of it: %v; the keys are %v", got, seen)
	}
}

// The clock of an exact machine is that of the world, to the nanosecond.
func TestExact(t *testing.T) {
	w := On(host.NewVirtualClock(time.Unix(5, 0)), 1)
	m := w.ExactMachine(func() uint16 { return 1 })
	var at time.Time
	m.AfterFunc(time.Hour, func() { at = m.Now() })
	w.Clock.Advance(2 * time.Hour)
	if want := time.Unix(5, 0).Add(time.Hour); !at.Equal(want) {
		t.Errorf("%v, not %v", at, want)
	}
}
