//go:build !wasip1

package throttle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
	"github.com/wasmactors/wasmactors/guest-sdk/throttle"
)

const target actor.Ref = 1 << 41

// sender sends on what it is told; what begins with "ask" it asks.
type sender struct{ t *throttle.Throttler }

func (s *sender) Receive(ctx *actor.Context, msg *actor.Message) error {
	if s.t.Receive(ctx, msg) {
		return nil
	}
	var err error
	switch {
	case msg.Is("pause"):
		s.t.Pause()
	case msg.Is("resume"):
		s.t.Resume(ctx)
	case msg.Is("fast"):
		err = s.t.SetRate(ctx, throttle.Rate{N: 5, Per: time.Second})
	case msg.Is("take"):
		return ctx.Reply(actor.Bool(s.t.Take(ctx)))
	case strings.HasPrefix(msg.Text(), "ask"):
		err = s.t.Ask(ctx, target, actor.Raw(msg.Payload()), time.Second, nil)
	default:
		err = s.t.Tell(ctx, target, actor.Raw(msg.Payload()))
	}
	if err != nil {
		return ctx.ReplyError(err.Error())
	}
	return nil
}

type numbers struct{ t *throttle.Throttler }

func (s *numbers) Receive(ctx *actor.Context, msg *actor.Message) error {
	if s.t.Receive(ctx, msg) {
		return nil
	}
	return s.t.Tell(ctx, target, actor.Int(1e6))
}

func init() {
	actor.Register("sender", func() actor.Actor {
		return &sender{throttle.New(throttle.Rate{N: 2, Per: time.Second}, 1).Limit(4, 40)}
	})
	actor.Register("numbers", func() actor.Actor {
		return &numbers{throttle.New(throttle.Rate{N: 100, Per: time.Second}, 1).Limit(1000, 1<<20)}
	})
}

// TestK20_Throttler: two in a second, the rest in order when there are vouchers; the queue is bounded in
// messages and bytes; pause, rate.
func TestK20_Throttler(t *testing.T) {
	a := actortest.Spawn(t, "sender")
	var sent []string
	note := func(turns ...*actortest.Turn) (errors int) {
		for _, turn := range turns {
			if turn.Failure != nil {
				t.Fatal(turn.Failure)
			}
			for _, s := range turn.Sent {
				switch {
				case s.Kind == actortest.ReplyError:
					errors++
				case s.Kind == actortest.Ask && s.Timeout != time.Second:
					t.Errorf("%+v", s)
				case s.To == target:
					sent = append(sent, fmt.Sprintf("%d %s", a.Now().UnixMilli()%100_000, s.Text()))
				}
			}
		}
		return errors
	}
	say := func(text string) int { t.Helper(); return note(a.Send(actor.Text(text))) }
	pass := func(d time.Duration) {
		for range d / (100 * time.Millisecond) {
			note(a.Advance(100 * time.Millisecond)...)
		}
	}
	wants := func(want ...string) {
		t.Helper()
		if !slices.Equal(sent, want) {
			t.Errorf("%q, want %q", sent, want)
		}
		sent = nil
	}
	for i, want := range []int{0, 0, 0, 0, 0, 0, 1} { // two start, four wait
		if got := say([]string{"a", "b", "c", "ask d", "e", "f", "g"}[i]); got != want {
			t.Errorf("%d: %d refused", i, got)
		}
	}
	wants("0 a", "0 b")
	pass(3500 * time.Millisecond)
	wants("1000 c", "1000 ask d", "2000 e", "2000 f")
	if n := a.Actor().(*sender).t.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	say("h") // the interval begins here
	say("i")
	long := strings.Repeat("x", 30)
	if say(long) != 0 || say(long) != 1 || say("j") != 0 {
		t.Error("the bytes are not bounded")
	}
	if a.Send(actor.Text("take")).Reply().Payload[0] != 0xf4 {
		t.Error("one overtakes those that wait")
	}
	say("pause")
	pass(2 * time.Second)
	wants("3500 h", "3500 i")
	say("resume")
	wants("5500 "+long, "5500 j")
	if a.Send(actor.Text("take")).Reply().Payload[0] != 0xf4 {
		t.Error("there is a voucher too many")
	}
	say("k")
	say("fast")
	wants("5500 k")
	pass(time.Second)
	if a.Send(actor.Text("take")).Reply().Payload[0] != 0xf5 {
		t.Error("there is no voucher")
	}
	a.Restart()
	sent = nil
	for _, s := range []string{"a", "b", "c"} {
		say(s)
	}
	wants("6500 a", "6500 b") // a new incarnation has the first rate
}

type once struct{ begun bool }

func (h *once) Next(int) bool {
	h.begun = !h.begun
	return h.begun
}
func (*once) Flush([]byte)      { panic("a flush") }
func (*once) Log(int, []byte)   {}
func (*once) Panic(text []byte) { panic(string(text)) }

// Neither a message that starts nor one that waits allocates, once as many have waited.
func TestThrottlersDoNotAllocate(t *testing.T) {
	h, old := &once{}, bridge.Current
	bridge.Current = h
	defer func() { bridge.Current = old }()
	var state any
	now := int64(1 << 60)
	buffer := make([]byte, 0, 200)
	enter := func(e abi.Envelope) {
		h.begun = false
		e.Time = now
		buffer = abi.AppendEnvelope(buffer[:0], &e)
		state, _ = bridge.Loop.Turn(state, buffer)
	}
	enter(abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &abi.Start{Type: "numbers", Path: "x", Self: 9, Args: []byte{0xf6}})})
	payload := []byte{0xf6}
	round := func() {
		for range 150 {
			enter(abi.Envelope{Kind: abi.KindMessage, Sender: 1 << 40, Payload: payload})
		}
		now += int64(time.Second)
		enter(abi.Envelope{Kind: abi.KindTimer, Correlation: 1, Payload: payload})
		now += int64(time.Second)
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWrongRatesPanic(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "the rate is 0 in 1s") {
			t.Errorf("%v", r)
		}
	}()
	throttle.New(throttle.Rate{Per: time.Second}, 1)
}
