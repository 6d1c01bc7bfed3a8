package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// passivate has the actor of a key end, and waits for that.
func (s *site) passivate(key string) {
	s.t.Helper()
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(time.Millisecond) {
		keeper, err := s.sys.Lookup("/user/keys")
		if err == nil {
			err = keyed.Passivate(s.t.Context(), s.sys, keeper, key)
		}
		var keys []keyed.Entry
		if err == nil { // its place is free when its keeper knows of its end
			keys, err = keyed.Keys(s.t.Context(), s.sys, keeper, keyed.Page{})
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if !slices.ContainsFunc(keys, func(e keyed.Entry) bool { return e.Key == key }) {
			return
		}
		if time.Now().After(until) {
			s.t.Fatal("it is not passivated")
		}
	}
}

// A request starts the actor of a key that a route names, also after it was passivated; one that the
// keeper cannot start is an answer, and who has gone is told of to nobody.
func TestRoutesToKeptActors(t *testing.T) {
	var lives, gone atomic.Int32
	silent := make(chan struct{}, 10)
	worker := host.Native(func() host.Actor {
		lives.Add(1)
		return actorFunc(func(ctx *host.Context, m host.Message) error {
			r := abi.NewReader(m.Payload)
			if r.Array(); r.Text() == gateway.GoneOp {
				gone.Add(1)
				return nil
			}
			if ctx.Self().Name() == "silent" {
				silent <- struct{}{}
				return nil
			}
			return ctx.Reply([]any{200, nil, ctx.Self().Name()})
		})
	})
	route := func(pattern string, to ...string) gateway.Route {
		r := gateway.Route{Pattern: pattern, To: gateway.Target{Path: to[0]}}
		if len(to) > 1 {
			r.To = gateway.Target{Pool: to}
		}
		return r
	}
	slow := route("/silent", "/user/keys/silent")
	slow.Handler, slow.Cancel = time.Second, true
	cfg := gateway.Config{Routes: []gateway.Route{
		route("/a", "/user/keys/a"), route("/pool", "/user/keys/b", "/user/keys/c"), route("/many", "/user/keys/d"), route("/never", "/user/keys/a b"), slow,
	}}
	s := open(t, cfg, map[string]host.Props{"keys": keyed.New(worker).WithMax(3).WithIdle(time.Hour).Props()})
	for n := int32(1); n <= 2; n++ {
		s.expect(s.get("/a"), 200, "a")
		s.expect(s.get("/a"), 200, "a")
		if lives.Load() != n {
			t.Errorf("%d lives, want %d", lives.Load(), n)
		}
		s.passivate("a")
	}
	got := map[string]bool{s.get("/pool").body: true, s.get("/pool").body: true}
	if !got["b"] || !got["c"] {
		t.Error(got)
	}
	s.expect(s.get("/never"), http.StatusServiceUnavailable, "")
	s.expect(s.get("/a"), 200, "a")
	if r := s.get("/many"); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	s.passivate("a")
	s.expect(s.get("/silent"), http.StatusGatewayTimeout, "")
	select {
	case <-silent:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not started")
	}
	for until := time.Now().Add(10 * time.Second); gone.Load() == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
	}
	if gone.Load() != 1 {
		t.Error("who is there does not hear that the client has disconnected")
	}
}

// A wildcard of the pattern may be the key of the actor that answers: any text is, and each reaches an actor of its own, whose
// key it is. Without a keeper nobody answers, whoever lives there.
func TestRoutesToTheKeyInThePath(t *testing.T) {
	worker := host.Native(func() host.Actor {
		n := 0
		return actorFunc(func(ctx *host.Context, m host.Message) error {
			n++
			key, ok := keyed.Of(ctx)
			return ctx.Reply([]any{200, nil, fmt.Sprintf("%q %v %d", key, ok, n)})
		})
	})
	cfg := gateway.Config{Routes: []gateway.Route{
		{Pattern: "/users/{id}", To: gateway.Target{Path: "/user/keys/{id}"}},
		{Pattern: "/files/{path...}", To: gateway.Target{Path: "/user/keys/f-{path}.txt"}},
		{Pattern: "/plain/{id}", To: gateway.Target{Path: "/user/plain/{id}"}},
		{Pattern: "/none/{id}", To: gateway.Target{Path: "/user/none/{id}"}},
	}}
	parent := host.Func(func(ctx *host.Context, m host.Message) error {
		if _, err := ctx.Spawn("ann", worker); err != nil {
			return err
		}
		return ctx.Reply(nil)
	})
	s := open(t, cfg, map[string]host.Props{"keys": keyed.New(worker).WithMax(20).WithIdle(time.Hour).Props(), "plain": parent})
	for path, key := range map[string]string{
		"/users/ann": "ann", "/users/a%2fb": "a/b", "/users/%7Bid%7D": "{id}", "/users/a~2Fb": "a~2Fb", "/users/a%237": "a#7", "/users/%F0%9F%98%80": "\U0001F600",
		"/users/...": "...", "/users/*": "*", "/files/a/b/c": "f-a/b/c.txt", "/files/": "f-.txt", "/users/" + strings.Repeat("k", 255): strings.Repeat("k", 255),
	} {
		for n := 1; n <= 2; n++ {
			s.expect(s.get(path), 200, fmt.Sprintf("%q true %d", key, n))
		}
	}
	s.expect(s.get("/users/"+strings.Repeat("k", 256)), http.StatusNotFound, "")
	s.expect(s.get("/users/"+strings.Repeat("%2F", 86)), http.StatusNotFound, "")
	s.expect(s.get("/users/%2e%2e"), http.StatusBadRequest, "")
	s.expect(s.get("/none/ann"), http.StatusServiceUnavailable, "")
	ref, err := s.sys.Lookup("/user/plain")
	if err == nil {
		_, err = s.sys.Ask(s.t.Context(), ref, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.expect(s.get("/plain/ann"), http.StatusServiceUnavailable, "")
	s.passivate("ann")
	s.expect(s.get("/users/ann"), 200, `"ann" true 1`)
}

type actorFunc func(*host.Context, host.Message) error

func (f actorFunc) Receive(ctx *host.Context, m host.Message) error { return f(ctx, m) }

// Connections to the actor of a key outlive it: who says something starts the next one, and that hears of
// all of them.
func TestSocketsOfKeptActors(t *testing.T) {
	cfg := gateway.Config{Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/keys/room"}, Upgrade: gateway.Upgrade{WebSocket: true}},
		{Pattern: "/count", To: gateway.Target{Path: "/user/keys/room"}}}}
	s := open(t, cfg, map[string]host.Props{"keys": keyed.New(host.Guest(servicetest.Image(t), "gateway-live")).WithIdle(time.Hour).Props()})
	ann, bob := s.socket("/?name=ann"), s.socket("/?name=bob")
	for range 3 {
		s.passivate("room")
		bob.say("hello")
		for _, c := range []*socket{ann, bob} { // each is known again, and bob's message is answered
			want := map[string]bool{"resumed ann": c == ann, "resumed bob": c == bob, "hello": c == bob}
			for n := range want {
				if !want[n] {
					delete(want, n)
				}
			}
			for len(want) > 0 {
				text := c.hear()
				if !want[text] {
					t.Fatalf("%q, want %v", text, want)
				}
				delete(want, text)
			}
		}
		s.eventually("/count", "2 0")
		ann.say("all together")
		ann.wants("together")
		bob.wants("together")
	}
	// Nobody is started to hear that a connection has ended.
	s.passivate("room")
	_ = ann.CloseNow()
	for until := time.Now().Add(10 * time.Second); len(s.sys.Select("/system/gateway/*")) > 1 && time.Now().Before(until); time.Sleep(time.Millisecond) {
	}
	if _, err := s.sys.Lookup("/user/keys/room"); err == nil {
		t.Error("it was started for that")
	}
	bob.say("all still here")
	for text := bob.hear(); text != "still here"; text = bob.hear() {
	}
	s.eventually("/count", "1 0")
}
