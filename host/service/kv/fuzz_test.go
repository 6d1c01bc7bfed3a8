package kv

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Whatever a request says, it is answered or refused with a code, and what another namespace
// holds is neither seen nor changed.
func FuzzKVRequest(f *testing.F) {
	for op, args := range map[string]any{
		"get": map[string]any{"key": "k"}, "put": map[string]any{"key": "k", "value": []byte("v"), "ttl": 1_000_000_000, "if_version": 0},
		"add": map[string]any{"key": "n", "delta": -1}, "list": map[string]any{"prefix": "k", "cursor": []byte{1, 'k'}, "limit": 3, "values": true, "reverse": true},
		"batch":  map[string]any{"ops": []any{map[string]any{"op": "check", "key": "k", "if_version": 1}, map[string]any{"op": "delete", "key": "k"}}},
		"delete": map[string]any{"key": "k", "namespace": "n", "durability": "os"}, "usage": nil,
	} {
		b, _ := cbor.Marshal(args)
		f.Add(op, b)
	}
	s, err := openStore(newMemory(), host.NewVirtualClock(time.Unix(1e9, 0)), quiet(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.close() })
	if _, _, err := s.change(context.Background(), "other", Quota{}, []Op{put("k", "secret")}, Disk); err != nil {
		f.Fatal(err)
	}
	p := newProvider(&service.Env{})
	p.store = s
	g := Grant{Namespace: "n", Mode: "rw", Quota: 1 << 20, Keys: 100}
	f.Fuzz(func(t *testing.T, op string, args []byte) {
		r := &request{Op: op, Args: args, Grant: &g}
		p.Accepted(r)
		answer, err := p.Serve(context.Background(), r)
		if code := service.CodeOf(err); code == service.Internal || code == service.Unavailable {
			t.Fatal(err)
		}
		if b, err := cbor.Marshal(answer); err != nil || bytes.Contains(b, []byte("secret")) {
			t.Fatalf("%x %v", b, err)
		}
		if len(p.order.tails)+len(p.order.tickets) != 0 {
			t.Fatal("something is left")
		}
		if e, err := s.get("other", "k"); err != nil || string(e.Value) != "secret" {
			t.Fatal(e, err)
		}
	})
}

// A cursor leads to a key below its prefix, or is refused; a list with it stays there.
func FuzzKVCursor(f *testing.F) {
	f.Add([]byte{1, 'a', '/', '1'}, "a/", false)
	f.Add([]byte{1}, "", true)
	f.Add([]byte{2, 'a'}, "a", false)
	s, err := openStore(newMemory(), host.NewVirtualClock(time.Unix(1e9, 0)), quiet(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.close() })
	for _, ns := range []string{"m", "n", "o", "nn"} {
		for _, key := range []string{"a/1", "a/2", "b/1", "a", "\U0010ffff"} {
			if _, _, err := s.change(context.Background(), ns, Quota{}, []Op{put(key, ns)}, Memory); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.Fuzz(func(t *testing.T, cursor []byte, prefix string, reverse bool) {
		if !utf8.ValidString(prefix) || len(prefix) > MaxKey {
			return
		}
		if last, err := decodeCursor(cursor, prefix); err == nil && (!strings.HasPrefix(last, prefix) || checkKey(last) != nil) {
			t.Fatalf("%q", last)
		}
		page, _, err := s.list(listing{ns: "n", prefix: prefix, cursor: cursor, values: true, reverse: reverse})
		if code := service.CodeOf(err); code != "" && code != service.BadRequest {
			t.Fatal(err)
		}
		for _, e := range page {
			if !strings.HasPrefix(e.Key, prefix) || string(e.Value) != "n" {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// A record of a store is read as it was written, and anything else is an error.
func FuzzStoredRecord(f *testing.F) {
	for _, r := range []record{{version: 1, value: []byte("v")}, {version: 1 << 60, expires: 7, counter: true, count: -1}} {
		f.Add(r.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(r.encode())
		if err != nil || again.version != r.version || again.expires != r.expires || again.count != r.count || !bytes.Equal(again.value, r.value) {
			t.Fatalf("%+v %+v %v", r, again, err)
		}
	})
}
