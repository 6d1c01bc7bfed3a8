package host

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// E02: an actor's own throughput and the deadline of its spells.
func TestE02_ThroughputOfAnActor(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithThroughput(2) })
	order := ""
	note := func(s string) Props {
		return Func(func(*Context, Message) error { order += s; l.clock.Advance(time.Millisecond); return nil })
	}
	run := func(p, q Props) string {
		a, b := l.spawn("", p), l.spawn("", q)
		order = ""
		for range 6 {
			l.post(a, 1)
			l.post(b, 1)
		}
		l.run()
		return order
	}
	if got := run(note("a").WithDispatcher(Dispatcher{}.WithThroughput(4)), note("b")); got != "aaaabbaabbbb" {
		t.Error(got)
	}
	late := Dispatcher{}.WithThroughput(6).WithDeadline(3 * time.Millisecond)
	if got := run(note("a").WithDispatcher(late), note("b")); got != "aaabbaaabbbb" {
		t.Error(got)
	}
	if got := run(note("a").WithDispatcher(late.WithDeadline(0)), note("b")); got != "aaaaaabbbbbb" {
		t.Error(got)
	}
}

// For guests, too, whose batch is so large at most.
func TestE02_ThroughputOfAGuest(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, func(c Config) Config { return c.WithThroughput(1) })
		a := l.spawn("a", puppet(t).WithDispatcher(Dispatcher{}.WithThroughput(3)))
		b := l.spawn("b", puppet(t))
		for range 4 {
			l.post(a, script(now(toProbe("a"))))
			l.post(b, script(now(toProbe("b"))))
		}
		l.run()
		l.wants(told("a a a b a b b b")...)
	})
}

// E06: as many actors as the pool has workers block at a time; those on the system's workers
// are not held up.
func TestE06_APoolForActorsThatBlock(t *testing.T) {
	s := must(New(NewConfig("test").WithWorkers(1).WithPool("files", 2)))(t)
	enter, leave := make(chan bool, 10), make(chan bool)
	var now, most atomic.Int32
	slow := Func(func(ctx *Context, _ Message) error {
		for n, old := now.Add(1), most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		enter <- true
		<-leave
		now.Add(-1)
		return ctx.Reply("done")
	}).WithDispatcher(OnPool("files"))
	var all []*Pending
	for range 5 {
		all = append(all, must(s.Request(must(s.Spawn("", slow))(t), 1))(t))
	}
	<-enter
	<-enter
	quick := must(s.Spawn("quick", Func(func(ctx *Context, _ Message) error { return ctx.Reply("here") })))(t)
	for range 100 {
		if _, err := s.Ask(t.Context(), quick, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := now.Load(); n != 2 {
		t.Errorf("%d block", n)
	}
	for range 5 {
		leave <- true
	}
	for _, p := range all {
		if m := <-p.Answer(); m.Err() != nil {
			t.Error(m.Err())
		}
	}
	if n := most.Load(); n != 2 {
		t.Errorf("%d have blocked at a time", n)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// E03: an actor with a thread has it from its start to its end; there are so many.
func TestE03_Pinned(t *testing.T) {
	s := must(New(NewConfig("test").WithWorkers(1).WithPinned(2)))(t)
	p := Func(func(ctx *Context, m Message) error {
		var v any
		if err := m.Decode(&v); err != nil || v == "crash" {
			return errors.New("crashed")
		}
		return ctx.Reply(v)
	}).WithDispatcher(Pinned())
	a := must(s.Spawn("a", p))(t)
	b := must(s.Spawn("b", p))(t)
	if _, err := s.Spawn("c", p); !errors.Is(err, ErrLimit) {
		t.Errorf("%v", err)
	}
	disp := s.table.Get(a.UID()).place.At()
	if disp == s.disp || disp == s.table.Get(b.UID()).place.At() {
		t.Error("they share a thread")
	}
	_ = s.Tell(a, "crash")
	for range 100 {
		if v, err := AskAs[string](t.Context(), s, a, "x"); err != nil || v != "x" {
			t.Fatal(v, err)
		}
	}
	if s.table.Get(a.UID()).place.At() != disp {
		t.Error("a restart has taken the thread")
	}
	if err := s.StopGracefully(t.Context(), a); err != nil {
		t.Error(err)
	}
	if _, err := s.Spawn("c", p); err != nil {
		t.Errorf("the thread is not free: %v", err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := s.places.Threads(); n != 0 {
		t.Errorf("%d threads are left", n)
	}
}

// Who is told of an actor's end finds its place free: its thread, and its share of how many there may be.
func TestPlaceIsFreeAtTheEnd(t *testing.T) {
	s := must(New(NewConfig("test").WithWorkers(2).WithPinned(1).WithMaxActors(1)))(t)
	p := Func(func(*Context, Message) error { return nil }).WithDispatcher(Pinned())
	for range 500 {
		a, err := s.Spawn("", p)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.StopGracefully(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestDispatchersAreChecked(t *testing.T) {
	nothing := Func(func(*Context, Message) error { return nil })
	s, _ := manual(t, func(c Config) Config { return c.WithPool("files", 1) })
	for want, p := range map[string]Props{
		"no pool \"disks\"":     nothing.WithDispatcher(OnPool("disks")),
		"for actors in Go":      puppet(t).WithDispatcher(OnPool("files")),
		"the system's workers":  puppet(t).WithDispatcher(Pinned()),
		"a throughput of 10001": nothing.WithDispatcher(Dispatcher{}.WithThroughput(MaxThroughput + 1)),
		"a deadline of -1s":     nothing.WithDispatcher(Dispatcher{}.WithDeadline(-time.Second)),
	} {
		if _, err := s.Spawn("", p); !errors.Is(err, ErrBadProps) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	// A manual system runs them all within Step.
	for _, d := range []Dispatcher{OnPool("files"), Pinned()} {
		ref := must(s.Spawn("", nothing.WithDispatcher(d)))(t)
		if s.table.Get(ref.UID()).place.At() != s.disp {
			t.Errorf("%+v is elsewhere", d)
		}
	}
	for _, c := range []Config{
		NewConfig("x").WithPool("a b", 1), NewConfig("x").WithPool("a", 0), NewConfig("x").WithPool("a", 257), NewConfig("x").WithPool("a", 1).WithPool("a", 1),
	} {
		if s, err := New(c); err == nil {
			_ = s.Close(context.Background())
			t.Errorf("%+v", partsOf(&c).Pools)
		}
	}
}
