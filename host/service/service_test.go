package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	servicetest.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type settings struct {
	Greeting string `manifest:"greeting" doc:"what it says" reach:"none"`
}

type grant struct {
	Names []string `manifest:"names" doc:"who may be greeted" reach:"none"`
}

// greeter waits for go on where it is told to.
type greeter struct {
	greeting string
	goOn     chan struct{}
	closed   atomic.Int32
	began    chan struct{}
	causes   chan error
	mu       sync.Mutex
	values   []any
}

type key struct{}

func (p *greeter) Serve(ctx context.Context, r *service.Request[grant]) (any, error) {
	var in struct {
		Name string `cbor:"name"`
	}
	switch r.Op {
	case "greet", "wait":
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.values = append(p.values, ctx.Value(key{}))
		p.mu.Unlock()
		if r.Op == "wait" {
			p.began <- struct{}{}
			select {
			case <-p.goOn:
			case <-ctx.Done():
				p.causes <- context.Cause(ctx)
				return nil, ctx.Err()
			}
		}
		for _, n := range r.Grant.Names {
			if n == in.Name {
				return p.greeting + " " + n, nil
			}
		}
		return nil, service.Deny("names", "%s may not be greeted", in.Name)
	case "panic":
		panic("oh")
	case "broken":
		return nil, errors.New("something that guests need not know")
	case "odd":
		return make(chan int), nil
	}
	return nil, r.Unknown()
}

func (p *greeter) ServeNow(r *service.Request[grant]) (any, error, bool) {
	switch r.Op {
	case "now":
		return "at once", nil, true
	case "now-panic":
		panic("oh")
	}
	return nil, nil, false
}

func (p *greeter) Close(context.Context) error { p.closed.Add(1); return nil }

type fixture struct {
	t       *testing.T
	sys     *host.System
	p       *greeter
	kind    *service.Service[settings, grant]
	running *service.Running
	clock   *host.VirtualClock
	log     *bytes.Buffer
	events  *host.Subscription

	opened   atomic.Int32
	refusals atomic.Int32  // of opening again
	hold     chan struct{} // nil, or opening again waits for its end
	closes   int32         // how often the provider is to be closed in all
}

func start(t *testing.T) *fixture {
	f := &fixture{t: t, p: &greeter{goOn: make(chan struct{}), began: make(chan struct{}, 100), causes: make(chan error, 100)}, log: &bytes.Buffer{}, closes: 1}
	f.clock = host.NewVirtualClock(time.Unix(1e9, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(f.clock).WithContextValues(key{}))
	if err != nil {
		t.Fatal(err)
	}
	f.sys = sys
	f.events = sys.Subscribe(1000, func(e *host.Event) bool { return e.Kind == host.EventRefused })
	f.kind = service.Define(service.Definition[settings, grant]{
		Name: "greeter", Doc: "greets", AtOnce: 20, Bounds: service.Bounds{AtOnce: 5},
		Open: func(_ *service.Env, s *settings) (service.Provider[grant], error) {
			if f.opened.Add(1) > 1 {
				if f.hold != nil {
					<-f.hold
				}
				if f.refusals.Add(-1) >= 0 {
					return nil, errors.New("the disk is gone")
				}
			}
			f.p.greeting = s.Greeting
			return f.p, nil
		},
	})
	f.running, err = f.kind.Start(sys, &service.Env{Log: slog.New(slog.NewTextHandler(f.log, nil))}, &settings{"hello"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.close() })
	return f
}

func (f *fixture) close() {
	_ = f.sys.Close(context.Background())
	if err := f.running.Wait(context.Background()); err != nil || f.p.closed.Load() != f.closes {
		f.t.Errorf("%v, closed %d times", err, f.p.closed.Load())
	}
}

// question has an actor ask the service and answer with what it gets.
type question struct {
	Op   string         `cbor:"op"`
	Args map[string]any `cbor:"args"`
}

// asker is an actor in Go that asks the service what it is asked.
func (f *fixture) asker(name string, p func(host.Props) host.Props) host.Ref {
	type waiting struct{ reply *host.Reply }
	props := host.Native(func() host.Actor {
		open, n := map[uint64]waiting{}, uint64(0)
		return receiver(func(ctx *host.Context, m host.Message) error {
			if w, ok := open[m.Correlation]; ok && m.Sender == f.running.Ref() {
				delete(open, m.Correlation)
				if err := m.Err(); err != nil {
					return w.reply.Fail(err.(*host.ReplyError).Reason)
				}
				return w.reply.Send(host.Raw(m.Payload))
			}
			var q question
			if err := m.Decode(&q); err != nil {
				return err
			}
			ref := f.running.Ref()
			if q.Op == "tell" {
				return ctx.Tell(ref, []any{"wait", map[string]any{"name": "bob"}})
			}
			reply, err := ctx.Later()
			if err != nil {
				return err
			}
			n++
			open[n] = waiting{reply}
			return ctx.Ask(ref, []any{q.Op, q.Args}, n, time.Minute)
		})
	})
	if p != nil {
		props = p(props)
	}
	ref, err := f.sys.Spawn(name, props)
	if err != nil {
		f.t.Fatal(err)
	}
	return ref
}

type receiver func(*host.Context, host.Message) error

func (r receiver) Receive(ctx *host.Context, m host.Message) error { return r(ctx, m) }

func (f *fixture) ask(who host.Ref, op, name string) string {
	f.t.Helper()
	q := question{Op: op}
	if name != "" {
		q.Args = map[string]any{"name": name}
	}
	text, err := host.AskAs[string](context.WithValue(f.t.Context(), key{}, "v"), f.sys, who, q)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	return text
}

func (f *fixture) granted(p host.Props) host.Props {
	return p.WithGrant("greeter", f.kind.Grant(grant{[]string{"ann", "bob"}}, service.Bounds{}))
}

// What a request is answered with, whatever the provider does.
func TestAnswers(t *testing.T) {
	f := start(t)
	a := f.asker("a", f.granted)
	for _, c := range []struct{ op, name, want string }{
		{"greet", "ann", "hello ann"},
		{"greet", "carl", "denied: carl may not be greeted; capabilities.greeter.names in the manifest would allow it"},
		{"now", "", "at once"},
		{"panic", "", "internal: the service has failed"},
		{"now-panic", "", "internal: the service has failed"},
		{"broken", "", "internal: the service has failed"},
		{"odd", "", "internal: the answer cannot be encoded"},
		{"fly", "", `bad_request: there is no operation "fly"`},
	} {
		if got := f.ask(a, c.op, c.name); got != c.want {
			t.Errorf("%s: %q, want %q", c.op, got, c.want)
		}
	}
	if got := f.ask(f.asker("b", nil), "greet", "ann"); got != "denied: greeter is not granted; capabilities.greeter in the manifest would allow it" {
		t.Error(got)
	}
	for _, want := range []string{"/user/a capabilities.greeter.names", "/user/b capabilities.greeter"} {
		if e := <-f.events.C(); e.Ref.Path()+" "+e.Refused.Key != want || !e.Refused.Denied || e.Refused.What != "greeter" {
			t.Errorf("%s: %+v", e.Ref, e.Refused)
		}
	}
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if len(f.p.values) == 0 || f.p.values[0] != "v" {
		t.Errorf("the values of the caller's context: %v", f.p.values)
	}
	if log := f.log.String(); !strings.Contains(log, "something that guests need not know") || strings.Count(log, "a service has panicked") != 2 {
		t.Error(log)
	}
	want := []service.Count{
		{Op: "broken", Code: service.Internal, N: 1}, {Op: "greet", Code: "", N: 1}, {Op: "greet", Code: service.Denied, N: 1},
		{Op: "now", N: 1}, {Op: "now-panic", Code: service.Internal, N: 1}, {Op: "odd", Code: service.Internal, N: 1},
		// A name that a guest has made up, and who may ask nothing.
		{Op: "other", Code: service.BadRequest, N: 1}, {Op: "other", Code: service.Denied, N: 1},
		{Op: "panic", Code: service.Internal, N: 1},
	}
	if got := f.running.Counts(); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// Whoever has an answer may ask again at once: its place is free.
func TestPlaceIsFreeBeforeTheAnswer(t *testing.T) {
	f := start(t)
	a := f.asker("a", func(p host.Props) host.Props {
		return p.WithGrant("greeter", f.kind.Grant(grant{[]string{"ann"}}, service.Bounds{AtOnce: 1}))
	})
	for i := range 2000 {
		if got := f.ask(a, "greet", "ann"); got != "hello ann" {
			t.Fatalf("%d: %s", i, got)
		}
	}
}

// A guest that knows how to make the service fail does not fill its log.
func TestFaultsInLog(t *testing.T) {
	f := start(t)
	a := f.asker("a", f.granted)
	for range 30 {
		for _, op := range []string{"panic", "now-panic", "broken", "odd"} {
			f.ask(a, op, "")
		}
	}
	if n := strings.Count(f.log.String(), "level=ERROR"); n != 20 {
		t.Errorf("%d lines", n)
	}
	f.clock.Advance(time.Second)
	f.log.Reset()
	if f.ask(a, "broken", ""); !strings.Contains(f.log.String(), "more_before=100") {
		t.Error(f.log)
	}
}

// Garbage is refused, and what follows is answered.
func TestGarbage(t *testing.T) {
	f := start(t)
	granted := f.kind.Grant(grant{[]string{"ann"}}, service.Bounds{Bytes: 2000})
	answers := make(chan string, 1)
	var send []byte
	a, _ := f.sys.Spawn("raw", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Sender == f.running.Ref() {
			if err := m.Err(); err != nil {
				answers <- err.(*host.ReplyError).Reason
			} else {
				answers <- "ok"
			}
			return nil
		}
		return ctx.Ask(f.running.Ref(), host.Raw(send), 7, time.Minute)
	}).WithGrant("greeter", granted))
	for _, c := range []struct{ payload, want string }{
		{"\xf6", "bad_request"}, {"\x80", "bad_request"}, {"\x81\x61a", "bad_request"}, {"\x83\x61a\xf6\xf6", "bad_request"},
		{"\x82\x01\xf6", "bad_request"}, {"\x82\x65greet\xa1\x64name\x01", "bad_request"}, {"\x82\x65greet\xa2\x64name\x61a\x64name\x61a", "bad_request"},
		{"\x82\x65greet\xa1\x64Name\x63ann", "bad_request"}, {"\x82\x65greet\xa1\x64nam\x61a", "bad_request"}, {"\x82\x65greet\xa1\x64name", "bad_request"},
		{"\x82\x79\x09\x00" + strings.Repeat("a", 0x900) + "\xf6", "too_large"},
		{"\x82\x65greet\xa1\x64name\x63ann", "ok"},
	} {
		send = []byte(c.payload)
		_ = f.sys.Tell(a, nil)
		if got, _, _ := strings.Cut(<-answers, ":"); got != c.want {
			t.Errorf("%.40q: %s, want %s", c.payload, got, c.want)
		}
	}
}

// Work ends with what it is for, and its place is free again.
func TestWorkEnds(t *testing.T) {
	f := start(t)
	a := f.asker("a", f.granted)
	pending := func() *host.Pending {
		p, err := f.sys.Request(a, question{Op: "wait", Args: map[string]any{"name": "ann"}})
		if err != nil {
			t.Fatal(err)
		}
		<-f.p.began
		return p
	}
	t.Run("its time is over", func(t *testing.T) {
		p := pending()
		f.clock.Advance(service.DefaultTimeout)
		if m := <-p.Answer(); !strings.Contains(m.Err().Error(), "timeout: ") {
			t.Error(m.Err())
		}
		if cause := <-f.p.causes; !errors.Is(cause, context.DeadlineExceeded) {
			t.Error(cause)
		}
	})
	t.Run("too many at once", func(t *testing.T) {
		var all []*host.Pending
		for range 5 {
			all = append(all, pending())
		}
		late := f.request(a, "ann")
		f.until(func() bool { return f.running.Waiting() == 1 })
		f.clock.Advance(service.DefaultWait)
		if m := <-late.Answer(); !strings.Contains(m.Err().Error(), "busy: 5 requests are in progress, which is the limit, and there was no room within 1s") {
			t.Error(m.Err())
		}
		// Those that wait begin in their order as soon as there is room.
		var waiting []*host.Pending
		for i := range 3 {
			waiting = append(waiting, f.request(a, "ann"))
			f.until(func() bool { return f.running.Waiting() == 1+i })
		}
		if n := f.running.Open(); n != 5 {
			t.Errorf("%d requests at once", n)
		}
		f.p.goOn <- struct{}{}
		<-f.p.began
		if n := f.running.Open(); n != 5 {
			t.Errorf("%d requests at once", n)
		}
		// More than a quarter of what may wait in all: the grant has no room left.
		for i := range 3 {
			waiting = append(waiting, f.request(a, "ann"))
			f.until(func() bool { return f.running.Waiting() == 3+i })
		}
		if got := f.ask(a, "wait", "ann"); !strings.HasPrefix(got, "busy: 5 requests are in progress, which is the limit, and 5 wait for them") {
			t.Error(got)
		}
		close(f.p.goOn)
		for i, p := range waiting {
			if i > 0 {
				<-f.p.began
			}
			if m := <-p.Answer(); m.Err() != nil {
				t.Error(m.Err())
			}
		}
		for _, p := range all {
			if m := <-p.Answer(); m.Err() != nil {
				t.Error(m.Err())
			}
		}
		f.p.goOn = make(chan struct{})
		if n := f.running.Waiting(); n != 0 {
			t.Errorf("%d requests still wait", n)
		}
	})
	t.Run("the asker has ended", func(t *testing.T) {
		pending()
		_ = f.sys.StopGracefully(t.Context(), a)
		if cause := <-f.p.causes; !errors.Is(cause, host.ErrGone) {
			t.Error(cause)
		}
		a = f.asker("a2", f.granted)
	})
	t.Run("a tell goes on without its sender", func(t *testing.T) {
		_ = f.sys.Tell(a, question{Op: "tell"})
		<-f.p.began
		_ = f.sys.StopGracefully(t.Context(), a)
		select {
		case cause := <-f.p.causes:
			t.Error(cause)
		default:
		}
		f.p.goOn <- struct{}{}
		a = f.asker("a3", f.granted)
	})
	t.Run("the service is closing", func(t *testing.T) {
		pending()
		f.close()
		f.p.closed.Store(0)
		if cause := <-f.p.causes; cause == nil {
			t.Error("it was not ended")
		}
		f.p.closed.Store(1)
	})
}

// request asks an actor to make a request that waits until the test lets it go on.
func (f *fixture) request(a host.Ref, name string) *host.Pending {
	f.t.Helper()
	p, err := f.sys.Request(a, question{Op: "wait", Args: map[string]any{"name": name}})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) until(ok func() bool) {
	f.t.Helper()
	for over := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			f.t.Fatal("it does not come about")
		}
	}
}

// A service that fails, or that an operator kills, comes back: with the ref that actors have, another provider,
// and an error for everything that was under way.
func TestServiceComesBack(t *testing.T) {
	for name, end := range map[string]func(*fixture) error{
		"a crash":       func(f *fixture) error { return f.sys.Operate().Crash(f.running.Ref(), 0, "") },
		"killed":        func(f *fixture) error { return f.sys.Operate().Crash(f.running.Ref(), abi.FailureKilled, "") },
		"a poison pill": func(f *fixture) error { return f.sys.PoisonPill(f.running.Ref()) },
		"a restart":     func(f *fixture) error { return f.sys.Operate().Restart(f.running.Ref()) },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			f.closes = 2
			a := f.asker("a", f.granted)
			under := f.request(a, "ann")
			<-f.p.began
			was := f.running.Ref()
			since := f.clock.Now()
			if err := end(f); err != nil {
				t.Fatal(err)
			}
			if m := <-under.Answer(); m.Err() == nil {
				t.Errorf("what was under way was answered: %s", m.Payload)
			}
			if cause := <-f.p.causes; cause == nil {
				t.Error("the work was not ended")
			}
			if name != "a restart" {
				f.until(func() bool {
					o, down := f.running.Outage()
					return down && o.Since.Equal(since) && o.Service == "greeter"
				})
				f.until(func() bool { i, err := f.sys.View().Info(was); return err == nil && i.Due > 0 })
				if got := f.ask(a, "greet", "ann"); !strings.HasPrefix(got, "unavailable: ") {
					t.Error(got)
				}
				f.clock.Advance(100 * time.Millisecond)
			}
			f.until(func() bool { _, down := f.running.Outage(); return !down && f.opened.Load() == 2 })
			if got := f.ask(a, "greet", "ann"); got != "hello ann" || f.running.Ref() != was {
				t.Error(got, f.running.Ref(), was)
			}
			if n := f.p.closed.Load(); n != 1 {
				t.Errorf("the provider was closed %d times before the next one was opened", n)
			}
		})
	}
}

// As long as a service cannot be opened again, its actor fails again, at ever longer intervals.
func TestServiceTriesAgain(t *testing.T) {
	f := start(t)
	f.closes = 2
	a := f.asker("a", f.granted)
	f.refusals.Store(3)
	_ = f.sys.Operate().Crash(f.running.Ref(), 0, "")
	for i := range 4 {
		f.until(func() bool {
			x, _ := f.sys.View().Info(f.running.Ref())
			return x.Due > 0 && x.Incarnation == uint64(i)
		})
		o, down := f.running.Outage()
		if !down || i > 0 && o.Why != "the disk is gone" {
			t.Errorf("%d: %+v", i, o)
		}
		// Before the delay is over: what comes between a start and its failure waits for the next one.
		if got := f.ask(a, "greet", "ann"); !strings.HasPrefix(got, "unavailable: ") || strings.Contains(got, "disk") {
			t.Errorf("%d: a guest is told %q", i, got)
		}
		f.clock.Advance(100 * time.Millisecond << i)
	}
	f.until(func() bool { _, down := f.running.Outage(); return !down })
	if got := f.ask(a, "greet", "ann"); got != "hello ann" {
		t.Error(got)
	}
	if !strings.Contains(f.log.String(), "the disk is gone") {
		t.Error(f.log)
	}
}

// A system that ends while a service is being opened again closes what was opened.
func TestServiceEndsWhileItComesBack(t *testing.T) {
	f := start(t)
	f.hold = make(chan struct{})
	_ = f.sys.Operate().Restart(f.running.Ref())
	f.until(func() bool { return f.opened.Load() == 2 })
	ended := make(chan struct{})
	go func() { _ = f.sys.Close(context.Background()); close(ended) }()
	<-ended
	close(f.hold)
	f.closes = 2
}

// A rate is one of a grant.
func TestRate(t *testing.T) {
	f := start(t)
	slow := f.kind.Grant(grant{}, service.Bounds{Rate: 2})
	a := f.asker("a", func(p host.Props) host.Props { return p.WithGrant("greeter", slow) })
	b := f.asker("b", func(p host.Props) host.Props { return p.WithGrant("greeter", slow) })
	c := f.asker("c", f.granted)
	if x, y, z := f.ask(a, "now", ""), f.ask(b, "now", ""), f.ask(a, "now", ""); x != "at once" || y != "at once" || !strings.HasPrefix(z, "rate_limited: ") {
		t.Error(x, y, z)
	}
	if got := f.ask(c, "now", ""); got != "at once" {
		t.Error(got)
	}
	f.clock.Advance(500 * time.Millisecond)
	if x, y := f.ask(b, "now", ""), f.ask(b, "now", ""); x != "at once" || !strings.HasPrefix(y, "rate_limited: ") {
		t.Error(x, y)
	}
	want := []service.Count{{Op: "now", N: 4}, {Op: "now", Code: service.RateLimited, N: 2}}
	if got := f.running.Counts(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
