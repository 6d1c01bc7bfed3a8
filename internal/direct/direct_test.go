package direct

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// types that the functions of generated modules may have.
var types = []wasm.FuncType{
	{Params: []wasm.ValType{wasm.I32}, Results: []wasm.ValType{wasm.I32}},
	{Params: []wasm.ValType{wasm.I32, wasm.I64}, Results: []wasm.ValType{wasm.I32}},
	{Params: []wasm.ValType{wasm.F64}, Results: []wasm.ValType{wasm.F64, wasm.I64}},
	{},
	{Params: []wasm.ValType{wasm.I32}, Results: []wasm.ValType{wasm.I32}}, // the first once more
}

// zero is the constant 0 of a type.
func zero(t wasm.ValType) []byte {
	switch t {
	case wasm.I64:
		return []byte{wasm.OpI64Const, 3}
	case wasm.F64:
		return []byte{wasm.OpF64Const, 0, 0, 0, 0, 0, 0, 8, 64}
	}
	return []byte{wasm.OpI32Const, 5}
}

// generate makes a module whose table of size entries is filled by segments, and
// which exports for each type k a function "call<k>" that calls the entry of the
// index it is given and leaves, in the exported global "who", which function ran.
func generate(size int, segments [][2]int, ofType func(i int) int) *wasm.Module {
	m := &wasm.Module{Types: append(append([]wasm.FuncType{}, types...), wasm.FuncType{Params: []wasm.ValType{wasm.I32}})}
	caller := uint32(len(types))
	m.Tables = []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: uint32(size), Max: uint32(size), HasMax: true}}}
	m.Globals = []wasm.Global{{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}}}
	m.Exports = []wasm.Export{{Name: "who", Kind: wasm.KindGlobal}}
	const funcs = 100
	for i := range funcs {
		k := ofType(i)
		m.Funcs = append(m.Funcs, uint32(k))
		code := wasm.AppendS64([]byte{wasm.OpI32Const}, int64(i+1))
		code = append(code, wasm.OpGlobalSet, 0)
		for _, r := range types[k].Results {
			code = append(code, zero(r)...)
		}
		m.Code = append(m.Code, wasm.Body{Code: append(code, wasm.OpEnd)})
	}
	for k := range types {
		var code []byte
		for _, p := range types[k].Params {
			code = append(code, zero(p)...)
		}
		code = append(code, wasm.OpLocalGet, 0, wasm.OpCallIndirect, byte(k), 0)
		for range types[k].Results {
			code = append(code, wasm.OpDrop)
		}
		m.Exports = append(m.Exports, wasm.Export{Name: fmt.Sprint("call", k), Kind: wasm.KindFunc, Index: uint32(len(m.Funcs))})
		m.Funcs = append(m.Funcs, caller)
		m.Code = append(m.Code, wasm.Body{Code: append(code, wasm.OpEnd)})
	}
	for n, s := range segments {
		e := wasm.Elem{Offset: wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, int64(s[0])), Type: wasm.FuncRef}
		e.Offset = append(e.Offset, wasm.OpEnd)
		for i := range s[1] {
			f := uint32((i*7 + n) % funcs)
			if n%2 == 0 {
				e.Funcs = append(e.Funcs, f)
				continue
			}
			e.UseExprs = true
			x := wasm.AppendU32(wasm.Expr{wasm.OpRefFunc}, f)
			if i%5 == 0 {
				x = wasm.Expr{wasm.OpRefNull, byte(wasm.FuncRef)}
			}
			e.Exprs = append(e.Exprs, append(x, wasm.OpEnd))
		}
		m.Elems = append(m.Elems, e)
	}
	return m
}

// instance runs a module.
func instance(t interface{ Fatal(...any) }, r wazero.Runtime, m *wasm.Module) api.Module {
	x, err := r.InstantiateWithConfig(context.Background(), m.Encode(), wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// outcome is what a call does: the function that ran, or the trap.
func outcome(x api.Module, k int, index uint32) string {
	who := x.ExportedGlobal("who").(api.MutableGlobal)
	who.Set(0)
	_, err := x.ExportedFunction(fmt.Sprint("call", k)).Call(context.Background(), uint64(index))
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return reason
	}
	return fmt.Sprint("function ", who.Get())
}

// TestCallsStayWhatTheyAre compares a module before and after: each call of each
// type at each index, and some beyond, runs the same function or traps alike.
func TestCallsStayWhatTheyAre(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(64, 200).Draw(t, "size")
		var segments [][2]int
		for range rapid.IntRange(1, 3).Draw(t, "segments") {
			at := rapid.IntRange(0, size-1).Draw(t, "at")
			segments = append(segments, [2]int{at, rapid.IntRange(0, size-at).Draw(t, "length")})
		}
		kinds := rapid.IntRange(1, len(types)).Draw(t, "types")
		seed := rapid.Uint64().Draw(t, "seed")
		m := generate(size, segments, func(i int) int { return rand.New(rand.NewPCG(seed, uint64(i))).IntN(kinds) })
		before := m.Encode()
		direct := Calls(m)
		if string(m.Encode()) != string(before) {
			t.Fatal("the input was changed")
		}
		if again := Calls(m); string(again.Encode()) != string(direct.Encode()) {
			t.Fatal("not deterministic")
		}
		if direct != m {
			if again, err := wasm.Decode(direct.Encode()); err != nil || string(again.Encode()) != string(direct.Encode()) {
				t.Fatal("the result cannot be read again", err)
			}
		}
		x, y := instance(t, r, m), instance(t, r, direct)
		defer x.Close(ctx)
		defer y.Close(ctx)
		for k := range types {
			for index := range uint32(size + 3) {
				if a, b := outcome(x, k, index), outcome(y, k, index); a != b {
					t.Fatalf("type %d, index %d: %s, then %s", k, index, a, b)
				}
			}
			for _, index := range []uint32{1 << 31, 1<<32 - 1, -uint32(size)} {
				if a, b := outcome(x, k, index), outcome(y, k, index); a != b {
					t.Fatalf("type %d, index %d: %s, then %s", k, index, a, b)
				}
			}
		}
	})
}

// TestLargeTable has several chunks, with holes.
func TestLargeTable(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	size := 3<<chunkShift + 100
	m := generate(size, [][2]int{{5, 3000}, {1<<chunkShift + 7, 5000}, {size - 50, 40}}, func(i int) int { return i % 3 })
	d := Calls(m)
	if len(d.Code) < len(m.Code)+8 {
		t.Fatalf("%d functions added", len(d.Code)-len(m.Code))
	}
	x, y := instance(t, r, m), instance(t, r, d)
	for k := range types {
		for index := 0; index < size+5; index += 1 + index%3 {
			if a, b := outcome(x, k, uint32(index)), outcome(y, k, uint32(index)); a != b {
				t.Fatalf("type %d, index %d: %s, then %s", k, index, a, b)
			}
		}
	}
}

func full() *wasm.Module {
	return generate(100, [][2]int{{0, 100}}, func(i int) int { return i % len(types) })
}

func TestTablesThatMayChangeStay(t *testing.T) {
	if Calls(full()) == full() {
		t.Fatal("the plain one must be changed")
	}
	body := func(code ...byte) func(m *wasm.Module) {
		return func(m *wasm.Module) { m.Code[3].Code = append(code, m.Code[3].Code...) }
	}
	for name, change := range map[string]func(m *wasm.Module){
		"table.set":  body(wasm.OpI32Const, 0, wasm.OpRefNull, byte(wasm.FuncRef), wasm.OpTableSet, 0),
		"table.get":  body(wasm.OpI32Const, 0, wasm.OpTableGet, 0, wasm.OpDrop),
		"table.grow": body(wasm.OpRefNull, byte(wasm.FuncRef), wasm.OpI32Const, 0, wasm.OpMisc, byte(wasm.MiscTableGrow), 0, wasm.OpDrop),
		"table.size": body(wasm.OpMisc, byte(wasm.MiscTableSize), 0, wasm.OpDrop),
		"ref.func":   body(wasm.OpRefFunc, 1, wasm.OpDrop),
		"exported": func(m *wasm.Module) {
			m.Exports = append(m.Exports, wasm.Export{Name: "t", Kind: wasm.KindTable})
		},
		"passive segment":    func(m *wasm.Module) { m.Elems[0].Mode = wasm.Passive },
		"offset by a global": func(m *wasm.Module) { m.Elems[0].Offset = wasm.Expr{wasm.OpGlobalGet, 0, wasm.OpEnd} },
		"beyond the table":   func(m *wasm.Module) { m.Elems[0].Offset = wasm.Expr{wasm.OpI32Const, 1, wasm.OpEnd} },
		"two tables":         func(m *wasm.Module) { m.Tables = append(m.Tables, m.Tables[0]) },
		"small":              func(m *wasm.Module) { m.Elems[0].Funcs = m.Elems[0].Funcs[:63] },
		"all null": func(m *wasm.Module) {
			m.Elems[0].UseExprs, m.Elems[0].Funcs = true, nil
			for range 100 {
				m.Elems[0].Exprs = append(m.Elems[0].Exprs, wasm.Expr{wasm.OpRefNull, byte(wasm.FuncRef), wasm.OpEnd})
			}
		},
		"a null of another type, which is not valid": func(m *wasm.Module) {
			m.Elems[0].UseExprs, m.Elems[0].Funcs = true, nil
			for i := range byte(100) {
				m.Elems[0].Exprs = append(m.Elems[0].Exprs, wasm.Expr{wasm.OpRefFunc, i, wasm.OpEnd})
			}
			m.Elems[0].Exprs[36] = wasm.Expr{wasm.OpRefNull, byte(wasm.ExternRef), wasm.OpEnd}
		},
		"no call": func(m *wasm.Module) {
			for i := range m.Code {
				m.Code[i].Code = []byte{wasm.OpUnreachable, wasm.OpEnd}
			}
		},
		"too many arguments": func(m *wasm.Module) {
			m.Types = append(m.Types, wasm.FuncType{Params: slices.Repeat([]wasm.ValType{wasm.I32}, 900)})
			many := uint32(len(m.Types) - 1)
			for range 20 {
				m.Elems[0].Funcs[len(m.Funcs)%40] = uint32(len(m.Funcs))
				m.Funcs = append(m.Funcs, many)
				m.Code = append(m.Code, wasm.Body{Code: []byte{wasm.OpEnd}})
			}
			m.Code[3].Code = append([]byte{wasm.OpUnreachable, wasm.OpCallIndirect, byte(many), 0}, m.Code[3].Code...)
		},
		"too many labels": func(m *wasm.Module) {
			m.Tables[0].Min, m.Tables[0].Max = mostEntries, mostEntries
			last := wasm.Expr(append(wasm.AppendS64([]byte{wasm.OpI32Const}, mostEntries-1), wasm.OpEnd))
			m.Elems = append(m.Elems, wasm.Elem{Type: wasm.FuncRef, Offset: last, Funcs: []uint32{1}})
			for k := range 10 {
				m.Types = append(m.Types, wasm.FuncType{Params: make([]wasm.ValType, k+5)})
				code := []byte{wasm.OpUnreachable, wasm.OpCallIndirect, byte(len(m.Types) - 1), 0}
				m.Code[k].Code = append(code, m.Code[k].Code...)
			}
		},
	} {
		m := full()
		change(m)
		if Calls(m) != m {
			t.Errorf("%s: changed", name)
		}
	}
}

func TestConstant(t *testing.T) {
	for _, v := range []int32{0, 1, 63, 64, -1, 8191, 8192, 1<<31 - 1, -1 << 31} {
		x := append(wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, int64(v)), wasm.OpEnd)
		if got, ok := constant(x); !ok || int32(got) != v {
			t.Errorf("%d: %d %v", v, int32(got), ok)
		}
	}
	for _, x := range []wasm.Expr{nil, {wasm.OpI32Const, wasm.OpEnd}, {wasm.OpI32Const, 0x80, wasm.OpEnd}, {wasm.OpI32Const, 0, 0, wasm.OpEnd}, {wasm.OpGlobalGet, 0, wasm.OpEnd}} {
		if _, ok := constant(x); ok {
			t.Errorf("%x passes", x)
		}
	}
}

// BenchmarkCompile shows that a dispatcher's cost grows with its entries, not
// faster.
func BenchmarkCompile(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{1000, 4000, 16000, 64000} {
		m := &wasm.Module{Types: []wasm.FuncType{types[0]}}
		m.Tables = []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: uint32(n)}}}
		e := wasm.Elem{Offset: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}, Type: wasm.FuncRef}
		for i := range n {
			m.Funcs = append(m.Funcs, 0)
			m.Code = append(m.Code, wasm.Body{Code: []byte{wasm.OpLocalGet, 0, wasm.OpEnd}})
			e.Funcs = append(e.Funcs, uint32(i))
		}
		m.Code[0].Code = []byte{wasm.OpI32Const, 5, wasm.OpLocalGet, 0, wasm.OpCallIndirect, 0, 0, wasm.OpEnd}
		m.Elems = []wasm.Elem{e}
		for name, mod := range map[string]*wasm.Module{"table": m, "direct": Calls(m)} {
			raw := mod.Encode()
			b.Run(fmt.Sprint(n, "/", name), func(b *testing.B) {
				for b.Loop() {
					r := wazero.NewRuntime(ctx)
					if _, err := r.CompileModule(ctx, raw); err != nil {
						b.Fatal(err)
					}
					r.Close(ctx)
				}
			})
		}
	}
}

// BenchmarkCall is an indirect call, through the table and direct.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	m := full()
	// call0 calls its entry 1000 times.
	loop := []byte{wasm.OpLoop, 0x40, wasm.OpI32Const, 5, wasm.OpLocalGet, 0, wasm.OpCallIndirect, 0, 0, wasm.OpDrop,
		wasm.OpLocalGet, 1, wasm.OpI32Const, 1, 0x6a, wasm.OpLocalTee, 1, wasm.OpI32Const, 0xe8, 0x07, 0x49, wasm.OpBrIf, 0, wasm.OpEnd, wasm.OpEnd}
	m.Code[100] = wasm.Body{Locals: []wasm.LocalGroup{{N: 1, Type: wasm.I32}}, Code: loop}
	for name, mod := range map[string]*wasm.Module{"table": m, "direct": Calls(m)} {
		b.Run(name, func(b *testing.B) {
			r := wazero.NewRuntime(ctx)
			defer r.Close(ctx)
			f := instance(b, r, mod).ExportedFunction("call0")
			stack := []uint64{5}
			for b.Loop() {
				stack[0] = 5
				if err := f.CallWithStack(ctx, stack); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/call")
		})
	}
}
