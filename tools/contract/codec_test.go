package contract

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"pgregory.net/rapid"
)

// other is fxamacker/cbor, as strict as it can be told to be.
var other = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyQuiet, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxNestedLevels: abi.MaxNesting, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32, UTF8: cbor.UTF8RejectInvalid,
		SimpleValues: onlyKnown(), IntDec: cbor.IntDecConvertNone,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// onlyKnown refuses all simple values but false, true and null.
func onlyKnown() *cbor.SimpleValueRegistry {
	var opts []func(*cbor.SimpleValueRegistry) error
	for v := range 256 {
		if v < 20 || v == 23 || v >= 32 {
			opts = append(opts, cbor.WithRejectedSimpleValue(cbor.SimpleValue(v)))
		}
	}
	r, err := cbor.NewSimpleValueRegistryFromDefaults(opts...)
	if err != nil {
		panic(err)
	}
	return r
}

// shortest re-encodes the heads of a well-formed item: fxamacker takes longer
// ones, which we refuse.
func shortest(b []byte) []byte {
	out, _ := reencode(nil, b)
	return out
}

func reencode(dst, b []byte) (out, rest []byte) {
	major, low := b[0]>>5, b[0]&31
	arg, n := uint64(low), 1
	if low >= 24 {
		size := 1 << (low - 24)
		arg = 0
		for _, c := range b[1 : 1+size] {
			arg = arg<<8 | uint64(c)
		}
		n += size
	}
	if major == 7 {
		return append(dst, b[:n]...), b[n:]
	}
	w := abi.NewWriter(nil)
	w.Uint(arg)
	head := w.Bytes()
	head[0] |= major << 5
	dst, b = append(dst, head...), b[n:]
	switch major {
	case 2, 3:
		return append(dst, b[:arg]...), b[arg:]
	case 4, 5:
		for range arg * uint64(major-3) {
			dst, b = reencode(dst, b)
		}
	}
	return dst, b
}

// FuzzValid compares what is accepted: whatever one refuses, the other refuses.
func FuzzValid(f *testing.F) {
	for _, s := range []string{"\x00", "\x18\x18", "\x18\x17", "\x39\x01\x00", "\x43abc", "\x63abc", "\x62\xc3\x28", "\x82\x01\xf6", "\xa1\x61a\xf5",
		"\xf9\x3c\x00", "\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00", "\xf7", "\xf8\x20", "\xc0\x60", "\x9f\xff", "\x5f\xff", "\x1b\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ours := abi.Valid(b)
		theirs := other.Wellformed(b)
		if theirs == nil {
			var v any
			theirs = other.Unmarshal(b, &v)
			if theirs != nil && ours == nil && unhashable(theirs) {
				theirs = nil // a Go map cannot have such a key; CBOR can
			}
		}
		if theirs == nil && !bytes.Equal(shortest(b), b) {
			if ours == nil {
				t.Fatalf("% x: a head that is too long is accepted", b)
			}
			return
		}
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("% x: ours %v, theirs %v", b, ours, theirs)
		}
	})
}

func unhashable(err error) bool {
	switch err.(type) {
	case *cbor.InvalidMapKeyTypeError, *cbor.UnmarshalTypeError:
		return true
	}
	return false
}

// FuzzDecoders feeds every decoder: none may panic, and what is accepted encodes
// to the same bytes again where the form is unique.
func FuzzDecoders(f *testing.F) {
	f.Add(abi.AppendEnvelope(nil, &abi.Envelope{Time: 5, Sender: 7, Headers: abi.AppendHeader(nil, "a", "b"), Payload: []byte{1}}))
	f.Add(abi.AppendSend(nil, 7, "", 1, 1, nil, []byte{1}))
	f.Add(abi.AppendAsk(nil, 0, "/user/a", 1, 2_000_000, nil, []byte{1}))
	f.Add(abi.AppendSpawn(nil, 7, "t", "n", []byte{1}, []byte{0xa0}))
	f.Add(abi.AppendStart(nil, &abi.Start{Type: "t", Reason: "r"}))
	f.Add(abi.AppendStart(nil, &abi.Start{Type: "t", Services: []abi.Service{{Name: "http", Ref: 9}, {Name: "kv", Ref: 300}}}))
	f.Add(abi.AppendStart(nil, &abi.Start{Type: "t", Services: []abi.Service{{Name: "kv", Ref: 9}, {Name: "http", Ref: 300}}}))
	f.Add(abi.AppendStart(nil, &abi.Start{Type: "t", Services: []abi.Service{{Name: "kv", Ref: 9}, {Name: "kv", Ref: 300}}}))
	f.Add(abi.AppendDescription(nil, &abi.Description{ABI: 1, SDK: "s", Types: []string{"t"}}))
	f.Add(abi.AppendFailure(nil, &abi.Failure{Kind: abi.FailureTrap, Stack: []string{"f"}}))
	f.Add(abi.AppendIdentify(nil, "/user/*", 1, 2_000_000))
	f.Add(abi.AppendIdentities(nil, 3, []abi.Identity{{Ref: 7, Path: "/user/a"}, {Ref: 300, Path: "/user/b"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if listed, total, err := abi.DecodeIdentities(b); err == nil {
			if again := abi.AppendIdentities(nil, total, listed); !bytes.Equal(again, b) {
				t.Fatalf("identities % x become % x", b, again)
			}
			for _, one := range listed {
				if one.Ref == 0 || one.Path == "" || len(listed) > min(total, abi.MaxIdentities) {
					t.Fatalf("% x: %v of %d", b, listed, total)
				}
			}
		}
		var e abi.Envelope
		if n, err := abi.DecodeEnvelope(&e, b); err == nil {
			if again := abi.AppendEnvelope(nil, &e); !bytes.Equal(again, b[:n]) {
				t.Fatalf("envelope % x becomes % x", b[:n], again)
			}
			agrees(t, b[:n])
		}
		var c abi.Command
		if n, err := abi.DecodeCommand(&c, b); err == nil {
			agrees(t, b[:n])
		}
		var s, inPlace abi.Start
		err := abi.DecodeStart(&s, b)
		if e := abi.DecodeStartInPlace(&inPlace, b); !reflect.DeepEqual(e, err) || !reflect.DeepEqual(inPlace, s) {
			t.Fatalf("% x: %+v, %v; in place %+v, %v", b, s, err, inPlace, e)
		}
		if err == nil {
			agrees(t, b)
			for i := range s.Services {
				if i > 0 && s.Services[i-1].Name >= s.Services[i].Name || len(s.Services) > abi.MaxServices || s.Services[i].Ref == 0 {
					t.Fatalf("% x: services %v", b, s.Services)
				}
			}
			var again abi.Start
			if err := abi.DecodeStart(&again, abi.AppendStart(nil, &s)); err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("% x: %+v becomes %+v, %v", b, s, again, err)
			}
		}
		var d abi.Description
		if abi.DecodeDescription(&d, b) == nil {
			agrees(t, b)
		}
		var x abi.Failure
		if abi.DecodeFailure(&x, b) == nil {
			agrees(t, b)
		}
	})
}

// agrees: what our decoders accept is valid to both.
func agrees(t *testing.T, b []byte) {
	if err := abi.Valid(b); err != nil {
		t.Fatalf("% x: accepted, though %v", b, err)
	}
	if err := other.Wellformed(b); err != nil {
		t.Fatalf("% x: accepted, though the other says %v", b, err)
	}
}

// What either writes the other reads alike.
func TestValuesTravelBothWays(t *testing.T) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		i, u := rapid.Int64().Draw(t, "i"), rapid.Uint64().Draw(t, "u")
		s, b := rapid.String().Draw(t, "s"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		f := rapid.Float64().Draw(t, "f")

		w := abi.NewWriter(nil)
		w.Array(5)
		w.Int(i)
		w.Uint(u)
		w.Text(s)
		w.ByteString(b)
		w.Float(f)
		var got struct {
			_ struct{} `cbor:",toarray"`
			I int64
			U uint64
			S string
			B []byte
			F float64
		}
		if err := other.Unmarshal(w.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.I != i || got.U != u || got.S != s || !bytes.Equal(got.B, b) || got.F != f {
			t.Fatalf("they read %+v", got)
		}

		text, err := enc.Marshal([]any{i, u, s, b, f})
		if err != nil {
			t.Fatal(err)
		}
		r := abi.NewReader(text)
		if n := r.Array(); n != 5 || r.Int() != i || r.Uint() != u || r.Text() != s || !(bytes.Equal(r.ByteString(), b) || b == nil) || r.Float() != f || r.Done() != nil {
			t.Fatalf("we read % x wrongly: %v", text, r.Err())
		}
	})
}
