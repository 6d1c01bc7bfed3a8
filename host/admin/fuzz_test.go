package admin

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// FuzzRequests asks for anything with anything: each request is answered, with a status that
// HTTP knows, and nothing panics. Selections that change something are kept from it.
func FuzzRequests(f *testing.F) {
	for _, r := range table() {
		f.Add(r.method, r.path, `{"select":{"paths":["/user/*"],"states":["running"]},"message":[1,{"a":2.5}],"to":"a","timeout_ns":1,"directive":"stop"}`)
	}
	f.Add("GET", "/v1/actors?path=/user/**&type=*&state=asleep&ref=0&sort=fuel&desc&limit=3&offset=2&search=a", "")
	f.Add("GET", "/v1/events?since=2026-01-01T00:00:00Z&after=3&level=warn&kind=log&path=/user/a", "")
	f.Add("POST", "/v1/dead-letters/redeliver", `{"ids":[1],"to":["*"],"all":true}`)
	sys, err := host.New(host.NewConfig("shop"))
	if err != nil {
		f.Fatal(err)
	}
	defer sys.Close(context.Background())
	server, err := Serve(context.Background(), sys, NewConfig())
	if err != nil {
		f.Fatal(err)
	}
	defer server.Close()
	door := socketDoor()
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r, err := http.NewRequest(method, "http://localhost"+target, bytes.NewReader([]byte(body)))
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		if body == "" {
			r.Body, r.ContentLength = http.NoBody, 0
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		r = r.WithContext(ctx) // of streams, and questions that nobody answers
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.serve(door, w, r)
		if w.Code < 200 || w.Code > 599 || w.Code == 500 {
			t.Errorf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
		}
	})
}
