package host

import (
	"math"
	"reflect"
	"testing"

	"github.com/wasmactors/wasmactors/internal/plainjson"
	"pgregory.net/rapid"
)

// What is shown as JSON is read back as it was, bit by bit: floats stay floats however large or whole they are, and
// -0 stays -0.
func TestShownJSONIsReadBack(t *testing.T) {
	check := func(fatal func(string, ...any), v any) {
		payload, err := Encode(v)
		if err != nil {
			fatal("%v: %v", v, err)
		}
		shown, err := ToJSON(payload)
		if err != nil {
			fatal("%v: %v", v, err)
		}
		read, err := plainjson.Parse(shown)
		if err != nil {
			fatal("%s, which was shown, is refused: %v", shown, err)
		}
		again, err := Encode(read)
		if err != nil {
			fatal("%s: %v", shown, err)
		}
		if s, err := ToJSON(again); err != nil || string(s) != string(shown) {
			fatal("%s comes back as %s, %v", shown, s, err)
		}
		if !sameValue(v, read) {
			fatal("%#v is shown as %s and read as %#v", v, shown, read)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -3, 0.1, 1e20, 1e21, 123456789012345680000, -1e20, 1 << 63, 1 << 64, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-6, 9.9e-7, -1e-7, 5e300} {
		check(t.Fatalf, f)
	}
	for _, n := range []any{int64(math.MinInt64), uint64(math.MaxUint64), int64(0), true, nil, "-0", "1e20"} {
		check(t.Fatalf, n)
	}
	if v, err := plainjson.Parse([]byte("-0")); err != nil || !sameValue(v, math.Copysign(0, -1)) {
		t.Errorf("-0 is read as %#v, %v", v, err)
	}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Uint64Min(1 << 63).AsAny(), rapid.String().AsAny(),
			rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).AsAny(), rapid.Float64Range(-1e22, 1e22).AsAny(),
			rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(n int64) any { return float64(n) }),
		}
		if depth > 0 {
			kinds = append(kinds, rapid.SliceOfN(value(depth-1), 0, 4).AsAny(), rapid.MapOfN(rapid.String(), value(depth-1), 0, 4).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) { check(t.Fatalf, value(3).Draw(t, "value")) })
}

// sameValue reports whether two values are the same, where a number is one whatever its Go type holds, but a float
// no whole number.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case float64:
		f, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(f)
	case []any:
		l, ok := b.([]any)
		if !ok || len(l) != len(a) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], l[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(m) != len(a) {
			return false
		}
		for k := range a {
			if v, ok := m[k]; !ok || !sameValue(a[k], v) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}
