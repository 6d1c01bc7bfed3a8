//go:build !wasip1

package web_test

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// request is a message as the gateway writes it.
func request(method, path, route, values, query string, body []byte, headers ...string) actor.Encoder {
	return actor.Func(func(w *abi.Writer) {
		text := func(s string) {
			if s == "" {
				w.Null()
			} else {
				w.Text(s)
			}
		}
		w.Array(2)
		w.Text("http")
		w.Array(13) // one more than is known
		w.Text(method)
		w.Text(path)
		w.Text(route)
		if values == "" {
			w.Null()
		} else {
			all := strings.Split(values, " ")
			w.Array(len(all))
			for _, v := range all {
				w.Text(v)
			}
		}
		text(query)
		h := abi.NewWriter(nil)
		for _, s := range headers {
			h.Text(s)
		}
		w.ByteString(h.Bytes())
		if body == nil {
			w.Null()
		} else {
			w.ByteString(body)
		}
		w.Null()
		w.Null()
		w.Text("1.2.3.4")
		w.Text("id-7")
		w.Map(3)
		w.Text("kind")
		w.Text("jwt")
		w.Text("name")
		w.Text("ann")
		w.Text("claims")
		w.Map(1)
		w.Text("scope")
		w.Text("all")
		w.Bool(true)
	})
}

type shop struct {
	*web.Mux
	waits []*web.Response
	gone  string
}

func newShop() actor.Actor {
	s := &shop{Mux: web.NewMux()}
	say := func(text string) web.Handler {
		return func(_ *actor.Context, r *web.Request, w *web.Response) error {
			w.Text(text + " " + r.PathValue("x") + " " + r.PathValue("rest"))
			return nil
		}
	}
	for _, p := range []string{"GET /a/{x}", "/a/{x}", "/a/b", "GET /a/{x}/c", "/t/", "/t/{x}/{rest...}", "/{$}", "POST /p"} {
		s.Handle(p, say(p))
	}
	s.Handle("/all", func(_ *actor.Context, r *web.Request, w *web.Response) error {
		kind, name := r.User()
		var b strings.Builder
		r.Headers(func(k, v []byte) { b.WriteString(string(k) + "=" + string(v) + ";") })
		w.Status(201).Header("X-A", "1").Type("x/y").Bytes([]byte(r.Method() + r.Path() + r.Query("a b") + r.Query("none") + string(r.Body()) + r.Header("X-H") + r.Header("none") + r.Remote() + r.ID() + kind + name + r.Claim("scope").Text() + b.String()))
		return nil
	})
	s.Handle("/later", func(_ *actor.Context, _ *web.Request, w *web.Response) error {
		s.waits = append(s.waits, w.Status(202).Later())
		return nil
	})
	s.Gone(func(_ *actor.Context, id string) error { s.gone = id; return nil })
	return s
}

func (s *shop) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Is("now") {
		for _, w := range s.waits {
			w.Text("late").Send(ctx)
		}
		return nil
	}
	return s.Mux.Receive(ctx, m)
}

func init() { actor.Register("shop", newShop) }

// answer takes [status, headers, body] apart.
func answer(t *testing.T, s actortest.Sent) (status uint64, headers []string, body string) {
	t.Helper()
	r := abi.NewReader(s.Payload)
	if r.Array() != 3 {
		t.Fatalf("% x", s.Payload)
	}
	status = r.Uint()
	if !r.Null() {
		for range r.Array() {
			headers = append(headers, r.Text())
		}
	}
	switch r.Peek() {
	case abi.TypeText:
		body = r.Text()
	case abi.TypeBytes:
		body = string(r.Bytes())
	default:
		r.Null()
	}
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	return status, headers, body
}

// The mux goes by ServeMux's rules, with the gateway's values and with its own.
func TestMux(t *testing.T) {
	a := actortest.Spawn(t, "shop")
	for _, c := range []struct {
		method, path, route, values string
		status                      uint64
		body                        string
	}{
		{"GET", "/a/1", "/", "", 200, "GET /a/{x} 1 "},
		{"HEAD", "/a/1", "/", "", 200, "GET /a/{x} 1 "},
		{"POST", "/a/1", "/", "", 200, "/a/{x} 1 "},
		{"GET", "/a/b", "/", "", 200, "/a/b  "},
		{"GET", "/a/1/c", "/", "", 200, "GET /a/{x}/c 1 "},
		{"PUT", "/a/1/c", "/", "", 405, "the path does not allow this method"},
		{"GET", "/a/", "/", "", 404, "there is no such page"},
		{"GET", "/t/", "/", "", 200, "/t/  "},
		{"GET", "/t/1", "/", "", 200, "/t/  "},
		{"GET", "/t/1/2/3", "/", "", 200, "/t/{x}/{rest...} 1 2/3"},
		{"GET", "/", "/", "", 200, "/{$}  "},
		{"GET", "/p", "/", "", 405, "the path does not allow this method"},
		{"GET", "/anything", "GET /a/{x}", "v/w", 200, "GET /a/{x} v/w "},
		{"GET", "/anything", "/t/{x}/{rest...}", "1 2/3", 200, "/t/{x}/{rest...} 1 2/3"},
		{"GET", "/anything", "/t/{x}/{rest...}", "1 2/3", 200, "/t/{x}/{rest...} 1 2/3"},
	} {
		status, _, body := answer(t, a.Send(request(c.method, c.path, c.route, c.values, "", nil)).Reply())
		if status != c.status || body != c.body {
			t.Errorf("%s %s of %s: %d %q, want %d %q", c.method, c.path, c.route, status, body, c.status, c.body)
		}
	}
	for _, bad := range []string{"a", "/a//b", "/{x...}/b", "/a{b}", "GET a", "/all"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", bad)
				}
			}()
			newShop().(*shop).Handle(bad, nil)
		}()
	}
}

func TestRequestAndResponse(t *testing.T) {
	a := actortest.Spawn(t, "shop")
	status, headers, body := answer(t, a.Send(request("PUT", "/all", "/", "", "x=1&a+b=%C3%A4%2&c", []byte("body"), "x-h", "h", "y", "z")).Reply())
	if want := "PUT/allä%2bodyh1.2.3.4id-7jwtannallx-h=h;y=z;"; status != 201 || body != want || strings.Join(headers, " ") != "content-type x/y X-A 1" {
		t.Errorf("%d %v\n%q\n%q", status, headers, body, want)
	}
	turn := a.Send(request("GET", "/later", "/", "", "", nil))
	if len(turn.Sent) != 0 {
		t.Error("it is answered at once")
	}
	sent := a.Send(actor.Text("now")).Sent
	if len(sent) != 1 {
		t.Fatal(sent)
	}
	if status, _, body := answer(t, sent[0]); status != 202 || body != "late" {
		t.Error(status, body)
	}
	a.Send(actor.Func(func(w *abi.Writer) { w.Array(2); w.Text("http.gone"); w.Text("id-7") }))
	if got := a.Actor().(*shop).gone; got != "id-7" {
		t.Error(got)
	}
	for _, other := range []actor.Encoder{actor.Text("x"), actor.Int(1), actor.Raw{0x82, 0x01, 0x02}, actor.Raw{0x82, 0x64, 'h', 't', 't', 'p', 0x80}, actor.Raw{0x80}} {
		if turn := a.Send(other); !turn.Unhandled {
			t.Errorf("%v is handled", other)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	for s, want := range map[string]string{"": `""`, "a\"b\\c\n\t\r\x01ä": `"a\"b\\c\n\t\r\u0001ä"`} {
		if got := string(web.AppendJSON(nil, s)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte{0x82, 0x64, 'h', 't', 't', 'p', 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		if abi.Valid(b) != nil {
			return
		}
		actortest.Spawn(t, "shop").Send(actor.Raw(b)) // it must not panic on what the gateway does not write
	})
}
