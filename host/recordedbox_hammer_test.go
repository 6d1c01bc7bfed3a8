package host

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/race"
)

// clerk is a recorder that has no room for some messages, and checks the order in which it is told of them.
type clerk struct {
	t *testing.T

	mu       sync.Mutex
	accepted map[abi.Ref]uint64 // the position of the last message
	handled  map[abi.Ref]uint64
	tick     int
	full     int // messages that there was no room for
	direct   int // turns that were told directly
}

var errNoRoom = errors.New("no room")

func (c *clerk) now(n int) bool { c.tick++; return c.tick%n == 0 }

func (c *clerk) Admit(int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now(7) {
		c.full++
		return errNoRoom
	}
	return nil
}

func (c *clerk) AdmitAll(int64) error { return nil }

func (c *clerk) accept(by abi.Ref, position uint64) {
	if position != c.accepted[by]+1 {
		c.t.Errorf("message %d of %v comes after message %d", position, by, c.accepted[by])
	}
	c.accepted[by] = position
}

func (c *clerk) handle(by abi.Ref, position uint64) {
	if position != c.handled[by]+1 || position > c.accepted[by] {
		c.t.Errorf("%v handles message %d after message %d; %d are accepted", by, position, c.handled[by], c.accepted[by])
	}
	c.handled[by] = position
}

func (c *clerk) Note(r *record.Record) {
	if r.Kind == record.Accepted {
		c.mu.Lock()
		c.accept(r.Actor, r.Message.Position)
		c.mu.Unlock()
	}
}

func (c *clerk) Turn(t *record.Turn) {
	c.mu.Lock()
	for _, e := range t.Mail {
		if e.Position != 0 {
			c.handle(t.Actor, e.Position)
		}
	}
	c.mu.Unlock()
	t.Answer(nil)
}

// directClerk is one that is told directly, but for some turns.
type directClerk struct{ *clerk }

func (c directClerk) Accept(by abi.Ref, _ int64, e *record.Envelope, must bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !must && c.now(7) {
		c.full++
		return errNoRoom
	}
	c.accept(by, e.Position)
	return nil
}

func (c directClerk) Handled(h *record.Handled) (after uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now(5) {
		return 0, false
	}
	c.direct++
	c.handle(h.Actor, h.Position)
	return 0, true
}

// TestHammerRecordedMailbox: what many senders push into a recorded mailbox at the same time is handled in the order in which the
// recorder was told of it, each after that and once; what is refused is not told, and has no place.
func TestHammerRecordedMailbox(t *testing.T) {
	rounds := 4000
	if testing.Short() || race.Enabled {
		rounds = 500
	}
	for _, kind := range []string{"native", "guest", "native, direct", "guest, direct"} {
		t.Run(kind, func(t *testing.T) {
			c := &clerk{t: t, accepted: map[abi.Ref]uint64{}, handled: map[abi.Ref]uint64{}}
			cfg := NewConfig("test").WithWorkers(4)
			if direct := len(kind) > len("native"); direct {
				cfg = cfg.WithRecorder(directClerk{c})
			} else {
				cfg = cfg.WithRecorder(c)
			}
			props := Func(func(*Context, Message) error { return nil })
			var message any = 1
			if kind[0] == 'g' {
				props = counting(t, NewModule(load(t, newEngine(t), "testdata/puppet_batching.wasm")))
				message = script()
			}
			s := newSystem(t, cfg)
			ref, err := s.Spawn("", props.WithLimits(Limits{Mailbox: 64}))
			if err != nil {
				t.Fatal(err)
			}
			var senders sync.WaitGroup
			var refused, crowded, went atomic.Uint64
			for range 4 {
				senders.Go(func() {
					for range rounds {
						switch err := s.Tell(ref, message); {
						case err == nil:
							went.Add(1)
						case errors.Is(err, errNoRoom):
							refused.Add(1)
						case errors.Is(err, ErrMailboxFull):
							crowded.Add(1)
							time.Sleep(time.Microsecond) // others run
						default:
							t.Error(err)
						}
					}
				})
			}
			senders.Wait()
			a := s.here(ref.UID())
			for a.box.Len() > 0 || a.place.Running() {
				time.Sleep(time.Millisecond)
			}
			if n, bytes := a.box.Len(), a.box.Bytes(); n != 0 || bytes != 0 {
				t.Errorf("%d messages of %d bytes have a place in the empty mailbox", n, bytes)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.accepted[ref.UID()] != went.Load() || c.handled[ref.UID()] != went.Load() || int(refused.Load()) != c.full || refused.Load() == 0 {
				t.Errorf("%d were sent, %d accepted, %d handled; %d were refused, of %d", went.Load(), c.accepted[ref.UID()], c.handled[ref.UID()], refused.Load(), c.full)
			}
			if kind == "guest, direct" && c.direct == 0 {
				t.Error("no turn was told directly")
			}
			t.Logf("%d went, %d found a full mailbox, %d turns were told directly", went.Load(), crowded.Load(), c.direct)
		})
	}
}

// late is a clock that is later at each look.
type late struct {
	Clock
	at atomic.Int64
}

func (c *late) Now() time.Time { return time.Unix(0, c.at.Add(1000)) }

// times is a recorder that notes when messages and turns are.
type times struct {
	record.Recorder
	directly        bool
	turns, messages map[abi.Ref]int64
}

func (r *times) Note(*record.Record) {}
func (r *times) Turn(t *record.Turn) {
	t.After, r.turns[t.Actor] = 1, t.Time
	t.Answer(nil)
}

func (r *times) Accept(by abi.Ref, at int64, _ *record.Envelope, _ bool) error {
	r.messages[by] = at
	return nil
}

func (r *times) Handled(h *record.Handled) (uint64, bool) {
	if r.directly {
		r.turns[h.Actor] = h.Time
	}
	return 1, r.directly
}

// TestTimeOfARecordedMessage: what a recorded turn has sent has the time of the turn, and anything else that of its arrival.
func TestTimeOfARecordedMessage(t *testing.T) {
	for _, directly := range []bool{false, true} {
		r := &times{directly: directly, turns: map[abi.Ref]int64{}, messages: map[abi.Ref]int64{}}
		clock := &late{Clock: RealClock()}
		s := newSystem(t, NewConfig("test").WithManual().WithClock(clock).WithRecorder(r))
		props := counting(t, NewModule(load(t, newEngine(t), "testdata/puppet_batching.wasm")))
		a, err := s.Spawn("a", props)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Spawn("b", props)
		if err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(100)
		before := clock.at.Load()
		if err := s.Tell(a, script(now(abi.AppendSend(nil, b.UID(), "", 0, 0, nil, script())))); err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(100)
		if at := r.messages[a.UID()]; at <= before || at >= r.turns[a.UID()] {
			t.Errorf("directly: %v: a message from outside at %d, where the clock was %d, and its turn at %d", directly, at, before, r.turns[a.UID()])
		}
		if sent, turn := r.messages[b.UID()], r.turns[a.UID()]; sent != turn || turn == 0 {
			t.Errorf("directly: %v: what the turn of time %d has sent is of %d", directly, turn, sent)
		}
		if r.turns[b.UID()] <= r.turns[a.UID()] {
			t.Errorf("directly: %v: the next turn is not later", directly)
		}
	}
}
