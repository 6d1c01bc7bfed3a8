package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/testkit"
)

// client asks a service for what it is sent, and tells the probe what the ask ends with.
func client(service string, to host.Ref) host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage {
			at, ok := ctx.Service(service)
			if !ok {
				return ctx.Tell(to, "no grant")
			}
			return ctx.Ask(at, host.Raw(append([]byte(nil), m.Payload...)), uint64(ctx.Now().UnixNano())+m.Correlation, 10*time.Second)
		}
		if m.Kind == abi.KindAskTimeout {
			return ctx.Tell(to, "too late")
		}
		var v any
		_ = m.Decode(&v)
		return ctx.Tell(to, fmt.Sprint(v))
	})
}

func TestFakes(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	var reached atomic.Int64
	f := k.Serve("rates", func(c *testkit.Call) {
		var of string
		c.Decode(&of)
		switch c.Op {
		case "now":
			_ = c.Answer("now " + of)
		case "later":
			c.AnswerAfter(5*time.Second, "later "+of)
		case "slow": // a world outside that takes real time
			c.Go(func() (any, error) { time.Sleep(2 * ms); reached.Add(1); return "slow " + of, nil })
		case "broken":
			c.Go(func() (any, error) { return nil, service.Errorf(service.Unavailable, "the line is cut") })
		case "odd":
			c.Go(func() (any, error) { return nil, errors.New("oops") })
		case "no":
			c.Fail(service.NotFound, "there is no "+of)
		}
	})
	a := k.Spawn("a", f.For(client("rates", p.Ref())))
	ask := func(op string) {
		t.Helper()
		k.Tell(a, []any{op, "eur"})
	}
	begun := k.Now()
	ask("now")
	p.Expect("now eur")
	ask("no")
	p.Expect("not_found: there is no eur")
	ask("slow") // time has not passed meanwhile
	if reached.Load() != 1 || k.Now() != begun {
		t.Errorf("%d, after %v", reached.Load(), k.Now().Sub(begun))
	}
	p.Expect("slow eur")
	ask("broken")
	p.Expect("unavailable: the line is cut")
	ask("odd")
	p.Expect("internal: oops")
	ask("later")
	p.Within(5*time.Second, 5*time.Second, func() { p.Expect("later eur") })
	ask("never")
	p.Within(10*time.Second, 10*time.Second, func() { p.ExpectWithin(10*time.Second, "too late") })
	calls := f.Calls()
	if last := calls[len(calls)-1]; len(calls) != 7 || last.Op != "never" || last.Sender.UID() != a.UID() || !last.Wanted || last.Answer(1) == nil {
		t.Errorf("%d calls, %+v", len(calls), last)
	}

	k.Tell(a, "nonsense")
	p.Expect(testkit.Text("^bad_request: a request is "))
	b := k.Spawn("b", client("rates", p.Ref()))
	k.Tell(b, []any{"now", "eur"})
	p.Expect("no grant")
	p.Ask(f.Ref(), []any{"now", "eur"}) // who guesses the ref is denied
	p.Expect("denied: the sender has no grant for the service rates")
	if len(f.Calls()) != 7 {
		t.Error("a request that was refused has got to the handler")
	}
	k.Tell(f.Ref(), []any{"now", "eur"})
}

type slowSettings struct{}
type slowGrant struct{}

// slow is a real service whose answers take a while in goroutines of their own.
type slow struct{}

func (slow) Serve(_ context.Context, r *service.Request[slowGrant]) (any, error) {
	time.Sleep(ms)
	return r.Op, nil
}
func (slow) Close(context.Context) error { return nil }

// Time stands still while one of the real services works, in its goroutines.
func TestRealServices(t *testing.T) {
	kind := service.Define(service.Definition[slowSettings, slowGrant]{
		Name: "slow", Doc: "takes a while",
		Open: func(*service.Env, *slowSettings) (service.Provider[slowGrant], error) { return slow{}, nil },
	})
	k := testkit.New(t)
	running, err := kind.Start(k.System(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.Uses(running)
	p := k.Probe("p")
	a := k.Spawn("a", client("slow", p.Ref()).WithGrant("slow", kind.Grant(slowGrant{}, service.Bounds{})))
	begun := k.Now()
	for i := range 20 {
		k.Tell(a, []any{fmt.Sprint("op", i), nil})
		p.Expect(fmt.Sprint("op", i))
	}
	if k.Now() != begun {
		t.Errorf("%v has passed", k.Now().Sub(begun))
	}
}

// What never ends is said.
func TestWorkWithoutEnd(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	fails(t, func(t testing.TB) {
		k := testkit.New(t, testkit.RealWait(5*ms))
		k.Go("the printer", func() { <-end })
		k.Run()
	}, "the printer is not done within 5ms of real time")
}
