package priority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"pgregory.net/rapid"
)

// byFirstByte ranks texts of one character: "0" is the most urgent.
func byFirstByte(e *host.Envelope) int {
	if len(e.Payload) != 2 {
		return 9
	}
	return int(e.Payload[1] - '0')
}

func message(text string) *host.Envelope {
	payload, err := host.Encode(text)
	if err != nil {
		panic(err)
	}
	return &host.Envelope{Payload: payload}
}

func TestUrgentFirst(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(0, 0))
	s, err := host.New(host.NewConfig("app").WithManual().WithClock(clock).WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	var got []string
	failed := false
	ref, err := s.Spawn("bank", host.Func(func(ctx *host.Context, m host.Message) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		if text == "1" && !failed {
			failed = true
			return errors.New("failed")
		}
		got = append(got, text)
		return nil
	}).WithMailbox(New(3, byFirstByte)).WithCrashedMessage(host.RedeliverCrashed(1)).WithLimits(host.Limits{Mailbox: 6}))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"2", "1", "2", "0", "9", "1", "0"} {
		err := s.Tell(ref, text)
		if want := i == 6; errors.Is(err, host.ErrMailboxFull) != want {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if err := s.PoisonPill(ref); err == nil {
		t.Error("a pill finds no room either")
	}
	s.RunUntilIdle(1000)
	// The message of the failed turn comes again, before all others.
	if want := []string{"0", "1", "1", "2", "2", "9"}; !slices.Equal(got, want) {
		t.Errorf("%q instead of %q", got, want)
	}
	ended, err := s.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PoisonPill(ref); err != nil {
		t.Fatal(err)
	}
	if err := s.Tell(ref, "0"); err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	<-ended
	if last := got[len(got)-1]; len(got) != 7 || last != "0" {
		t.Errorf("%q: the pill must not overtake a message", got)
	}
}

// What the host puts there gets in, however full it is, and in the order of the least
// urgent.
func TestForce(t *testing.T) {
	m := New(2, func(*host.Envelope) int { return 0 })(host.MailboxLimits{Messages: 1, Bytes: 100})
	if err := m.Push(message("a")); err != nil {
		t.Fatal(err)
	}
	if err := m.Push(message("b")); !errors.Is(err, host.ErrMailboxFull) {
		t.Error(err)
	}
	timer := &host.Envelope{Kind: abi.KindTimer}
	if !m.Force(timer) || m.Len() != 2 {
		t.Error("a timer's message was refused")
	}
	m.Pop()
	if e := m.Pop(); e != timer {
		t.Errorf("%+v", e)
	}
	m.Close(func(*host.Envelope) { t.Error("it is empty") })
	if err := m.Push(message("c")); !errors.Is(err, host.ErrStopped) || m.Force(timer) {
		t.Error("something gets in after its end")
	}
}

// Whatever is done with it, it says what a list would.
func TestMailboxIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := host.MailboxLimits{Messages: rapid.IntRange(1, 8).Draw(t, "messages"), Bytes: int64(rapid.IntRange(1, 40).Draw(t, "bytes"))}
		m := New(3, byFirstByte)(limits)
		type entry struct {
			rank int
			e    *host.Envelope
		}
		var model []entry // in the order of popping; rank -1: fixed at the front
		bytes := func() (n int64) {
			for _, x := range model {
				n += int64(x.e.Size())
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				r := rapid.IntRange(0, 3).Draw(t, "rank")
				e := message(fmt.Sprint(r))
				err := m.Push(e)
				if full := len(model) >= limits.Messages || bytes()+2 > limits.Bytes; full != errors.Is(err, host.ErrMailboxFull) {
					t.Fatalf("%v with %d messages", err, len(model))
				}
				if err == nil {
					r = min(r, 2)
					i := len(model)
					for i > 0 && model[i-1].rank > r {
						i--
					}
					model = slices.Insert(model, i, entry{r, e})
				}
			},
			"peek": func(t *rapid.T) {
				e := m.Peek()
				if len(model) == 0 {
					if e != nil {
						t.Fatal("it is empty")
					}
					return
				}
				if e != model[0].e {
					t.Fatalf("%s instead of %s", e.Payload, model[0].e.Payload)
				}
				model[0].rank = -1
			},
			"pop and back": func(t *rapid.T) {
				e := m.Pop()
				if e == nil {
					return
				}
				if e != model[0].e {
					t.Fatalf("%s instead of %s", e.Payload, model[0].e.Payload)
				}
				model = model[1:]
				if rapid.Bool().Draw(t, "back") {
					m.PushFront(e)
					model = slices.Insert(model, 0, entry{-1, e})
				}
			},
			"": func(t *rapid.T) {
				if m.Len() != len(model) || m.Bytes() != bytes() || m.Empty() != (len(model) == 0) {
					t.Fatalf("%d messages, %d bytes; %d and %d are right", m.Len(), m.Bytes(), len(model), bytes())
				}
			},
		})
		m.Close(func(e *host.Envelope) {
			if e != model[0].e {
				t.Fatal("another order at the end")
			}
			model = model[1:]
		})
		if len(model) > 0 {
			t.Fatalf("%d are lost", len(model))
		}
	})
}

// Any goroutine may push while one consumes.
func TestManySenders(t *testing.T) {
	s, err := host.New(host.NewConfig("app"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	sum := 0
	ref, err := s.Spawn("sum", host.Func(func(ctx *host.Context, m host.Message) error {
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		if n < 0 {
			return ctx.Reply(sum)
		}
		sum += n
		return nil
	}).WithMailbox(New(2, func(e *host.Envelope) int { return len(e.Payload) & 1 })))
	if err != nil {
		t.Fatal(err)
	}
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for i := range 1000 {
				if err := s.Tell(ref, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := host.AskAs[int](ctx, s, ref, -1); err != nil || n != 4*999*500 {
		t.Errorf("%d, %v", n, err)
	}
}
