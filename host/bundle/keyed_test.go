package bundle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
)

// Every key of a keyed actor takes effect on the model.
func TestKeyedKeys(t *testing.T) {
	m := parse(t, strings.Replace(minimal, "  a: {type: m/t}\n", `  a: {type: m/t}
  b:
    type: m/t
    keyed: {header: user, field: id, idle: 1m, max: 7, max-per-sender: 3, max-bytes: 1MiB, at-limit: evict, buffer: 10, buffer-bytes: 2MiB, remember: 5, manage: [/user/a]}
  c: {type: m/t, keyed: {}}
`, 1))
	if want := (&Keyed{
		Header: "user", Field: "id", Idle: time.Minute, Max: 7, PerSender: 3, MaxBytes: 1 << 20, AtLimit: keyed.Evict, Buffer: 10, BufferBytes: 2 << 20,
		Remember: 5, Managers: []string{"/user/a"}, Supervision: supervision.Default(), Scope: ScopeNode,
	}); !reflect.DeepEqual(m.Actors[1].Keyed, want) {
		t.Errorf("%+v", m.Actors[1].Keyed)
	}
	if want := (&Keyed{
		Idle: keyed.DefaultIdle, Max: keyed.DefaultMax, Buffer: keyed.DefaultBuffer, BufferBytes: keyed.DefaultBytes, Remember: keyed.DefaultRemember,
		Supervision: supervision.Default(), Scope: ScopeNode,
	}); !reflect.DeepEqual(m.Actors[2].Keyed, want) {
		t.Errorf("%+v", m.Actors[2].Keyed)
	}
	if m.Actors[0].Keyed != nil || m.Actors[1].Shown() != "keyed, for each key an actor m/t" {
		t.Error(m.Actors[1].Shown())
	}
}

func TestKeyedDiagnostics(t *testing.T) {
	for _, c := range []struct{ actor, want string }{
		{"{keyed: {}}", `actor a lacks the key "type"`},
		{"{type: m/t, keyed: {max: 0}}", "actors.a.keyed.max must be at least 1, not 0"},
		{"{type: m/t, keyed: {at-limit: evikt}}", `actors.a.keyed.at-limit cannot be "evikt"; did you mean "evict"?`},
		{"{type: m/t, keyed: {idle: 0s}}", "bundle.yaml:6:32: keyed.idle must be at least 1ms"},
		{"{type: m/t, keyed: {}, supervision: {strategy: all-for-one}}", "must be one-for-one"},
		{"{type: m/t, keyed: {}, children: {b: {type: m/t}}}", "children has no meaning for the keyed actor a"},
		{"{type: m/t, keyed: {}, resend: {}}", "resend has no meaning for the keyed actor a"},
		{"{type: m/t, keyed: {}, pool: 3}", "pool has no meaning for the keyed actor a"},
		{"{to: [/user/b], keyed: {}}", "to has no meaning for the keyed actor a"},
		{"{type: m/t, keyed: {}, capabilities: {metrics: {x_total: {kind: counter, help: x}}}}", "capabilities.metrics are for single actors"},
		{"{type: m/t, keyed: {scope: cluster}}", "bundle.yaml:6:33: actor a: keyed.scope: cluster needs the key cluster"},
		{"{type: m/t, singleton: {}}", "bundle.yaml:6:29: actor a: singleton needs the key cluster"},
		{"{type: m/t, keyed: {shards: 7}}", "keyed.shards has a meaning only with scope: cluster"},
		{"{type: m/t, keyed: {role: back}}", "keyed.role has a meaning only with scope: cluster"},
		{"{type: m/t, keyed: {scope: cluster, shards: 5000}}", "actors.a.keyed.shards must be"},
		{"{type: m/t, keyed: {remember: true}}", "bundle.yaml:6:36: keyed.remember: true has a meaning only with scope: cluster"},
		{"{type: m/t, keyed: {scope: cluster, starts: 5}}", "keyed.starts has a meaning only with remember: true"},
		{"{type: m/t, keyed: {scope: cluster, remember: 5, starts: 5}}", "keyed.starts has a meaning only with remember: true"},
		{"{type: m/t, keyed: {scope: cluster, remember: true, starts: 0}}", "actors.a.keyed.starts must be at least 1, not 0"},
		{"{type: m/t, keyed: {remember: yes please}}", "actors.a.keyed.remember"},
		{"{type: m/t, keyed: {}, singleton: {}}", "actor a is either a singleton or keyed"},
		{"{type: m/t, singleton: {}, pool: 3}", "pool has no meaning for the singleton actor a"},
		{"{type: m/t, children: {c: {type: m/t, keyed: {scope: cluster}}}}", "actor c: keyed.scope: cluster is for actors at the top of actors only"},
		{"{type: m/t, keyed: {manage: [/user/x]}}", "keyed.manage: no actor of the bundle has the path /user/x"},
	} {
		text := strings.Replace(minimal, "{type: m/t}", c.actor, 1) + "  b: {type: m/t}\n"
		_, err := Parse("bundle.yaml", []byte(text))
		var ds Diagnostics
		if !errors.As(err, &ds) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.actor, err, c.want)
		}
	}
	parse(t, strings.Replace(minimal, "{type: m/t}", "{type: m/t, capabilities: {send: [/user/b/anna]}}", 1)+"  b: {type: m/t, keyed: {}}\n")
}

// What the manifest says of keys takes effect on the system.
func TestKeyedTakesEffect(t *testing.T) {
	there := func(sys *host.System) (names string) {
		for _, r := range sys.Select("/user/a/*") {
			names += r.Name() + " "
		}
		return names
	}
	tell := func(t *testing.T, sys *host.System, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if err := sys.Tell(lookup(t, sys, "/user/a"), host.Headed{Value: map[string]any{"id": "f" + key}, Headers: map[string]string{"user": key}}); err != nil {
				t.Fatal(err)
			}
			sys.RunUntilIdle(10_000)
		}
	}
	for _, c := range []struct {
		keyed string
		after time.Duration
		want  string
	}{
		{"{header: user}", 0, "1 2 3 "},
		{"{field: id}", 0, "f1 f2 f3 "},
		{"{header: user, idle: 1m}", time.Minute, ""},
		{"{header: user}", time.Minute, "1 2 3 "},
		{"{header: user, max: 2}", 0, "1 2 "},
		{"{header: user, max: 2, at-limit: evict}", 0, "2 3 "},
		{"{header: user, max-bytes: 64KiB}", 0, "1 2 "},
	} {
		sys, clock := routers(t, "  a: {type: m/echo, keyed: "+c.keyed+", limits: {memory: 64KiB}}\n")
		tell(t, sys, "1", "2", "3")
		clock.Advance(c.after)
		sys.RunUntilIdle(10_000)
		if got := there(sys); got != c.want && c.keyed != "{header: user, max-bytes: 64KiB}" || len(got) > len(c.want) {
			t.Errorf("%s: there are %q, want %q", c.keyed, got, c.want)
		}
	}
}

// Lines of input reach the actor of a key that is not there; one that can never be there is said to be
// none.
func TestFeedStartsKeptActors(t *testing.T) {
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Close(context.Background()) })
	var lives atomic.Int32
	worker := host.Native(func() host.Actor {
		lives.Add(1)
		return actorFunc(func(ctx *host.Context, m host.Message) error { return ctx.Reply(ctx.Self().Name()) })
	})
	if _, err := sys.Spawn("keys", keyed.New(worker).WithIdle(time.Millisecond).Props()); err != nil {
		t.Fatal(err)
	}
	feed := func(input string) (got map[int]string) {
		got = map[int]string{}
		_, err := Feed{Paths: []string{"/user/keys"}, Answer: func(a Answer) {
			text, _ := host.ToJSON(a.Payload)
			got[a.Line] = fmt.Sprint(a.Kind(), " ", string(text), a.Reason())
		}}.Run(t.Context(), sys, strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for n := int32(1); n <= 2; n++ {
		got := feed(`{"to": "keys/a", "message": 1}
{"to": "/user/keys/a b", "message": 1}
`)
		if got[1] != `reply "a"` || !strings.HasPrefix(got[2], `invalid nullthere is no actor "/user/keys/a b"`) || lives.Load() != n {
			t.Errorf("%v, %d lives", got, lives.Load())
		}
		for until := time.Now().Add(10 * time.Second); len(sys.Select("/user/keys/*")) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("it is not passivated")
			}
		}
	}
}

type actorFunc func(*host.Context, host.Message) error

func (f actorFunc) Receive(ctx *host.Context, m host.Message) error { return f(ctx, m) }

// The actors of keys are supervised as a single actor in the place of their entry would be, with its backoff,
// unless the entry says something itself; but a failure of one key touches no other, whatever the bundle says.
func TestKeyedActorsInheritSupervision(t *testing.T) {
	waits := func(t *testing.T, path, actors string) time.Duration {
		t.Helper()
		sys, _ := routers(t, actors)
		to, err := sys.AddressOf(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := sys.Tell(to.To, to.Message("x")); err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(10_000)
		if err := sys.Operate().Crash(lookup(t, sys, path), 0, "on purpose"); err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(10_000)
		ref, err := sys.Lookup(path)
		if err != nil {
			return -1
		}
		info, err := sys.View().Info(ref)
		if err != nil {
			t.Fatal(err)
		}
		return info.Due
	}
	const bundle = "supervision: {strategy: all-for-one, shared-window: true, max-restarts: 1, within: 1h, backoff: {min: 3s, max: 3s, jitter: none}}\n"
	const parent = "  p: {type: m/echo, supervision: {backoff: {min: 7s, max: 7s, jitter: none}}, children: {a: {type: m/echo, keyed: {}}}}\n"
	for _, c := range []struct {
		name, path, actors string
		want               time.Duration
	}{
		{"a single one", "/user/a", "  a: {type: m/echo}\n" + bundle, 3 * time.Second},
		{"of the bundle", "/user/a/k", "  a: {type: m/echo, keyed: {}}\n" + bundle, 3 * time.Second},
		{"its own", "/user/a/k", "  a: {type: m/echo, keyed: {}, supervision: {backoff: {min: 5s, max: 5s, jitter: none}}}\n" + bundle, 5 * time.Second},
		{"its own, without", "/user/a/k", "  a: {type: m/echo, keyed: {}, supervision: {}}\n" + bundle, 0},
		{"of the parent", "/user/p/a/k", parent + bundle, 7 * time.Second},
		{"stop", "/user/a/k", "  a: {type: m/echo, keyed: {}}\nsupervision: {otherwise: stop}\n", -1},
		{"the default", "/user/a/k", "  a: {type: m/echo, keyed: {}}\n", 0},
	} {
		if got := waits(t, c.path, c.actors); got != c.want {
			t.Errorf("%s: it waits for %v, want %v", c.name, got, c.want)
		}
	}
	m := parse(t, minimal+"  b: {type: m/t, keyed: {}}\n"+bundle)
	s := m.Actors[1].Keyed.Supervision
	if n, within := s.MaxRestarts(); s.Kind() != supervision.OneForOne || s.Shared() || s.Shutdown() != supervision.ShutdownNever || n != 1 || within != time.Hour {
		t.Errorf("%+v", s)
	}
	var told strings.Builder
	if err := m.Explain(&told, "/user/b"); err != nil || !strings.Contains(told.String(), "the actor alone (one-for-one)") || !strings.Contains(told.String(), "3s") {
		t.Errorf("%v\n%s", err, told.String())
	}
}
