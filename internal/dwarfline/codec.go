package dwarfline

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A table as bytes, for another process: the numbers of files, lines and calls, then each of them. Numbers are unsigned
// varints, with one added where -1 is possible, and texts are preceded by their lengths.

// Bounds of a table that comes from another process.
const (
	mostFiles = 1 << 20
	MostTable = 512 << 20 // bytes
)

// errTable is a table that Append has not written.
var errTable = errors.New("dwarfline: malformed table")

// Append appends a table.
func (t *Table) Append(b []byte) []byte {
	number := func(n int64) { b = binary.AppendUvarint(b, uint64(n)) }
	text := func(s string) { number(int64(len(s))); b = append(b, s...) }
	number(int64(len(t.files)))
	number(int64(len(t.lines)))
	number(int64(len(t.inline)))
	for _, f := range t.files {
		text(f)
	}
	for _, l := range t.lines {
		number(int64(l.at))
		number(int64(l.file) + 1)
		number(int64(l.line))
	}
	for _, c := range t.inline {
		number(int64(c.from))
		number(int64(c.to))
		number(int64(c.file) + 1)
		number(int64(c.line))
		number(int64(c.deep))
		text(tidy(c.name))
	}
	return b
}

// Decode reads a table. It is from a process that has read a stranger's module, so everything is checked: a table that is
// decoded can be asked as one that Read has made. Memory is taken as entries come, not by the numbers that are announced.
func Decode(b []byte) (*Table, error) {
	d := decoder{b: b}
	files, lines, calls := d.number(mostFiles), d.number(mostLines), d.number(mostRanges)
	t := &Table{}
	for range files {
		if t.files = append(t.files, d.text()); d.bad {
			return nil, errTable
		}
	}
	last := int64(0)
	for range lines {
		l := line{uint32(d.number(1<<32 - 1)), int32(d.number(files) - 1), int32(d.number(1 << 30))}
		if d.bad || int64(l.at) < last {
			return nil, errTable
		}
		last = int64(l.at)
		t.lines = append(t.lines, l)
	}
	last = 0
	for range calls {
		c := call{from: uint32(d.number(1<<32 - 1)), to: uint32(d.number(1<<32 - 1)), file: int32(d.number(files) - 1)}
		c.line, c.deep, c.name = int32(d.number(1<<30)), int(d.number(mostDeep)), d.text()
		if d.bad || int64(c.from) < last {
			return nil, errTable
		}
		last = int64(c.from)
		t.inline = append(t.inline, c)
	}
	if len(d.b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after its end", errTable, len(d.b))
	}
	if len(t.lines) == 0 {
		return nil, ErrNone
	}
	return t, nil
}

type decoder struct {
	b   []byte
	bad bool
}

// number reads one of at most most; 0 if there is none.
func (d *decoder) number(most int64) int64 {
	n, size := binary.Uvarint(d.b)
	if d.bad = d.bad || size <= 0 || n > uint64(most); d.bad {
		return 0
	}
	d.b = d.b[size:]
	return int64(n)
}

// text reads one of the length that tidy leaves.
func (d *decoder) text() string {
	n := d.number(4 * mostText)
	if d.bad = d.bad || n > int64(len(d.b)); d.bad {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
