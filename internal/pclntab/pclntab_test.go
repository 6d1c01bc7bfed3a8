package pclntab

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// small is a table of two functions by hand: main.a, lines 10 to 11, and main.b, with a frame of 16 bytes from block 2 on.
func small(base uint64, entries ...uint32) []byte {
	const names, units, files, pcs, fns = 128, 192, 208, 256, 320
	b := make([]byte, 1024)
	copy(b, magic)
	for k, v := range []uint64{2, 1, base, names, units, files, pcs, fns} {
		binary.LittleEndian.PutUint64(b[8+8*k:], v)
	}
	copy(b[names:], "main.a\x00main.b\x00")
	binary.LittleEndian.PutUint32(b[units:], 0)
	copy(b[files:], "main.go\x00")
	copy(b[pcs+1:], []byte{22, 3, 2, 9, 0}) // line 10 for 3 blocks, then 11
	copy(b[pcs+8:], []byte{2, 12, 0})       // file 0
	copy(b[pcs+16:], []byte{2, 2, 32, 9, 0})
	for k, e := range entries {
		binary.LittleEndian.PutUint32(b[fns+8*k:], e)
		at := uint32(64 + 64*k)
		binary.LittleEndian.PutUint32(b[fns+8*k+4:], at)
		f := b[fns+int(at):]
		for i, v := range []uint32{e, uint32(7 * k), 0, 0, 16, 8, 1, 0, 0, 9} {
			binary.LittleEndian.PutUint32(f[4*i:], v)
		}
	}
	return b
}

// Both forms of the list of functions are read: numbers, and pcs as Go before 1.26 has them.
func TestTable(t *testing.T) {
	for name, b := range map[string][]byte{
		"numbers": small(0, firstFunction, firstFunction+1, firstFunction+2), "pcs": small(text, 0, 1<<16, 2<<16), "absolute": small(0, text, text+1<<16, text+2<<16),
	} {
		mem := append(make([]byte, 64), b...)
		table := Find(mem)
		if table == nil {
			t.Fatal(name)
		}
		f, ok := table.Numbered(1)
		if !ok || f.Name() != "main.b" || f.Number() != 1 || f.StartLine() != 9 {
			t.Fatalf("%s: %v %v %d", name, ok, f.Name(), f.StartLine())
		}
		for block, want := range []int{10, 10, 10, 11, 11} {
			if file, line := f.Line(f.Entry + uint64(block)); file != "main.go" || line != want {
				t.Errorf("%s: block %d is %s:%d", name, block, file, line)
			}
		}
		if n, ok := f.Frame(f.Entry + 1); !ok || n != 0 {
			t.Error(n, ok)
		}
		if n, ok := f.Frame(f.Entry + 2); !ok || n != 16 {
			t.Error(n, ok)
		}
		if _, ok := f.Frame(f.Entry + 100); ok {
			t.Error("behind the end of the table")
		}
		if _, ok := table.Func(text - 1); ok {
			t.Error("before the text")
		}
		// main.a was called by main.b, block 3, which has a frame and was called by main.b, block 1.
		stack := make([]byte, 256)
		binary.LittleEndian.PutUint64(stack[100:], f.Entry+3)
		binary.LittleEndian.PutUint64(stack[100+8+16:], f.Entry+1)
		calls := table.Stack(stack, 100, 0, 1, -1)
		if len(calls) != 3 || calls[0].Name() != "main.a" || calls[1].PC != f.Entry+3 || calls[2].PC != f.Entry+1 {
			t.Fatalf("%s: %+v", name, calls)
		}
		if _, line := calls[1].Line(); line != 10 {
			t.Errorf("the call is in line %d", line) // that of block 2: the call is before where it goes on
		}
		if _, line := calls[0].Line(); line != 9 {
			t.Error(line)
		}
	}
}

// A table of a forged memory has the host keep no more than names of 32 MiB, and no more functions than a module may have.
func TestLargeTablesAreBounded(t *testing.T) {
	forged := func(functions int) []byte {
		b := small(0)
		const names, fns = 128, 320
		binary.LittleEndian.PutUint64(b[8:], uint64(functions))
		b = append(b[:fns], make([]byte, entrySize*functions+1024)...)
		for i := range functions {
			binary.LittleEndian.PutUint32(b[fns+entrySize*i:], uint32(firstFunction+i))
			binary.LittleEndian.PutUint32(b[fns+entrySize*i+4:], uint32(entrySize*functions))
		}
		end := b[fns+entrySize*functions:]
		binary.LittleEndian.PutUint32(end[4:], uint32(len(b)-mostName-names)) // its name is the end of the memory
		copy(b[len(b)-mostName:], bytes.Repeat([]byte{'x'}, mostName))
		return b
	}
	table := Find(forged(mostFuncs))
	if table == nil {
		t.Fatal("the largest table is refused")
	}
	kept := 0
	table.Each(func(_ int, name string) { kept += len(name) })
	if kept > mostNames || kept < mostNames-mostName {
		t.Errorf("names of %d bytes, at most %d", kept, mostNames)
	}
	if Find(forged(mostFuncs+1)) != nil {
		t.Error("a table of more functions than a module may have is read")
	}
}

// FuzzFind: whatever the memory of a guest has, it is read without a panic.
func FuzzFind(f *testing.F) {
	f.Add(small(0, firstFunction, firstFunction+1, firstFunction+2), uint32(100), uint16(0))
	f.Add(small(text, 0, 1<<16, 2<<16), uint32(1<<31), uint16(1))
	f.Add(magic, uint32(0), uint16(0))
	f.Fuzz(func(t *testing.T, mem []byte, sp uint32, number uint16) {
		table := Find(mem)
		if table == nil {
			return
		}
		n := 0
		table.Each(func(k int, name string) {
			if n++; n > 50 {
				return
			}
			if fn, ok := table.Numbered(k); ok {
				fn.Line(fn.Entry + 1)
				fn.Frames()
				_ = fn.StartLine()
				if len(fn.Name()) > 3*mostName {
					t.Error("a long name")
				}
			}
		})
		for _, caller := range []int{-1, 0, 1} {
			for _, c := range table.Stack(mem, uint64(sp), int(number), caller, -1) {
				c.Line()
			}
		}
	})
}
