// Package pclntab reads Go's table of functions and lines in the memory of a guest, and the calls on the stack of a goroutine.
//
// What it reads is the guest's, and so hostile: whatever lies outside of the memory, or does not fit together, is not there.
package pclntab

import (
	"bytes"
	"encoding/binary"
	"sort"
	"strings"
	"unicode/utf8"
)

// Of Go's ports to wasm: the first function has this number, and a pc is the number of a function and of a block in it.
const (
	firstFunction = 0x1000
	blockBits     = 16
	text          = firstFunction << blockBits
)

// magic begins the table: that of Go 1.20 and later, with a quantum of one byte and pointers of eight.
var magic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

const (
	headBytes = 8 + 8*8
	entrySize = 8
	funcSize  = 44
	mostName  = 512
	mostFuncs = 1 << 18  // of a table; a module may have 200,000
	mostNames = 32 << 20 // bytes, of all functions that Each tells of
	mostSteps = 1 << 16  // in the table of one function
)

// Table is a table of functions and lines. It is safe for concurrent use as long as the memory is.
type Table struct {
	mem                           []byte // from the table on
	funcs                         uint64 // how many
	names, units, files, pcs, fns uint64 // offsets
	base, shift                   uint64 // of pcs in the list of functions
}

// Find looks for the table; nil: there is none.
func Find(mem []byte) *Table {
	for at := 0; ; {
		i := bytes.Index(mem[at:], magic)
		if i < 0 {
			return nil
		}
		at += i
		if t := parse(mem[at:]); t != nil {
			return t
		}
		at++
	}
}

func parse(mem []byte) *Table {
	if len(mem) < headBytes {
		return nil
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(mem[8+8*i:]) }
	t := &Table{mem: mem, funcs: word(0), names: word(3), units: word(4), files: word(5), pcs: word(6), fns: word(7)}
	size := uint64(len(mem))
	for _, at := range [...]uint64{t.names, t.units, t.files, t.pcs, t.fns} {
		if at < headBytes || at >= size {
			return nil
		}
	}
	if t.funcs == 0 || t.funcs > min((size-t.fns)/entrySize, mostFuncs) {
		return nil
	}
	// The table has the numbers of functions, or pcs that begin with that of the text: in Go before 1.26.
	switch first, _ := t.u32(t.fns); {
	case first == firstFunction:
		t.shift = blockBits
	case word(2) <= text && word(2)+uint64(first) == text:
		t.base = word(2)
	default:
		return nil
	}
	return t
}

func (t *Table) u32(at uint64) (uint32, bool) {
	if at > uint64(len(t.mem))-4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(t.mem[at:]), true
}

// entry is the pc of function i of the table.
func (t *Table) entry(i uint64) uint64 {
	v, _ := t.u32(t.fns + i*entrySize)
	return t.base + uint64(v)<<t.shift
}

// Each calls f with the numbers and names of all functions. It ends early where the names have more than 32 MiB: no compiler
// writes so many.
func (t *Table) Each(f func(number int, name string)) {
	left := mostNames
	for i := range t.funcs {
		if fn, ok := t.Func(t.entry(i)); ok {
			name := fn.Name()
			if left -= len(name); left < 0 {
				return
			}
			f(fn.Number(), name)
		}
	}
}

// Func is a function of Go.
type Func struct {
	t     *Table
	at    uint64 // of its record
	Entry uint64 // pc
}

// Func is the function that a pc is in.
func (t *Table) Func(pc uint64) (f Func, ok bool) {
	if pc < text {
		return f, false
	}
	i := sort.Search(int(t.funcs), func(i int) bool { return t.entry(uint64(i)) > pc })
	if i == 0 {
		return f, false
	}
	at, ok := t.u32(t.fns + uint64(i-1)*entrySize + 4)
	if !ok || t.fns+uint64(at) > uint64(len(t.mem))-funcSize {
		return f, false
	}
	f = Func{t, t.fns + uint64(at), t.entry(uint64(i - 1))}
	return f, f.Entry>>blockBits == pc>>blockBits
}

// Numbered is the function with this number in the module, of those that are not imported.
func (t *Table) Numbered(n int) (Func, bool) {
	return t.Func(text + uint64(uint32(n))<<blockBits)
}

// Number is that of the function in the module, of those that are not imported.
func (f *Func) Number() int { return int(f.Entry>>blockBits) - firstFunction }

func (f *Func) field(i uint64) uint64 {
	v, _ := f.t.u32(f.at + 4*i)
	return uint64(v)
}

// Name is its name, as Go has it: "main.(*cart).add".
func (f *Func) Name() string { return f.t.text(f.t.names + f.field(1)) }

// StartLine is the line of its declaration.
func (f *Func) StartLine() int { return int(int32(f.field(9))) }

// text is a string that ends with a zero byte.
func (t *Table) text(at uint64) string {
	if at >= uint64(len(t.mem)) {
		return "?"
	}
	b := t.mem[at:]
	b = b[:min(len(b), mostName)]
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	if !utf8.Valid(b) {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return string(b)
}

// Line is the file and the line of a pc in the function; 0: it is not known.
func (f *Func) Line(pc uint64) (file string, line int) {
	unit, ok := f.value(f.field(5), pc)
	n, ok2 := f.value(f.field(6), pc)
	if !ok || !ok2 || unit < 0 || n <= 0 {
		return "", 0
	}
	at, ok := f.t.u32(f.t.units + 4*(f.field(8)+uint64(unit)))
	if !ok || at == 1<<32-1 {
		return "", 0
	}
	return f.t.text(f.t.files + uint64(at)), int(n)
}

// Frame is how far the stack pointer lies below the return address, in bytes, at a pc.
func (f *Func) Frame(pc uint64) (int32, bool) { return f.value(f.field(4), pc) }

// Frames are the different values of Frame within the function.
func (f *Func) Frames() (sizes []int32) {
	f.each(f.field(4), func(_ uint64, v int32) bool {
		for _, s := range sizes {
			if s == v {
				return true
			}
		}
		sizes = append(sizes, v)
		return len(sizes) < 16
	})
	return sizes
}

// value looks a pc up in one of the function's tables.
func (f *Func) value(table, pc uint64) (value int32, ok bool) {
	f.each(table, func(end uint64, v int32) bool {
		value, ok = v, pc < end
		return !ok
	})
	return value, ok
}

// each calls call with the values of a table of the function, and where each ends.
func (f *Func) each(table uint64, call func(end uint64, v int32) bool) {
	if table == 0 || f.t.pcs+table >= uint64(len(f.t.mem)) {
		return
	}
	b := f.t.mem[f.t.pcs+table:]
	pc, v := f.Entry, int32(-1)
	for n := range mostSteps {
		dv, k := binary.Uvarint(b)
		if k <= 0 || dv == 0 && n > 0 {
			return
		}
		b = b[k:]
		d, k := binary.Uvarint(b)
		if k <= 0 || d > 1<<32 {
			return
		}
		b = b[k:]
		v += int32(-(uint32(dv) & 1) ^ uint32(dv)>>1)
		pc += d
		if !call(pc, v) {
			return
		}
	}
}
