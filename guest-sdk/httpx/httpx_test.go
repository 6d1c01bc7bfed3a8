//go:build !wasip1

package httpx_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

// user does what a test tells it, and notes what comes of it.
type user struct{ heard string }

var todo func(ctx *actor.Context, u *user)

func (u *user) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Text() {
	case "do":
		todo(ctx, u)
	case "heard":
		return ctx.Reply(actor.Text(u.heard))
	default:
		return actor.ErrUnhandled
	}
	return nil
}

func init() { actor.Register("user", func() actor.Actor { return &user{} }) }

func (u *user) then(_ *actor.Context, res *httpx.Response, err error) error {
	if err != nil {
		u.heard = err.Error()
		return nil
	}
	u.heard = fmt.Sprintf("%d %s %q stream=%v length=%d type=%s ok=%v", res.Status, res.URL, res.Body, res.Stream != 0, res.Length, res.Header("Content-TYPE"), res.OK())
	return nil
}

// run has an actor do something with a service that answers, and returns what was asked and heard.
func run(t *testing.T, handler func(*actortest.Call), what func(*actor.Context, *user)) (calls []*actortest.Call, heard string) {
	t.Helper()
	w := actortest.NewWorld(t)
	fake := w.Serve(httpx.Service, handler)
	todo = what
	a := w.Spawn("user")
	w.Tell(a, actor.Text("do"))
	return fake.Calls(), w.Ask(a, actor.Text("heard")).Text()
}

// answer is one of the service's.
func answer(status int, more func(w *abi.Writer), fields int) actor.Encoder {
	return actor.Func(func(w *abi.Writer) {
		w.Map(2 + fields)
		w.Text("status")
		w.Int(int64(status))
		w.Text("headers")
		w.Array(2)
		for _, h := range [][2]string{{"content-type", "text/plain"}, {"etag", "x"}} {
			w.Array(2)
			w.Text(h[0])
			w.Text(h[1])
		}
		if more != nil {
			more(w)
		}
	})
}

func body(s string) func(w *abi.Writer) {
	return func(w *abi.Writer) {
		w.Text("body")
		w.ByteString([]byte(s))
	}
}

func TestRequests(t *testing.T) {
	for _, row := range []struct {
		name string
		what func(*actor.Context, *user)
		op   string
		args string // as diagnostic of the fields
	}{
		{"get", func(ctx *actor.Context, u *user) { httpx.Get(ctx, "https://a.example/", u.then) }, "do", "url=https://a.example/"},
		{"post", func(ctx *actor.Context, u *user) {
			httpx.Post(ctx, "https://a.example/", "text/plain", []byte("hello"), u.then)
		}, "do", "url=https://a.example/ method=POST headers=[content-type:text/plain] body=hello"},
		{"all of it", func(ctx *actor.Context, u *user) {
			q := &httpx.Request{URL: "u", Method: "PUT", Body: []byte("b"), Redirects: httpx.Stay, Answer: httpx.Streamed, Most: 7, Unzip: true, Timeout: time.Minute}
			q.Set("a", "1")
			q.Set("b", "2")
			httpx.Do(ctx, q, u.then)
		}, "do", "url=u method=PUT headers=[a:1 b:2] body=b redirects=0 stream=true max=7 decode=true"},
		{"tell", func(ctx *actor.Context, u *user) { httpx.Tell(ctx, &httpx.Request{URL: "u"}) }, "do", "url=u"},
		{"upload", func(ctx *actor.Context, u *user) {
			httpx.Upload(ctx, &httpx.Request{URL: "u"}, 5, func(*actor.Context, actor.Ref, error) error { return nil })
		}, "upload", "url=u size=5"},
		{"upload of any size", func(ctx *actor.Context, u *user) {
			httpx.Upload(ctx, &httpx.Request{URL: "u"}, httpx.Unknown, func(*actor.Context, actor.Ref, error) error { return nil })
		}, "upload", "url=u"},
	} {
		calls, _ := run(t, nil, row.what)
		if len(calls) != 1 {
			t.Errorf("%s: %d calls", row.name, len(calls))
			continue
		}
		if got := show(calls[0].Reader()); calls[0].Op != row.op || got != row.args {
			t.Errorf("%s: %s %s", row.name, calls[0].Op, got)
		}
		want := httpx.DefaultTimeout
		switch row.name {
		case "all of it":
			want = time.Minute
		case "tell":
			want = 0
		}
		if calls[0].Timeout != want {
			t.Errorf("%s: timeout %v", row.name, calls[0].Timeout)
		}
	}
}

// show writes arguments as text.
func show(r *abi.Reader) string {
	var out []string
	for range r.Map() {
		key, value := r.Text(), ""
		switch r.Peek() {
		case abi.TypeText:
			value = r.Text()
		case abi.TypeBytes:
			value = string(r.ByteString())
		case abi.TypeBool:
			value = fmt.Sprint(r.Bool())
		case abi.TypeArray:
			var list []string
			for range r.Array() {
				r.Array()
				list = append(list, r.Text()+":"+r.Text())
			}
			value = fmt.Sprint(list)
		default:
			value = fmt.Sprint(r.Int())
		}
		out = append(out, key+"="+value)
	}
	if err := r.Done(); err != nil {
		return err.Error()
	}
	return strings.Join(out, " ")
}

func TestAnswers(t *testing.T) {
	get := func(ctx *actor.Context, u *user) { httpx.Get(ctx, "u", u.then) }
	for _, row := range []struct {
		handler func(*actortest.Call)
		want    string
	}{
		{func(c *actortest.Call) { c.Answer(answer(200, body("hello"), 1)) }, `200  "hello" stream=false length=-1 type=text/plain ok=true`},
		{func(c *actortest.Call) {
			c.Answer(answer(404, func(w *abi.Writer) {
				w.Text("url")
				w.Text("https://b.example/")
				w.Text("stream")
				w.Ref(99)
				w.Text("length")
				w.Uint(1000)
				w.Text("new")
				w.Array(1)
				w.Null()
			}, 4))
		}, `404 https://b.example/ "" stream=true length=1000 type=text/plain ok=false`},
		{func(c *actortest.Call) { c.Fail(service.Denied, "no") }, "denied: no"},
		{func(c *actortest.Call) { c.Answer(actor.Text("what")) }, "internal: the answer of the service http is not understood"},
		{func(c *actortest.Call) {
			c.Answer(actor.Func(func(w *abi.Writer) {
				w.Map(1)
				w.Text("headers")
				w.Array(1)
				w.Text("x")
			}))
		}, "internal: the answer of the service http is not understood"},
	} {
		if _, heard := run(t, row.handler, get); heard != row.want {
			t.Errorf("%s, want %s", heard, row.want)
		}
	}
}

func TestNoGrant(t *testing.T) {
	w := actortest.NewWorld(t)
	todo = func(ctx *actor.Context, u *user) {
		httpx.Get(ctx, "u", func(ctx *actor.Context, res *httpx.Response, err error) error {
			if res != nil || !errors.Is(err, service.ErrDenied) {
				t.Errorf("%v, %v", res, err)
			}
			u.heard = "denied"
			return nil
		})
	}
	a := w.Spawn("user")
	w.Tell(a, actor.Text("do"))
	if heard := w.Ask(a, actor.Text("heard")).Text(); heard != "denied" {
		t.Error(heard)
	}
}

// ReadAll gives the body however it comes.
func TestReadAll(t *testing.T) {
	for _, row := range []struct {
		streamed, length bool
		limit            int
		want             string
		closed           bool
	}{
		{false, false, 10, "0123456789", false},
		{false, false, 9, "too_large", false},
		{true, true, 10, "0123456789", false},
		{true, false, 10, "0123456789", false},
		{true, true, 9, "too_large", true},
		{true, false, 9, "too_large", true},
	} {
		w := actortest.NewWorld(t)
		var source *actortest.Fake
		var fake *actortest.Fake
		fake = w.Serve(httpx.Service, func(c *actortest.Call) {
			if !row.streamed {
				c.Answer(answer(200, body("0123456789"), 1))
				return
			}
			left := "0123456789"
			source = fake.Open(func(c *actortest.Call) {
				if c.Op != "read" {
					return
				}
				if left == "" {
					c.Answer(actor.Null)
					return
				}
				n := min(len(left), 4)
				c.Answer(actor.Bytes(left[:n]))
				left = left[n:]
			})
			c.Answer(answer(200, func(w *abi.Writer) {
				w.Text("stream")
				w.Ref(source.Ref())
				if row.length {
					w.Text("length")
					w.Uint(10)
				}
			}, map[bool]int{false: 1, true: 2}[row.length]))
		})
		todo = func(ctx *actor.Context, u *user) {
			httpx.Get(ctx, "u", func(ctx *actor.Context, res *httpx.Response, err error) error {
				return res.ReadAll(ctx, row.limit, time.Second, func(_ *actor.Context, b []byte, err error) error {
					if u.heard = string(b); err != nil {
						u.heard = string(err.(*service.Error).Code)
					}
					return nil
				})
			})
		}
		a := w.Spawn("user")
		w.Tell(a, actor.Text("do"))
		closed := false
		if source != nil {
			for _, c := range source.Calls() {
				closed = closed || c.Op == "close"
			}
		}
		if heard := w.Ask(a, actor.Text("heard")).Text(); heard != row.want || closed != row.closed {
			t.Errorf("%+v: %q, closed %v", row, heard, closed)
		}
	}
}

// An upload: a sink, parts, the end and its answer.
func TestUpload(t *testing.T) {
	w := actortest.NewWorld(t)
	var got []byte
	var fake *actortest.Fake
	fake = w.Serve(httpx.Service, func(c *actortest.Call) {
		sink := fake.Open(func(c *actortest.Call) {
			switch c.Op {
			case "write":
				got = append(got, c.Reader().ByteString()...)
				c.Answer(actor.Uint(1000))
			case "end":
				c.Answer(answer(201, body("made"), 1))
			}
		})
		c.Answer(actor.Func(func(w *abi.Writer) {
			w.Map(2)
			w.Text("later")
			w.Null()
			w.Text("sink")
			w.Ref(sink.Ref())
		}))
	})
	todo = func(ctx *actor.Context, u *user) {
		httpx.Upload(ctx, &httpx.Request{URL: "u"}, httpx.Unknown, func(ctx *actor.Context, to actor.Ref, err error) error {
			stream.WriteAll(ctx, to, make([]byte, 100_000), time.Second, func(ctx *actor.Context, err error) error {
				httpx.Finish(ctx, to, time.Second, u.then)
				return err
			})
			return err
		})
	}
	a := w.Spawn("user")
	w.Tell(a, actor.Text("do"))
	if heard := w.Ask(a, actor.Text("heard")).Text(); heard != `201  "made" stream=false length=-1 type=text/plain ok=true` || len(got) != 100_000 {
		t.Errorf("%s, %d bytes", heard, len(got))
	}
}

// FuzzParse: whatever an answer is, it is read or refused, and what is read can be used.
func FuzzParse(f *testing.F) {
	w := abi.NewWriter(nil)
	answer(200, body("x"), 1).MarshalCBOR(w)
	f.Add(w.Bytes())
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := abi.NewReader(b)
		if r.Raw(); r.Done() != nil {
			t.Skip() // the host sends well-formed items only
		}
		world := actortest.NewWorld(t)
		world.Serve(httpx.Service, func(c *actortest.Call) { c.Answer(actor.Raw(b)) })
		todo = func(ctx *actor.Context, u *user) {
			httpx.Get(ctx, "u", func(_ *actor.Context, res *httpx.Response, err error) error {
				if (res == nil) == (err == nil) {
					t.Fatalf("%v, %v", res, err)
				}
				if res != nil {
					res.Header("x")
					res.Each(func(_, _ []byte) bool { return true })
				}
				return nil
			})
		}
		world.Tell(world.Spawn("user"), actor.Text("do"))
	})
}
