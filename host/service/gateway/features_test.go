package gateway_test

import (
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// room is an actor on demand: a guest.
func rooms(t *testing.T, most int, idle time.Duration) gateway.Config {
	return gateway.Config{Routes: []gateway.Route{
		{Pattern: "/rooms/{room}", To: gateway.Target{Path: "/user/room-{room}", Make: &gateway.Make{Props: host.Guest(servicetest.Image(t), "gateway-room"), Most: most, Idle: idle}}},
	}}
}

// Actors are made when they are asked for, each once, so many at most, and end when idle.
func TestActorsOnDemand(t *testing.T) {
	s := open(t, rooms(t, 3, 2*time.Second), nil) // none is idle before the next request
	var all sync.WaitGroup
	var sum atomic.Int64
	for range 20 {
		all.Go(func() {
			var n int64
			if r := s.get("/rooms/a"); r.StatusCode == 200 {
				fmt.Sscanf(r.body, "a %d", &n)
			}
			sum.Add(n)
		})
	}
	all.Wait()
	if sum.Load() != 210 {
		t.Error("several actors were made for one name, or requests were lost:", sum.Load())
	}
	s.expect(s.get("/rooms/b"), 200, "b 1")
	s.expect(s.get("/rooms/c"), 200, "c 1")
	r := s.get("/rooms/d")
	s.expect(r, 503, "")
	if r.Header.Get("Retry-After") == "" {
		t.Error(r.Header)
	}
	for _, bad := range []string{"a%20b", "%c3%a4", "a%2fb", strings.Repeat("x", 251), "a:b", "a*b", "$"} {
		s.expect(s.get("/rooms/"+bad), 404, "")
	}
	s.expect(s.get("/rooms/b?stop=1"), 200, "bye") // it ends by itself: there is room again
	for deadline := time.Now().Add(20 * time.Second); s.get("/rooms/d").StatusCode != 200; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an actor that has ended still counts")
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := s.sys.Lookup("/user/room-a"); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an idle actor lives on")
		}
	}
	s.expect(s.get("/rooms/a"), 200, "a 1") // another one
}

// Requests and ends of actors at the same time: nobody is left without an answer.
func TestOnDemandUnderIdleEnds(t *testing.T) {
	s := open(t, rooms(t, 100, time.Millisecond), nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 60 {
				if r := s.get(fmt.Sprintf("/rooms/r%d", (i+k)%5)); r.StatusCode != 200 {
					t.Errorf("%d %s", r.StatusCode, r.body)
				}
				if k%10 == 0 {
					time.Sleep(2 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
}

// answering is an actor in Go that answers with a text.
func answering(f func(ctx *host.Context) any) host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Reply(f(ctx)) })
}

func says(text string) host.Props {
	return answering(func(*host.Context) any { return []any{200, nil, text} })
}

// A pool takes turns, or goes by who has the least to do, and passes over who is not there.
func TestPools(t *testing.T) {
	hold, taken := make(chan struct{}), make(chan struct{}, 10)
	held := host.Func(func(ctx *host.Context, m host.Message) error {
		r, err := ctx.Later()
		if err != nil {
			return err
		}
		taken <- struct{}{}
		go func() { <-hold; _ = r.Send([]any{200, nil, "held"}) }()
		return nil
	})
	s := open(t, gateway.Config{Routes: []gateway.Route{
		{Pattern: "/turns", To: gateway.Target{Pool: []string{"/user/a", "/user/b", "/user/missing"}}},
		{Pattern: "/least", To: gateway.Target{Pool: []string{"/user/held", "/user/a"}, Pick: "least-busy"}},
	}}, map[string]host.Props{"a": says("a"), "b": says("b"), "held": held})
	n := map[string]int{}
	for range 30 {
		n[s.get("/turns").body]++
	}
	if n["a"] < 10 || n["b"] < 10 || n["a"]+n["b"] != 30 {
		t.Error(n)
	}
	var first sync.WaitGroup
	over := make(chan struct{}, 2)
	for range 2 { // one of them is held
		first.Go(func() { s.get("/least"); over <- struct{}{} })
	}
	<-taken
	<-over
	for range 10 {
		s.expect(s.get("/least"), 200, "a")
	}
	close(hold)
	first.Wait()
}

// What each bound answers with.
func TestBoundsOfRequests(t *testing.T) {
	hold := make(chan struct{})
	var full atomic.Bool
	var taken atomic.Int64 // by slow
	slow := host.Func(func(ctx *host.Context, m host.Message) error {
		r, err := ctx.Later()
		if err != nil {
			return err
		}
		taken.Add(1)
		go func() { <-hold; _ = r.Send([]any{200, nil, "done"}) }()
		return nil
	})
	stuck := host.Func(func(ctx *host.Context, m host.Message) error {
		full.Store(true)
		<-hold
		return ctx.Reply([]any{200, nil, "done"})
	}).WithLimits(host.Limits{Mailbox: 1})
	s := open(t, gateway.Config{
		Limits: gateway.Limits{AtOnce: 8},
		Routes: []gateway.Route{
			{Pattern: "/slow", To: gateway.Target{Path: "/user/slow"}, Limits: gateway.RouteLimits{AtOnce: 2}},
			{Pattern: "/stuck", To: gateway.Target{Path: "/user/stuck"}},
			{Pattern: "/rate", To: gateway.Target{Path: "/user/fast"}, Client: gateway.ClientLimits{Rate: 0.01, Burst: 2}},
			{Pattern: "/one", To: gateway.Target{Path: "/user/slow"}, Client: gateway.ClientLimits{AtOnce: 1}},
			{Pattern: "/fast", To: gateway.Target{Path: "/user/fast"}},
			{Pattern: "/nobody", To: gateway.Target{Path: "/user/nobody"}},
		},
	}, map[string]host.Props{"slow": slow, "stuck": stuck, "fast": says("fast")})
	var all sync.WaitGroup
	begin := func(path string, n int) {
		t.Helper()
		want := s.g.Underway() + n
		for range n {
			all.Go(func() { s.expect(s.get(path), 200, "done") })
		}
		for s.g.Underway() < want {
			time.Sleep(time.Millisecond)
		}
	}
	retry := func(r response, status int) {
		t.Helper()
		s.expect(r, status, "")
		if r.Header.Get("Retry-After") == "" {
			t.Error(r.Request.URL.Path, r.Header)
		}
	}
	retry(s.get("/nobody"), 503)
	s.expect(s.get("/rate"), 200, "fast")
	s.expect(s.get("/rate"), 200, "fast")
	retry(s.get("/rate"), 429)
	begin("/slow", 2)
	for taken.Load() < 2 { // so the route's share is theirs
		time.Sleep(time.Millisecond)
	}
	retry(s.get("/slow"), 429)
	begin("/one", 1)
	for taken.Load() < 3 { // so it has its share
		time.Sleep(time.Millisecond)
	}
	retry(s.get("/one"), 429)
	begin("/stuck", 1)
	for !full.Load() {
		time.Sleep(time.Millisecond)
	}
	begin("/stuck", 1)
	box, err := s.sys.Lookup("/user/stuck")
	if err != nil {
		t.Fatal(err)
	}
	for i, err := s.sys.View().Info(box); i.Mailbox == 0; i, err = s.sys.View().Info(box) {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	retry(s.get("/stuck"), 503)
	all.Go(func() { s.get("/slow") }) // these are counted while they are refused
	for range 3 {
		s.expect(s.get("/fast"), 200, "fast")
	}
	close(hold)
	all.Wait()
	s.expect(s.get("/slow"), 200, "done")
	s.expect(s.get("/one"), 200, "done")
	s.expect(s.get("/stuck"), 200, "done")
}

// After ten times too much load the next request succeeds.
func TestOverload(t *testing.T) {
	s := api(t, func(c *gateway.Config) { c.Limits.AtOnce = 20; c.Routes[0].Handler = 20 * time.Second })
	s.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 200
	var all sync.WaitGroup
	var ok, refused, other atomic.Int64
	for range 200 {
		all.Go(func() {
			for range 5 {
				switch s.get("/later").StatusCode {
				case 200:
					ok.Add(1)
				case 503:
					refused.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	all.Wait()
	if ok.Load() == 0 || refused.Load() == 0 || other.Load() > 0 {
		t.Errorf("%d answered, %d refused, %d else", ok.Load(), refused.Load(), other.Load())
	}
	s.expect(s.get("/hello"), 200, "hello")
	if n := s.g.Underway(); n != 0 {
		t.Error(n, "are still under way")
	}
}

// A gateway whose services are down is not ready, and says which.
func TestReadyNamesWhatIsDown(t *testing.T) {
	var down atomic.Value
	down.Store("kv is down since 2026-01-02T03:04:05Z")
	s := open(t, gateway.Config{
		Health: gateway.Health{Live: "/live", Ready: "/ready", Down: func() string { return down.Load().(string) }},
		Routes: []gateway.Route{{Pattern: "/hello", To: gateway.Target{Path: "/user/hello"}}},
	}, map[string]host.Props{"hello": says("hello")})
	s.expect(s.get("/ready"), 503, "kv is down since 2026-01-02T03:04:05Z\n")
	s.expect(s.get("/live"), 200, "ok\n")
	s.expect(s.get("/hello"), 200, "hello")
	down.Store("")
	s.expect(s.get("/ready"), 200, "ok\n")
}

// The gateway's own actor that fails loses nothing that it is to do: it learns of the end of actors that were made
// while it was away.
func TestOwnActorComesBack(t *testing.T) {
	s := open(t, gateway.Config{Routes: []gateway.Route{{
		Pattern: "/room/{room}", To: gateway.Target{Path: "/user/room-{room}", Make: &gateway.Make{Props: says("room"), Most: 1}},
	}}}, nil)
	own, err := s.sys.Lookup("/system/http")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sys.Operate().Crash(own, 0, ""); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		i, err := s.sys.View().Info(own)
		return err == nil && (i.State == host.StateDelayed || i.Restarts > 0)
	})
	s.expect(s.get("/room/a"), 200, "room")
	if r := s.get("/room/b"); r.StatusCode != 503 {
		t.Errorf("more rooms than may be: %d", r.StatusCode)
	}
	waitFor(t, func() bool {
		i, err := s.sys.View().Info(own)
		return err == nil && i.Restarts > 0 && i.State == host.StateRunning
	})
	a, err := s.sys.Lookup("/user/room-a")
	if err != nil {
		t.Fatal(err)
	}
	s.sys.Stop(a)
	waitFor(t, func() bool { return s.get("/room/b").StatusCode == 200 })
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for over := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			t.Fatal("it does not come about")
		}
	}
}

// The orderly end: unready, nothing new, what is under way is finished.
func TestDrain(t *testing.T) {
	taken, hold := make(chan struct{}), make(chan struct{})
	slow := host.Func(func(ctx *host.Context, m host.Message) error {
		r, err := ctx.Later()
		if err != nil {
			return err
		}
		close(taken)
		go func() { <-hold; _ = r.Send([]any{200, nil, "at last"}) }()
		return nil
	})
	s := open(t, gateway.Config{
		Health: gateway.Health{Live: "/live", Ready: "/ready"},
		Drain:  gateway.Drain{Delay: 2 * time.Second, Most: time.Minute},
		Routes: []gateway.Route{
			{Pattern: "/later", To: gateway.Target{Path: "/user/slow"}},
			{Pattern: "/hello", To: gateway.Target{Path: "/user/hello"}},
		},
	}, map[string]host.Props{"slow": slow, "hello": says("hello")})
	s.expect(s.get("/ready"), 200, "ok\n")
	s.expect(s.get("/live"), 200, "ok\n")
	var late response
	var all sync.WaitGroup
	all.Go(func() { late = s.get("/later") })
	<-taken
	done := make(chan error, 1)
	go func() { done <- s.g.Drain(context.Background()) }()
	for s.g.Ready() {
		time.Sleep(time.Millisecond)
	}
	s.expect(s.get("/ready"), 503, "draining\n")
	s.expect(s.get("/live"), 200, "ok\n")
	s.expect(s.get("/hello"), 200, "hello") // balancers have not noticed yet
	for accepts := true; accepts; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", s.g.Addrs()[0].String())
		if accepts = err == nil; accepts {
			c.Close()
		}
	}
	if n := s.g.Underway(); n != 1 || len(done) != 0 {
		t.Error("it does not wait for what is under way:", n)
	}
	close(hold)
	all.Wait()
	s.expect(late, 200, "at last")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if r, err := s.sys.Lookup("/user/slow"); err != nil || r.IsZero() {
		t.Error("the actors have gone first")
	}
}

// What does not end in time is cut off.
func TestDrainIsBounded(t *testing.T) {
	s := api(t, func(c *gateway.Config) { c.Drain.Most = 50 * time.Millisecond; c.Timeouts.Handler = time.Hour })
	ended := make(chan error, 1)
	go func() {
		r, err := s.client.Get(s.url + "/never")
		if err == nil {
			r.Body.Close()
		}
		ended <- err
	}()
	for s.g.Underway() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := s.g.Drain(context.Background()); err == nil {
		t.Error("nothing was cut off")
	}
	<-ended
}

// request is one with headers, as do.
func (s *site) with(user, password string) response {
	s.t.Helper()
	return s.get("/show/x", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func TestBasic(t *testing.T) {
	h, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	argon := "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$" // of "right"
	sum := argon2.IDKey([]byte("right"), []byte("somesalt"), 1, 64, 1, 16)
	file := "# users\nann:" + string(h) + "\n\nbob:" + argon + base64.RawStdEncoding.EncodeToString(sum) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "users"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := api(t, func(c *gateway.Config) {
		c.Base = dir
		c.Routes[0].Auth = &middleware.Auth{Basic: &middleware.Basic{File: "users", Realm: "here"}}
	})
	for range 2 { // the second time from what is known
		for _, user := range []string{"ann", "bob"} {
			r := s.with(user, "right")
			s.expect(r, 200, "")
			if !strings.Contains(r.body, "user basic "+user+"\n") || strings.Contains(r.body, "authorization") {
				t.Error(r.body)
			}
		}
		for _, c := range [][2]string{{"ann", "wrong"}, {"ann", ""}, {"bob", "wrong"}, {"eve", "right"}, {"", ""}, {"ann", strings.Repeat("x", 73)}, {"ann\x00", "right"}} {
			r := s.with(c[0], c[1])
			s.expect(r, 401, "")
			if r.Header.Get("Www-Authenticate") != `Basic realm="here", charset="UTF-8"` {
				t.Error(r.Header)
			}
		}
	}
	s.expect(s.get("/show/x"), 401, "")
	s.expect(s.get("/show/x", "Authorization", "Bearer x"), 401, "")
	for _, bad := range []string{"ann", "ann:plain", "ann:$2y$20$" + strings.Repeat("a", 53), "ann:$argon2id$v=19$m=9999999,t=1,p=1$c29tZXNhbHQ$" + strings.Repeat("A", 22), "ann:" + string(h) + "\nann:" + string(h), ""} {
		if err := os.WriteFile(filepath.Join(dir, "bad"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(s.sys, gateway.Config{Base: dir, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/api"}, Auth: &middleware.Auth{Basic: &middleware.Basic{File: "bad"}}}}})
		if err == nil {
			t.Errorf("%q is taken", bad)
			_ = g.Close()
		}
	}
}

func TestJWT(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	edPub, edKey, _ := ed25519.GenerateKey(rand.Reader)
	rsaPEM := publicPEM(t, &rsaKey.PublicKey)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rsa.pem"), rsaPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	s := api(t, func(c *gateway.Config) {
		c.Base = dir
		c.Routes[0].Auth = &middleware.Auth{JWT: &middleware.JWT{
			Keys:     []middleware.JWTKey{{Alg: "HS256", Key: secret, ID: "h"}, {Alg: "RS256", File: "rsa.pem", ID: "r"}, {Alg: "ES256", Key: &ecKey.PublicKey}, {Alg: "EdDSA", Key: edPub}},
			Audience: "aud", Issuer: "iss", Leeway: 5 * time.Second, Claims: []string{"scope"},
		}}
	})
	now := time.Now()
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := jwt.MapClaims{"sub": "ann", "aud": "aud", "iss": "iss", "exp": now.Add(time.Minute).Unix(), "nbf": now.Add(-time.Minute).Unix(), "scope": "all", "other": "no"}
		if change != nil {
			change(c)
		}
		return c
	}
	token := func(m jwt.SigningMethod, key any, kid string, c jwt.MapClaims, header ...any) string {
		tok := jwt.NewWithClaims(m, c)
		if kid != "" {
			tok.Header["kid"] = kid
		}
		for i := 0; i+1 < len(header); i += 2 {
			tok.Header[header[i].(string)] = header[i+1]
		}
		text, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := map[string]string{
		"HS256":    token(jwt.SigningMethodHS256, secret, "h", claims(nil)),
		"RS256":    token(jwt.SigningMethodRS256, rsaKey, "r", claims(nil)),
		"ES256":    token(jwt.SigningMethodES256, ecKey, "any", claims(nil)),
		"EdDSA":    token(jwt.SigningMethodEdDSA, edKey, "", claims(nil)),
		"leeway":   token(jwt.SigningMethodHS256, secret, "h", claims(func(c jwt.MapClaims) { c["exp"] = now.Add(-2 * time.Second).Unix() })),
		"aud list": token(jwt.SigningMethodHS256, secret, "h", claims(func(c jwt.MapClaims) { c["aud"] = []string{"x", "aud"} })),
	}
	for name, text := range good {
		r := s.get("/show/x", "Authorization", "bearer "+text)
		s.expect(r, 200, "")
		if !strings.Contains(r.body, "user jwt ann\nscope all\n") {
			t.Error(name, r.body)
		}
	}
	hs := func(change func(jwt.MapClaims)) string {
		return token(jwt.SigningMethodHS256, secret, "h", claims(change))
	}
	h := good["HS256"]
	for name, text := range map[string]string{
		"none":                       token(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "h", claims(nil)),
		"the public key as a secret": token(jwt.SigningMethodHS256, rsaPEM, "r", claims(nil)),
		"another algorithm":          token(jwt.SigningMethodHS512, secret, "h", claims(nil)),
		"another key":                token(jwt.SigningMethodHS256, []byte(strings.Repeat("t", 32)), "h", claims(nil)),
		"no kid":                     token(jwt.SigningMethodHS256, secret, "", claims(nil)),
		"another kid":                token(jwt.SigningMethodHS256, secret, "r", claims(nil)),
		"expired":                    hs(func(c jwt.MapClaims) { c["exp"] = now.Add(-time.Minute).Unix() }),
		"no exp":                     hs(func(c jwt.MapClaims) { delete(c, "exp") }),
		"not yet":                    hs(func(c jwt.MapClaims) { c["nbf"] = now.Add(time.Minute).Unix() }),
		"audience":                   hs(func(c jwt.MapClaims) { c["aud"] = "x" }),
		"no audience":                hs(func(c jwt.MapClaims) { delete(c, "aud") }),
		"issuer":                     hs(func(c jwt.MapClaims) { c["iss"] = "x" }),
		"crit":                       token(jwt.SigningMethodHS256, secret, "h", claims(nil), "crit", []string{"x"}),
		"no signature":               h[:strings.LastIndexByte(h, '.')+1],
		"cut off":                    h[:len(h)-4],
		"garbage":                    "a.b.c",
		"empty":                      "",
		"huge":                       h + strings.Repeat("A", 9000),
	} {
		if r := s.get("/show/x", "Authorization", "Bearer "+text); r.StatusCode != 401 || r.Header.Get("Www-Authenticate") != "Bearer" {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	s.expect(s.get("/show/x", "Authorization", "Bearer "+h, "Authorization", "Bearer "+h), 401, "")
	for name, k := range map[string]middleware.JWTKey{
		"short secret": {Alg: "HS256", Key: []byte("short")}, "confused": {Alg: "HS256", Key: &rsaKey.PublicKey}, "other curve": {Alg: "ES256", Key: edPub}, "missing": {Alg: "RS256", File: "none"},
	} {
		cfg := gateway.Config{Base: dir, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/api"}, Auth: &middleware.Auth{JWT: &middleware.JWT{Keys: []middleware.JWTKey{k}}}}}}
		if g, err := gateway.New(s.sys, cfg); err == nil {
			t.Error(name, "is taken")
			_ = g.Close()
		}
	}
}

func publicPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// authority signs certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  crypto.Signer
	dir  string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.key = key
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(dir, name string) tls.Certificate {
	a.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	k, _ := x509.MarshalPKCS8PrivateKey(key)
	c := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k})
	for file, b := range map[string][]byte{name + ".pem": c, name + ".key": p, "ca.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(c, p)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// TLS, HTTP/2, and clients with certificates.
func TestMTLS(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	ca.issue(dir, "server")
	good, other := ca.issue(dir, "client"), ca.issue(dir, "stranger")
	forged := newAuthority(t, "ca").issue(t.TempDir(), "client")
	s := api(t, func(c *gateway.Config) {
		c.Base = dir
		c.Listen = []gateway.Listener{{Address: "127.0.0.1:0", TLS: &gateway.TLS{Cert: "server.pem", Key: "server.key", ClientCA: "ca.pem", Optional: true}}}
		c.Routes = append(c.Routes, gateway.Route{Pattern: "/show/{rest...}", To: gateway.Target{Path: "/user/api"}, Auth: &middleware.Auth{MTLS: &middleware.MTLS{Subjects: []string{"CN=client"}}}})
	})
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	as := func(certs ...tls.Certificate) {
		s.client.CloseIdleConnections()
		// Callback: else a client keeps a certificate back that the server's authorities have not signed.
		get := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certs) == 0 {
				return &tls.Certificate{}, nil
			}
			return &certs[0], nil
		}
		s.client.Transport = &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, GetClientCertificate: get}}
	}
	as(good)
	r := s.get("/show/x")
	s.expect(r, 200, "")
	if r.ProtoMajor != 2 || !strings.Contains(r.body, "user mtls CN=client\n") {
		t.Error(r.Proto, r.body)
	}
	as(other)
	s.expect(s.get("/show/x"), 403, "")
	as()
	s.expect(s.get("/show/x"), 403, "")
	s.expect(s.get("/hello"), 200, "hello")
	as(forged)
	if _, err := s.client.Get(s.url + "/hello"); err == nil {
		t.Error("a forged certificate is let in")
	}
}

func TestH2C(t *testing.T) {
	for _, on := range []bool{true, false} {
		s := api(t, func(c *gateway.Config) { c.Listen = []gateway.Listener{{Address: "127.0.0.1:0", H2C: on}} })
		p := &http.Protocols{}
		p.SetUnencryptedHTTP2(true)
		s.client.Transport = &http.Transport{Protocols: p}
		r, err := s.client.Get(s.url + "/hello")
		if err == nil {
			r.Body.Close()
		}
		if on != (err == nil && r.ProtoMajor == 2) {
			t.Error(on, err)
		}
	}
}

func TestCORS(t *testing.T) {
	s := api(t, func(c *gateway.Config) {
		c.CORS = &middleware.CORS{Origins: []string{"https://a.example", "https://*.b.example"}, Methods: []string{"GET", "PUT"}, Headers: []string{"X-A"}, Expose: []string{"X-B"}, Credentials: true, MaxAge: time.Minute}
	})
	for origin, ok := range map[string]bool{"https://a.example": true, "https://x.b.example": true, "https://b.example": false, "http://a.example": false, "https://evilb.example": false,
		"https://a.example.evil": false, "null": false, "https://a.example:444": false} {
		r := s.get("/hello", "Origin", origin)
		s.expect(r, 200, "hello")
		if got := r.Header.Get("Access-Control-Allow-Origin"); (got == origin) != ok || !ok && got != "" || !strings.Contains(r.Header.Get("Vary"), "Origin") {
			t.Error(origin, r.Header)
		}
		r = s.do("OPTIONS", "/hello", "", "Origin", origin, "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "x-a")
		s.expect(r, 204, "")
		if (r.Header.Get("Access-Control-Allow-Methods") == "PUT") != ok || ok && (r.Header.Get("Access-Control-Max-Age") != "60" || r.Header.Get("Access-Control-Allow-Credentials") != "true") {
			t.Error(origin, r.Header)
		}
	}
	for _, asked := range [][2]string{{"DELETE", ""}, {"PUT", "x-c"}, {"PUT", "x-a, x-c"}} {
		r := s.do("OPTIONS", "/hello", "", "Origin", "https://a.example", "Access-Control-Request-Method", asked[0], "Access-Control-Request-Headers", asked[1])
		if r.Header.Get("Access-Control-Allow-Methods") != "" || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Error(asked, r.Header)
		}
	}
	if r := s.get("/hello", "Origin", "https://a.example"); r.Header.Get("Access-Control-Expose-Headers") != "X-B" {
		t.Error(r.Header)
	}
	r := s.get("/crash", "Origin", "https://a.example") // pages may read problems, too
	s.expect(r, 502, "")
	if r.Header.Get("Access-Control-Allow-Origin") == "" {
		t.Error(r.Header)
	}
}

func TestCompression(t *testing.T) {
	s := api(t, func(c *gateway.Config) {
		c.Compress = middleware.Compress{On: true, Least: 100}
		c.Routes = append(c.Routes, gateway.Route{Pattern: "/show/{rest...}", To: gateway.Target{Path: "/user/api"}, Compress: "off"})
	})
	for accept, zipped := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "*": false, "": false, "gzip;q=0": false, "br": false, "*, gzip;q=0": false} {
		r := s.get("/large?n=10000", "Accept-Encoding", accept)
		got := r.body
		if (r.Header.Get("Content-Encoding") == "gzip") != zipped || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Error(accept, r.Header)
		}
		if zipped {
			if len(r.body) > 1000 || r.Header.Get("Content-Length") != fmt.Sprint(len(r.body)) {
				t.Error(len(r.body))
			}
			z, err := gzip.NewReader(strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(z)
			got = string(b)
		}
		if got != strings.Repeat("x", 10000) {
			t.Error(accept, len(got))
		}
	}
	if r := s.get("/large?n=500", "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "gzip" {
		t.Error("least has no effect")
	}
	if r := s.get("/large?n=50", "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "" {
		t.Error("a small body is compressed")
	}
	if r := s.get("/show/"+strings.Repeat("x", 200), "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "" {
		t.Error("compress: false has no effect")
	}
	if r := s.do("POST", "/echo", strings.Repeat("x", 200), "Content-Type", "image/png", "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "" {
		t.Error("a picture is compressed")
	}
}

func TestStatic(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"out/secret": "s", "www/a.txt": "a", "www/sub/index.html": "<p>i", "www/bare/b.txt": "b", "www/.hidden": "h", "www/.git/x": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink("../out/secret", filepath.Join(dir, "www/link"))
	_ = os.Symlink("a.txt", filepath.Join(dir, "www/inner"))
	_ = os.Symlink("/etc/passwd", filepath.Join(dir, "www/absolute"))
	_ = os.Symlink("../out", filepath.Join(dir, "www/folder"))
	_ = os.Symlink("../../out/secret", filepath.Join(dir, "www/sub/link"))
	_ = os.Symlink("endless", filepath.Join(dir, "www/endless"))
	s := open(t, gateway.Config{Base: dir, Routes: []gateway.Route{
		{Pattern: "/s/", Static: &middleware.Static{Dir: "www", Cache: time.Minute, Headers: map[string]string{"content-security-policy": "default-src 'none'"}}},
		{Pattern: "GET /l/{path...}", Static: &middleware.Static{Dir: "www", Index: true}},
	}}, nil)
	for path, want := range map[string]int{
		"/s/a.txt": 200, "/s/inner": 200, "/s/sub/": 200, "/s/bare/": 404, "/s/bare/b.txt": 200, "/s/": 404, "/s/.hidden": 404, "/s/.git/x": 404, "/s/link": 404, "/s/absolute": 404, "/s/folder/secret": 404, "/s/folder/": 404, "/s/sub/link": 404, "/s/endless": 404, "/s/a.txt/b": 404, "/s/" + strings.Repeat("n", 300): 404, "/s/none": 404,
		"/s/%2e%2e/out/secret": 400, "/s/..%2fout%2fsecret": 400, "/s/%00": 400, "/l/": 200, "/l/bare/": 200, "/l/a.txt": 200, "/s/sub": 301, "/s/%2fetc%2fpasswd": 404,
	} {
		if r := s.get(path); r.StatusCode != want {
			t.Errorf("%s: %d %.100s, want %d", path, r.StatusCode, r.body, want)
		} else if strings.Contains(r.body, ".hidden") || strings.Contains(r.body, ".git") {
			t.Error(path, r.body)
		}
	}
	r := s.get("/s/a.txt")
	if r.body != "a" || r.Header.Get("Cache-Control") != "max-age=60" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error(r.body, r.Header)
	}
	if r := s.get("/s/a.txt", "If-Modified-Since", r.Header.Get("Last-Modified")); r.StatusCode != 304 {
		t.Error(r.StatusCode)
	}
	for _, path := range []string{"/s/a.txt", "/s/none", "/s/sub/"} { // pages of errors are pages
		if got := s.get(path).Header.Get("Content-Security-Policy"); got != "default-src 'none'" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := s.get("/l/a.txt").Header.Get("Content-Security-Policy"); got != "" {
		t.Errorf("headers of another route: %q", got)
	}
	s.expect(s.do("POST", "/s/a.txt", "x"), 405, "")
}

// Headers of a proxy count if it is one of those that are believed.
func TestProxies(t *testing.T) {
	s := api(t, func(c *gateway.Config) {
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	for forwarded, want := range map[string]string{"": "127.0.0.1", "1.2.3.4": "1.2.3.4", "6.6.6.6, 1.2.3.4, 10.1.1.1": "1.2.3.4", "junk": "127.0.0.1", "1.2.3.4, junk": "127.0.0.1"} {
		if r := s.get("/show/x", "X-Forwarded-For", forwarded); !strings.Contains(r.body, "remote "+want+"\n") {
			t.Errorf("%q: %s", forwarded, r.body)
		}
	}
	s = api(t, nil)
	if r := s.get("/show/x", "X-Forwarded-For", "1.2.3.4"); !strings.Contains(r.body, "remote 127.0.0.1\n") {
		t.Error(r.body)
	}
}

// The routes' choice of headers.
func TestHeadersOfARoute(t *testing.T) {
	s := api(t, func(c *gateway.Config) { c.Routes[0].Headers = []string{"x-a"} })
	r := s.get("/show/x", "X-A", "1", "X-B", "2")
	if !strings.Contains(r.body, "x-a: 1") || strings.Contains(r.body, "x-b") || strings.Contains(r.body, "host:") {
		t.Error(r.body)
	}
}
