package jumps

import (
	"context"
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// machine writes functions as Go's compiler does: parts of code that jump to each other through a table.
type machine struct {
	code  []byte
	parts int
	rnd   *rand.Rand
	next  byte // the local of the table
}

func (m *machine) put(b ...byte) { m.code = append(m.code, b...) }

func (m *machine) constant(v uint32) {
	m.put(wasm.OpI32Const)
	for v >= 0x40 {
		m.put(byte(v&0x7f) | 0x80)
		v >>= 7
	}
	m.put(byte(v))
}

// jump goes to a part, or what the table has beyond them, from within that many blocks of the part itself. Some are no
// jumps through the table, though they look like one.
func (m *machine) jump(part, within int) {
	to, local := uint32(m.rnd.Intn(m.parts+2)), m.next
	if m.rnd.Intn(8) == 0 {
		local = 1 // not the table's: the part jumps to where the table's local says
	}
	m.constant(to)
	m.put(wasm.OpLocalSet, local)
	if m.rnd.Intn(8) == 0 {
		m.put(wasm.OpNop)
	}
	m.put(wasm.OpBr, byte(within+m.parts-1-part)+1)
}

// body is a function that returns what it has been through. It ends after a number of steps.
func (m *machine) body() []byte {
	m.put(wasm.OpLoop, 0x40)
	for range m.parts + 1 {
		m.put(wasm.OpBlock, 0x40)
	}
	m.put(wasm.OpLocalGet, m.next, wasm.OpBrTable, byte(m.parts+1))
	for range m.parts + 2 {
		m.put(byte(m.rnd.Intn(m.parts + 1)))
	}
	m.put(wasm.OpEnd) // part 0 begins
	for part := range m.parts {
		// trace = trace*31 + part + 1 + next; if --left == 0 { return trace }
		m.put(wasm.OpLocalGet, 2)
		m.constant(31)
		m.put(0x6c)
		m.constant(uint32(part + 1))
		m.put(0x6a, wasm.OpLocalGet, m.next, 0x6a, wasm.OpLocalSet, 2)
		m.put(wasm.OpLocalGet, 3)
		m.constant(1)
		m.put(0x6b, wasm.OpLocalTee, 3, 0x45, wasm.OpIf, 0x40, wasm.OpLocalGet, 2, wasm.OpReturn, wasm.OpEnd)
		if m.rnd.Intn(2) == 0 { // if trace is odd
			m.put(wasm.OpLocalGet, 2)
			m.constant(1)
			m.put(0x71, wasm.OpIf, 0x40)
			m.jump(part, 1)
			m.put(wasm.OpEnd)
		}
		if m.rnd.Intn(2) == 0 {
			m.jump(part, 0)
		}
		m.put(wasm.OpEnd) // the next part begins
	}
	m.put(wasm.OpEnd, wasm.OpLocalGet, 2, wasm.OpEnd)
	return m.code
}

func module(code []byte) *wasm.Module {
	i32 := wasm.I32
	return &wasm.Module{
		Types:   []wasm.FuncType{{Params: []wasm.ValType{i32, i32, i32, i32}, Results: []wasm.ValType{i32}}},
		Funcs:   []uint32{0},
		Code:    []wasm.Body{{Code: code}},
		Exports: []wasm.Export{{Name: "f", Kind: wasm.KindFunc}},
	}
}

func result(t *testing.T, r wazero.Runtime, m *wasm.Module) uint64 {
	t.Helper()
	x, err := r.InstantiateWithConfig(t.Context(), m.Encode(), wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	v, err := x.ExportedFunction("f").Call(t.Context(), 0, 0, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

// A function does the same whether its jumps are direct or not: jumps forward and backward, to nowhere, from within
// blocks, and what only looks like a jump.
func TestDirectDoesTheSame(t *testing.T) {
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(context.Background())
	changed := 0
	for seed := range int64(1500) {
		m := &machine{rnd: rand.New(rand.NewSource(seed))}
		m.parts = 1 + m.rnd.Intn(7)
		before := module(m.body())
		after := Direct(before)
		if after != before {
			changed++
		}
		if want, got := result(t, r, before), result(t, r, after); want != got {
			t.Fatalf("seed %d: %d, with direct jumps %d", seed, want, got)
		}
	}
	if changed < 700 {
		t.Errorf("only %d functions have changed", changed)
	}
}

// A jump to a part that is still to come branches there.
func TestForwardJumpIsDirect(t *testing.T) {
	m := &machine{}
	m.put(wasm.OpLoop, 0x40, wasm.OpBlock, 0x40, wasm.OpBlock, 0x40, wasm.OpBlock, 0x40)
	m.put(wasm.OpLocalGet, 0, wasm.OpBrTable, 2, 0, 1, 2, wasm.OpEnd)
	m.put(wasm.OpI32Const, 1, wasm.OpLocalSet, 0, wasm.OpBr, 2, wasm.OpEnd) // to the part that follows
	m.put(wasm.OpI32Const, 0, wasm.OpLocalSet, 0, wasm.OpBr, 1, wasm.OpEnd) // backward
	m.put(wasm.OpEnd, wasm.OpLocalGet, 0, wasm.OpEnd)
	before := module(m.code)
	after := Direct(before)
	if after == before {
		t.Fatal("nothing has changed")
	}
	want := append([]byte(nil), m.code...)
	want[21] = 0
	if got := after.Code[0].Code; string(got) != string(want) {
		t.Errorf("% x\nwant % x", got, want)
	}
	if before.Code[0].Code[21] != 2 {
		t.Error("the module itself has changed")
	}
}

// FuzzDirect: any code that decodes still decodes, and nothing panics.
func FuzzDirect(f *testing.F) {
	f.Add([]byte{wasm.OpEnd}, uint64(1))
	f.Fuzz(func(t *testing.T, code []byte, seed uint64) {
		if len(code) == 0 {
			m := &machine{rnd: rand.New(rand.NewSource(int64(seed)))}
			m.parts = 1 + m.rnd.Intn(5)
			code = m.body()
			code[binary.LittleEndian.Uint32([]byte{byte(seed), byte(seed >> 8), 0, 0})%uint32(len(code))] ^= byte(seed >> 16)
		}
		m, err := wasm.Decode(module(code).Encode())
		if err != nil {
			return
		}
		if _, err := wasm.Decode(Direct(m).Encode()); err != nil {
			t.Fatalf("% x: %v", code, err)
		}
	})
}
