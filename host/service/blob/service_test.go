package blob

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

type m = map[string]any

var (
	writes = Grant{Namespace: "test", Access: "rw"}
	reads  = Grant{Namespace: "test"}
)

// TestErrors is the table of errors: which request is refused with which code.
func TestErrors(t *testing.T) {
	w := newWorld(t)
	rw := w.actor("rw", &Grant{Namespace: "test", Access: "rw", Object: 1000, Quota: 5000, Objects: 3, Streams: 1}, service.Bounds{})
	ro := w.actor("ro", &reads, service.Bounds{})
	apart := w.actor("apart", &Grant{Namespace: "apart", Access: "rw"}, service.Bounds{})
	nobody := w.actor("nobody", nil, service.Bounds{})
	for _, c := range []struct {
		who  host.Ref
		what any
		want string
	}{
		{nobody, []any{"get", m{"name": "a"}}, "denied: blob is not granted"},
		{rw, []any{"put", m{"name": "a", "data": []byte("abc"), "type": "text/plain"}}, ""},
		{ro, []any{"get", m{"name": "a", "verify": true}}, ""},
		{ro, []any{"stat", m{"name": "a"}}, ""},
		{ro, []any{"put", m{"name": "a", "data": []byte("abc")}}, "read_only: "},
		{ro, []any{"delete", m{"name": "a"}}, "read_only: "},
		{apart, []any{"get", m{"name": "a"}}, "not_found: "},
		{apart, []any{"get", m{"name": "../ns-test/objects/" + fileName("a")}}, "not_found: "},
		{rw, []any{"fly", m{}}, "bad_request: there is no operation"},
		{rw, []any{"get", nil}, "bad_request: "},
		{rw, []any{"get", m{"name": ""}}, "bad_request: "},
		{rw, []any{"get", m{"name": "a", "more": 1}}, "bad_request: "},
		{rw, []any{"get", m{"name": 5}}, "bad_request: "},
		{rw, []any{"get", m{"name": "a", "offset": -1}}, "bad_request: "},
		{rw, []any{"get", m{"name": "a", "length": -1}}, "bad_request: "},
		{rw, []any{"stat", m{"name": "gone"}}, "not_found: "},
		{rw, []any{"put", m{"name": "a\x00", "data": []byte{}}}, "bad_request: "},
		{rw, []any{"put", m{"name": strings.Repeat("x", 1025), "data": []byte{}}}, "bad_request: "},
		{rw, []any{"put", m{"name": "b", "data": []byte{}, "type": strings.Repeat("x", 256)}}, "bad_request: "},
		{rw, []any{"put", m{"name": "b", "data": []byte{}, "if": "there"}}, "bad_request: "},
		{rw, []any{"put", m{"name": "b", "data": []byte{}, "match": []byte("short")}}, "bad_request: "},
		{rw, []any{"put", m{"name": "a", "data": []byte{}, "if": "absent"}}, "exists: "},
		{rw, []any{"put", m{"name": "a", "data": []byte{}, "match": make([]byte, 32)}}, "conflict: "},
		{rw, []any{"put", m{"name": "b", "data": []byte{}, "sha256": make([]byte, 32)}}, "conflict: "},
		{rw, []any{"put", m{"name": "b", "data": make([]byte, 1001)}}, "too_large: "},
		{rw, []any{"put", m{"name": "b", "data": []byte{}}}, ""},
		{rw, []any{"put", m{"name": "c", "data": []byte{}}}, ""},
		{rw, []any{"put", m{"name": "d", "data": []byte{}}}, "quota: "},
		{rw, []any{"put", m{"name": "a"}}, ""}, // a sink
		{rw, []any{"put", m{"name": "a"}}, "busy: "},
		{rw, []any{"delete", m{"name": "a", "match": make([]byte, 32)}}, "conflict: "},
		{rw, []any{"list", m{"limit": -1}}, "bad_request: "},
		{rw, []any{"usage", m{"x": 1}}, "bad_request: "},
	} {
		if got, err := ask[m](w, c.who, c.what); c.want == "" && err != "" || !strings.HasPrefix(err, c.want) || c.want != "" && err == "" {
			t.Errorf("%.120v: %v %q, want %q", fmt.Sprint(c.what), got, err, c.want)
		}
	}
	got, err := ask[m](w, ro, []any{"get", m{"name": "a", "offset": 1, "length": 1}})
	if err != "" || string(got["data"].([]byte)) != "b" || got["size"] != uint64(3) || got["type"] != "text/plain" {
		t.Error(got, err)
	}
	got, err = ask[m](w, ro, []any{"get", m{"name": "a", "offset": 100}})
	if err != "" || len(got["data"].([]byte)) != 0 {
		t.Error(got, err)
	}
	got, err = ask[m](w, rw, []any{"usage", nil})
	if err != "" || fmt.Sprint(got) != "map[bytes:3 objects:3 quota:5000 quota_objects:3]" {
		t.Error(got, err)
	}
	got, err = ask[m](w, ro, []any{"list", m{"limit": 2}})
	if err != "" || got["next"] != "b" || len(got["objects"].([]any)) != 2 {
		t.Error(got, err)
	}
	got, err = ask[m](w, ro, []any{"list", m{"after": "b"}})
	if err != "" || got["next"] != nil || len(got["objects"].([]any)) != 1 {
		t.Error(got, err)
	}
}

// TestGuest: a guest in standard Go writes, reads and copies more than it could be sent.
func TestGuest(t *testing.T) {
	w := newWorld(t)
	keeper := w.guest("keeper", "blob-keeper", &writes)
	const large = 1_500_000
	for _, c := range []struct {
		what, name string
		n, want    int64
		err        string
	}{
		{"put", "small", 1000, 1000, ""},
		{"put", "empty", 0, 0, ""},
		{"stream", "large", large, large, ""},
		{"check", "small", 0, 1000, ""},
		{"check", "empty", 0, 0, ""},
		{"check", "large", 0, large, ""},
		{"check", "large", large - 100, 100, ""},
		{"check", "large", large / 2, large / 2, ""},
		{"check", "large", large + 5, 0, ""},
		{"check", "gone", 0, 0, "not_found: "},
		{"copy", "large", 0, large, ""},
		{"check", "large.copy", 0, large, ""},
		{"list", "", 0, 4, ""},
		{"list", "large", 0, 2, ""},
		{"break", "unfinished", 100_000, 100_000, ""},
		{"check", "unfinished", 0, 0, "not_found: "},
		{"delete", "small", 0, 1, ""},
		{"delete", "small", 0, 0, ""},
	} {
		if n, err := ask[int64](w, keeper, []any{c.what, c.name, c.n}); n != c.want || !strings.HasPrefix(err, c.err) || c.err == "" && err != "" {
			t.Errorf("%s %s %d: %d %s, want %d %s", c.what, c.name, c.n, n, err, c.want, c.err)
		}
	}
	// The guest ends: what it has not finished is given up.
	w.sys.Stop(keeper)
	x, err := w.running.Provider().(*provider).store.space("test")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		x.mu.Lock()
		coming := x.coming
		x.mu.Unlock()
		if coming == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the object is still coming")
		}
	}
	if left := files(t, filepath.Join(w.dir, "blobs", "ns-test", newFolder)); len(left) != 0 {
		t.Error(left)
	}

	reader := w.guest("reader", "blob-keeper", &reads)
	if n, err := ask[int64](w, reader, []any{"check", "large", 0}); n != large || err != "" {
		t.Error(n, err)
	}
	if _, err := ask[int64](w, reader, []any{"stream", "x", 5}); !strings.HasPrefix(err, "read_only: ") {
		t.Error(err)
	}
	stranger := w.guest("stranger", "blob-keeper", nil)
	if _, err := ask[int64](w, stranger, []any{"check", "large", 0}); !strings.HasPrefix(err, "denied: ") {
		t.Error(err)
	}
	small := w.guest("small", "blob-keeper", &Grant{Namespace: "other", Access: "rw", Quota: 100_000, Object: 1 << 30})
	if _, err := ask[int64](w, small, []any{"stream", "x", large}); !strings.HasPrefix(err, "quota: ") {
		t.Error(err)
	}
}

func TestNoState(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(t.Context()) }()
	if _, err := Service.Start(sys, nil, nil); err == nil || !strings.Contains(err.Error(), "kept in the state") {
		t.Error(err)
	}
}

func BenchmarkPut(b *testing.B) {
	x := openSpace(b, b.TempDir())
	data := bytes.Repeat([]byte("x"), 100_000)
	b.SetBytes(int64(len(data)))
	for i := range b.N {
		if _, err := put(x, fmt.Sprint(i%100), data, wide, condition{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGuest is bytes a second through the streams of one guest.
func BenchmarkGuest(b *testing.B) {
	for _, what := range []string{"stream", "check"} {
		b.Run(what, func(b *testing.B) {
			w := newWorld(b)
			keeper := w.guest("keeper", "blob-keeper", &writes)
			const n = 2_000_000
			if _, err := ask[int64](w, keeper, []any{"stream", "x", n}); err != "" {
				b.Fatal(err)
			}
			b.SetBytes(n)
			b.ResetTimer()
			for range b.N {
				arg := n
				if what == "check" {
					arg = 0
				}
				if _, err := ask[int64](w, keeper, []any{what, "x", arg}); err != "" {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestFlood(t *testing.T) {
	w := newWorld(t)
	g := Grant{Namespace: "flood", Access: "rw", Quota: 1 << 20, Object: 1000}
	servicetest.Flood(t, w.sys, w.running, Service.Grant(g, service.Bounds{}), "put", func(i int) any {
		return map[string]any{"name": fmt.Sprint(i % 100), "data": []byte("x")}
	})
}
