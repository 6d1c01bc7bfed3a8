package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// A grant travels with what its actor sends: told, asked, answered, to a path, spawned later;
// and not with what others send.
func TestGrantsTravel(t *testing.T) {
	s, _ := manual(t, nil)
	var got []string
	note := func(c *Context, m Message) error {
		if m.Kind == abi.KindMessage || m.Kind == abi.KindReply {
			var text string
			_ = m.Decode(&text)
			got = append(got, fmt.Sprint(text, " ", c.Head().Grant("lamp"), " ", c.Head().Grant("other")))
		}
		return nil
	}
	service := must(s.SpawnService("lamp", Func(note)))(t)
	hub := must(s.Spawn("hub", Func(func(c *Context, m Message) error { return c.Forward(service) })))(t)
	a := must(s.Spawn("a", Func(func(c *Context, m Message) error {
		ref, ok := c.Service("lamp")
		if !ok || ref != service {
			t.Error("no service", ref)
		}
		if _, ok := c.Service("other"); ok {
			t.Error("a service that was not started")
		}
		_ = c.Tell(service, "tell")
		_ = c.Ask(service, "ask", 1, time.Second)
		_ = c.At("/system/lamp").Tell("path")
		return c.Tell(hub, "forwarded")
	}).WithGrant("lamp", 1).WithGrant("other", 2).WithGrant("lamp", 3)))(t)
	b := must(s.Spawn("b", Func(func(c *Context, m Message) error {
		if _, ok := c.Service("lamp"); ok {
			t.Error("a ref without a grant")
		}
		return c.Tell(service, "b")
	})))(t)
	_ = s.Tell(a, nil)
	s.RunUntilIdle(1000)
	_ = s.Tell(b, nil)
	s.RunUntilIdle(1000)
	_ = s.TellFrom(a, service, "from")
	_ = s.Tell(service, "nobody")
	s.RunUntilIdle(1000)
	want := []string{"tell 3 2", "ask 3 2", "path 3 2", "forwarded 3 2", "b <nil> <nil>", "from 3 2", "nobody <nil> <nil>"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	if _, err := s.Spawn("c", Func(note).WithGrant("no name", 1)); !errors.Is(err, ErrBadProps) {
		t.Error(err)
	}
	many := Func(note)
	for i := range abi.MaxServices + 1 {
		many = many.WithGrant(fmt.Sprint("s", i), 1)
	}
	if _, err := s.Spawn("d", many); !errors.Is(err, ErrBadProps) {
		t.Error(err)
	}
}

type (
	valueKey struct{}
	otherKey struct{}
)

// Values of the context of an ask reach whoever works for it, by way of guests and answers,
// and nobody else.
func TestContextValues(t *testing.T) {
	s, _ := manual(t, func(c Config) Config { return c.WithContextValues(valueKey{}) })
	var got []any
	last := must(s.Spawn("last", Func(func(c *Context, m Message) error {
		got = append(got, c.Head().Values().Value(valueKey{}))
		return nil
	})))(t)
	var held *Reply
	later := must(s.Spawn("later", Func(func(c *Context, m Message) error {
		got = append(got, c.Head().Values().Value(valueKey{}))
		held, _ = c.Later()
		return nil
	})))(t)
	step := must(s.Spawn("step", Func(func(c *Context, m Message) error {
		if m.Kind == abi.KindReply { // to what it has asked: its turn belongs to the same
			return c.Tell(last, nil)
		}
		return c.Ask(later, nil, 1, time.Second)
	})))(t)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "v"))
	cancel()
	_, _ = s.Ask(ctx, step, Marked{Marks: Lasting})
	s.RunUntilIdle(1000)
	if v := held.Context().Value(valueKey{}); v != "v" {
		t.Error(v)
	}
	_ = held.Send(nil)
	s.RunUntilIdle(1000)
	_, _ = s.Ask(ctx, last, Marked{Marks: Lasting})
	_ = s.Tell(last, nil)
	other, cancel := context.WithCancel(context.WithValue(t.Context(), otherKey{}, "w"))
	cancel()
	_, _ = s.Ask(other, last, Marked{Marks: Lasting})
	s.RunUntilIdle(1000)
	if fmt.Sprint(got) != "[v v v <nil> <nil>]" {
		t.Error(got)
	}
}

// They come beside what the message says itself, on whose behalf it is, however it is asked.
func TestContextValuesOfWhatIsOnBehalf(t *testing.T) {
	s := must(New(NewConfig("test").WithContextValues(valueKey{})))(t)
	defer s.Close(context.Background())
	a := must(s.Spawn("a", Func(func(c *Context, m Message) error {
		return c.Reply(fmt.Sprint(c.Head().Values().Value(valueKey{}), " ", c.Head().Behalf()))
	})))(t)
	ctx := context.WithValue(t.Context(), valueKey{}, "v")
	question := OnBehalf{Value: 1, Of: "/user/x"}
	answers := []Message{must(s.Ask(ctx, a, question))(t)}
	for _, got := range must(s.AskSeveral(ctx, All(), []Ref{a, a}, question))(t) {
		answers = append(answers, got.Message)
	}
	for i, m := range answers {
		var text string
		if err := m.Decode(&text); err != nil || text != "v /user/x" {
			t.Errorf("answer %d: %q, %v", i, text, err)
		}
	}
}

// The context of a handle ends with the wait for its answer, and takes no goroutine.
func TestReplyContext(t *testing.T) {
	s, _ := manual(t, nil)
	var held *Reply
	a := must(s.Spawn("a", Func(func(c *Context, m Message) (err error) { held, err = c.Later(); return err })))(t)
	p := must(s.Request(a, nil))(t)
	s.RunUntilIdle(10)
	work, cancel := context.WithCancel(held.Context())
	defer cancel()
	kept := make(chan struct{})
	stop := context.AfterFunc(held.Context(), func() { t.Error("taken back, and called") })
	context.AfterFunc(held.Context(), func() { close(kept) })
	if !stop() || stop() || work.Err() != nil {
		t.Error("it has ended before")
	}
	p.Cancel()
	<-work.Done()
	<-kept
	if held.Context().Err() != ErrGone || !errors.Is(context.Cause(work), ErrGone) {
		t.Error(context.Cause(work))
	}
	late := make(chan struct{})
	context.AfterFunc(held.Context(), func() { close(late) })
	<-late
}

// Children from any goroutine, and what is called before actors stop.
func TestSpawnBelowAndBeforeClose(t *testing.T) {
	s, err := New(NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	a := must(s.Spawn("a", Func(func(*Context, Message) error { return nil })))(t)
	k := must(s.SpawnBelow(a, "k", Func(func(c *Context, m Message) error { return c.Reply(m.Sender.Path()) })))(t)
	if k.Path() != "/user/a/k" {
		t.Error(k)
	}
	if _, err := s.SpawnBelow(a, "k", Func(nil)); err == nil {
		t.Error("a name was taken twice")
	}
	if _, err := s.SpawnBelow(Ref{}, "k", Func(nil)); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	met := make(chan struct{})
	asked := make(chan error, 2)
	for i := range 2 { // at the same time, and while actors live
		s.BeforeClose(func(ctx context.Context) {
			if i == 0 {
				<-met
			} else {
				close(met)
			}
			_, err := s.Ask(ctx, k, nil)
			asked <- err
		})
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-asked; err != nil {
			t.Error(err)
		}
	}
}
