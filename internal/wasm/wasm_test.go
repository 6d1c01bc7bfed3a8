package wasm

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
)

// modules are all the .wasm files of the repository.
func modules(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".wasm" {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d modules, %v", len(files), err)
	}
	return files
}

// walk reads every instruction of every function.
func walk(m *Module) error {
	for i := range m.Code {
		it := NewInstrs(m.Code[i].Code, m.Code[i].Offset)
		var in Instr
		for {
			ok, err := it.Next(&in)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
		}
	}
	return nil
}

func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	for path, b := range modules(t) {
		m, err := Decode(b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := walk(m); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		enc := m.Encode()
		again, err := Decode(enc)
		if err != nil {
			t.Errorf("%s: encoded anew: %v", path, err)
			continue
		}
		for i := range m.Code {
			m.Code[i].Offset, again.Code[i].Offset = 0, 0
		}
		if !reflect.DeepEqual(m, again) {
			t.Errorf("%s: encoding has changed the module", path)
		}
		if !bytes.Equal(enc, again.Encode()) {
			t.Errorf("%s: encoding is not stable", path)
		}
		_, err1 := r.CompileModule(ctx, b)
		_, err2 := r.CompileModule(ctx, enc)
		if (err1 == nil) != (err2 == nil) {
			t.Errorf("%s: wazero says %v of the original, %v of the encoded", path, err1, err2)
		}
	}
}

func TestSignedLEB(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 1<<31 - 1, -1 << 31, 1<<63 - 1, -1 << 63} {
		r := reader{b: AppendS64(nil, v)}
		if got := r.s64(); got != v || r.err != nil || r.left() != 0 {
			t.Errorf("%d: read %d, %v", v, got, r.err)
		}
	}
	for _, c := range []struct {
		in []byte
		ok bool
	}{
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x07}, true},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, false},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x78}, true},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x70}, false},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, false},
	} {
		r := reader{b: c.in}
		r.s32()
		if (r.err == nil) != c.ok {
			t.Errorf("% x: %v", c.in, r.err)
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "wasm: offset 0x0: not a WebAssembly module"},
		{"\x00asm\x0d\x00\x01\x00", "wasm: offset 0x4: a component, not a core module"},
		{"\x00asm\x01\x00\x00\x00\x01\x01\x05", "wasm: offset 0xb, type section: a vector is longer than the section"},
		{"\x00asm\x01\x00\x00\x00\x05\x03\x01\x03\x01", "wasm: offset 0xc, memory section: shared memories (threads) are not supported"},
		{"\x00asm\x01\x00\x00\x00\x10\x00", "wasm: offset 0x8: unknown section 16"},
	} {
		_, err := Decode([]byte(c.in))
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.in, err, c.want)
		}
	}
}

// TestLocalsAreBounded makes sure that a few bytes cannot ask for gigabytes.
func TestLocalsAreBounded(t *testing.T) {
	m := &Module{Types: []FuncType{{}}}
	for n := range 22 {
		_, err := Decode(m.Encode())
		if (err == nil) != (n <= MaxAllLocals/MaxLocals) {
			t.Errorf("%d functions of %d locals: %v", n, MaxLocals, err)
		}
		m.Funcs = append(m.Funcs, 0)
		m.Code = append(m.Code, Body{Locals: []LocalGroup{{N: MaxLocals, Type: I64}}, Code: []byte{OpEnd}})
	}
}

// TestReferencesInExpressions makes sure that functions are known wherever they
// are named, so that the rewriter may look them up.
func TestReferencesInExpressions(t *testing.T) {
	for index, known := range []bool{true, false} {
		ref := Expr{OpRefFunc, byte(index), OpEnd}
		for what, change := range map[string]func(m *Module){
			"global":  func(m *Module) { m.Globals = []Global{{GlobalType: GlobalType{Type: FuncRef}, Init: ref}} },
			"element": func(m *Module) { m.Elems = []Elem{{Mode: Passive, Type: FuncRef, UseExprs: true, Exprs: []Expr{ref}}} },
		} {
			m := &Module{Types: []FuncType{{}}, Funcs: []uint32{0}, Code: []Body{{Code: []byte{OpEnd}}}}
			change(m)
			if _, err := Decode(m.Encode()); (err == nil) != known {
				t.Errorf("%s, function %d of 1: %v", what, index, err)
			}
		}
	}
}

// TestBlockTypes makes sure that nobody else reads more bytes behind a block than
// we do: instructions could hide there.
func TestBlockTypes(t *testing.T) {
	known := map[byte]bool{0x40: true}
	for _, v := range []ValType{I32, I64, F32, F64, V128, FuncRef, ExternRef} {
		known[byte(v)] = true
	}
	for b := range 128 {
		for _, op := range []byte{OpBlock, OpLoop, OpIf} {
			for _, code := range [][]byte{{op, byte(b), OpEnd, OpEnd}, {op, byte(b) | 0x80, 0x7e, OpEnd, OpEnd}} {
				it := NewInstrs(code, 0)
				var in Instr
				_, err := it.Next(&in)
				want := len(code) == 4 && (b < 0x40 || known[byte(b)])
				if (err == nil) != want {
					t.Errorf("% x: %v", code, err)
				}
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range modules(f) {
		m, err := Decode(b)
		if err != nil {
			f.Fatal(err)
		}
		m.Customs = slices.DeleteFunc(m.Customs, func(c Custom) bool { return c.Name == "name" })
		if b = m.Encode(); len(b) < 4096 {
			f.Add(b)
		}
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err == nil {
			err = walk(m)
		}
		if err != nil {
			return // wazero is not asked: a forged length makes it allocate gigabytes
		}
		if _, named := m.FindCustom("name"); named {
			return // wazero believes the counts in a name section, too; the rewriter never passes one on
		}
		c, wazeroErr := r.CompileModule(ctx, b)
		if wazeroErr == nil {
			c.Close(ctx)
		}
		enc := m.Encode()
		if _, err := Decode(enc); err != nil {
			t.Fatalf("what we encode we refuse: %v", err)
		}
		c, err = r.CompileModule(ctx, enc)
		if (err == nil) != (wazeroErr == nil) {
			t.Fatalf("wazero says %v of the original, %v of the encoded", wazeroErr, err)
		}
		if err == nil {
			c.Close(ctx)
		}
	})
}
