package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/supervision"
	"go.yaml.in/yaml/v3"
)

const minimal = `wasmactors: 1
name: b
modules:
  m: {wasm: ./m.wasm}
actors:
  a: {type: m/t}
`

func parse(t testing.TB, text string) *Manifest {
	t.Helper()
	m, err := Parse("bundle.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// withLimits is a minimal manifest whose module has limits.
func withLimits(text string) string {
	return strings.Replace(minimal, "{wasm: ./m.wasm}", "{wasm: ./m.wasm, limits: {"+text+"}}", 1)
}

// Every mistake is reported with its place and what to do about it.
func TestDiagnostics(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "bundle.yaml:1:1: the manifest is empty"},
		{"not YAML", "a: [", "not YAML"},
		{"unknown key", strings.Replace(minimal, "\nactors:", "\nlimit: {}\nactors:", 1), `bundle.yaml:5:1: unknown key "limit" in the manifest; did you mean "limits"?`},
		{"missing key", "wasmactors: 1\nname: x\nactors: {}\n", `bundle.yaml:1:1: the manifest lacks the key "modules"`},
		{"twice", minimal + "name: c\n", `bundle.yaml:7:1: the key "name" comes twice, first in line 2`},
		{"version", strings.Replace(minimal, "wasmactors: 1", "wasmactors: 2", 1), "bundle.yaml:1:13: wasmactors must be at most 1, not 2"},
		{"type", strings.Replace(minimal, "name: b", "name: [b]", 1), "bundle.yaml:2:7: name must be a text"},
		{"no module", strings.Replace(minimal, "m/t", "mm/t", 1), `bundle.yaml:6:13: there is no module "mm"; did you mean "m/t"?`},
		{"size", minimal + "limits: {memory: lots}\n", `limits.memory: "lots" is not a size such as 65536, 64KiB or 16MiB`},
		{"small memory", minimal + "limits: {memory: 1}\n", "limits.memory must be at least 64KiB, not 1"},
		{"large memory", minimal + "limits: {memory: 5GiB}\n", "bundle.yaml:7:18: limits.memory must be at most 4GiB, not 5GiB"},
		{"small stack", minimal + "limits: {stack: 100}\n", "limits.stack must be at least 1KiB, not 100"},
		{"large outbox", minimal + "limits: {outbox: 2GiB}\n", "limits.outbox must be at most 1GiB, not 2GiB"},
		{"unknown limit of a module", withLimits("fule: 1"), `bundle.yaml:4:32: unknown key "fule" in modules.m.limits`},
		{"globals", withLimits("globals: 2M"), "bundle.yaml:4:41: modules.m.limits.globals must be at most 1000000, not 2M"},
		{"size of a module", withLimits("size: 1GiB"), "modules.m.limits.size must be at most 256MiB, not 1GiB"},
		{"data of a module", withLimits("data: 0"), "modules.m.limits.data must be at least 1, not 0"},
		{"instances", withLimits("instances: many"), `modules.m.limits.instances: "many" is not a number`},
		{"more than its module", strings.Replace(withLimits("stack: 8KiB"), "{type: m/t}", "{type: m/t, limits: {stack: 9KiB}}", 1), "bundle.yaml:6:34: limits.stack of actor a is more than modules.m.limits.stack"},
		{"duration", minimal + "limits: {deadline: soon}\n", `limits.deadline: "soon" is not a duration such as 100ms`},
		{"count", minimal + "limits: {fuel: -1}\n", `limits.fuel: "-1" is not a number such as 1000`},
		{"enum", minimal + "supervision: {strategy: one-for-on}\n", `supervision.strategy cannot be "one-for-on"; did you mean "one-for-one"?`},
		{"directive", minimal + "supervision: {decide: [{kind: trap, directive: restrat}]}\n", `did you mean "restart"?`},
		{"kind", minimal + "supervision: {decide: [{kind: tarp, directive: stop}]}\n", `did you mean "trap"?`},
		{"backoff", minimal + "supervision: {backoff: {min: 2s, max: 1s}}\n", "supervision.backoff.max must be at least min"},
		{"sliding", minimal + "supervision: {window: sliding}\n", "a sliding window needs its length, within"},
		{"dangling", strings.Replace(minimal, "{type: m/t}", "{type: m/t, capabilities: {send: [/user/aa]}}", 1), `no actor of the bundle has the path /user/aa; did you mean "/user/a"?`},
		{"main", minimal + "run: {main: b}\n", `there is no top-level actor "b"`},
		{"both", strings.Replace(minimal, "wasm: ./m.wasm", "wasm: ./m.wasm, go: ./g", 1), "either go or wasm, not both"},
		{"neither", strings.Replace(minimal, "wasm: ./m.wasm", "freeze: true", 1), "either go (a folder to build) or wasm (a file) is needed"},
		{"resend", strings.Replace(minimal, "{type: m/t}", "{type: m/t, resend: {slot: 2s, max: 1s}}", 1), "resend: max must be at least slot"},
		{"resend's children", strings.Replace(minimal, "{type: m/t}", "{type: m/t, resend: {}, children: {b: {type: m/t}}}", 1), "children cannot be combined with resend"},
		{"names, all in one go", strings.Replace(minimal, "  a: {type", "  null: {type: m/t}\n  ..: {type: m/t}\n  a: {type: m/t}\n  a: {typ", 1), `bundle.yaml:6:3: the key null is nothing and no text: quote it`},
		{"names further down", strings.Replace(minimal, "  a: {type", "  null: {type: m/t}\n  ..: {type: m/t}\n  a: {type", 1), `bundle.yaml:7:3: ".." is not`},
		{"alias", "x: &a 1\ny: *a\n", "anchors and aliases are not supported"},
		{"name", strings.Replace(minimal, "  a: {type", "  $a: {type", 1), `"$a" is not a valid name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("bundle.yaml", []byte(c.text))
			var ds Diagnostics
			if !errors.As(err, &ds) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAllMistakesAreReported(t *testing.T) {
	_, err := Parse("f", []byte("wasmactors: 3\nname: 'a b'\nmodules: []\nactors: 7\nfoo: 1\n"))
	var ds Diagnostics
	if !errors.As(err, &ds) || len(ds) != 5 {
		t.Errorf("%v", err)
	}
}

// Every key of the manifest takes effect on the model.
func TestKeysTakeEffect(t *testing.T) {
	m := parse(t, `wasmactors: 1
name: full
description: what it is
modules:
  m:
    go: ./g
    compiler: tinygo
    freeze: false
    env: {B: "2", A: "1"}
    dirs: [{host: ./d, guest: /d, mode: rw}, {host: /e, guest: /e}, {host: ./f, guest: /f, mode: rw, bytes: 1MiB, files: 10}]
    tags: [a, b]
    flags: {go: [-gcflags=-l], tinygo: [-opt=2]}
limits: {memory: 1MiB, fuel: 5M, deadline: 3s, stack: 128KiB, table: 1k, outbox: 64KiB, mailbox: 7, mailbox-bytes: 1kB, children: 3, timers: 4, watches: 5, asks: 6, stash: 8}
supervision: {strategy: all-for-one, max-restarts: 3, within: 1m, window: sliding, keep-children: true, otherwise: stop, shared-window: true, exceeded: stop, shutdown: all,
  decide: [{kind: trap, reason: "x*", type: t, directive: resume}, {kinds: [fuel, deadline], directive: escalate}],
  backoff: {curve: linear, min: 1s, max: 5s, step: 2s, jitter: none, reset: never, max-failures: 9, give-up: suspend,
    on: failure, meanwhile: reply, reply: later, grace: 7ms, overtake: true}}
actors:
  a:
    type: m/t
    args: {n: 1, s: text, l: [1.5, true, null, -3]}
    limits: {fuel: 1k}
    capabilities: {send: [/user/a/kid], stop: [/user/a], spawn: ["*"], metrics: {n_total: {kind: counter, help: so many}, t_seconds: {kind: histogram, buckets: [0.5, 1]}}}
    supervision: {strategy: rest-for-one, backoff: {stash: 5, on: stop}}
    lifetime: temporary
    significant: true
    crashed-message: 3
    children:
      kid: {type: t}
run: {main: a}
idle: {after: 9s, awake: 100}
`)
	mod := m.Modules[0]
	if m.IdleAfter != 9*time.Second || m.MostAwake != 100 {
		t.Errorf("%v %d", m.IdleAfter, m.MostAwake)
	}
	if m.Name != "full" || m.Description == "" || m.Main != "a" || mod.Compiler != "tinygo" || mod.Freeze || strings.Join(mod.Env, " ") != "A=1 B=2" ||
		len(mod.Dirs) != 3 || mod.Dirs[0].ReadOnly || !mod.Dirs[1].ReadOnly || !filepath.IsAbs(mod.Go) || mod.Memory != 1<<20 || mod.Stack != 128<<10 || mod.Table != 1000 {
		t.Errorf("%+v", mod)
	}
	if d := mod.Dirs; d[0].MaxBytes != 1<<30 || d[0].MaxFiles != 10_000 || d[1].MaxBytes != 0 || d[1].MaxFiles != 0 || d[2].MaxBytes != 1<<20 || d[2].MaxFiles != 10 {
		t.Errorf("%+v", d)
	}
	if len(mod.Tags) != 2 || mod.Flags["go"][0] != "-gcflags=-l" || mod.Flags["tinygo"][0] != "-opt=2" {
		t.Errorf("%+v", mod)
	}
	a := m.Actors[0]
	want := host.Limits{Mailbox: 7, MailboxBytes: 1000, Fuel: 1000, Deadline: 3 * time.Second, Memory: 1 << 20, Outbox: 64 << 10, Children: 3, Timers: 4, Watches: 5, Asks: 6, Stash: 8}
	if a.Limits != want {
		t.Errorf("%+v", a.Limits)
	}
	if kid := a.Children[0]; kid.Limits.Fuel != 5_000_000 || kid.Type != "t" || kid.Module != "m" {
		t.Errorf("%+v", kid)
	}
	if args, _ := json.Marshal(a.Args); string(args) != `{"l":[1.5,true,null,-3],"n":1,"s":"text"}` {
		t.Errorf("%s", args)
	}
	if c := a.Capabilities; c.Send[0] != "/user/a/kid" || c.Stop[0] != "/user/a" || c.Spawn[0] != "*" || a.Supervision.Kind() != supervision.RestForOne {
		t.Errorf("%+v", c)
	}
	if g := a.Metrics; len(g) != 2 || g[0].Name != "n_total" || g[0].Help != "so many" || g[0].Kind != exposition.Counter || !slices.Equal(g[1].Buckets, []float64{0.5, 1}) || a.Capabilities.Send[1] != guests.Path {
		t.Errorf("%+v", g)
	}
	s := m.Supervision
	n, within := s.MaxRestarts()
	if s.Kind() != supervision.AllForOne || n != 3 || within != time.Minute || !s.Sliding() || !s.KeepChildren() {
		t.Errorf("%+v", s)
	}
	for kind, want := range map[abi.FailureKind]supervision.Directive{abi.FailureTrap: supervision.Resume, abi.FailureDeadline: supervision.Escalate, abi.FailureExit: supervision.Stop} {
		if got := s.Decide("t", &abi.Failure{Kind: kind, Reason: "xy"}); got != want {
			t.Errorf("%v: %v", kind, got)
		}
	}
	b, _ := s.Backoff()
	if b.Policy.Delay(1, nil) != 3*time.Second || b.Reset != supervision.ResetNever || b.MaxFailures != 9 || b.GiveUp != supervision.GiveUpSuspend ||
		b.On != supervision.OnFailure || b.Meanwhile != supervision.MeanwhileReply || b.Reply != "later" || b.Grace != 7*time.Millisecond || !b.Overtake {
		t.Errorf("%+v", b)
	}
	if !s.Shared() || s.Exceeded() != supervision.Stop || s.Shutdown() != supervision.ShutdownAll {
		t.Errorf("%+v", s)
	}
	if b, _ := a.Supervision.Backoff(); b.Stash != 5 || b.On != supervision.OnStop || b.Meanwhile != supervision.MeanwhileKeep {
		t.Errorf("%+v", b)
	}
	if a.Lifetime != supervision.Temporary || !a.Significant || a.Crashed != host.RedeliverCrashed(3) {
		t.Errorf("%+v", a)
	}
	r := parse(t, strings.Replace(minimal, "{type: m/t}", "{type: m/t, resend: {slot: 1s, ceiling: 1, stay: true, max: 1s, keep: 5, attempts: 2, max-crashes: 3, patience: 7s}}", 1)).Actors[0].Resend
	if a.Resend != nil || r.Keep != 5 || r.Attempts != 2 || r.MaxCrashes != 3 || r.Patience != 7*time.Second {
		t.Errorf("%+v", r)
	}
	if d := r.Policy.Delay(9, highest{}); d != time.Second {
		t.Errorf("%v", d)
	}
	if c := parse(t, strings.Replace(minimal, "{type: m/t}", "{type: m/t, lifetime: temporary, crashed-message: dead-letter}", 1)).Actors[0]; c.Crashed != host.DeadLetterCrashed() || c.Lifetime != supervision.Temporary || c.Significant {
		t.Errorf("%+v", c)
	}
}

// highest draws the highest values there are.
type highest struct{}

func (highest) Float64() float64 { return 0.999 }
func (highest) IntN(n int) int   { return n - 1 }

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema(all.Kinds()...)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bundle.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("bundle.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t testing.TB, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestPublishedSchemaIsCurrent(t *testing.T) {
	published, err := os.ReadFile("../../docs/bundle.schema.json")
	if err != nil || !bytes.Equal(published, Schema(all.Kinds()...)) {
		t.Fatalf("docs/bundle.schema.json is not what the code says (%v): run `go generate ./host/bundle`", err)
	}
}

// Every sample is valid to the schema and to the loader.
func TestSamplesAreValid(t *testing.T) {
	files, _ := filepath.Glob("../../samples/*/bundle.yaml")
	if len(files) < 2 {
		t.Fatal("no samples")
	}
	s := schema(t)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if _, err := LoadWith(f, nil, all.Kinds()...); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// What the schema refuses the loader refuses, and what the loader takes the
// schema takes.
func TestSchemaAndLoaderAgree(t *testing.T) {
	s := schema(t)
	for _, text := range []string{
		minimal, minimal + "limits: {memory: 64KiB, fuel: 10k}\n", minimal + "limits: {memory: '${A:-64KiB}', fuel: '${B:-10k}', deadline: '${C:-1s}'}\n", minimal + "limits: {deadline: '{C}'}\n", minimal + "limits: {memory: 65536, deadline: 0}\n", minimal + "limits: {memory: x}\n",
		minimal + "limits: {mem: 1}\n", minimal + "supervision: {strategy: x}\n", minimal + "supervision: {max-restarts: -2}\n", minimal + "supervision: {backoff: {spread: 2}}\n",
		strings.Replace(minimal, "wasmactors: 1", "wasmactors: 2", 1), strings.Replace(minimal, "type: m/t", "typ: m/t", 1), strings.Replace(minimal, "  a:", "  a b:", 1),
	} {
		_, err := Parse("f", []byte(text))
		if verr := s.Validate(asJSON(t, []byte(text))); (err == nil) != (verr == nil) {
			t.Errorf("%s\nthe loader says %v, the schema %v", text, err, verr)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	files, _ := filepath.Glob("../../samples/*/bundle.yaml")
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("f", text)
		if (m == nil) == (err == nil) {
			t.Fatal("neither a manifest nor an error, or both")
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a": [1, -2, 1.5, "x", null, true]}`, `18446744073709551615`, `"\ud800"`, `1e400`, `[[[[1]]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		payload, err := FromJSON(text)
		if err != nil {
			return
		}
		if err := abi.Valid(payload); err != nil {
			return // nested deeper than messages may be, or text that is not UTF-8
		}
		if _, err := host.ToJSON(payload); err != nil {
			t.Fatalf("%s: % x: %v", text, payload, err)
		}
	})
}

// Input that does not come keeps nobody waiting.
func TestFeedEndsWhileReading(t *testing.T) {
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	in, out := io.Pipe()
	defer out.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (Feed{}).Run(ctx, sys, in); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Whoever feeds faster than an actor reads waits, and nothing is lost.
func TestFeedWaitsForRoom(t *testing.T) {
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	got := 0
	if _, err := sys.Spawn("slow", host.Func(func(*host.Context, host.Message) error { got++; return nil }).WithLimits(host.Limits{Mailbox: 2})); err != nil {
		t.Fatal(err)
	}
	const n = 500
	input := strings.Repeat(`{"to": "slow", "message": 1, "ask": false}`+"\n", n)
	if _, err := (Feed{}).Run(context.Background(), sys, strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	if dead := sys.View().Stats().DeadLetters; got != n || dead != 0 {
		t.Errorf("%d arrived, %d dead letters", got, dead)
	}
}

// The feed reports what is wrong with a line and goes on.
func TestFeed(t *testing.T) {
	sys, err := host.New(host.NewConfig("feed"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	if _, err := sys.Spawn("echo", host.Func(func(ctx *host.Context, m host.Message) error {
		var v any
		if err := m.Decode(&v); err != nil {
			return err
		}
		switch v {
		case "silent":
			return nil
		case "sorry":
			return ctx.ReplyError("sorry")
		}
		return ctx.Reply(v)
	})); err != nil {
		t.Fatal(err)
	}
	input := `{"to": "echo", "message": {"n": 9007199254740993}}

# a comment
{"to": "echo", "message": "silent"}
{"to": "/user/echo", "message": "sorry"}
{"to": "nobody", "message": 1}
{"to": "echo"}
nonsense
{"to": "echo", "message": 1, "asks": true}
{"wait": "idle"}
{"to": "echo", "message": 2, "ask": false}
`
	got := map[int]string{}
	stats, err := Feed{Answer: func(a Answer) {
		if a.Err != nil {
			got[a.Line] = a.Err.Error()
			return
		}
		text, _ := host.ToJSON(a.Payload)
		got[a.Line] = string(text)
	}}.Run(context.Background(), sys, strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{1: `{"n":9007199254740993}`, 4: "no answer", 5: "host: the actor replied with an error: sorry", 6: `line 6: there is no actor "nobody"`,
		7: `line 7: "message" is missing: a line is {"to": name, "message": value}`, 8: "line 8: not a message", 9: `line 9: not a message: unknown key "asks"; did you mean "ask"?`} {
		if !strings.HasPrefix(got[n], want) {
			t.Errorf("line %d: %s, want %s", n, got[n], want)
		}
	}
	if want := (FeedStats{Sent: 4, Answered: 1, Errors: 1, Unanswered: 1, Invalid: 4}); stats != want {
		t.Errorf("%+v, want %+v", stats, want)
	}
}
