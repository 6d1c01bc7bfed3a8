package abi

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// The order of RFC 8949, 4.2.1.
func TestSortedKeys(t *testing.T) {
	texts := map[string]int{"": 0, "z": 0, "b": 0, "aa": 0, "\xc3\xbc": 0, "a": 0, "zz": 0}
	if got, want := SortedTextKeys(texts), []string{"", "a", "b", "z", "aa", "zz", "\xc3\xbc"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	ints := map[int8]bool{-1: true, 0: true, 127: true, -128: true, 10: true, -2: true}
	if got, want := SortedIntKeys(ints), []int8{0, 10, 127, -1, -2, -128}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	many := map[uint16]int{}
	for i := range 1000 {
		many[uint16(i*31_337)] = i
	}
	if got := SortedUintKeys(many); len(got) != 1000 || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
	if got := SortedIntKeys(map[int]int(nil)); len(got) != 0 {
		t.Error(got)
	}
}

func TestReadWithinRange(t *testing.T) {
	w := NewWriter(nil)
	w.Int(127)
	w.Int(-129)
	r := NewReader(w.Bytes())
	if v := ReadInt[int8](r); v != 127 || r.Err() != nil {
		t.Error(v, r.Err())
	}
	if v := ReadInt[int8](r); v != 0 || !errors.Is(r.Err(), ErrRange) || r.Offset() != 2 {
		t.Error(v, r.Err())
	}
	r.In("T.f")
	r.In("U.g")
	if got, want := r.Err().Error(), "abi: T.f: a number is out of range at offset 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFloat32(t *testing.T) {
	w := NewWriter(nil)
	for _, v := range []float32{0, 1.5, math.MaxFloat32, float32(math.Inf(-1))} {
		w.Float32(v)
		r := NewReader(w.Bytes())
		if got := r.Float32(); got != v || r.Done() != nil || w.Len() != 5 {
			t.Errorf("%v for %v, %v", got, v, r.Err())
		}
		w.Reset(nil)
	}
}

func TestTime(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, -1).UTC(), time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2261, 12, 31, 23, 59, 59, 999999999, time.UTC)} {
		w := NewWriter(nil)
		w.Time(at)
		r := NewReader(w.Bytes())
		if got := r.Time(); !got.Equal(at) || got.IsZero() != at.IsZero() || r.Done() != nil {
			t.Errorf("%v for %v", got, at)
		}
	}
}
