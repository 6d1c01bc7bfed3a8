package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/internal/race"
)

// TestHangUpsAreNoWarnings: what a client has given up is a dead letter that nobody misses: neither its
// question in a mailbox nor the late answer is logged as a warning.
func TestHangUpsAreNoWarnings(t *testing.T) {
	var log syncBuffer
	sys, err := host.New(host.NewConfig("site").WithLog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(context.Background()) }()
	answer, got := make(chan struct{}), make(chan struct{}, 10)
	if _, err := sys.Spawn("slow", host.Func(func(ctx *host.Context, m host.Message) error {
		got <- struct{}{}
		<-answer
		return ctx.Reply([]any{200, nil, "late"})
	})); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(sys, gateway.Config{Listen: []gateway.Listener{{Address: "127.0.0.1:0"}}, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/slow"}}}})
	if err != nil || g.Listen() != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	dead := sys.Subscribe(100, func(e *host.Event) bool { return e.Kind == host.EventDeadLetter })
	for i := range 2 { // the second waits in the mailbox
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+g.Addrs()[0].String()+"/", nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := http.DefaultClient.Do(r); err == nil {
				_ = res.Body.Close()
			}
		}()
		if i == 0 {
			<-got
		}
		ref, _ := sys.Lookup("/user/slow")
		for deadline := time.Now().Add(20 * time.Second); i == 1; time.Sleep(time.Millisecond) {
			if info, err := sys.View().Info(ref); err != nil || time.Now().After(deadline) {
				t.Fatal("the question is not in the mailbox:", err)
			} else if info.Mailbox > 0 {
				break
			}
		}
		cancel()
		<-done
	}
	for deadline := time.Now().Add(20 * time.Second); g.Underway() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("requests are under way still")
		}
	}
	close(answer)
	reasons := map[host.DeadReason]bool{}
	for range 2 {
		select {
		case e := <-dead.C():
			reasons[e.Dead.Reason] = true
			if !e.Dead.GivenUp() {
				t.Errorf("somebody misses %+v", e.Dead)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no dead letter")
		}
	}
	if !reasons[host.DeadLate] || !reasons[host.DeadExpired] {
		t.Error(reasons)
	}
	if err := sys.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Contains(text, "level=WARN") || strings.Count(text, "level=DEBUG msg=dead_letter") < 2 {
		t.Error(text)
	}
	for _, d := range []host.DeadLetter{{Reason: host.DeadLate, Path: "/user/a"}, {Reason: host.DeadExpired, From: "/user/a"}, {Reason: host.DeadStopped, From: "/temp"}} {
		if d.GivenUp() {
			t.Errorf("%+v", d)
		}
	}
}

// A GET of a route for WebSockets alone that is no handshake is answered at once.
func TestPlainGetOfAWebSocket(t *testing.T) {
	never := host.Func(func(*host.Context, host.Message) error { return nil })
	s := open(t, gateway.Config{Routes: []gateway.Route{
		{Pattern: "/ws", To: gateway.Target{Path: "/user/never"}, Handler: time.Hour, Upgrade: gateway.Upgrade{WebSocket: true}},
		{Pattern: "/both", To: gateway.Target{Path: "/user/never"}, Handler: time.Millisecond, Upgrade: gateway.Upgrade{WebSocket: true, Events: true}},
	}}, map[string]host.Props{"never": never})
	r := s.get("/ws")
	s.expect(r, 426, "")
	if r.Header.Get("Upgrade") != "websocket" || !strings.EqualFold(r.Header.Get("Connection"), "Upgrade") {
		t.Error(r.Header)
	}
	s.expect(s.get("/both"), 504, "") // the actor's, as it may answer other requests
}

// TestLoginsAreBounded: passwords of one address do not hold up those of others, and none waits longer than
// its route allows.
func TestLoginsAreBounded(t *testing.T) {
	cost := 9
	if race.Enabled { // a check takes a hundred times as long
		cost = bcrypt.MinCost
	}
	h, err := bcrypt.GenerateFromPassword([]byte("right"), cost)
	if err != nil {
		t.Fatal(err)
	}
	auth := &middleware.Auth{Basic: &middleware.Basic{Users: map[string]string{"ann": string(h)}}}
	s := open(t, gateway.Config{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Limits: gateway.Limits{AtOnce: 1000}, Routes: []gateway.Route{
		{Pattern: "/", To: gateway.Target{Path: "/user/a"}, Auth: auth},
		{Pattern: "/short", To: gateway.Target{Path: "/user/a"}, Auth: auth, Handler: time.Nanosecond},
	}}, map[string]host.Props{"a": says("in")})
	try := func(path, from, password string) int {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.url+path, nil)
		r.SetBasicAuth("ann", password)
		r.Header.Set("X-Forwarded-For", from)
		res, err := s.client.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = res.Body.Close()
		if (res.StatusCode == 429 || res.StatusCode == 503) && res.Header.Get("Retry-After") == "" {
			t.Error(res.Header)
		}
		return res.StatusCode
	}
	var flood sync.WaitGroup
	var stop atomic.Bool
	var checked, refused atomic.Int64
	begun := make(chan struct{})
	var once sync.Once
	for range 200 {
		flood.Go(func() {
			for !stop.Load() {
				switch status := try("/", "192.0.2.1", "wrong"); status {
				case 401:
					checked.Add(1)
				case 429:
					once.Do(func() { close(begun) })
					refused.Add(1)
				default:
					t.Error(status)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	<-begun
	for i, from := range []string{"192.0.2.2", "2001:db8::1", "192.0.2.3"} {
		if status := try("/", from, "right"); status != 200 && i == 0 {
			t.Error(from, status)
		}
	}
	stop.Store(true)
	flood.Wait()
	if refused.Load() < 100 || checked.Load() == 0 {
		t.Errorf("%d were refused, %d checked", refused.Load(), checked.Load())
	}
	// From a hundred addresses: those beyond the bound of all, or of the route's time, are refused.
	var many sync.WaitGroup
	var in, late atomic.Int64
	for i := range 100 {
		many.Go(func() {
			switch try("/short", "198.51.100."+string(rune('1'+i%9))+string(rune('0'+i/10)), "wrong") {
			case 401:
				in.Add(1)
			case 503, 429:
				late.Add(1)
			}
		})
	}
	many.Wait()
	if in.Load()+late.Load() != 100 || late.Load() == 0 {
		t.Errorf("%d were checked, %d refused", in.Load(), late.Load())
	}
}
