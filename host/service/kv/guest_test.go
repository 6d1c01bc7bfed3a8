package kv

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/race"
)

// world is a system with the service and guests of standard Go.
type world struct {
	*servicetest.World
	t     *testing.T
	clock *host.VirtualClock
}

func newWorld(t *testing.T, set *Settings, dir string) *world {
	t.Helper()
	if testing.Short() && race.Enabled {
		t.Skip("the guest takes half a minute to load")
	}
	w := &world{t: t, clock: host.NewVirtualClock(time.Unix(1e9, 0))}
	env := &service.Env{Clock: w.clock}
	if dir != "" {
		env.StateDir = func() (string, error) { return dir, nil }
	}
	if set == nil {
		set = &Settings{}
	}
	w.World = servicetest.New(t, Service, env, set, nil)
	return w
}

func rw(namespace string) Grant { return Grant{Namespace: namespace, Mode: "rw"} }

func (w *world) user(name string, g any) host.Ref {
	if grant, ok := g.(Grant); ok {
		g = Service.Grant(grant, service.Bounds{})
	}
	return w.Spawn(name, "kv-user", g, nil)
}

func (w *world) say(who host.Ref, text string) string {
	w.t.Helper()
	out, err := host.AskAs[string](w.t.Context(), w.System, who, text)
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return out
}

// What a guest does through the SDK, in both stores, also after the run has ended and another
// one began.
func TestGuest(t *testing.T) {
	for _, store := range []string{"memory", "disk"} {
		t.Run(store, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, &Settings{Store: store}, dir)
			u := w.user("u", rw("orders"))
			expect := func(say, want string) {
				t.Helper()
				if got := w.say(u, say); !strings.HasPrefix(got, want) {
					t.Errorf("%s: got %q, want %q", say, got, want)
				}
			}
			expect("get k", "not_found: ")
			expect("put k v if=7", "conflict: ")
			first := w.say(u, "put k v if=absent")
			expect("put k v2 if=absent", "exists: ")
			expect("get k", "v "+first)
			expect("put k v2 if="+first, "")
			expect("get k", "v2 ")
			expect("put k v3 if="+first, "conflict: ")
			expect("delete k if="+first, "conflict: ")
			expect("delete k", "true")
			expect("delete k", "false")
			expect("add n 5", "5")
			expect("add n -7", "-2")
			expect("get n", "-2 ")
			expect("put short v ttl=2s", "")
			expect("get short", "v ")
			w.clock.Advance(2 * time.Second)
			expect("get short", "not_found: ")
			expect("burst b 100", "100 ")
			expect("hammer h 50", "50")
			for i := range 10 {
				expect(fmt.Sprintf("put l/%d %d", i, i), "")
			}
			expect("list l/", "l/0=0 l/1=1 l/2=2 l/3=3 l/4=4 l/5=5 l/6=6 l/7=7 l/8=8 l/9=9")
			expect("list l/ reverse", "l/9=9 l/8=8 l/7=7 l/6=6 l/5=5 l/4=4 l/3=3 l/2=2 l/1=1 l/0=0")
			expect("move l/0 m/0", "moved true 1")
			expect("move l/0 m/0", "nothing to move")
			expect("move l/1 m/0", "exists: ops[1]: ")
			expect("get l/1", "1 ") // it was not deleted
			expect("get moves", "1 ")
			if store == "memory" {
				return
			}
			w.End()
			w = newWorld(t, nil, dir)
			u = w.user("u", rw("orders"))
			expect("get m/0", "0 ")
			expect("get h", "50 ")
			again, _ := strconv.Atoi(w.say(u, "put k v"))
			if before, _ := strconv.Atoi(first); again <= before {
				t.Errorf("version %d after %d", again, before)
			}
		})
	}
}

// The table of errors, by the codes that the documentation gives.
func TestErrors(t *testing.T) {
	w := newWorld(t, nil, "")
	several := Service.Grant(Grant{Namespaces: []Space{{Namespace: "a", Mode: "rw"}, {Namespace: "b"}}}, service.Bounds{})
	askers := map[string]host.Ref{
		"rw": w.Asker("rw", Service.Grant(rw("n"), service.Bounds{})), "ro": w.Asker("ro", Service.Grant(Grant{Namespace: "n"}, service.Bounds{})),
		"several": w.Asker("several", several), "none": w.Asker("none", nil),
		"small": w.Asker("small", Service.Grant(Grant{Namespace: "small", Mode: "rw", Quota: 1024, Keys: 3}, service.Bounds{})),
	}
	type m = map[string]any
	value := []byte("v")
	if err := w.Request(askers["rw"], "put", m{"key": "there", "value": value}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Request(askers["rw"], "add", m{"key": "most", "delta": int64(1<<63 - 1)}, nil); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("k", MaxKey+1)
	for _, c := range []struct {
		who, op string
		args    any
		want    string // the beginning; "" is not an error
	}{
		{"none", "get", m{"key": "k"}, "denied: "},
		{"rw", "get", m{"key": "k"}, "not_found: "},
		{"rw", "get", m{"key": ""}, "bad_request: "},
		{"rw", "get", m{"key": "k", "namespace": "other"}, "denied: "},
		{"rw", "get", m{"key": "k", "namespace": "../n"}, "denied: "},
		{"rw", "get", m{"key": "k", "oops": 1}, "bad_request: "},
		{"rw", "get", m{"key": 7}, "bad_request: "},
		{"rw", "get", nil, "bad_request: "},
		{"rw", "get", []int{1}, "bad_request: "},
		{"rw", "get", m{"key": long}, "too_large: "},
		{"rw", "nothing", nil, "bad_request: "},
		{"rw", "put", m{"key": "k", "value": value}, ""},
		{"rw", "put", m{"key": "k"}, "bad_request: "},
		{"rw", "put", m{"key": "k", "value": "text"}, "bad_request: "},
		{"rw", "put", m{"key": "k", "value": make([]byte, MaxValue)}, ""},
		{"rw", "put", m{"key": "k", "value": make([]byte, MaxValue+1)}, "too_large: "},
		{"rw", "put", m{"key": "k", "value": value, "ttl": -1}, "bad_request: "},
		{"rw", "put", m{"key": "k", "value": value, "ttl": int64(1<<63 - 1)}, "bad_request: "},
		{"rw", "put", m{"key": "k", "value": value, "durability": "maybe"}, "bad_request: "},
		{"rw", "put", m{"key": "k", "value": value, "durability": "memory"}, ""},
		{"rw", "put", m{"key": "there", "value": value, "if_version": 0}, "exists: "},
		{"rw", "put", m{"key": "there", "value": value, "if_version": 1 << 60}, "conflict: "},
		{"rw", "put", m{"key": "there", "value": value, "if_version": -1}, "bad_request: "},
		{"rw", "delete", m{"key": "gone", "if_version": 3}, "conflict: "},
		{"rw", "delete", m{"key": "gone"}, ""},
		{"rw", "add", m{"key": "there", "delta": 1}, "conflict: "},
		{"rw", "add", m{"key": "most", "delta": 1}, "conflict: "},
		{"rw", "batch", m{"ops": []m{}}, "bad_request: "},
		{"rw", "batch", m{"ops": []m{{"op": "get", "key": "k"}}}, "bad_request: ops[0]"},
		{"rw", "batch", m{"ops": []m{{"op": "check", "key": "k"}}}, "bad_request: ops[0]"},
		{"rw", "batch", m{"ops": []m{{"op": "delete", "key": "k", "value": value}}}, "bad_request: ops[0]"},
		{"rw", "batch", m{"ops": []m{{"op": "put", "key": "k", "value": value, "delta": 1}}}, "bad_request: ops[0]"},
		{"rw", "batch", m{"ops": []m{{"op": "delete", "key": "k"}, {"op": "check", "key": "k", "if_version": 5}}}, "conflict: ops[1]"},
		{"rw", "batch", m{"ops": make([]m, MaxOps+1)}, "too_large: "},
		{"rw", "list", m{"limit": PageEntries + 1}, "bad_request: "},
		{"rw", "list", m{"limit": -1}, "bad_request: "},
		{"rw", "list", m{"prefix": long}, "too_large: "},
		{"rw", "list", m{"cursor": []byte("forged")}, "bad_request: "},
		{"rw", "list", m{"prefix": "a/", "cursor": append([]byte{1}, "b/1"...)}, "bad_request: "},
		{"rw", "list", m{"cursor": []byte{1, 0xff}}, "bad_request: "},
		{"rw", "list", nil, ""},
		{"rw", "usage", nil, ""},
		{"ro", "get", m{"key": "there"}, ""},
		{"ro", "put", m{"key": "k", "value": value}, "read_only: "},
		{"ro", "delete", m{"key": "k"}, "read_only: "},
		{"ro", "add", m{"key": "k", "delta": 1}, "read_only: "},
		{"ro", "batch", m{"ops": []m{{"op": "check", "key": "k", "if_version": 0}}}, "read_only: "},
		{"several", "get", m{"key": "k"}, "bad_request: namespace must be one of a, b"},
		{"several", "put", m{"namespace": "a", "key": "k", "value": value}, ""},
		{"several", "put", m{"namespace": "b", "key": "k", "value": value}, "read_only: "},
		{"several", "get", m{"namespace": "b", "key": "k"}, "not_found: "},
		{"several", "get", m{"namespace": "n", "key": "there"}, "denied: "},
		{"small", "put", m{"key": "1", "value": make([]byte, 1024)}, "quota: "},
		{"small", "batch", m{"ops": []m{{"op": "put", "key": "1", "value": value}, {"op": "put", "key": "2", "value": value}, {"op": "put", "key": "3", "value": value}, {"op": "put", "key": "4", "value": value}}}, "quota: "},
	} {
		var out any
		err := w.Request(askers[c.who], c.op, c.args, &out)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %s %.100v: %v", c.who, c.op, c.args, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s %s %.100v: got %v, want %s", c.who, c.op, c.args, err, c.want)
		}
	}
}

// A value of the largest size, and a page of them, fit into a guest's inbox.
func TestLargest(t *testing.T) {
	w := newWorld(t, nil, "")
	a := w.Asker("a", Service.Grant(rw("n"), service.Bounds{}))
	type m = map[string]any
	for i := range 5 {
		key := strings.Repeat("k", MaxKey-1) + fmt.Sprint(i)
		if err := w.Request(a, "put", m{"key": key, "value": bytes.Repeat([]byte{byte(i)}, MaxValue), "durability": "memory"}, nil); err != nil {
			t.Fatal(err)
		}
		var e struct{ Value []byte }
		if err := w.Request(a, "get", m{"key": key}, &e); err != nil || len(e.Value) != MaxValue {
			t.Fatal(len(e.Value), err)
		}
	}
	var page struct {
		Entries []struct{ Value []byte }
		Cursor  []byte
	}
	args := m{"values": true}
	for i := range 5 {
		page.Cursor, page.Entries = nil, nil
		if err := w.Request(a, "list", args, &page); err != nil || len(page.Entries) != 1 {
			t.Fatal(i, len(page.Entries), err)
		}
		args["cursor"] = page.Cursor
	}
	if page.Cursor != nil {
		t.Error("there is more")
	}
}

// Who watches is told, in order, until it or the watch ends; who is slow is told of a gap.
func TestWatchers(t *testing.T) {
	w := newWorld(t, nil, "")
	g := Service.Grant(rw("n"), service.Bounds{Bytes: 1 << 20})
	u := w.user("u", g)
	watcher := w.Spawn("watcher", "kv-watcher", g, "a/")
	seen := func(want string) {
		t.Helper()
		got := ""
		eventually(t, func() bool { got = w.say(watcher, "seen"); return got == want })
	}
	ref, err := host.AskAs[uint64](t.Context(), w.System, watcher, "watch")
	if err != nil {
		t.Fatal(err)
	}
	w.say(u, "put a/1 x")
	w.say(u, "put b/1 x")
	w.say(u, "delete a/1")
	w.say(u, "put a/2 y ttl=1s")
	seen("put:a/1=x delete:a/1= put:a/2=y")
	w.clock.Advance(sweepEvery)
	seen("put:a/1=x delete:a/1= put:a/2=y expire:a/2=")
	// The second watch of the same prefix takes the place of the first.
	again, err := host.AskAs[uint64](t.Context(), w.System, watcher, "watch")
	if err != nil || again == ref {
		t.Fatal(again, ref, err)
	}
	w.say(u, "put a/3 z")
	seen("put:a/1=x delete:a/1= put:a/2=y expire:a/2= put:a/3=z")
	p := w.Running.Provider().(*provider)
	open := func() int {
		p.store.told().mu.Lock()
		defer p.store.told().mu.Unlock()
		return len(p.store.told().watches)
	}
	eventually(t, func() bool { return open() == 1 })
	// More than is held back for it.
	if err := w.Operate().Pause(watcher, false); err != nil {
		t.Fatal(err)
	}
	missed := func() bool {
		p.store.told().mu.Lock()
		defer p.store.told().mu.Unlock()
		w := p.store.told().watches[0]
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.missed
	}
	eventually(t, func() bool { w.say(u, "burst a/x 100"); return missed() }) // some may be refused
	if err := w.Operate().Unpause(watcher, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return strings.Contains(w.say(watcher, "seen"), " gap") })
	eventually(t, func() bool { return !strings.HasPrefix(w.say(u, "put a/last v"), "busy: ") })
	eventually(t, func() bool { return strings.HasSuffix(w.say(watcher, "seen"), " put:a/last=v") })
	// Its grant bounds how many there are.
	if _, err := w.Ask(t.Context(), watcher, "die"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return open() == 0 })
	a := w.Asker("a", g)
	opened, refused := 0, 0
	for i := range 12 {
		err := w.Request(a, "watch", map[string]any{"prefix": fmt.Sprint(i)}, nil)
		switch {
		case err == nil:
			opened++
		case strings.HasPrefix(err.Error(), "busy: "):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if opened != 7 || refused != 5 { // 1 MiB of 128 KiB each, and the requests themselves
		t.Errorf("%d are open, %d were refused", opened, refused)
	}
	w.System.Stop(a)
	eventually(t, func() bool { return open() == 0 && len(p.watchers.of) == 0 })
}

// Counters of guests are exact, however many count at once.
func TestGuestsCount(t *testing.T) {
	w := newWorld(t, &Settings{Durability: "os"}, t.TempDir())
	g := Service.Grant(rw("n"), service.Bounds{})
	const users, each = 8, 50
	var wg sync.WaitGroup
	for i := range users {
		u := w.user(fmt.Sprint("u", i), g)
		wg.Go(func() {
			if _, err := host.AskAs[string](context.Background(), w.System, u, fmt.Sprintf("hammer n %d", each)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	u := w.user("u", g)
	if got := w.say(u, "get n"); !strings.HasPrefix(got, fmt.Sprint(users*each, " ")) {
		t.Error(got)
	}
}

// Hostile guests: forwarded requests, garbage, floods. The service goes on, and nothing is
// left of them.
func TestHostile(t *testing.T) {
	w := newWorld(t, nil, "")
	mine := Service.Grant(rw("mine"), service.Bounds{})
	u := w.user("u", mine)
	w.say(u, "put secret v")
	t.Run("a forwarded request has no grant", func(t *testing.T) {
		f := w.Spawn("f", "service-forwarder", mine, "kv")
		a := w.Asker("a", nil)
		_, err := w.Ask(t.Context(), a, []any{uint64(f.UID()), "get", map[string]any{"key": "secret"}})
		if err == nil || !strings.Contains(err.Error(), "denied: ") {
			t.Error(err)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		a := w.Asker("g", mine)
		for _, args := range []any{host.Raw{0xa1, 0x63, 'k', 'e', 'y', 0x60}, []any{}, "x", 1.5, true, map[string]any{"key": []any{[]any{[]any{}}}}} {
			for _, op := range []string{"get", "put", "batch", "list", "watch", "add", "usage", "", "\x00", strings.Repeat("x", 1000)} {
				if err := w.Request(a, op, args, nil); err == nil {
					t.Errorf("%q %v is taken", op, args)
				}
			}
		}
	})
	t.Run("a flood", func(t *testing.T) {
		g := Service.Grant(rw("flood"), service.Bounds{AtOnce: 10})
		a := w.Asker("flood", g)
		var wg sync.WaitGroup
		var busy, done int
		var mu sync.Mutex
		for i := range 500 {
			wg.Go(func() {
				_, err := w.Ask(context.Background(), a, []any{"kv", "put", map[string]any{"key": fmt.Sprint(i), "value": []byte("v")}})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done++
				case strings.Contains(err.Error(), "busy: "):
					busy++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if done == 0 || done+busy != 500 {
			t.Errorf("%d done, %d busy", done, busy)
		}
		if got := w.say(u, "get secret"); !strings.HasPrefix(got, "v ") {
			t.Error(got)
		}
	})
	t.Run("who ends leaves nothing", func(t *testing.T) {
		a := w.Asker("ends", mine)
		for range 100 {
			if err := w.Tell(a, []any{"kv", "put", map[string]any{"key": "k", "value": []byte("v")}}); err != nil {
				t.Fatal(err)
			}
		}
		w.System.Stop(a)
		p := w.Running.Provider().(*provider)
		eventually(t, func() bool {
			p.order.mu.Lock()
			defer p.order.mu.Unlock()
			return len(p.order.tails) == 0 && len(p.order.tickets) == 0
		})
	})
}

func TestFlood(t *testing.T) {
	w := newWorld(t, nil, t.TempDir())
	servicetest.Flood(t, w.System, w.Running, Service.Grant(rw("flood"), service.Bounds{}), "put", func(i int) any {
		return map[string]any{"key": fmt.Sprint(i % 1000), "value": []byte("v")}
	})
}

// A store on a disk is opened again when the service is killed: the guest's ref stays valid, what was answered is
// kept, and a watch says that it has ended.
func TestGuestOutlivesTheService(t *testing.T) {
	w := newWorld(t, &Settings{Store: "disk"}, t.TempDir())
	u := w.user("u", rw("orders"))
	if got := w.say(u, "put k v"); strings.Contains(got, ":") {
		t.Fatal(got)
	}
	was := w.Running.Provider()
	if err := w.Operate().Crash(w.Running.Ref(), abi.FailureKilled, ""); err != nil {
		t.Fatal(err)
	}
	until := func(ok func() bool) {
		t.Helper()
		for over := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(over) {
				t.Fatal("it does not come about")
			}
		}
	}
	until(func() bool { o, down := w.Running.Outage(); return down && o.Service == "kv" })
	if got := w.say(u, "get k"); !strings.HasPrefix(got, "unavailable: ") {
		t.Error(got)
	}
	until(func() bool { _, down := w.Running.Outage(); return !down })
	if got := w.say(u, "get k"); !strings.HasPrefix(got, "v ") {
		t.Error(got)
	}
	if now := w.Running.Provider(); now == was {
		t.Error("the store was not opened again")
	}
	if _, ok := Of(w.Running); !ok {
		t.Error("operators do not reach the store")
	}
}
