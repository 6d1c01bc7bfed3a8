package admin

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
)

func TestLooking(t *testing.T) {
	s := serveSite(t, nil)
	if sys := get[observe.System](s, "/v1/system"); sys.Name != "shop" || sys.Actors != 2 || sys.PID != os.Getpid() {
		t.Errorf("%+v", sys)
	}
	page := get[observe.Page](s, "/v1/actors?path=/user/*&sort=path&desc&limit=1")
	if page.Total != 2 || len(page.Actors) != 1 || page.Actors[0].Path != "/user/b" {
		t.Errorf("%+v", page)
	}
	if n := get[observe.TreeNode](s, "/v1/tree"); n.Path != "/user" || len(n.Nodes) != 2 {
		t.Errorf("%+v", n)
	}
	if a := get[About](s, "/v1/server"); a.Access != "full" || a.Address != s.server.Addr().String() {
		t.Errorf("%+v", a)
	}
	for path, code := range map[string]string{
		"/v1/actors?sort=wrong":               "invalid",
		"/v1/actors?limit=1001":               "bad_query",
		"/v1/actors?limit=-1":                 "bad_query",
		"/v1/actors?desc=perhaps":             "bad_query",
		"/v1/actors?nope=1":                   "bad_query",
		"/v1/actors?sort=a&sort=b":            "bad_query",
		"/v1/actors?%zz":                      "bad_query",
		"/v1/actor":                           "bad_query",
		"/v1/nothing":                         "no_such_path",
		"/":                                   "no_such_path", // there is no dashboard
		"/metrics":                            "no_such_path",
		"/v1/events?since=today":              "bad_query",
		"/v1/events?follow&path=/user/nobody": "no_such_actor",
		"/v1/flow?seconds=0":                  "bad_query",
		"/v1/flow?seconds=1e9":                "bad_query",
	} {
		if p := s.refused(http.MethodGet, path, ""); p.Code != code {
			t.Errorf("%s: %+v, want %s", path, p, code)
		}
	}
	if p := s.refused(http.MethodGet, "/v1/actors?"+strings.Repeat("path=/user/a&", 65), ""); p.Code != "bad_query" {
		t.Errorf("%+v", p)
	}
	if p := s.refused(http.MethodDelete, "/v1/actors", ""); p.Status != 405 {
		t.Errorf("%+v", p)
	}
}

func TestHealthApart(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	s := serveSite(t, func(c Config) Config { return c.WithHealth("127.0.0.1:0").WithMetrics(metrics) })
	base := "http://" + s.server.HealthAddr().String()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/v1/system": 404, "/v1/stop": 404, "/": 404} {
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "pod.example" // a scraper's name for it
		if status, text := s.send(s.tcp, r); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if err := s.sys.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		eventually(t, path+" is not ended", func() bool {
			status, text := s.do(http.MethodGet, path, "")
			return status == 503 && strings.Contains(string(text), "ended")
		})
	}
}

// What cannot be opened is an error, and nothing stays open.
func TestWhatCannotBeOpened(t *testing.T) {
	s := serveSite(t, nil)
	taken := s.server.Addr().String()
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "NewConfig"},
		{NewConfig().WithTCP("0.0.0.0:0").WithToken(NewToken()), "not on loopback"},
		{NewConfig().WithTCP(":7777").WithToken(NewToken()), "ssh -L 7777:127.0.0.1:7777"},
		{NewConfig().WithTCP("example.org:7777").WithToken(NewToken()), "not on loopback"},
		{NewConfig().WithTCP("7777").WithToken(NewToken()), "not an address"},
		{NewConfig().WithTCP("127.0.0.1:0"), "needs a token"},
		{NewConfig().WithTCP(taken).WithToken(NewToken()), "in use"},
		{NewConfig().WithSocket(s.socket + "2").WithTCP(taken).WithToken(NewToken()), "in use"},
		{NewConfig().WithSocket(s.socket), "listens there already"},
		{NewConfig().WithSocket("/tmp/" + strings.Repeat("x", 120)), "at most 103"},
		{NewConfig().WithHealth("nowhere"), "missing port"},
	} {
		if x, err := Serve(context.Background(), s.sys, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
			if x != nil {
				x.Close()
			}
		}
	}
	if _, err := os.Lstat(s.socket + "2"); err == nil {
		t.Error("a socket is left behind")
	}
}

// The server ends with its context, and tells its streams.
func TestEndsWithItsContext(t *testing.T) {
	sys, err := host.New(host.NewConfig("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Serve(ctx, sys, NewConfig().WithHealth("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	eventually(t, "it still listens", func() bool {
		res, err := http.Get("http://" + s.HealthAddr().String() + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err != nil
	})
	http.DefaultClient.CloseIdleConnections()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
