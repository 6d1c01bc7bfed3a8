package httpclient

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"
)

// What is read without reflection is what the strict decoder reads, and what that refuses is not read; what guests
// write is read.
func TestRequestsAreReadAsByTheDecoder(t *testing.T) {
	strict, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	compare := func(t interface {
		Errorf(string, ...any)
		Helper()
	}, args []byte) (read bool) {
		t.Helper()
		got, want := request{Method: "POST"}, request{Method: "POST"}
		err := strict.Unmarshal(args, &want)
		if read = got.read(args); !read {
			return false
		}
		for _, q := range []*request{&got, &want} { // no list, or one without elements
			if len(q.Headers) == 0 {
				q.Headers = nil
			}
			if len(q.Body) == 0 {
				q.Body = nil
			}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("% x: %+v, not %+v, %v", args, got, want, err)
		}
		return true
	}
	n := uint64(7)
	full := request{"PUT", "http://a/b", []Header{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}, []byte("body"), &n, &n, &n, &n, true, true}
	for _, q := range []request{{URL: "http://a"}, full} {
		args, err := cbor.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if !compare(t, args) {
			t.Errorf("% x is not read", args)
		}
		for i := range args {
			compare(t, args[:i])
			compare(t, append(bytes.Clone(args), args[i]))
			for _, bit := range []byte{1, 0x20, 0x80} {
				odd := bytes.Clone(args)
				odd[i] ^= bit
				compare(t, odd)
			}
		}
	}
	for name, args := range map[string]string{
		"a key twice":      "\xa2\x63url\x61a\x63url\x61b",
		"an unknown key":   "\xa1\x63urn\x61a",
		"no map":           "\x80",
		"a header of one":  "\xa1\x67headers\x81\x81\x61a",
		"a header of more": "\xa1\x67headers\x81\x83\x61a\x61b\x61c",
		"something behind": "\xa1\x63url\x61a\x00",
		"a negative size":  "\xa1\x64size\x20",
		"nothing":          "",
		"a number as key":  "\xa1\x01\x61a",
	} {
		if compare(t, []byte(args)) {
			t.Errorf("%s is read", name)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		q := map[string]any{}
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"method", "url", "headers", "body", "size", "redirects", "inline", "max", "stream", "decode", "other"}), rapid.ID[string]).Draw(t, "keys") {
			q[key] = rapid.SampledFrom([]any{"text", []byte("bytes"), uint64(1 << 40), -1, true, nil, []Header{{Name: "a", Value: "b"}}, []any{}, 1.5, []any{[]any{"a"}}}).Draw(t, key)
		}
		args, err := cbor.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, args)
	})
}

func BenchmarkRequestArguments(b *testing.B) {
	args, err := cbor.Marshal(request{Method: "GET", URL: "http://127.0.0.1:8080/path", Headers: []Header{{Name: "accept", Value: "text/html"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var q request
			if !q.read(args) {
				b.Fatal("not read")
			}
		}
	})
	b.Run("decoder", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var q request
			if err := cbor.Unmarshal(args, &q); err != nil {
				b.Fatal(err)
			}
		}
	})
}
