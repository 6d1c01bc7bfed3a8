//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"bytes"
	"testing"
)

// TestFastPath: this platform has it, unless asked otherwise.
func TestFastPath(t *testing.T) {
	isPortable(t, Options{}, false)
	isPortable(t, Options{Portable: true}, true)
}

// A new memory of a large image is a copy while as many are mapped as may be.
func TestCopies(t *testing.T) {
	s := must(New(Options{Reserve: 1 << 30, MaxMapped: 1}))(t)
	defer s.Close()
	heavy := must(s.NewImage(bytes.Repeat([]byte{1}, 2*WasmPage)))(t)
	defer heavy.Close()
	light := must(s.NewImage(make([]byte, 2*WasmPage)))(t)
	defer light.Close()
	want := func(copied bool) {
		t.Helper()
		if s.Copies(heavy) != copied || s.Copies(light) || s.Copies(nil) {
			t.Error(s.Copies(heavy), s.Copies(light), s.Copies(nil))
		}
	}
	want(false)
	a := must(s.NewMemory(heavy, 0, 1<<20))(t)
	want(true)
	b := must(s.NewMemory(heavy, 0, 1<<20))(t)
	b.Free()
	want(true)
	a.Free()
	want(false)
	none := must(New(Options{Reserve: 1 << 30, MaxMapped: -1}))(t)
	defer none.Close()
	copied := must(none.NewImage(bytes.Repeat([]byte{1}, 2*WasmPage)))(t)
	defer copied.Close()
	if none.Copies(copied) {
		t.Error("where nothing is ever mapped nobody can make room")
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
