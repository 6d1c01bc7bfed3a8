package mapped

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
	"pgregory.net/rapid"
)

// generated is what guest-sdk/gen makes of a struct.
type generated interface {
	MarshalCBOR(*abi.Writer)
	UnmarshalCBOR(*abi.Reader)
}

func encode(v generated) []byte {
	w := abi.NewWriter(nil)
	v.MarshalCBOR(w)
	return w.Bytes()
}

func decode(v generated, b []byte) error {
	r := abi.NewReader(b)
	v.UnmarshalCBOR(r)
	return r.Done()
}

// deterministic is fxamacker/cbor with the rules of RFC 8949, 4.2.1, but for the
// width of floats.
var deterministic = func() cbor.EncMode {
	mode, err := cbor.EncOptions{Sort: cbor.SortCoreDeterministic, NilContainers: cbor.NilContainerAsEmpty, NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone}.EncMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

var exactNames = func() cbor.DecMode {
	mode, err := cbor.DecOptions{FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, IndefLength: cbor.IndefLengthForbidden,
		TagsMd: cbor.TagsForbidden, UTF8: cbor.UTF8RejectInvalid, SimpleValues: onlyKnown(), MaxNestedLevels: 64}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// fill draws a value for everything that is exported.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := v.Type().Bits()
		v.SetInt(rapid.Int64Range(-1<<(bits-1), 1<<(bits-1)-1).Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, math.MaxUint64>>(64-v.Type().Bits())).Draw(t, "uint"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float32")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float64"))
	case reflect.String:
		v.SetString(rapid.StringN(0, 5, 30).Draw(t, "text"))
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Slice:
		n := rapid.IntRange(-1, 3).Draw(t, "length")
		if depth <= 0 || n < 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Map:
		n := rapid.IntRange(-1, 12).Draw(t, "entries")
		if depth <= 0 || n < 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth-1)
			fill(t, value, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Tag.Get("cbor") != "-" {
				fill(t, v.Field(i), depth-1)
			}
		}
	default:
		panic(v.Kind())
	}
}

// kinds are the types that both codecs write alike.
var kinds = []func() generated{
	func() generated { return &mapped.Everything{} },
	func() generated { return &mapped.Numbered{} },
	func() generated { return &mapped.Mixed{} },
	func() generated { return &mapped.Empty{} },
	func() generated { return &mapped.Wide{} },
	func() generated { return &mapped.Tree{} },
	func() generated { return &mapped.Usual{} },
}

func draw(t *rapid.T) (fresh func() generated, v generated) {
	fresh = kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "type")]
	v = fresh()
	fill(t, reflect.ValueOf(v).Elem(), 5)
	return fresh, v
}

// Generated code writes what fxamacker/cbor writes, byte for byte, reads it back,
// and each reads what the other has written to the same value.
func TestGeneratedCodeAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fresh, v := draw(t)
		ours := encode(v)
		theirs, err := deterministic.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Fatalf("%T\n ours  %x\n theirs %x", v, ours, theirs)
		}
		if err := abi.Valid(ours); err != nil {
			t.Fatal(err)
		}
		back := fresh()
		if err := decode(back, theirs); err != nil {
			t.Fatal(err)
		}
		if again := encode(back); !bytes.Equal(again, ours) {
			t.Fatalf("read back\n %x\nas %x", ours, again)
		}
	})
}

// What generated code accepts, fxamacker/cbor accepts, and both read the same.
func TestGeneratedCodeAcceptsNoMore(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		fresh, v := draw(t)
		data := encode(v)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			case 1:
				data = append(data[:at:at], data[at+1:]...)
			case 2:
				data = append(data[:at:at], append([]byte{rapid.Byte().Draw(t, "byte")}, data[at:]...)...)
			}
			if len(data) == 0 {
				return
			}
		}
		got := fresh()
		if decode(got, data) != nil {
			return
		}
		accepted++
		want := fresh()
		err := exactNames.Unmarshal(data, want)
		if err != nil && (strings.Contains(err.Error(), "cannot be used to match struct field name") || strings.Contains(err.Error(), "overflows Go's int64")) {
			return // a key that is neither text nor integer, or too large a one: stepped over here
		}
		if err != nil {
			t.Fatalf("%T: only fxamacker refuses %x: %v", v, data, err)
		}
		if a, b := encode(got), encode(want); !bytes.Equal(a, b) {
			t.Fatalf("%T: %x is read as\n %x, by fxamacker as\n %x", v, data, a, b)
		}
	})
	if accepted == 0 && !testing.Short() { // short runs are too few to be sure of one
		t.Error("no changed message was accepted: the test compares nothing")
	}
}

// FuzzGenerated: what is read is written in such a way that it is read again.
func FuzzGenerated(f *testing.F) {
	for i, fresh := range kinds {
		f.Add(uint8(i), encode(fresh()))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		fresh := kinds[int(kind)%len(kinds)]
		v := fresh()
		if decode(v, data) != nil {
			return
		}
		first, again := encode(v), fresh()
		if err := decode(again, first); err != nil {
			t.Fatalf("%x: %v", first, err)
		}
		if second := encode(again); !bytes.Equal(first, second) {
			t.Fatalf("%x, then %x", first, second)
		}
	})
}

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
