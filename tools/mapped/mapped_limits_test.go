package mapped

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
)

// cborOf writes any value with the other codec.
func cborOf(t testing.TB, v any) []byte {
	t.Helper()
	b, err := deterministic.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGeneratedCodeRefuses(t *testing.T) {
	type m = map[string]any
	deep := []byte{}
	for range 10_000 {
		deep = append(deep, 0xa1, 0x61, 'k', 0x81) // {"k": [
	}
	for _, c := range []struct {
		name string
		into generated
		data []byte
		want string
	}{
		{"range", &mapped.Everything{}, cborOf(t, m{"i8": 128}), "abi: Everything.i8: a number is out of range at offset 4"},
		{"range of a negative", &mapped.Everything{}, cborOf(t, m{"i16": -32769}), "abi: Everything.i16: a number is out of range at offset 5"},
		{"unsigned range", &mapped.Everything{}, cborOf(t, m{"Color": 256}), "abi: Everything.Color: a number is out of range at offset 7"},
		{"negative", &mapped.Everything{}, cborOf(t, m{"u64": -1}), "abi: Everything.u64: an item of another type was expected, this is a negative integer, at offset 5"},
		{"float32", &mapped.Everything{}, cborOf(t, m{"f32": 1e300}), "abi: Everything.f32: a number is out of range at offset 5"},
		{"type", &mapped.Everything{}, cborOf(t, m{"Text": 1}), "abi: Everything.Text: an item of another type was expected, this is an unsigned integer, at offset 6"},
		{"null", &mapped.Everything{}, cborOf(t, m{"Text": nil}), "abi: Everything.Text: an item of another type was expected, this is null, at offset 6"},
		{"nested", &mapped.Everything{}, cborOf(t, m{"Inners": []m{{"a": 1}, {"a": "x"}}}), "abi: Inner.a: an item of another type was expected, this is text, at offset 16"},
		{"within a map", &mapped.Everything{}, cborOf(t, m{"BySigned": map[int64]bool{1 << 40: true}}), "abi: Everything.BySigned: a number is out of range at offset 11"},
		{"digest", &mapped.Everything{}, cborOf(t, m{"Digest": []byte{1, 2, 3}}), "abi: Everything.Digest: wrong number of elements at offset 8"},
		{"grid", &mapped.Everything{}, cborOf(t, m{"Grid": [][]int{{1, 2, 3}, {1, 2}}}), "abi: Everything.Grid: wrong number of elements at offset 12"},
		{"not a map", &mapped.Everything{}, cborOf(t, 1), "abi: Everything: an item of another type was expected, this is an unsigned integer, at offset 0"},
		{"trailing", &mapped.Empty{}, []byte{0xa0, 0}, "abi: data after the item at offset 1"},
		{"twice", &mapped.Mixed{}, []byte("\xa2\x63one\x61a\x63one\x61b"), "abi: Mixed.one: a map has a key twice at offset 11"},
		{"a number twice", &mapped.Mixed{}, []byte("\xa2\x01\x01\x01\x02"), "abi: Mixed.One: a map has a key twice at offset 4"},
		{"twice in a wide one", &mapped.Wide{}, []byte("\xa2\x63F69\x01\x63F69\x01"), "abi: Wide.F69: a map has a key twice at offset 10"},
		{"twice in a map", &mapped.Everything{}, []byte("\xa1\x68BySigned\xa2\x05\xf5\x05\xf5"), "abi: Everything.BySigned: a map has a key twice at offset 14"},
		{"missing", &mapped.Required{}, cborOf(t, m{"a": 1, "c": 1}), "abi: Required.b: a required key is missing at offset 7"},
		{"deep", &mapped.Tree{}, deep, "abi: Tree: nested too deeply at offset 128"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := decode(c.into, c.data)
			if err == nil || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if at := (*abi.At)(nil); !errors.As(err, &at) {
				t.Errorf("%T", err)
			}
		})
	}
}

func TestGeneratedCodeIsLenientWhereItSaysSo(t *testing.T) {
	e := mapped.Everything{Int: 5}
	err := decode(&e, cborOf(t, map[any]any{"i8": 1, "unknown": []any{1, "x"}, 7: 8, true: nil, "Numbers": nil, "ByName": nil, "Bytes": nil}))
	if err != nil || e.Int != 0 || e.Int8 != 1 || e.Numbers != nil || e.ByName != nil || e.Bytes != nil {
		t.Errorf("%+v, %v", e, err)
	}
	var n mapped.Numbered
	if err := decode(&n, cborOf(t, map[any]any{uint64(math.MaxUint64): 1, "x": 2, 0: "zero"})); err != nil || n.Zero != "zero" {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestGeneratedTimes(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 0, 0, 5, time.FixedZone("", 3600))
	m := mapped.Moment{At: at, Maybe: &at, Money: -250}
	var back mapped.Moment
	if err := decode(&back, encode(&m)); err != nil {
		t.Fatal(err)
	}
	if !back.At.Equal(at) || !back.Maybe.Equal(at) || !back.Last.IsZero() || back.Money != -250 {
		t.Errorf("%+v", back)
	}
	var got map[string]any
	if err := exactNames.Unmarshal(encode(&m), &got); err != nil || got["at"] != uint64(at.UnixNano()) {
		t.Errorf("%v, %v", got, err)
	}
	if err := decode(&back, encode(&mapped.Moment{})); err != nil || !back.At.IsZero() || back.Maybe != nil {
		t.Errorf("%+v, %v", back, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a time that does not fit was written")
		}
	}()
	encode(&mapped.Moment{At: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)})
}

// A length that is claimed costs nothing; what is there does.
func TestGeneratedCodeAllocatesWhatIsThere(t *testing.T) {
	head := []byte("\xa1\x66Inners\x99\xea\x60") // 60000 elements
	data := append(head, bytes.Repeat([]byte{0xff}, 60_000)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var e mapped.Everything
	if decode(&e, data) == nil {
		t.Fatal("accepted")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 100_000 {
		t.Errorf("%d bytes allocated", got)
	}
}

func TestGeneratedCodeDoesNotAllocateOnItsOwn(t *testing.T) {
	data := encode(&mapped.Required{A: 1, B: 2, C: 3})
	var m mapped.Required
	w := abi.NewWriter(make([]byte, 0, 100))
	r := abi.NewReader(nil)
	if n := testing.AllocsPerRun(100, func() {
		r.Reset(data)
		m.UnmarshalCBOR(r)
		w.Reset(w.Bytes()[:0])
		m.MarshalCBOR(w)
	}); n != 0 || m.C != 3 || !bytes.Equal(w.Bytes(), data) {
		t.Errorf("%v allocations, %+v", n, m)
	}
}
