package browsertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/dashboard"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/histogram"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// world is a system with a server in front of it, as `wasmactors run --admin tcp:...` has.
type world struct {
	t          *testing.T
	sys        *host.System
	url        string
	full, read admin.Token
}

// orders stands for requests of a gateway, which these worlds do not have.
var orders histogram.Histogram

// newWorld serves a system with the actors given.
func newWorld(t *testing.T, actors map[string]host.Props) *world {
	t.Helper()
	sys, err := host.New(host.NewConfig("shop").WithMaxActors(300_000).WithGuardian(supervision.Default()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := sys.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	obs := observe.New(sys, observe.Options{}.WithBundle("shop", "").WithHistory().WithLatencies(func() []observe.Latency {
		return []observe.Latency{observe.LatencyOf("request", "GET /orders/{id}", orders.Counts()), observe.LatencyOf("service", "kv get", orders.Counts())}
	}))
	t.Cleanup(obs.Close)
	for name, props := range actors {
		if _, err := sys.Spawn(name, props); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sys.Idle(ctx); err != nil { // all have begun
		t.Fatal(err)
	}
	return serve(t, sys, obs)
}

// serve opens a server for a system.
func serve(t *testing.T, sys *host.System, obs *observe.Observer) *world {
	t.Helper()
	w := &world{t: t, sys: sys, full: admin.NewToken(), read: admin.NewToken()}
	srv, err := admin.Serve(context.Background(), sys, admin.NewConfig().WithTCP("127.0.0.1:0").WithToken(w.full).WithReadToken(w.read).
		WithObserver(obs).WithDashboard(dashboard.Handler()).WithLog(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	w.url = "http://" + srv.Addr().String() + "/"
	return w
}

// tell sends a message to a path.
func (w *world) tell(path string, v any) {
	w.t.Helper()
	if err := w.sys.TellPath(path, v); err != nil {
		w.t.Fatal(err)
	}
}

// enter opens the dashboard and logs in, at the place given.
func (w *world) enter(width, height int, token admin.Token, place string) *page {
	w.t.Helper()
	p := open(w.t, width, height)
	p.run(chromedp.Navigate(w.url + "#token=" + token.Reveal()))
	p.until("the page is live", `document.querySelector(".top")?.dataset.state === "live"`)
	p.eval(`import("/dashboard/ui/live.js").then((m) => m.configure({ every: 200 }))`, nil)
	p.visit(place)
	return p
}

// visit goes to a place by its address.
func (p *page) visit(place string) {
	p.t.Helper()
	p.eval(`location.hash = `+quote("#/"+place), nil)
}

// The actors of the tests.

// steady answers numbers, and texts with themselves.
func steady(c *host.Context, m host.Message) error {
	var v any
	if err := m.Decode(&v); err != nil {
		return err
	}
	if m.Sender.IsZero() && m.Correlation == 0 { // nobody waits for an answer
		return nil
	}
	return c.Reply(map[string]any{"you_said": v, "large": uint64(1<<63 + 1)})
}

// fragile panics at "crash", and fails with any other text as the reason.
func fragile(c *host.Context, m host.Message) error {
	var text string
	if m.Decode(&text) != nil {
		return nil
	}
	if text == "crash" {
		panic("the shelf has fallen down")
	}
	return errors.New(text)
}

// delays waits before restarts: from least on, doubling.
func delays(least, most time.Duration) supervision.Strategy {
	policy, err := backoff.Spec{Curve: "exponential", Min: least, Max: most}.Policy()
	if err != nil {
		panic(err)
	}
	return supervision.Default().WithMaxRestarts(20, time.Hour).WithBackoff(supervision.Backoff{Policy: policy, On: supervision.OnFailure, ResetAfter: time.Hour})
}

// undecided leaves failed children to whoever looks.
var undecided = supervision.Default().WithDecider(func(string, *abi.Failure) supervision.Directive { return supervision.Suspend })

// parent has so many children.
func parent(n int, child host.Props) host.Props {
	return host.Native(func() host.Actor { return &brood{n, child} }).WithLimits(host.Limits{Children: n + 10, Held: 1 << 30})
}

type brood struct {
	n     int
	child host.Props
}

func (b *brood) Started(c *host.Context) error {
	for i := range b.n {
		if _, err := c.Spawn(fmt.Sprintf("w-%06d", i), b.child); err != nil {
			return err
		}
	}
	return nil
}

func (b *brood) Receive(*host.Context, host.Message) error { return nil }

// shop is the system of most tests.
func shop(t *testing.T) *world {
	one := func(name string, p host.Props) host.Child { return host.Child{Name: name, Props: p} }
	return newWorld(t, map[string]host.Props{
		"echo":      host.Func(steady),
		"hasty":     host.Func(steady).WithChildren(one("till", host.Func(fragile))),
		"patient":   host.Func(steady).WithSupervision(delays(3*time.Second, 5*time.Minute)).WithChildren(one("shelf", host.Func(fragile)), one("counter", host.Func(steady))),
		"undecided": host.Func(steady).WithSupervision(undecided).WithChildren(one("safe", host.Func(fragile))),
		"pool":      parent(450, host.Func(steady)),
	})
}
