package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
)

func TestMain(m *testing.M) {
	runtime.CompileMain() // modules compile in processes of their own, as in main
	if os.Getenv("WASMACTORS_TEST_MAIN") != "" {
		main()
	}
	testscript.Main(leakChecked{m}, map[string]func(){"wasmactors": func() {
		time.AfterFunc(longestCommand, func() {
			debug.SetTraceback("all")
			panic("a command of a script hangs")
		})
		os.Exit(mainCode())
	}})
}

// longestCommand is how long a command of a script may take. One that takes longer panics, and so
// shows where it hangs. The script's own limit would end only the shell that has started it.
const longestCommand = 4 * time.Minute

// leakChecked are tests that leave no goroutine.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	dir, err := os.MkdirTemp("", "wa")
	if err == nil {
		err = os.Setenv("XDG_RUNTIME_DIR", dir) // the sockets of those who run the tests are theirs
	}
	if err != nil {
		panic(err)
	}
	// A shell's background job ignores an interrupt, and so would the processes that tests start.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	code := l.m.Run()
	os.RemoveAll(dir)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// testCache is shared by the tests of all packages, so that guests are built once.
var testCache = servicetest.CacheDir()

// try runs the command in this process.
func try(t *testing.T, ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("WASMACTORS_CACHE_DIR", testCache)
	var out, errs bytes.Buffer
	code = run(ctx, nil, append([]string{"wasmactors"}, args...), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func bundleOf(t *testing.T, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bundle.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func echoBundle(t *testing.T, more string) string {
	t.Helper()
	dir := bundleOf(t, "wasmactors: 1\nname: echo\nmodules: {m: {wasm: echo.wasm}}\nactors: {e: {type: m/echo}}\n"+more)
	if err := os.WriteFile(filepath.Join(dir, "echo.wasm"), []byte(mustRead(t, "../../host/testdata/echo.wasm")), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExitCodes(t *testing.T) {
	ctx := context.Background()
	missing := filepath.Join(t.TempDir(), "missing")
	broken := bundleOf(t, "wasmactors: 1\nnam: x\n")
	misspelt := echoBundle(t, "")
	if err := os.WriteFile(filepath.Join(misspelt, "bundle.yaml"), []byte("wasmactors: 1\nname: echo\nmodules: {m: {wasm: echo.wasm}}\nactors: {e: {type: m/ehco}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	notWasm := filepath.Join(t.TempDir(), "not.wasm")
	if err := os.WriteFile(notWasm, []byte("no"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string // on either output
	}{
		{"help", []string{"help"}, 0, "run actors in WebAssembly sandboxes"},
		{"no arguments", nil, 0, "run actors"},
		{"version", []string{"version"}, 0, "ABI 1, wazero v1"},
		{"help of a command", []string{"run", "--help"}, 0, "second Ctrl-C kills"},
		{"unknown command", []string{"rnu"}, 2, `there is no command "rnu"`},
		{"unknown flag", []string{"run", "--inputs", "x"}, 2, "flag provided but not defined"},
		{"two bundles", []string{"run", "a", "b"}, 2, "takes one argument"},
		{"no bundle", []string{"run", missing}, 2, "there is no such bundle"},
		{"no manifest", []string{"check", t.TempDir()}, 2, "holds no bundle.yaml"},
		{"wrong manifest", []string{"run", broken}, 2, `bundle.yaml:2:1: unknown key "nam" in the manifest; did you mean "name"?`},
		{"wrong compiler", []string{"build", broken, "--compiler", "gcc"}, 2, "auto, go or tinygo"},
		{"wrong type", []string{"check", misspelt}, 2, `has no type "ehco"; did you mean "echo"?`},
		{"not a module", []string{"inspect", notWasm}, 1, "not a WebAssembly module"},
		{"check", []string{"check", echoBundle(t, "")}, 0, "is fine: 1 module, 1 actor"},
		{"inspect", []string{"inspect", echoBundle(t, "")}, 0, "actor /user/e: m/echo"},
		{"cache", []string{"cache"}, 0, "images"},
		{"no input file", []string{"run", echoBundle(t, ""), "--input", missing}, 2, "--input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := try(t, ctx, "", c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit code %d, want %d with %q\n%s%s", code, c.code, c.says, stdout, stderr)
			}
		})
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRunAnswersInJSON(t *testing.T) {
	input := "{\"to\": \"e\", \"message\": {\"a\": [1, \"x\"]}}\n{\"to\": \"e\", \"message\": 0}\n{\"to\": \"e\", \"message\": 5}\noops\n"
	code, stdout, stderr := try(t, context.Background(), input, "run", echoBundle(t, ""), "--input", "-", "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	for _, want := range []string{`{"line":1,"to":"e","kind":"reply","from":"/user/e","reply":{"a":[1,"x"]}}`, `{"line":2,"to":"e","kind":"failed","reason":"/user/e has failed: trap: unreachable"}`, `{"line":3,"to":"e","kind":"reply","from":"/user/e","reply":5}`, `{"line":4,"kind":"invalid","reason":"not a message`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %s in\n%s", want, stdout)
		}
	}
	var failed, summary bool
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		var e struct {
			Event, Directive string
			Failure          *struct{ Kind string }
			Crashes          int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		failed = failed || e.Event == "failed" && e.Directive == "restart" && e.Failure.Kind == "trap"
		summary = summary || e.Event == "summary" && e.Crashes == 1
	}
	if !failed || !summary {
		t.Errorf("events:\n%s", stderr)
	}
}

func TestInputErrorsCanStop(t *testing.T) {
	code, _, stderr := try(t, context.Background(), "oops\n", "run", echoBundle(t, ""), "--input", "-", "--on-input-error", "stop", "-q")
	if code != 2 || !strings.Contains(stderr, "line 1: not a message") {
		t.Errorf("%d %s", code, stderr)
	}
}

// An escalation to the top fails the bundle.
func TestBundleThatFails(t *testing.T) {
	code, _, stderr := try(t, context.Background(), "{\"to\": \"e\", \"message\": 0}\n", "run", echoBundle(t, "supervision: {otherwise: escalate, decide: []}\n"), "--input", "-")
	if code != 1 || !strings.Contains(stderr, "the bundle has failed: trap") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestForEndsTheRun(t *testing.T) {
	if code, _, stderr := try(t, context.Background(), "", "run", echoBundle(t, ""), "--for", "50ms"); code != 0 {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestInterruptEndsOrderly(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	code, _, stderr := try(t, ctx, "", "run", echoBundle(t, ""))
	if code != 130 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// A run whose input stays open ends at once, too.
func TestInterruptWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	defer out.Close()
	var stdout, stderr bytes.Buffer
	go func() {
		_, _ = out.Write([]byte("# nothing yet\n"))
		cancel()
	}()
	t.Setenv("WASMACTORS_CACHE_DIR", testCache)
	if code := run(ctx, nil, []string{"wasmactors", "run", echoBundle(t, ""), "--input", "-"}, in, &stdout, &stderr); code != 130 {
		t.Errorf("exit code %d\n%s", code, &stderr)
	}
}

// From nothing to answers, as a new user would.
func TestNewBuildRun(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	dir := filepath.Join(t.TempDir(), "fresh")
	ctx := context.Background()
	if code, out, stderr := try(t, ctx, "", "new", dir); code != 0 || !strings.Contains(out, "wasmactors run") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	if code, out, stderr := try(t, ctx, "", "build", dir, "--compiler", "go"); code != 0 || !strings.Contains(out, "built with go") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	if code, out, stderr := try(t, ctx, "", "build", dir, "--compiler", "go"); code != 0 || !strings.Contains(out, "up to date") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	code, out, stderr := try(t, ctx, "", "run", dir, "--compiler", "go", "-i", filepath.Join(dir, "input.ndjson"))
	if code != 0 || !strings.Contains(out, `"reply":101}`) || !strings.Contains(out, `"reply":400}`) || !strings.Contains(stderr, "I count numbers only") {
		t.Errorf("%d\n%s\n%s", code, out, stderr)
	}
	if code, out, stderr := try(t, ctx, "", "test", dir, "--compiler", "go"); code != 0 || !strings.Contains(out, "ok") {
		t.Errorf("%d\n%s\n%s", code, out, stderr)
	}
	// A mistake in the guest is shown as the compiler says it.
	main := filepath.Join(dir, "guest", "main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() { oops }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := try(t, ctx, "", "run", dir, "--compiler", "go"); code != 1 || !strings.Contains(stderr, "main.go:3:15: undefined: oops") {
		t.Errorf("%d %s", code, stderr)
	}
}

// From nothing to a request that the actor of a key has answered: what a new user types is in lines, and they are few.
func TestNewToAFirstRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	const mostTyped = 20
	dir := filepath.Join(t.TempDir(), "first")
	typed := 0
	enter := func(args ...string) (int, string, string) {
		typed++
		return try(t, context.Background(), "", args...)
	}
	if code, out, stderr := enter("new", "--template", "web", dir); code != 0 || !strings.Contains(out, "wasmactors run "+dir+" --allow listen=localhost:8080") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	if code, out, stderr := enter("test", dir, "--compiler", "go"); code != 0 {
		t.Fatalf("%d\n%s\n%s", code, out, stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stdout, stderr syncBuffer
	ended := make(chan int, 1)
	typed++ // in another terminal, or with & behind it
	t.Setenv("WASMACTORS_CACHE_DIR", testCache)
	t.Setenv("LISTEN", "127.0.0.1:0")
	go func() {
		ended <- run(ctx, nil, []string{"wasmactors", "run", dir, "--compiler", "go", "--env", "LISTEN", "--allow", "listen=127.0.0.1:0", "--state", "none"}, strings.NewReader(""), &stdout, &stderr)
	}()
	at := regexp.MustCompile(` is up .*http=(\S+)`)
	var address string
	for until := time.Now().Add(2 * time.Minute); address == ""; time.Sleep(10 * time.Millisecond) {
		if m := at.FindStringSubmatch(stderr.String()); m != nil {
			address = m[1]
		} else if time.Now().After(until) {
			t.Fatalf("it does not listen\n%s", stderr.String())
		}
		select {
		case code := <-ended:
			t.Fatalf("it has ended: %d\n%s", code, stderr.String())
		default:
		}
	}
	typed++ // curl
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/users/ann")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK || string(body) != "hello ann, visit 1\n" {
		t.Errorf("%d %s %v", res.StatusCode, body, err)
	}
	if typed > mostTyped {
		t.Errorf("%d lines were typed", typed)
	}
	cancel()
	<-ended
}

// Row A01 of the semantics: the run ends when the main actor has. That it has failed is
// no success.
func TestA01_TheRunEndsWithItsMainActor(t *testing.T) {
	failing := strings.Join([]string{`{"to": "e", "message": 0}`, `{"to": "e", "message": 1}`}, "\n")
	code, stdout, stderr := try(t, context.Background(), failing, "run", echoBundle(t, "run: {main: e}\nsupervision: {otherwise: stop}\n"), "--input", "-")
	if code != 1 || !strings.Contains(stderr, "/user/e has failed and was stopped: trap: unreachable") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
