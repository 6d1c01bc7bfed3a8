package aggregator

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

func start(t *testing.T) (*host.System, *host.VirtualClock) {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	s, err := host.New(host.NewConfig("test").WithManual().WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s, clock
}

func spawn(t *testing.T, s *host.System, p host.Props) host.Ref {
	ref, err := s.Spawn("", p)
	if err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	return ref
}

// TestK22_Expectations: the oldest that takes a message handles it, once or as long as it is expected; what is
// added meanwhile waits for the next message.
func TestK22_Expectations(t *testing.T) {
	s, _ := start(t)
	var said []string
	a := &Aggregator{}
	taking := func(name string, texts ...string) Expectation {
		return func(_ *host.Context, m host.Message) (bool, error) {
			var text string
			_ = m.Decode(&text)
			if !slices.Contains(texts, text) {
				return false, nil
			}
			said = append(said, name+" "+text)
			return true, nil
		}
	}
	a.ExpectOnce(taking("once", "x", "y"))
	stays := a.Expect(taking("stays", "x", "y"))
	a.Expect(func(ctx *host.Context, m host.Message) (bool, error) {
		taken, err := taking("adds", "add")(ctx, m)
		if taken {
			a.Expect(taking("late", "add", "z")) // not for this one
			a.Unexpect(stays)
		}
		return taken, err
	})
	a.Expect(taking("last", "x", "y", "z"))
	ref := spawn(t, s, host.Native(func() host.Actor { return a }))
	for _, text := range []string{"x", "x", "y", "add", "y", "z", "odd"} {
		_ = s.Tell(ref, text)
	}
	s.RunUntilIdle(1000)
	want := []string{"once x", "stays x", "stays y", "adds add", "last y", "last z"}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	if a.Unexpect(stays) {
		t.Error("it goes twice")
	}
}

// What is no longer expected does not take the message that has just ended it.
func TestK22_Unexpect(t *testing.T) {
	s, _ := start(t)
	a := &Aggregator{}
	var victim *Expected
	a.Expect(func(*host.Context, host.Message) (bool, error) { a.Unexpect(victim); return false, nil })
	victim = a.Expect(func(*host.Context, host.Message) (bool, error) { t.Error("it takes it"); return true, nil })
	_ = s.Tell(spawn(t, s, host.Native(func() host.Actor { return a })), "x")
	s.RunUntilIdle(1000)
}

// TestK22_Aggregator: two questions at once; who is slow or fails is left out.
func TestK22_Aggregator(t *testing.T) {
	s, clock := start(t)
	var sellers []host.Ref
	for _, price := range []int{7, 5, -1, 0, 6} {
		sellers = append(sellers, spawn(t, s, host.Func(func(ctx *host.Context, m host.Message) error {
			var n int
			_ = m.Decode(&n)
			switch price {
			case -1:
				return ctx.ReplyError("sold out")
			case 0:
				return nil // does not answer
			}
			return ctx.Reply(price * n)
		})))
	}
	buyer := spawn(t, s, Offers(time.Second, sellers...))
	var asked []*host.Pending
	for _, n := range []int{1, 10} {
		p, err := s.Request(buyer, n)
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, p)
	}
	s.RunUntilIdle(1000)
	clock.Advance(time.Second)
	s.RunUntilIdle(1000)
	for i, want := range []string{"[5 6 7]", "[50 60 70]"} {
		var got []int
		if m := <-asked[i].Answer(); m.Decode(&got) != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
