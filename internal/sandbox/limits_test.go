package sandbox

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// TestLoadLimits: what a module declares is compared with what it may have, and
// the refusal says what, how much and which limit. At the limit it is accepted.
func TestLoadLimits(t *testing.T) {
	e := newEngine(t, NewConfig())
	for _, c := range []struct {
		key    string
		change func(m *wasm.Module)
		need   func(m *wasm.Module, code []byte) uint64
		limit  func(n uint64) ImageConfig
		step   uint64 // the next lower limit
	}{
		{"memory", func(m *wasm.Module) { m.Memories[0].Min = 3 },
			func(m *wasm.Module, _ []byte) uint64 { return 3 << 16 },
			func(n uint64) ImageConfig { return ImageConfig{MemoryLimit: n} }, 1 << 16},
		{"table", func(m *wasm.Module) {
			m.Tables = append(m.Tables, wasm.Table{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 70}})
		},
			func(*wasm.Module, []byte) uint64 { return 70 },
			func(n uint64) ImageConfig { return ImageConfig{TableLimit: uint32(n)} }, 1},
		{"globals", func(m *wasm.Module) {
			for range 9 {
				m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: wasm.I32}, Init: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}})
			}
		},
			func(m *wasm.Module, _ []byte) uint64 { return uint64(len(m.Globals)) },
			func(n uint64) ImageConfig { return ImageConfig{GlobalLimit: uint32(n)} }, 1},
		{"tables", func(m *wasm.Module) {
			for range 5 {
				m.Tables = append(m.Tables, wasm.Table{Elem: wasm.FuncRef})
			}
		},
			func(*wasm.Module, []byte) uint64 { return 5 },
			func(n uint64) ImageConfig { return ImageConfig{TablesLimit: uint32(n)} }, 1},
		{"table-entries", func(m *wasm.Module) {
			for range 5 {
				m.Tables = append(m.Tables, wasm.Table{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 20}})
			}
		},
			func(*wasm.Module, []byte) uint64 { return 100 },
			func(n uint64) ImageConfig { return ImageConfig{EntriesLimit: uint32(n)} }, 1},
		{"types", func(m *wasm.Module) { m.Types = append(m.Types, m.Types...) },
			func(m *wasm.Module, _ []byte) uint64 { return uint64(len(m.Types)) },
			func(n uint64) ImageConfig { return ImageConfig{TypeLimit: uint32(n)} }, 1},
		{"functions", func(m *wasm.Module) { m.Funcs, m.Code = append(m.Funcs, m.Funcs...), append(m.Code, m.Code...) },
			func(m *wasm.Module, _ []byte) uint64 { return uint64(len(m.Funcs)) },
			func(n uint64) ImageConfig { return ImageConfig{FunctionLimit: uint32(n)} }, 1},
		{"segments", func(m *wasm.Module) {
			m.Elems = append(m.Elems, wasm.Elem{Mode: wasm.Passive, Type: wasm.FuncRef, Funcs: []uint32{0}})
		},
			func(m *wasm.Module, _ []byte) uint64 { return uint64(len(m.Data) + len(m.Elems)) },
			func(n uint64) ImageConfig { return ImageConfig{SegmentLimit: uint32(n)} }, 1},
		{"elements", func(m *wasm.Module) {
			m.Elems = append(m.Elems, wasm.Elem{Mode: wasm.Passive, Type: wasm.FuncRef, Funcs: []uint32{0, 1, 0}})
		},
			func(*wasm.Module, []byte) uint64 { return 3 },
			func(n uint64) ImageConfig { return ImageConfig{ElementLimit: uint32(n)} }, 1},
		{"data", func(m *wasm.Module) { m.Data = append(m.Data, wasm.Data{Mode: wasm.Passive, Bytes: make([]byte, 900)}) },
			func(m *wasm.Module, _ []byte) (n uint64) {
				for i := range m.Data {
					n += uint64(len(m.Data[i].Bytes))
				}
				return n
			},
			func(n uint64) ImageConfig { return ImageConfig{DataLimit: n} }, 1},
		{"size", func(*wasm.Module) {},
			func(_ *wasm.Module, code []byte) uint64 { return uint64(len(code)) },
			func(n uint64) ImageConfig { return ImageConfig{SizeLimit: n} }, 1},
	} {
		t.Run(c.key, func(t *testing.T) {
			s := newSketch()
			c.change(&s.m)
			code := s.bytes()
			m, err := wasm.Decode(code)
			if err != nil {
				t.Fatal(err)
			}
			need := c.need(m, code)
			i, err := e.Load(context.Background(), code, c.limit(need))
			if err != nil {
				t.Fatal("at the limit:", err)
			}
			i.Close()
			_, err = e.Load(context.Background(), code, c.limit(need-c.step))
			var load *LoadError
			var limit *LimitError
			if !errors.As(err, &load) || !errors.As(err, &limit) {
				t.Fatalf("below it: %v", err)
			}
			if limit.Key != c.key || limit.Need != need || limit.Limit != need-c.step {
				t.Errorf("%+v, needed are %d", limit, need)
			}
		})
	}
}

// TestInstanceLimit counts the instances in the pool, and lets them be used.
func TestInstanceLimit(t *testing.T) {
	e := newEngine(t, NewConfig())
	i := load(t, e, "echo", ImageConfig{InstanceLimit: 2})
	other := load(t, e, "echo", ImageConfig{InstanceLimit: 1, StackLimit: 100_000})
	a, b, c := get(t, i), get(t, i), get(t, other)
	for range 3 {
		if _, err := Get(i); !errors.Is(err, ErrInstanceLimit) {
			t.Errorf("a third: %v", err)
		}
	}
	a.Put()
	a = get(t, i)
	if _, err := Get(i); !errors.Is(err, ErrInstanceLimit) {
		t.Errorf("a third: %v", err)
	}
	for _, x := range []*Instance{a, b, c} {
		x.Put()
	}
	get(t, i).Put()
}
