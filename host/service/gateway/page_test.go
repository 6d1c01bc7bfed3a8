package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/services/gateway.md does what the page says.
func TestThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	m, err := bundle.LoadWith("testdata", func(name string) (string, bool) { return "127.0.0.1:0", name == "LISTEN" })
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	s := &site{t: t, client: &http.Client{}, url: "http://" + b.Gateway().Addrs()[0].String()}
	defer s.client.CloseIdleConnections()
	s.expect(s.get("/users/ann?q=1"), 200, `{"id":"ann","q":"1"}`)
	s.expect(s.get("/rooms/a"), 200, "a 1")
	s.expect(s.get("/rooms/a"), 200, "a 2")
	s.expect(s.get("/rooms/b"), 200, "b 1")
	s.expect(s.get("/ready"), 200, "ok\n")
	if r := s.get("/"); !strings.Contains(r.body, "a page") {
		t.Error(r.StatusCode, r.body)
	}
	if r := s.get("/crash"); r.StatusCode != 502 || r.Header.Get("X-Crash-Report") == "" {
		t.Error(r.StatusCode, r.Header)
	}
}

func Example() {
	sys, err := host.New(host.NewConfig("site"))
	if err != nil {
		log.Fatal(err)
	}
	defer sys.Close(context.Background())
	greeter := host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Reply([]any{200, nil, "hello"}) // status, headers, body
	})
	if _, err := sys.Spawn("greeter", greeter); err != nil {
		log.Fatal(err)
	}
	g, err := gateway.New(sys, gateway.Config{Routes: []gateway.Route{
		{Pattern: "GET /hello", To: gateway.Target{Path: "/user/greeter"}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	sys.BeforeClose(func(ctx context.Context) { _ = g.Drain(ctx) })
	server := httptest.NewServer(g) // it is an http.Handler; g.Listen and g.Serve have bounds of connections, too
	defer server.Close()

	r, err := http.Get(server.URL + "/hello")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	fmt.Println(r.StatusCode, string(body))
	// Output: 200 hello
}
