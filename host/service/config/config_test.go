package config

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
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

func write(t testing.TB, dir, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path+".new", mode), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func say(t *testing.T, w *servicetest.World, who host.Ref, order string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	text, err := host.AskAs[string](ctx, w.System, who, order)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	return text
}

const files = `
db:
  host: db.example
  port: 5432
  ratio: 0.5
  tls: true
  hosts: [a, b]
  big: 18446744073709551615
empty: {}
`

func TestValues(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "base.yaml", files, 0o644)
	write(t, dir, "more.json", `{"db": {"host": "other.example"}, "wait": "90s", "null": null}`, 0o644)
	write(t, dir, "x.env", "# comment\nexport A_B=\"x\\ny\" # more\nC='$HOME'\nD=plain # no\nE=\n", 0o644)
	s := &Settings{
		Values:      map[string]string{"db.host": "first", "only.here": "yes", "flag": "true", "n": "12"},
		Files:       []File{{Path: "base.yaml"}, {Path: "more.json"}, {Path: "x.env", Prefix: "env."}, {Path: "gone.yaml", Optional: true}},
		Environment: map[string]string{"db.port": "PORT", "unset": "UNSET"},
	}
	env := &service.Env{Base: dir, Getenv: environment(map[string]string{"PORT": "6000"})}
	w := servicetest.New(t, Service, env, s, nil)
	a := w.Spawn("a", "config-user", Service.Grant(Grant{Keys: []string{"db.*", "env.*", "wait", "flag", "n", "only.here"}}, service.Bounds{}), nil)
	for order, want := range map[string]string{
		"string db.host": "other.example", "int db.port": "6000", "string db.ratio": "0.5", "bool db.tls": "true", "string db.big": "18446744073709551615",
		"string db.hosts": "bad_request: the value of db.hosts is not a single value: use Raw", "string env.A_B": "x\ny", "string env.C": "$HOME", "string env.D": "plain", "string env.E": "",
		"duration wait": "1m30s", "bool flag": "true", "int n": "12", "int wait": "bad_request: the value of wait is not a whole number",
		"string db.none": "not_found: there is no value for db.none", "string null": "denied: the key null; capabilities.config.keys in the manifest would allow it",
		"string db.*": `bad_request: "db.*" is not a key, such as db.host`, "string ../x": `bad_request: "../x" is not a key, such as db.host`,
		"list db.": "db.big db.host db.hosts db.port db.ratio db.tls false", "list e": "env.A_B env.C env.D env.E false", "list zzz": "false",
		"secret db.host none": "denied: the secret db.host; capabilities.config.secrets in the manifest would allow it",
	} {
		if got := say(t, w, a, order); got != want {
			t.Errorf("%s: %q, want %q", order, got, want)
		}
	}
}

// A file that changes is read again; who watches is told of what it may read; one that is broken
// changes nothing.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "c.yaml", "a: 1\nb: 1\nhidden: 1\n", 0o644)
	var log bytes.Buffer
	var mu sync.Mutex
	w := servicetest.New(t, Service, &service.Env{Base: dir, Log: slog.New(slog.NewTextHandler(&locked{&mu, &log}, nil))}, &Settings{Files: []File{{Path: "c.yaml", Watch: true}}}, nil)
	g := Service.Grant(Grant{Keys: []string{"a", "b"}}, service.Bounds{})
	x, y := w.Spawn("x", "config-user", g, nil), w.Spawn("y", "config-user", g, nil)
	for who, order := range map[host.Ref]string{x: "watch *", y: "watch b c*"} {
		if got := say(t, w, who, order); got != "watches" {
			t.Error(got)
		}
	}
	until := func(who host.Ref, order, want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if got = say(t, w, who, order); got == want {
				return
			}
		}
		t.Fatalf("%s: %q, want %q", order, got, want)
	}
	write(t, dir, "c.yaml", "a: 2\nb: 1\nhidden: 2\n", 0o644)
	until(x, "changes", "a ")
	if got := say(t, w, x, "int a") + say(t, w, y, "changes"); got != "2" {
		t.Error(got)
	}
	write(t, dir, "c.yaml", "a: [", 0o644)
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		mu.Lock()
		text := log.String()
		mu.Unlock()
		if strings.Contains(text, "stay as they were") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(text)
		}
	}
	if got := say(t, w, x, "int a"); got != "2" {
		t.Error(got)
	}
	if err := w.Operate().Restart(x); err != nil { // watching outlives it
		t.Fatal(err)
	}
	write(t, dir, "c.yaml", "a: 2\n", 0o644)
	until(x, "changes", "b ")
	until(y, "changes", "b ")
	w.Stop(y)
	write(t, dir, "c.yaml", "a: 2\nb: 7\n", 0o644)
	until(x, "changes", "b b ")
}

type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// vault is a provider of an embedder's.
type vault struct{}

func (vault) Secret(ctx context.Context, key string) ([]byte, error) {
	switch key {
	case "vault.good":
		return []byte("from the vault of Go"), nil
	case "vault.slow":
		<-ctx.Done()
		return nil, ctx.Err()
	case "vault.short":
		return []byte("abc"), nil
	case "vault.bad":
		return nil, errors.New("token hunter2 was refused")
	}
	return nil, fmt.Errorf("%s: %w", key, ErrNoSecret)
}

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "password", "from the file\r\n", 0o600)
	write(t, dir, "shared", "open to others", 0o644)
	kind := New(map[string]Provider{"vault": vault{}})
	s := &Settings{Secrets: map[string]Secret{
		"file": {File: "password"}, "shared": {File: "shared", Shared: true}, "env": {Env: "PASSWORD"}, "absent": {Env: "ABSENT", Optional: true},
		"vault.good": {Provider: "vault"}, "vault.slow": {Provider: "vault"}, "vault.short": {Provider: "vault"}, "vault.bad": {Provider: "vault"}, "vault.none": {Provider: "vault"},
	}}
	env := &service.Env{Base: dir, Getenv: environment(map[string]string{"PASSWORD": "from the environment"})}
	w := servicetest.New(t, kind, env, s, nil)
	a := w.Spawn("a", "service-asker", kind.Grant(Grant{Secrets: []string{"*"}}, service.Bounds{Timeout: time.Second}), nil)
	b := w.Spawn("b", "service-asker", kind.Grant(Grant{Secrets: []string{"vault.?ood"}, Keys: []string{"*"}}, service.Bounds{}), nil)
	get := func(who host.Ref, op, key string) string {
		if op == "get" {
			var v any
			if err := w.Request(who, op, map[string]string{"key": key}, &v); err != nil {
				return err.Error()
			}
			return fmt.Sprint(v)
		}
		var v []byte
		if err := w.Request(who, op, map[string]string{"key": key}, &v); err != nil {
			return err.Error()
		}
		return string(v)
	}
	for key, want := range map[string]string{
		"file": "from the file", "shared": "open to others", "env": "from the environment", "vault.good": "from the vault of Go",
		"absent": "not_found: the secret absent is missing", "vault.none": "not_found: the secret vault.none is missing",
		"vault.slow": "timeout: ", "vault.short": "unavailable: the secret vault.short cannot be redacted: a secret must have at least 6 bytes",
		"vault.bad": "unavailable: the secret vault.bad cannot be read; the log says why", "unknown": "not_found: there is no secret unknown",
		"*": "bad_request: ", "../password": "bad_request: ",
	} {
		if got := get(a, "secret", key); got != want && !(strings.HasSuffix(want, " ") && strings.HasPrefix(got, want)) && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{"vault.good": "from the vault of Go", "file": "denied: ", "vault.none": "denied: "} {
		if got := get(b, "secret", key); !strings.HasPrefix(got, want) {
			t.Errorf("b, %s: %q", key, got)
		}
	}
	if got := get(b, "get", "file"); !strings.HasPrefix(got, "not_found") { // a secret is no value
		t.Error(got)
	}
	// A secret that was replaced is had at the next request, and both are hidden.
	write(t, dir, "password", "another one", 0o600)
	if got := get(a, "secret", "file"); got != "another one" {
		t.Error(got)
	}
	if got := w.Redaction().Text("from the file, another one"); got != "*************, ***********" {
		t.Error(got)
	}
	write(t, dir, "password", "yet another", 0o644)
	if got := get(a, "secret", "file"); !strings.HasPrefix(got, "unavailable: ") {
		t.Error(got)
	}
	f := w.Spawn("forwarder", "service-forwarder", kind.Grant(Grant{Secrets: []string{"*"}}, service.Bounds{}), "config")
	_, err := w.Ask(t.Context(), a, []any{uint64(f.UID()), "secret", map[string]any{"key": "env"}})
	if err == nil || !strings.Contains(err.Error(), "denied: config is not granted") {
		t.Error(err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "group", "a secret for all", 0o640)
	write(t, dir, "writable", "a secret for all", 0o602)
	write(t, dir, "short", "abc", 0o600)
	write(t, dir, "a.yaml", "x: &a [1]\ny: *a\n", 0o600)
	write(t, dir, "b.yaml", "- 1\n", 0o600)
	write(t, dir, "c.json", `{"a": {"b": 1}, "a.b": 2}`, 0o600)
	write(t, dir, "d.yaml", "'a b': 1\n", 0o600)
	write(t, dir, "e.env", "A\n", 0o600)
	write(t, dir, "f.yaml", "a: 1\n---\na: 2\n", 0o600)
	write(t, dir, "g.yaml", "a: !!binary aGVsbG8=\n", 0o600)
	write(t, dir, "h.yaml", "a: 1\na: 2\n", 0o600)
	write(t, dir, "i.yaml", "a: "+strings.Repeat("x", MaxFile), 0o600)
	write(t, dir, "j.yaml", "a: \xff\n", 0o600)
	secret := func(x Secret) Settings { return Settings{Secrets: map[string]Secret{"x": x}} }
	file := func(f File) Settings { return Settings{Files: []File{f}} }
	for _, c := range []struct {
		s    Settings
		says string
	}{
		{secret(Secret{File: "group"}), "others can read it"}, {secret(Secret{File: "writable"}), "others can change it"},
		{secret(Secret{File: "writable", Shared: true}), "others can change it"}, {secret(Secret{File: "short"}), "at least 6 bytes"},
		{secret(Secret{File: "none"}), "missing"}, {secret(Secret{Env: "NONE"}), "missing"}, {secret(Secret{}), "one of file, env and provider"},
		{secret(Secret{Env: "A", File: "b"}), "one of file, env and provider"}, {secret(Secret{Provider: "p"}), "no provider"}, {secret(Secret{Env: "A=B"}), "not the name of a variable"},
		{secret(Secret{File: ".", Shared: true}), "not a regular file"},
		{file(File{Path: "a.yaml"}), "anchors"}, {file(File{Path: "b.yaml"}), "an object with keys"}, {file(File{Path: "c.json"}), "comes twice"}, {file(File{Path: "d.yaml"}), "is not a key"},
		{file(File{Path: "e.env"}), "line 1: it is not NAME=value"}, {file(File{Path: "f.yaml"}), "more than one document"}, {file(File{Path: "g.yaml"}), "the tag"},
		{file(File{Path: "h.yaml"}), ""}, {file(File{Path: "i.yaml"}), "larger"}, {file(File{Path: "j.yaml"}), "UTF-8"}, {file(File{Path: "none.yaml"}), "no such file"},
		{file(File{Path: "x"}), "does not say which"}, {file(File{Path: "a.yaml", Prefix: "/"}), "prefix"}, {file(File{Path: "\x00.yaml"}), "the name of a file"}, {file(File{}), "the name of a file"},
		{Settings{Values: map[string]string{"a..b": ""}}, "is not a key"}, {Settings{Environment: map[string]string{"a": "B C"}}, "not the name of a variable"},
	} {
		sys, err := host.New(host.NewConfig("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Service.Start(sys, &service.Env{Base: dir, Getenv: environment(nil)}, &c.s)
		if err == nil || !strings.Contains(err.Error(), c.says) && !errors.Is(err, service.ErrNoState) {
			if !strings.Contains(fmt.Sprint(errors.Unwrap(err)), c.says) {
				t.Errorf("%+v: %v, want %q", c.s, err, c.says)
			}
		}
		if err != nil && strings.Contains(err.Error(), "a secret for all") {
			t.Error(err)
		}
		_ = sys.Close(t.Context())
	}
	for _, g := range []Grant{{Keys: []string{"a b"}}, {Secrets: []string{""}}} {
		if err := Service.CheckGrant(&g); err == nil {
			t.Errorf("%+v", g)
		}
	}
}

// traces keeps what is said of spans.
type traces struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *traces) Begin(s *host.SpanStart) host.Span {
	x.mu.Lock()
	defer x.mu.Unlock()
	fmt.Fprintf(&x.b, "%+v\n", *s)
	return x
}
func (x *traces) Knows([16]byte) bool                                         { return false }
func (x *traces) Of(context.Context) host.TraceContext                        { return host.TraceContext{} }
func (x *traces) In(ctx context.Context, _ host.TraceContext) context.Context { return ctx }
func (x *traces) Context() host.TraceContext {
	return host.TraceContext{TraceID: [16]byte{7}, SpanID: [8]byte{7}, Flags: 1}
}
func (x *traces) End(e *host.SpanEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fmt.Fprintf(&x.b, "%+v %v %v\n", *e, e.Failure, e.Err)
}

const password = `hunter2-"correct horse"-é`

// A guest does with a secret whatever may make the host show it: it must be nowhere.
func TestSecretIsNowhere(t *testing.T) {
	tracer := &traces{}
	var log bytes.Buffer
	var mu sync.Mutex
	out := &locked{&mu, &log}
	env := &service.Env{Getenv: environment(map[string]string{"PASSWORD": password, "NAME": "swordfish-fillet"}), Log: slog.New(slog.NewTextHandler(out, nil))}
	w := servicetest.New(t, Service, env, &Settings{Secrets: map[string]Secret{"pw": {Env: "PASSWORD"}, "name": {Env: "NAME"}}}, func(c host.Config) host.Config {
		return c.WithTracer(tracer).WithLog(slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	})
	events := w.Subscribe(100_000, nil)
	obs := observe.New(w.System, observe.Options{})
	defer obs.Close()
	props := host.GuestOf(servicetest.Module(t), "config-user").WithGrant("config", Service.Grant(Grant{Secrets: []string{"pw", "name"}}, service.Bounds{})).
		WithCrashedMessage(host.DeadLetterCrashed()).WithCapabilities(host.Capabilities{Spawn: []string{"*"}, Send: []string{"/user/**"}})
	a, err := w.System.Spawn("a", props)
	if err != nil {
		t.Fatal(err)
	}
	deaf, err := w.System.Spawn("deaf", host.GuestOf(servicetest.Module(t), "config-deaf").WithLimits(host.Limits{Mailbox: 4}))
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	stop := []func(){}
	for _, ref := range []host.Ref{a, deaf} {
		for _, most := range []int{16, 1 << 20} {
			end, err := w.View().Tap(ref, most, func(m *host.Tapped) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&shown, "%s %s %v ", m.Payload, m.Path, m.Failure)
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			stop = append(stop, end)
		}
	}
	if end, err := w.View().SampleFlow(1000, func(f *host.Flowed) {}); err == nil {
		stop = append(stop, end)
	}
	if end, err := w.View().SampleFuel(1000, func(f *host.FuelSample) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&shown, "%+v", *f)
	}); err == nil {
		stop = append(stop, end)
	}
	for _, what := range []string{"log", "exit", "error", "panic", "send /user/deaf", "send /user/nobody", "spawn", "timer", "none", "log"} {
		if what == "panic" || what == "error" || what == "exit" { // nobody is answered
			before, _ := w.View().Info(a)
			if err := w.Tell(a, "secret pw "+what); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
				if now, _ := w.View().Info(a); now.Crashes > before.Crashes {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal(what, " has not failed")
				}
			}
			continue
		}
		got := say(t, w, a, "secret pw "+what)
		mu.Lock()
		fmt.Fprintln(&shown, what) // what an ask ends with is the actor's answer to who has asked
		mu.Unlock()
		if strings.HasPrefix(got, "denied") || strings.HasPrefix(got, "unavailable") {
			t.Fatal(what, got)
		}
	}
	say(t, w, a, "secret name spawn") // as the name of an actor
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	quiet, done := context.WithTimeout(ctx, 300*time.Millisecond) // a timer stays
	_ = w.Idle(quiet)
	done()
	if _, err := w.Lookup("/user/a/child"); err != nil {
		t.Error("the child is not there:", err)
	}
	// All that looks.
	look := func(v any, err error) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&shown, "%+v %v\n", v, err)
	}
	for _, ref := range w.Select("/user/**") {
		look(w.View().Info(ref))
		look(w.View().Inspect(ctx, ref))
		i, _ := w.View().Info(ref)
		if i.Failure != nil {
			look(i.Failure.Failure, nil)
		}
	}
	asJSON := func(v any, err error) {
		j, bad := json.Marshal(v)
		look(string(j), errors.Join(err, bad))
	}
	for _, path := range []string{"/user/a", "/user/deaf", "/user/a/child"} {
		asJSON(obs.Actor(path))
	}
	asJSON(obs.Actors(observe.Query{}))
	asJSON(obs.Tree(observe.TreeQuery{}))
	asJSON(obs.DeadLetters(observe.DeadQuery{}))
	asJSON(obs.System(), nil)
	look(w.View().Tree(), nil)
	look(w.View().Stats(), nil)
	letters, n := w.DeadLetters()
	if n == 0 {
		t.Error("no dead letters")
	}
	for _, l := range letters {
		look(string(l.Payload), nil)
		whole, err := w.DeadLetter(l.ID)
		look(string(whole.Payload), err)
		j, err := host.ToJSON(whole.Payload)
		look(string(j), err)
	}
	for _, end := range stop {
		end()
	}
	failed, refused := 0, 0
	w.End()
	for e := range events.C() {
		switch e.Kind {
		case host.EventFailed:
			failed++
		case host.EventRefused:
			refused++
		}
		j, err := e.MarshalJSON()
		look(string(j), err)
		look(e.Report(), nil)
		look(e, nil)
		if e.Dead != nil {
			look(*e.Dead, nil)
			look(string(e.Dead.Payload), nil)
		}
		if e.Mail != nil {
			look(string(e.Mail.Payload), nil)
		}
		if e.Failure != nil {
			look(*e.Failure, nil)
		}
		if e.Refused != nil {
			look(*e.Refused, nil)
		}
	}
	if failed < 3 || refused == 0 {
		t.Errorf("%d failures, %d refusals: the test has not seen what it is about", failed, refused)
	}
	look(w.Cause(), nil)
	mu.Lock()
	defer mu.Unlock()
	tracer.mu.Lock()
	defer tracer.mu.Unlock()
	for name, text := range map[string]string{"log": log.String(), "shown": shown.String(), "traces": tracer.b.String()} {
		if len(text) < 100 {
			t.Errorf("%s: %q", name, text)
		}
		for form, secret := range map[string]string{
			"raw": password, "the other one": "swordfish-fillet", "its beginning": password[:8], "its end": password[12:], "hex": hex.EncodeToString([]byte(password)),
			"base64": base64.StdEncoding.EncodeToString([]byte(password))[:20], "base64 of user:password": base64.StdEncoding.EncodeToString([]byte("user:" + password))[8:28],
			"quoted": strings.Trim(fmt.Sprintf("%q", password), `"`), "decimal": strings.Trim(fmt.Sprint([]byte(password)), "[]")[:40],
		} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has the secret, %s: %q", name, form, text[max(at-200, 0):min(at+80, len(text))])
			}
		}
	}
	if !strings.Contains(log.String(), "*****") || !strings.Contains(shown.String(), "*****") {
		t.Error("nothing was hidden")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("yaml", []byte(files))
	f.Add("json", []byte(`{"a": {"b": [1, 2.5, null]}}`))
	f.Add("env", []byte("export A=\"x\\n\" # c\nB='y'\n"))
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		switch format {
		case "yaml", "json", "env":
		default:
			return
		}
		got, err := parse(format, data)
		if err != nil {
			return
		}
		for key, v := range got {
			if _, err := host.Encode(v); err != nil {
				t.Fatalf("%q: %v", key, err)
			}
		}
	})
}

func TestFlood(t *testing.T) {
	w := servicetest.New(t, Service, &service.Env{}, &Settings{Values: map[string]string{"k": "v"}}, nil)
	servicetest.Flood(t, w.System, w.Running, Service.Grant(Grant{Keys: []string{"k"}}, service.Bounds{Rate: 1e6, Burst: 1e6}), "get", func(int) any {
		return map[string]any{"key": "k"}
	})
}
