package mapped

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
	"pgregory.net/rapid"
)

// plain draws a value that any reader knows.
func plain(t *rapid.T, depth int) any {
	switch n := rapid.IntRange(0, 6).Draw(t, "kind"); {
	case n == 0:
		return rapid.Int64().Draw(t, "int")
	case n == 1:
		return rapid.StringN(0, 5, 20).Draw(t, "text")
	case n == 2:
		return rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "bytes")
	case n == 3:
		return nil
	case n == 4 || depth == 0:
		return rapid.Bool().Draw(t, "bool")
	case n == 5:
		var list []any
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			list = append(list, plain(t, depth-1))
		}
		return list
	}
	m := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		m[rapid.StringN(0, 4, 10).Draw(t, "key")] = plain(t, depth-1)
	}
	return m
}

// A message of a newer type passes through an older one byte for byte: what is unknown is written again in its
// place, on every level.
func TestUnknownKeysPassThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := map[any]any{uint64(1): rapid.Int64().Draw(t, "1"), "b": rapid.Int64().Draw(t, "b"), "d": "d",
			"kid": map[string]any{"a": rapid.Int64().Draw(t, "a")}, "a key that is longer": "l"}
		for range rapid.IntRange(0, 20).Draw(t, "unknown") {
			var key any = rapid.StringN(0, 12, 30).Draw(t, "key")
			if rapid.Bool().Draw(t, "number") {
				key = rapid.Uint64Range(2, 70000).Draw(t, "key")
			}
			if _, known := m[key]; !known && key != "k" { // which KeptTree knows
				m[key] = plain(t, 3)
			}
		}
		b, err := deterministic.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var k mapped.Kept
		if err := decode(&k, b); err != nil {
			t.Fatal(err)
		}
		if k.More.Len() != len(m)-5 {
			t.Fatalf("%d unknown keys of %d", k.More.Len(), len(m)-5)
		}
		if got := encode(&k); !bytes.Equal(got, b) {
			t.Fatalf("%x\nbecame\n%x", b, got)
		}
		var bag mapped.Bag
		if err := decode(&bag, b); err != nil || !bytes.Equal(encode(&bag), b) {
			t.Fatalf("%x\nbecame\n%x, %v", b, encode(&bag), err)
		}
		tree, err := deterministic.Marshal(map[string]any{"k": []any{m, map[string]any{"k": []any{m}}}, "z": 1})
		var kt mapped.KeptTree
		if err2 := decode(&kt, tree); err != nil || err2 != nil || !bytes.Equal(encode(&kt), tree) {
			t.Fatalf("%x\nbecame\n%x, %v %v", tree, encode(&kt), err, err2)
		}
	})
}

// FuzzKept: whatever is read is written as something that is read as the same, and no longer than it was.
func FuzzKept(f *testing.F) {
	for _, m := range []any{map[string]any{"b": 1, "x": []any{1}}, map[any]any{1: 2, "k": []any{map[string]any{"y": 1}}}, map[string]any{}} {
		b, err := deterministic.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, make := range []func() generated{func() generated { return &mapped.Kept{} }, func() generated { return &mapped.KeptTree{} }, func() generated { return &mapped.Bag{} }} {
			v, again := make(), make()
			if decode(v, b) != nil {
				continue
			}
			once := encode(v)
			if err := decode(again, once); err != nil {
				t.Fatalf("%T: %x became %x: %v", v, b, once, err)
			}
			if !reflect.DeepEqual(v, again) && !bytes.Equal(encode(again), once) {
				t.Fatalf("%T: %x became %x and then %x", v, b, once, encode(again))
			}
		}
	})
}

func TestUnknownKeysAreRefusedByChoice(t *testing.T) {
	b, err := deterministic.Marshal(map[string]any{"a": 1, "b": 2})
	if err != nil {
		t.Fatal(err)
	}
	err = decode(&mapped.Strict{}, b)
	var at *abi.At
	if !errors.As(err, &at) || at.Err != abi.ErrUnknownKey || at.Where != "Strict" || at.Offset != 4 {
		t.Errorf("%v", err)
	}
	if err := decode(&mapped.Inner{}, b[:0:0]); err == nil {
		t.Error("nothing is not a message")
	}
	if err := decode(&mapped.PaymentV2{}, b); err != nil {
		t.Errorf("unknown keys are stepped over unless it is said otherwise: %v", err)
	}
}

// Hostile messages end with an error before much is kept or done.
func TestHostileUnknownKeys(t *testing.T) {
	many := map[string]any{}
	for i := range 20_000 {
		many[fmt.Sprint(i)] = nil
	}
	var deep any = 1
	for range abi.MaxNesting + 1 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		m    map[string]any
		want *abi.Error
	}{
		{many, abi.ErrUnknownKeys},
		{map[string]any{"x": deep}, abi.ErrNesting},
		{map[string]any{"x": strings.Repeat("x", abi.MaxUnknownBytes)}, abi.ErrUnknownKeys},
	} {
		b, err := deterministic.Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		var k mapped.Kept
		if err := decode(&k, b); !errors.Is(err, c.want) || k.More.Size() > abi.MaxUnknownBytes || k.More.Len() > abi.MaxUnknown {
			t.Errorf("%v, %d keys of %d bytes", err, k.More.Len(), k.More.Size())
		}
		r := abi.NewReader(b)
		k.UnmarshalCBOR(r)
		if c.want == abi.ErrUnknownKeys && r.Offset() > 2*abi.MaxUnknownBytes {
			t.Errorf("it was read up to %d", r.Offset())
		}
	}
}

func TestVersionsAreMadeIntoTheNewest(t *testing.T) {
	for _, c := range []struct {
		version uint16
		old     generated
		want    mapped.Payment
	}{
		{3, &mapped.Payment{Cents: 7, Currency: "USD"}, mapped.Payment{Cents: 7, Currency: "USD"}},
		{2, &mapped.PaymentV2{Cents: 7}, mapped.Payment{Cents: 7, Currency: "EUR"}},
		{1, &mapped.PaymentV1{Euros: 7}, mapped.Payment{Cents: 700, Currency: "EUR"}},
	} {
		got := mapped.Payment{Cents: 99, Currency: "what was there"}
		r := abi.NewReader(encode(c.old))
		got.UnmarshalVersion(r, c.version)
		if err := r.Done(); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("version %d: %+v, %v", c.version, got, err)
		}
	}
	for _, version := range []uint16{0, 4} {
		got := mapped.Payment{Cents: 99}
		r := abi.NewReader(encode(&got))
		got.UnmarshalVersion(r, version)
		if err := r.Done(); !errors.Is(err, abi.ErrMessageType) || got.Cents != 0 {
			t.Errorf("version %d: %+v, %v", version, got, err)
		}
	}
	got := mapped.Payment{Cents: 99}
	r := abi.NewReader([]byte{0xa1, 0x65, 'e', 'u', 'r', 'o', 's', 0x60})
	got.UnmarshalVersion(r, 1)
	if err := r.Done(); !errors.Is(err, abi.ErrType) || !strings.Contains(err.Error(), "PaymentV1.euros") {
		t.Errorf("%v", err)
	}
}
