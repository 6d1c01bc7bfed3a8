package durable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/sql"
)

// servicesEnv names the folder of a child that is killed.
const servicesEnv = "WASMACTORS_DURABLE_SERVICES"

func askService(name, op string, args any) []byte {
	m, err := cbor.Marshal([]any{op, args})
	if err != nil {
		panic(err)
	}
	return abi.AppendAsk(nil, 0, "/system/"+name, 7, uint64(time.Hour), nil, m)
}

var (
	addKV  = askService("kv", "add", map[string]any{"key": "count", "delta": 1})
	addSQL = askService("sql", "exec", map[string]any{"sql": "update c set n = n + 1"})
)

// counting are two actors. With each answer they count, and have a service count again.
func withServices(t testing.TB, dir string) *world {
	t.Helper()
	image := puppetImage(t)
	loop := func(name string, ask []byte) host.Props {
		return puppet(image, rec(byte(abi.KindReply), 0, send("/user/"+name, add), ask))
	}
	props := Props{
		"k": loop("k", addKV).WithGrant("kv", kv.Service.Grant(kv.Grant{Namespace: "n", Mode: "rw"}, service.Bounds{})),
		"s": loop("s", addSQL).WithGrant("sql", sql.Service.Grant(sql.Grant{Databases: map[string]string{"main": "rw"}}, service.Bounds{})),
	}
	store, err := Open(Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, dir: dir, props: props}
	x, err := store.Prepare(config(), props)
	if err != nil {
		t.Fatal(err)
	}
	w.System = x.System()
	env := func(name string) *service.Env {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		return &service.Env{StateDir: func() (string, error) { return at, nil }, Base: at, Log: slog.New(slog.DiscardHandler)}
	}
	if _, err := kv.Service.Start(w.System, env("kv"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := sql.Service.Start(w.System, env("sql"), &sql.Settings{Databases: map[string]sql.DatabaseSettings{"main": {File: "main.db"}}}); err != nil {
		t.Fatal(err)
	}
	back, err := x.Recover()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range props {
		if !back[name] {
			if _, err := w.Spawn(name, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	x.Release()
	if !back["k"] && !back["s"] {
		w.tell("s", script(rec(0, 0, askService("sql", "exec", map[string]any{"sql": "create table if not exists c as select 0 as n"}))))
		w.tell("k", script(rec(0, 0, addKV)))
		w.report("k")
		w.report("s") // then it has begun for good
	}
	return w
}

// TestKilledWithServices: a process is killed with SIGKILL again and again while two actors have kv and sql count. Each has as many
// answers as the service has counted.
func TestKilledWithServices(t *testing.T) {
	if dir := os.Getenv(servicesEnv); dir != "" {
		withServices(t, dir)
		fmt.Println("\nready")
		select {}
	}
	dir := t.TempDir()
	for range 6 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWithServices$")
		cmd.Env = append(os.Environ(), servicesEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			if strings.TrimSpace(line) == "ready" {
				break
			}
			if err != nil {
				t.Fatal("the child has ended: ", err)
			}
		}
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, in)
		_ = cmd.Wait()
	}
	w := withServices(t, dir)
	defer w.close()
	w.tell("k", script(rec(byte(abi.KindReply), 0, send("/user/k", add)))) // they do not go on
	w.tell("s", script(rec(byte(abi.KindReply), 0, send("/user/s", add))))
	kvCount, sqlCount := int64(-1), int64(-1)
	read := func() bool {
		k, s := w.report("k"), w.report("s")
		kvCount, sqlCount = w.counted(t)
		return byte(kvCount) == k && byte(sqlCount+1) == s
	}
	until(t, read)
	time.Sleep(50 * time.Millisecond)
	if !read() {
		t.Errorf("kv has counted %d, and k %d; sql has counted %d, and s %d", kvCount, w.report("k"), sqlCount+1, w.report("s"))
	}
	t.Logf("kv has counted %d, sql %d", kvCount, sqlCount+1)
	if kvCount < 20 || sqlCount < 20 {
		t.Error("too little has happened")
	}
}

// counted is what the services have counted.
func (w *world) counted(t *testing.T) (kvCount, sqlCount int64) {
	t.Helper()
	got := make(chan map[string]any, 2)
	reader := host.Native(func() host.Actor {
		return receiver(func(ctx *host.Context, m host.Message) error {
			if m.Kind == abi.KindMessage {
				kvRef, _ := ctx.Service("kv")
				sqlRef, _ := ctx.Service("sql")
				return errorsJoin(ctx.Ask(kvRef, []any{"get", map[string]any{"key": "count"}}, 1, time.Minute),
					ctx.Ask(sqlRef, []any{"query", map[string]any{"sql": "select n from c"}}, 2, time.Minute))
			}
			var out map[string]any
			if err := m.Decode(&out); err != nil {
				return err
			}
			got <- out
			return nil
		})
	}).WithGrant("kv", kv.Service.Grant(kv.Grant{Namespace: "n"}, service.Bounds{})).
		WithGrant("sql", sql.Service.Grant(sql.Grant{Databases: map[string]string{"main": "ro"}}, service.Bounds{}))
	ref, err := w.Spawn("", reader)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop(ref)
	if err := w.Tell(ref, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case m := <-got:
			if n, ok := m["count"]; ok {
				kvCount = number(n)
			}
			if rows, ok := m["rows"].([]any); ok {
				sqlCount = number(rows[0].([]any)[0])
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no answer")
		}
	}
	return kvCount, sqlCount
}

func number(v any) int64 {
	switch n := v.(type) {
	case uint64:
		return int64(n)
	case int64:
		return n
	}
	return -1 << 40
}

func errorsJoin(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

type receiver func(*host.Context, host.Message) error

func (r receiver) Receive(ctx *host.Context, m host.Message) error { return r(ctx, m) }

// here is an internet of one server.
type here struct{}

func (h here) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// TestRequestsOverHTTPHaveKeys: a request of a durable actor carries its key, the same when it is sent again, unless the guest has set
// one, or the method is safe.
func TestRequestsOverHTTPHaveKeys(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Method+r.URL.Path] = append(seen[r.Method+r.URL.Path], r.Header.Get("Idempotency-Key"))
		mu.Unlock()
		<-r.Context().Done() // it never answers
	}))
	defer server.Close()
	kind := httpclient.New(httpclient.Options{Resolver: here{}, Connect: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}})
	grant := kind.Grant(httpclient.Grant{Hosts: []string{"http://shop.example"}, Methods: []string{"*"}}, service.Bounds{})
	image := puppetImage(t)
	volatile := host.Guest(image, "puppet").WithArgs(script()).WithCapabilities(host.Capabilities{Send: []string{"/**"}})
	props := Props{"a": puppet(image).WithGrant("http", grant)}
	start := func(dir string) *world {
		store, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, store: store, dir: dir, props: props}
		x, err := store.Prepare(config(), props)
		if err != nil {
			t.Fatal(err)
		}
		w.System = x.System()
		if _, err := kind.Start(w.System, nil, nil); err != nil {
			t.Fatal(err)
		}
		back, err := x.Recover()
		if err == nil && !back["a"] {
			_, err = w.Spawn("a", props["a"])
		}
		if err == nil {
			_, err = w.Spawn("v", volatile.WithGrant("http", grant))
		}
		if err != nil {
			t.Fatal(err)
		}
		x.Release()
		return w
	}
	do := func(n uint64, method, path string, headers ...[]string) []byte {
		m, _ := cbor.Marshal([]any{"do", map[string]any{"url": "http://shop.example" + path, "method": method, "headers": headers}})
		return abi.AppendAsk(nil, 0, "/system/http", n, uint64(time.Hour), nil, m)
	}
	w := start(t.TempDir())
	w.tell("v", script(rec(0, 0, do(1, "POST", "/volatile"))))
	w.tell("a", script(rec(0, 0, do(1, "POST", "/a"), do(2, "PUT", "/b"), do(3, "GET", "/c"))))
	w.tell("a", script(rec(0, 0, do(4, "POST", "/own", []string{"idempotency-key", "mine"}))))
	count := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, keys := range seen {
			n += len(keys)
		}
		return n
	}
	until(t, func() bool { return count() == 5 })
	dir := w.killed()
	w.close()
	w = start(dir)
	until(t, func() bool { return count() == 9 })
	w.close()
	key := regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)
	mu.Lock()
	defer mu.Unlock()
	a, b := seen["POST/a"], seen["PUT/b"]
	if len(a) != 2 || len(b) != 2 || a[0] != a[1] || b[0] != b[1] || a[0] == b[0] || !key.MatchString(a[0]) || !key.MatchString(b[0]) {
		t.Errorf("%q, %q", a, b)
	}
	if got := fmt.Sprintf("%q%q%q", seen["GET/c"], seen["POST/own"], seen["POST/volatile"]); got != `["" ""]["mine" "mine"][""]` {
		t.Error(got)
	}
}
