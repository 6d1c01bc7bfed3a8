package events_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/events"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.CompileMain()
	code := m.Run()
	servicetest.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bench is a system with the service, on virtual time.
type bench struct {
	testing.TB
	*host.System
	clock *host.VirtualClock
	svc   host.Ref
}

func start(t testing.TB, s *events.Settings) *bench {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(clock).WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	running, err := events.Service.Start(sys, nil, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sys.Close(context.Background())
		if err := running.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &bench{t, sys, clock, running.Ref()}
}

func (b *bench) settle() {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.Idle(ctx); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) spawn(name string, p host.Props) host.Ref {
	b.Helper()
	ref, err := b.Spawn(name, p)
	if err != nil {
		b.Fatal(err)
	}
	b.settle()
	return ref
}

// worker fails at "crash", does not handle "what", and sends to whom it is told the uid of.
func worker() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		var text string
		var uid uint64
		switch {
		case m.Decode(&uid) == nil:
			ref, _ := ctx.System().RefOf(abi.Ref(uid), m.Sender)
			_ = ctx.Tell(ref, "secret-payload")
		case m.Decode(&text) == nil && text == "crash":
			return errors.New("secret-reason")
		case text == "what":
			return host.ErrUnhandled
		}
		return nil
	})
}

// heard is an event as a subscriber has got it.
type heard struct {
	N      uint64         `cbor:"n"`
	Topic  string         `cbor:"topic"`
	Value  map[string]any `cbor:"value"`
	Missed uint64         `cbor:"missed"`
}

func (h heard) String() string {
	text := h.Topic
	for _, k := range []string{"path", "from", "failure", "directive", "reason"} {
		if v, ok := h.Value[k]; ok {
			text += fmt.Sprintf(" %s=%v", k, v)
		}
	}
	if h.Missed > 0 {
		text += fmt.Sprintf(" missed=%d", h.Missed)
	}
	return text
}

// listener is an actor in Go that subscribes and keeps what it gets.
type listener struct {
	b    *bench
	ref  host.Ref
	deaf bool // it never acknowledges

	mu    sync.Mutex
	got   []heard
	raw   strings.Builder
	ended string
	then  func(*host.Context, heard) error // what it does about an event
}

// listen spawns one with a grant; nil for none.
func (b *bench) listen(name string, g *events.Grant, bounds service.Bounds) *listener {
	b.Helper()
	l := &listener{b: b}
	open, n := map[uint64]*host.Reply{}, uint64(0)
	p := host.Func(func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindReply, abi.KindReplyError:
			reply := open[m.Correlation]
			delete(open, m.Correlation)
			if err := m.Err(); err != nil {
				return reply.Fail(strings.TrimPrefix(err.Error(), "host: the actor replied with an error: "))
			}
			return reply.Send(nil)
		case abi.KindMessage:
		default:
			return host.ErrUnhandled
		}
		var e struct {
			_    struct{} `cbor:",toarray"`
			Kind string
			Body heard
		}
		var end []string
		switch {
		case m.Decode(&e) == nil && e.Kind == "happened":
			l.mu.Lock()
			l.got = append(l.got, e.Body)
			l.raw.Write(m.Payload)
			then := l.then
			l.mu.Unlock()
			if !l.deaf {
				_ = ctx.Tell(m.Sender, []any{"ack", e.Body.N})
			}
			if then != nil {
				return then(ctx, e.Body)
			}
			return nil
		case m.Decode(&end) == nil && len(end) == 2 && end[0] == "over":
			l.mu.Lock()
			l.ended = end[1]
			l.mu.Unlock()
			return nil
		case m.Correlation == 0:
			return nil
		}
		reply, err := ctx.Later()
		if err != nil {
			return err
		}
		n++
		open[n] = reply
		return ctx.Ask(b.svc, host.Raw(append([]byte(nil), m.Payload...)), n, time.Minute)
	})
	if g != nil {
		p = p.WithGrant("events", events.Service.Grant(*g, bounds))
	}
	l.ref = b.spawn(name, p)
	return l
}

// do asks the service, and returns the reason if it refuses.
func (l *listener) do(op string, args map[string]any) string {
	l.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := l.b.Ask(ctx, l.ref, []any{op, args}); err != nil {
		return strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	return ""
}

func (l *listener) subscribe(channel string, paths ...string) {
	l.b.Helper()
	args := map[string]any{"channel": channel}
	if len(paths) > 0 {
		args["paths"] = paths
	}
	if err := l.do("subscribe", args); err != "" {
		l.b.Fatal(err)
	}
}

// count is how many events it has got.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got)
}

// take is what it has got, once an event of the marker has come: all that happened before came before.
func (l *listener) take() []heard {
	l.b.Helper()
	l.b.until("the events are there", func() bool {
		before := l.count()
		l.b.settle()
		time.Sleep(2 * time.Millisecond) // the service's goroutine; what comes later fails the comparison
		l.b.settle()
		return l.count() == before
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.got = nil }()
	return l.got
}

func (l *listener) wants(want ...string) {
	l.b.Helper()
	var got []string
	deadline := time.Now().Add(10 * time.Second)
	for {
		l.mu.Lock()
		n := len(l.got)
		l.mu.Unlock()
		if n >= len(want) || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for _, h := range l.take() {
		got = append(got, h.String())
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		l.b.Errorf("%s has heard\n%q, want\n%q", l.ref.Name(), got, want)
	}
}

// until polls.
func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("it never happens that " + what)
		}
	}
}
