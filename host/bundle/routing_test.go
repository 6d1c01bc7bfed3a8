package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
)

// Every key of a router takes effect on the model.
func TestRouterKeys(t *testing.T) {
	m := parse(t, strings.Replace(minimal, "  a: {type: m/t}\n", `  a: {type: m/t}
  b:
    type: m/t
    pool: 8
    router: consistent-hashing
    routing: {header: user, field: id, virtual-nodes: 100, load: 1.5, manage: [/user/a], admit: [/user/b/*]}
    resizer: {lower: 2, upper: 20, pressure: 3, ramp-up: 0.5, backoff-threshold: 0.4, backoff-rate: 0.25, messages: 5}
  c: {to: [/user/a, /user/b], router: tail-chopping, routing: {within: 1s, interval: 20ms, questions: 10, bytes: 1MiB}}
  d: {type: m/t, pool: 1}
`, 1))
	b, c, d := m.Actors[1].Routing, m.Actors[2].Routing, m.Actors[3].Routing
	for _, r := range []*Routing{b, c, d} {
		r.line, r.column = 0, 0
	}
	if want := (&Routing{
		Logic: "consistent-hashing", Pool: 8, Hashing: router.Hashing{Header: "user", Field: "id", VirtualNodes: 100, Load: 1.5},
		Managers: []string{"/user/a"}, Admitted: []string{"/user/b/*"},
		Resizer: &router.Resizer{Lower: 2, Upper: 20, Pressure: 3, RampUp: 0.5, BackoffThreshold: 0.4, BackoffRate: 0.25, Every: 5},
	}); !reflect.DeepEqual(b, want) {
		t.Errorf("%+v", b)
	}
	if want := (&Routing{Logic: "tail-chopping", To: []string{"/user/a", "/user/b"}, Within: time.Second, Interval: 20 * time.Millisecond, Questions: 10, Bytes: 1 << 20}); !reflect.DeepEqual(c, want) {
		t.Errorf("%+v", c)
	}
	if want := (&Routing{Logic: "round-robin", Pool: 1}); !reflect.DeepEqual(d, want) {
		t.Errorf("%+v", d)
	}
	if m.Actors[0].Routing != nil {
		t.Error("every actor is a router")
	}
	for i, want := range []string{"m/t", "router/consistent-hashing, a pool of 2 to 20 of m/t", "router/tail-chopping to /user/a, /user/b", "router/round-robin, a pool of 1 of m/t"} {
		if got := m.Actors[i].Shown(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Mistakes about routers, each at its place.
func TestRouterDiagnostics(t *testing.T) {
	for _, c := range []struct{ actor, want string }{
		{"{}", `bundle.yaml:6:6: actor a lacks the key "type"`},
		{"{type: m/t, router: random}", "bundle.yaml:6:26: router needs pool (actors of the type) or to (paths of actors)"},
		{"{type: m/t, routing: {load: 2}}", "routing needs pool"},
		{"{type: m/t, resizer: {}}", "resizer needs pool"},
		{"{type: m/t, pool: 1, to: [/user/a]}", "bundle.yaml:6:31: either pool or to, not both"},
		{"{type: m/t, pool: 0}", "actors.a.pool must be at least 1, not 0"},
		{"{type: m/t, pool: 20000}", "actors.a.pool must be at most 10000, not 20000"},
		{"{type: m/t, pool: 1, router: round-robbin}", `actors.a.router cannot be "round-robbin"; did you mean "round-robin"?`},
		{"{type: m/t, pool: 1, children: {b: {type: m/t}}}", "bundle.yaml:6:37: children has no meaning for the router a"},
		{"{type: m/t, pool: 1, resend: {}}", "resend has no meaning for the router a"},
		{"{type: m/t, pool: 1, capabilities: {metrics: {x_total: {kind: counter, help: x}}}}", "capabilities.metrics are for single actors"},
		{"{type: m/t, pool: 1, routing: {within: 1s}}", "bundle.yaml:6:45: routing.within needs router: scatter-gather or tail-chopping"},
		{"{type: m/t, pool: 1, router: scatter-gather, routing: {interval: 1s}}", "routing.interval needs router: tail-chopping"},
		{"{type: m/t, pool: 1, router: consistent-hashing, routing: {load: 1}}", "routing.load must be above 1, which is the mean"},
		{"{type: m/t, pool: 1, router: consistent-hashing, routing: {virtual-nodes: 0}}", "routing.virtual-nodes must be at least 1"},
		{"{type: m/t, pool: 1, routing: {admit: [/user/a]}}", "routing.admit needs manage"},
		{"{type: m/t, pool: 1, resizer: {lower: 5, upper: 4}}", "bundle.yaml:6:36: a resizer's upper bound of 4, must be from the lower bound, 5"},
		{"{type: m/t, to: [/user/b]}", "bundle.yaml:6:13: type has no meaning for the router a: the actors that it sends to have their own"},
		{"{to: [/user/b], args: 1}", "args has no meaning for the router a"},
		{"{to: [/user/b], mailbox: {kind: drop-oldest}}", "mailbox has no meaning for the router a: the actors that it sends to have their own"},
		{"{to: [/user/b], dispatcher: {throughput: 1}}", "dispatcher has no meaning for the router a"},
		{"{type: m/t, pool: 2, router: balancing, mailbox: {kind: drop-oldest}}", "mailbox has no meaning for the router a: its routees share a queue"},
		{"{to: [/user/b], resizer: {}}", "resizer has no meaning for the router a: it makes no actors"},
		{"{to: [/user/b], router: balancing}", "router: balancing needs pool"},
		{"{to: []}", "bundle.yaml:6:11: to must name one actor at least"},
		{"{to: [b]}", `"b" is not the path of one actor such as /user/a/b`},
		{"{to: [/user/*]}", `"/user/*" is not the path of one actor`},
		{"{to: [/user/bb]}", `bundle.yaml:6:12: to: no actor of the bundle has the path /user/bb; did you mean "/user/b"?`},
		{"{to: [/user/b], routing: {manage: [/user/x]}}", "routing.manage: no actor of the bundle has the path /user/x"},
		{"{to: [/user/a]}", "bundle.yaml:6:11: the router /user/a sends to itself"},
		{"{to: [/user/c]}\n  c: {to: [/user/b, /user/a]}", "the router /user/a sends to itself, in the end"},
	} {
		text := strings.Replace(minimal, "{type: m/t}", c.actor, 1) + "  b: {type: m/t}\n"
		_, err := Parse("bundle.yaml", []byte(text))
		var ds Diagnostics
		if !errors.As(err, &ds) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.actor, err, c.want)
		}
	}
	parse(t, strings.Replace(minimal, "{type: m/t}", "{to: [/user/b/3]}", 1)+"  b: {type: m/t, pool: 4}\n")
}

// routers starts a bundle of actors that send back what they are sent.
func routers(t *testing.T, actors string) (*host.System, *host.VirtualClock) {
	t.Helper()
	code, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"echo.wasm": string(code), FileName: "wasmactors: 1\nname: b\nmodules: {m: {wasm: ./echo.wasm}}\nactors:\n" + actors} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	sys, err := b.Start(func(c host.Config) host.Config { return c.WithManual().WithClock(clock).WithSeed(1) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Close(context.Background()) })
	sys.RunUntilIdle(10_000)
	return sys, clock
}

func lookup(t *testing.T, sys *host.System, path string) host.Ref {
	t.Helper()
	ref, err := sys.Lookup(path)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// turns are those of the actors at paths since they have started.
func turns(t *testing.T, sys *host.System, paths ...string) (n []uint64) {
	t.Helper()
	for _, p := range paths {
		i, err := sys.View().Info(lookup(t, sys, p))
		if err != nil {
			t.Fatal(err)
		}
		n = append(n, i.Turns-1) // the start
	}
	return n
}

func send(t *testing.T, sys *host.System, path string, vs ...any) {
	t.Helper()
	for _, v := range vs {
		if err := sys.Tell(lookup(t, sys, path), v); err != nil {
			t.Fatal(err)
		}
	}
	sys.RunUntilIdle(10_000)
}

// F04: the manifest makes routers; what it says of them takes effect.
func TestF04_Manifest(t *testing.T) {
	three := []string{"/user/r/0", "/user/r/1", "/user/r/2"}
	run := func(name, actors string, f func(t *testing.T, sys *host.System, clock *host.VirtualClock)) {
		t.Run(name, func(t *testing.T) {
			sys, clock := routers(t, actors)
			f(t, sys, clock)
		})
	}
	spread := func(want ...uint64) func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		return func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
			send(t, sys, "/user/r", 1, 2, 3, 4, 5, 6)
			if got := turns(t, sys, three...); !reflect.DeepEqual(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
	run("pool", "  r: {type: m/echo, pool: 3}\n", spread(2, 2, 2))
	run("broadcast", "  r: {type: m/echo, pool: 3, router: broadcast}\n", spread(6, 6, 6))
	run("type", "  r: {type: m/echo, pool: 3, router: broadcast}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		tree := sys.View().Tree().Children[0]
		if tree.Type != "router/broadcast" || len(tree.Children) != 3 || tree.Children[0].Type != "echo" {
			t.Errorf("%+v", tree)
		}
	})
	run("to", "  x: {type: m/echo}\n  y: {type: m/echo}\n  r: {to: [/user/x, /user/y]}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		send(t, sys, "/user/r", 1, 2, 3)
		if got := turns(t, sys, "/user/x", "/user/y"); !reflect.DeepEqual(got, []uint64{2, 1}) {
			t.Errorf("%v", got)
		}
	})
	run("resizer", "  r: {type: m/echo, pool: 1, resizer: {lower: 3, upper: 3}}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		send(t, sys, "/user/r", 1)
		lookup(t, sys, "/user/r/2")
	})
	keyed := func(header string) any {
		return host.Headed{Value: map[string]int{"id": 7}, Headers: map[string]string{header: "k"}}
	}
	same := func(t *testing.T, sys *host.System) {
		t.Helper()
		got := turns(t, sys, three...)
		if got[0]+got[1]+got[2] != 4 || max(got[0], got[1], got[2]) != 4 {
			t.Errorf("%v", got)
		}
	}
	run("header", "  r: {type: m/echo, pool: 3, router: consistent-hashing, routing: {header: user}}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		send(t, sys, "/user/r", keyed("user"), keyed("user"), keyed("other"), keyed("user"), keyed("user"))
		same(t, sys)
	})
	run("field", "  r: {type: m/echo, pool: 3, router: consistent-hashing, routing: {field: id, virtual-nodes: 50}}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		send(t, sys, "/user/r", keyed("other"), keyed("other"), map[string]int{"od": 1}, keyed("x"), keyed("y"))
		same(t, sys)
	})
	run("load", "  r: {type: m/echo, pool: 3, router: consistent-hashing, routing: {field: id, load: 1.1}}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		for _, p := range three {
			if err := sys.Operate().Pause(lookup(t, sys, p), false); err != nil {
				t.Fatal(err)
			}
		}
		send(t, sys, "/user/r", keyed("x"), keyed("x"), keyed("x"), keyed("x"), keyed("x"), keyed("x"))
		for _, p := range three {
			if i, _ := sys.View().Info(lookup(t, sys, p)); i.Mailbox == 0 || i.Mailbox > 3 {
				t.Errorf("%s has %d waiting", p, i.Mailbox)
			}
		}
	})
	pending := func(t *testing.T, sys *host.System) *host.Pending {
		t.Helper()
		for _, p := range three {
			if err := sys.Operate().Pause(lookup(t, sys, p), false); err != nil {
				t.Fatal(err)
			}
		}
		p, err := sys.Request(lookup(t, sys, "/user/r"), 1)
		if err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(10_000)
		return p
	}
	run("within", "  r: {type: m/echo, pool: 3, router: scatter-gather, routing: {within: 2s}}\n", func(t *testing.T, sys *host.System, clock *host.VirtualClock) {
		p := pending(t, sys)
		clock.Advance(1999 * time.Millisecond)
		if sys.RunUntilIdle(10_000); len(p.Answer()) != 0 {
			t.Error("too early")
		}
		clock.Advance(time.Millisecond)
		if sys.RunUntilIdle(10_000); len(p.Answer()) != 1 || !strings.Contains((<-p.Answer()).Err().Error(), "within 2s") {
			t.Error("no answer")
		}
	})
	run("interval", "  r: {type: m/echo, pool: 3, router: tail-chopping, routing: {interval: 1s}}\n", func(t *testing.T, sys *host.System, clock *host.VirtualClock) {
		_ = pending(t, sys)
		for want := 1; want <= 3; want++ {
			n := 0
			for _, p := range three {
				i, _ := sys.View().Info(lookup(t, sys, p))
				n += i.Mailbox
			}
			if n != want {
				t.Errorf("%d were asked, want %d", n, want)
			}
			clock.Advance(time.Second)
			sys.RunUntilIdle(10_000)
		}
	})
	busy := func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		_ = pending(t, sys)
		p, err := sys.Request(lookup(t, sys, "/user/r"), 1)
		if err != nil {
			t.Fatal(err)
		}
		if sys.RunUntilIdle(10_000); len(p.Answer()) != 1 {
			t.Fatal("a question too many waits")
		}
		if err := (<-p.Answer()).Err(); !errors.Is(err, router.ErrBusy) || !errors.Is(err, host.ErrMailboxFull) {
			t.Error("a question too many is not refused")
		}
	}
	run("questions", "  r: {type: m/echo, pool: 3, router: scatter-gather, routing: {questions: 1}}\n", busy)
	run("bytes", "  r: {type: m/echo, pool: 3, router: tail-chopping, routing: {bytes: 1}}\n", busy)
	run("manage and admit", "  x: {type: m/echo}\n  r: {type: m/echo, pool: 3, routing: {manage: [/user/x], admit: [/user/x]}}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		order := func(from string, op string, v any) {
			if err := sys.TellFrom(lookup(t, sys, from), lookup(t, sys, "/user/r"), host.Headed{Value: v, Headers: map[string]string{router.Header: op}}); err != nil {
				t.Fatal(err)
			}
			sys.RunUntilIdle(10_000)
		}
		routees := func() int {
			n := 0
			for p := range 5 {
				if _, err := sys.Lookup("/user/r/" + string(rune('0'+p))); err == nil {
					n++
				}
			}
			return n
		}
		order("/user/r/0", "adjust", 1)
		if routees() != 3 {
			t.Error("anybody may manage")
		}
		order("/user/x", "adjust", 1)
		if routees() != 4 {
			t.Error("nobody may manage")
		}
		order("/user/x", "add", "/user/x")
		send(t, sys, "/user/r", 1, 2, 3, 4, 5)
		if got := turns(t, sys, "/user/x"); got[0] == 0 {
			t.Error("the routee was not added")
		}
	})
	// What else an actor has is its routees', its mailbox also the router's.
	run("limits", "  r: {type: m/echo, pool: 3, limits: {mailbox: 2}, supervision: {otherwise: restart}}\n", func(t *testing.T, sys *host.System, _ *host.VirtualClock) {
		for i := range 3 {
			if err := sys.Tell(lookup(t, sys, "/user/r"), i); (err == nil) != (i < 2) {
				t.Errorf("message %d: %v", i, err)
			}
		}
	})
}

// A router that has changed is replaced, and one that has not is left alone.
func TestChangedRouter(t *testing.T) {
	one := strings.Replace(minimal, "{type: m/t}", "{type: m/t, pool: 2}", 1)
	for text, want := range map[string]action{
		one: unchanged,
		strings.Replace(one, "pool: 2", "pool: 3", 1):                                 replaced,
		strings.Replace(one, "pool: 2", "pool: 2, router: random", 1):                 replaced,
		strings.Replace(one, "pool: 2", "pool: 2, resizer: {}", 1):                    replaced,
		strings.Replace(one, "pool: 2", "pool: 2, args: 1", 1):                        replaced,
		strings.Replace(one, "pool: 2", "pool: 2, routing: {manage: [/user/a/1]}", 1): replaced,
		minimal: replaced,
	} {
		if got, why := compare(&parse(t, one).Actors[0], &parse(t, text).Actors[0]); got != want {
			t.Errorf("%s: %v (%s)", text, got, why)
		}
	}
}

// explain says who decides about a routee, and about a router.
func TestExplainRouter(t *testing.T) {
	m := parse(t, strings.Replace(minimal, "{type: m/t}", "{type: m/t, pool: 2, supervision: {otherwise: escalate}}\n  g: {to: [/user/a]}", 1))
	for path, want := range map[string][]string{
		"a": {"/user/a (router/round-robin, a pool of 2 of m/t)", "each routee", "its router", "escalate", "/user/a fails, and its own supervisor decides"},
		"g": {"/user/g (router/round-robin to /user/a)", "/user, the guardian of the bundle"},
	} {
		var b strings.Builder
		if err := m.Explain(&b, path); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: there is no %q in\n%s", path, w, b.String())
			}
		}
	}
}
