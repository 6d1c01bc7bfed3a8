package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Messages that are larger than the receiver's inbox, of 4 KiB. What they make the guest do says their first byte; see
// testdata/large.wat.

func largeGuest(t testing.TB, e *sandbox.Engine) Props {
	return Guest(load(t, e, "testdata/large.wasm"), "large")
}

// largeMessage is one of n bytes and a head.
func largeMessage(op byte, n int) Raw {
	r := largeBytes(n)
	r[5] = op
	return r
}

func askFor(t testing.TB, sys *System, ref Ref, v any) (Message, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return sys.Ask(ctx, ref, v)
}

// handled is how many messages the guest says that it has handled.
func handled(t testing.TB, sys *System, ref Ref) int64 {
	t.Helper()
	m, err := askFor(t, sys, ref, Raw{0x41, 'c'})
	if err != nil {
		t.Fatal(err)
	}
	return int64(binary.BigEndian.Uint32(m.Payload[1:]))
}

func TestLargeMessagesComeBackWhole(t *testing.T) {
	for name, setup := range map[string]sandbox.Config{"compiler": sandbox.NewConfig(), "interpreter": sandbox.NewConfig().WithInterpreter(true)} {
		t.Run(name, func(t *testing.T) {
			e, err := sandbox.New(context.Background(), setup)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close(context.Background()) }()
			sys := newSystem(t, NewConfig("large"))
			ref, err := sys.Spawn("large", largeGuest(t, e))
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range []byte{'e', 'p'} {
				for _, n := range []int{4050, 4096, 64<<10 - 5, 64 << 10, 300_001, 1<<20 - 5} {
					if n <= 0xffff {
						n += 0x10000 // its heads are of five bytes
					}
					large := largeMessage(op, n)
					m, err := askFor(t, sys, ref, large)
					if err != nil || !bytes.Equal(m.Payload, large) {
						t.Fatalf("%c: %d bytes come back as %d, %v", op, n, len(m.Payload), err)
					}
				}
			}
			if err := sys.Tell(ref, largeMessage('i', 100_000)); err != nil { // over its own rings: nobody else's concern
				t.Fatal(err)
			}
			if n := handled(t, sys, ref); n != 14 {
				t.Errorf("%d messages were handled", n)
			}
		})
	}
}

// A sender hears at once what is too large, whatever waits before it, and the dead letter names the setting.
func TestTooLargeIsSaidAtOnce(t *testing.T) {
	e := newEngine(t)
	sys := newSystem(t, NewConfig("large"))
	memory := uint64(4 * 64 << 10)
	for _, c := range []struct {
		name   string
		props  Props
		most   int
		refuse bool
	}{
		{"by default", largeGuest(t, e), 1 << 20, true},
		{"limited", largeGuest(t, e).WithLimits(Limits{Message: 100_000}), 100_000, true},
		{"raised", largeGuest(t, e).WithLimits(Limits{Message: 3 << 20}), 3 << 20, true},
		{"its memory", largeGuest(t, e).WithLimits(Limits{Message: 3 << 20, Memory: memory}), int(memory) - overhead, true},
		{"a guest that takes none", echo(t, e), sandbox.InboxCap(load(t, e, "testdata/echo.wasm")) - overhead, true},
		{"Go", Func(func(c *Context, m Message) error { return nil }), 5 << 20, false},
		{"Go, limited", Func(func(c *Context, m Message) error { return nil }).WithLimits(Limits{Message: 1000}), 1000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := sys.Subscribe(100, func(e *Event) bool { return e.Kind == EventDeadLetter })
			defer sub.Close()
			ref, err := sys.Spawn("", c.props)
			if err != nil {
				t.Fatal(err)
			}
			x, err := sys.View().Inspect(context.Background(), ref)
			if err != nil || c.refuse && x.Limits.Message != int64(c.most) {
				t.Errorf("the limit is said to be %d, want %d: %v", x.Limits.Message, c.most, err)
			}
			if err := sys.Tell(ref, Raw(make([]byte, c.most))); err != nil {
				t.Errorf("%d bytes: %v", c.most, err)
			}
			err = sys.Tell(ref, Raw(make([]byte, c.most+1)))
			if c.refuse != errors.Is(err, ErrTooLarge) {
				t.Fatalf("%d bytes: %v", c.most+1, err)
			}
			if c.refuse {
				if l := (<-sub.C()).Dead; l.Reason != DeadTooLarge || l.Key != "limits.message" {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

// Whatever a guest says about where a payload goes, only the guest comes to harm.
func TestLargeMessagesOfHostileGuests(t *testing.T) {
	e := newEngine(t)
	sys := newSystem(t, NewConfig("large"))
	for op, want := range map[byte]string{
		'o': "fetch: the room (11 bytes", 'a': "fetch: the room (2 bytes at 0xffffffff)", 'l': "fetch: 100005 bytes from 1 of a payload of 100005",
		'w': "fetch: 2 bytes from 4294967295", 'x': "write: 8 bytes at 0xfffffffc", 'f': "the commands take more than", 't': "unreachable", 'k': "fuel 1000000000 spent",
	} {
		ref, err := sys.Spawn("", largeGuest(t, e))
		if err != nil {
			t.Fatal(err)
		}
		for n, message := range []Raw{largeMessage(op, 100_000), {0x41, op}} {
			if n == 1 && op != 'x' && op != 'f' {
				continue
			}
			var turn *TurnError
			if _, err := askFor(t, sys, ref, Bound{Value: message}); !errors.As(err, &turn) || !strings.Contains(turn.Error(), want) {
				t.Errorf("%c: %v, want %s", op, err, want)
			}
		}
		if n := handled(t, sys, ref); n != 1 {
			t.Errorf("%c: a new incarnation has handled %d messages", op, n)
		}
	}
	ref, err := sys.Spawn("", largeGuest(t, e))
	if err != nil {
		t.Fatal(err)
	}
	var turn *TurnError
	if _, err := askFor(t, sys, ref, Bound{Value: Raw{0x41, 'o'}}); !errors.As(err, &turn) || !strings.Contains(turn.Error(), "fetch: the payload is in the inbox") {
		t.Errorf("a small one: %v", err)
	}
}

// A turn that fails half-way through a large message leaves the state of before, and what it has written is gone.
func TestResumeAfterALargeMessage(t *testing.T) {
	e := newEngine(t)
	sys := newSystem(t, NewConfig("large").WithGuardian(supervision.Default().WithOtherwise(supervision.Resume).WithMaxRestarts(-1, 0)))
	ref, err := sys.Spawn("", largeGuest(t, e))
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(20) {
		op := []byte{'e', 't', 'p', 'o', 'e'}[n%5]
		large := largeMessage(op, 70_000+int(n)*10_000)
		m, err := askFor(t, sys, ref, Bound{Value: large})
		if good := op == 'e' || op == 'p'; good != (err == nil) || good && !bytes.Equal(m.Payload, large) {
			t.Fatalf("%d, %c: %v", n, op, err)
		}
	}
	if n := handled(t, sys, ref); n != 4*3+1 {
		t.Errorf("%d messages are counted, want 13", n)
	}
}

// A kill ends a turn that does nothing but fetch.
func TestKillDuringACopy(t *testing.T) {
	e := newEngine(t)
	sys := newSystem(t, NewConfig("large"))
	ref, err := sys.Spawn("", largeGuest(t, e).WithLimits(Limits{Fuel: 1 << 60}))
	if err != nil {
		t.Fatal(err)
	}
	ended, err := sys.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Tell(ref, largeMessage('k', 1<<20-5)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	sys.StopNow(ref)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
}

// The bytes that are copied are paid for.
func TestLargeMessagesCostFuel(t *testing.T) {
	e := newEngine(t)
	image := load(t, e, "testdata/large.wasm")
	spent := func(n int) uint64 {
		x, err := sandbox.Get(image)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Put()
		var out sandbox.Result
		for range 2 { // the second one finds the room there
			if !x.Push(&abi.Envelope{Sender: 1 << 40, Payload: largeMessage('e', n)}) || x.Push(&abi.Envelope{Sender: 1 << 40}) {
				t.Fatal("it is not alone in the inbox")
			}
			if x.Run(&sandbox.Entry{}, &out); out.Failure != nil {
				t.Fatal(out.Failure)
			}
		}
		return out.Fuel
	}
	if less, more := spent(100_000), spent(500_000); more-less < 2*400_000/sandbox.CostBytes || more-less > 2*400_000/sandbox.CostBytes+1000 {
		t.Errorf("%d for 100 KB, %d for 500 KB", less, more)
	}
}

// Guests of the Go SDK, which fall asleep after each message: messages of all sizes, beside others in a batch, as
// arguments of children, as questions of theirs, in timers, and half-way in a turn that fails.
func TestLargeMessagesOfTheSDK(t *testing.T) {
	image, err := familyImage()
	if err != nil {
		t.Fatal(err)
	}
	sys := newSystem(t, NewConfig("large").WithMostAwake(1).WithGuardian(supervision.Default().WithOtherwise(supervision.Resume).WithMaxRestarts(-1, 0)))
	p := Guest(image, "porter").WithCapabilities(Capabilities{Spawn: []string{"porter"}})
	var refs [2]Ref
	for i := range refs {
		if refs[i], err = sys.Spawn("", p); err != nil {
			t.Fatal(err)
		}
	}
	bytesOf := func(op byte, n int) Raw {
		w := abi.NewWriter(nil)
		b := bytes.Repeat([]byte{byte(n >> 4)}, n)
		b[0] = op
		w.ByteString(b)
		return w.Bytes()
	}
	count := int64(0)
	for k, n := range []int{1, 65_400, 65_480, 65_500, 65_510, 65_530, 65_536, 100, 200_000, 150_000, 10, 1<<20 - 5, 70_000} {
		for _, op := range []byte{'e', 'b', 'a', 't', 'p'} {
			large := bytesOf(op, n)
			m, err := askFor(t, sys, refs[k%2], Bound{Value: large})
			switch {
			case op == 'p':
				var turn *TurnError
				if !errors.As(err, &turn) || !strings.Contains(err.Error(), "dropped it") {
					t.Errorf("%d bytes: %v", n, err)
				}
			case err != nil:
				t.Fatalf("%c, %d bytes: %v", op, n, err)
			case op == 't' && len(m.Payload) > 5 || op != 't' && !bytes.Equal(m.Payload, large):
				t.Fatalf("%c, %d bytes come back as %d", op, n, len(m.Payload))
			}
			if k%2 == 0 {
				count += map[byte]int64{'e': 1, 'b': 3, 'a': 1, 't': 2}[op]
			}
		}
	}
	m, err := askFor(t, sys, refs[0], bytesOf('c', 1))
	if n := abi.NewReader(m.Payload).Int(); err != nil || n < count-5 || n > count+1 { // a timer may not have come yet
		t.Errorf("%d messages, %v; want %d", n, err, count+1)
	}
}
