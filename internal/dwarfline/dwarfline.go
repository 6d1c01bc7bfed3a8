// Package dwarfline reads the DWARF of a module: which line of which file an instruction is of, and which calls the compiler has
// put in line there.
//
// What it reads is a stranger's, and so hostile. What it keeps is bounded in bytes, entries and lines, and what does not fit
// together is not there. What debug/dwarf takes meanwhile is not: a few bytes can announce billions of folders, or lines that
// count nowhere. So a program that shows lines of strangers' modules calls Read in a process with limits, as package sandbox
// does, and takes the table from it with Decode.
package dwarfline

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what is read.
const (
	mostBytes   = 128 << 20 // of all sections
	mostEntries = 4 << 20
	mostRanges  = 4 << 20
	mostLines   = 8 << 20
	mostDeep    = 64  // calls in line
	mostText    = 512 // bytes of a name
)

// ErrNone says that a module has no DWARF.
var ErrNone = errors.New("dwarfline: there is no debugging information")

// Table is what was read. It is safe for concurrent use.
type Table struct {
	lines  []line // in order of their addresses
	inline []call // in order of their begin; of those with the same one the outermost first
	files  []string
}

type line struct {
	at   uint32
	file int32 // -1: the end of a sequence
	line int32
}

// call is one that was put in line.
type call struct {
	from, to uint32
	file     int32 // where it is called
	line     int32
	name     string // of what is called
	deep     int
}

// Place is a line in a file.
type Place struct {
	File string
	Line int
	// Function is what was put in line there; empty: it is of the function that the code is of.
	Function string
}

// Read reads sections by their names, as ".debug_info". The error wraps ErrNone if those for lines are not there.
func Read(section func(name string) []byte) (t *Table, err error) {
	defer func() {
		if p := recover(); p != nil { // the library's, of bytes that it does not expect
			t, err = nil, fmt.Errorf("dwarfline: malformed: %v", p)
		}
	}()
	total := 0
	get := func(name string) []byte {
		b := section(name)
		total += len(b)
		return b
	}
	info, lines := get(".debug_info"), get(".debug_line")
	if len(info) == 0 || len(lines) == 0 {
		return nil, ErrNone
	}
	abbrev, ranges, text := get(".debug_abbrev"), get(".debug_ranges"), get(".debug_str")
	more := map[string][]byte{}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_rnglists", ".debug_str_offsets"} {
		if b := get(name); len(b) > 0 {
			more[name] = b
		}
	}
	if total > mostBytes {
		return nil, fmt.Errorf("dwarfline: %d bytes are more than %d", total, mostBytes)
	}
	d, err := dwarf.New(abbrev, nil, nil, info, lines, nil, ranges, text)
	if err != nil {
		return nil, fmt.Errorf("dwarfline: %w", err)
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_rnglists", ".debug_str_offsets"} {
		if b, ok := more[name]; ok {
			if err := d.AddSection(name, b); err != nil {
				return nil, fmt.Errorf("dwarfline: %w", err)
			}
		}
	}
	r := &reader{d: d, t: &Table{}, known: map[string]int32{}, names: map[dwarf.Offset]string{}}
	if err := r.all(); err != nil {
		return nil, fmt.Errorf("dwarfline: %w", err)
	}
	r.finish()
	if len(r.t.lines) == 0 {
		return nil, ErrNone
	}
	return r.t, nil
}

type reader struct {
	d     *dwarf.Data
	t     *Table
	known map[string]int32        // files
	names map[dwarf.Offset]string // of subprograms
	calls []pending
	home  string // the folder of the unit

	entries, ranges int
}

// pending is a call in line whose name is not read yet.
type pending struct {
	call
	origin dwarf.Offset
}

var errMany = errors.New("there is too much of it")

// all reads every entry.
func (r *reader) all() error {
	entries := r.d.Reader()
	deep := 0
	var files []*dwarf.LineFile
	for {
		e, err := entries.Next()
		if err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		if r.entries++; r.entries > mostEntries {
			return errMany
		}
		switch e.Tag {
		case 0:
			deep--
			continue
		case dwarf.TagCompileUnit:
			if files, err = r.unit(e); err != nil {
				return err
			}
			deep = 0
		case dwarf.TagSubprogram:
			if name, ok := e.Val(dwarf.AttrName).(string); ok {
				r.names[e.Offset] = strings.Clone(tidy(name))
			}
		case dwarf.TagInlinedSubroutine:
			if err := r.inlined(e, files, deep); err != nil {
				return err
			}
		}
		if e.Children {
			deep++
		}
	}
}

// unit reads the lines of a unit.
func (r *reader) unit(e *dwarf.Entry) ([]*dwarf.LineFile, error) {
	lines, err := r.d.LineReader(e)
	if err != nil || lines == nil {
		return nil, err
	}
	folder, _ := e.Val(dwarf.AttrCompDir).(string)
	r.home = tidy(folder)
	last := (*dwarf.LineFile)(nil)
	file := int32(-1)
	var row dwarf.LineEntry
	for lines.Next(&row) == nil { // an end, or what is malformed, ends the lines of the unit
		if len(r.t.lines) == mostLines {
			return nil, errMany
		}
		at, ok := address(row.Address)
		switch {
		case !ok:
			continue
		case row.EndSequence:
			r.t.lines = append(r.t.lines, line{at, -1, 0})
			continue
		case row.File == nil:
			continue
		}
		if row.File != last {
			last, file = row.File, r.file(row.File.Name)
		}
		r.t.lines = append(r.t.lines, line{at, file, int32(min(max(row.Line, 0), 1<<30))})
	}
	return lines.Files(), nil
}

// address is one in the code section; false: linkers write such where the code was left out.
func address(a uint64) (uint32, bool) { return uint32(a), a > 0 && a < 1<<32-2 }

// file is the number of a file.
func (r *reader) file(name string) int32 {
	name = tidy(name)
	if r.home != "" {
		name = strings.TrimPrefix(name, strings.TrimSuffix(r.home, "/")+"/")
	}
	if n, ok := r.known[name]; ok {
		return n
	}
	n := int32(len(r.t.files))
	r.t.files = append(r.t.files, name)
	r.known[name] = n
	return n
}

// tidy is a text of bounded length that is valid UTF-8.
func tidy(s string) string {
	if len(s) > mostText {
		s = s[len(s)-mostText:]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.ContainsAny(s, "/") {
		s = path.Clean(s)
	}
	return s
}

// inlined reads a call that was put in line.
func (r *reader) inlined(e *dwarf.Entry, files []*dwarf.LineFile, deep int) error {
	if deep > mostDeep {
		return nil
	}
	if deep < 0 {
		deep = 0
	}
	spans, err := r.d.Ranges(e)
	if err != nil {
		return nil // of this one it is not known
	}
	if r.ranges += len(spans); r.ranges > mostRanges {
		return errMany
	}
	origin, _ := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
	number, _ := e.Val(dwarf.AttrCallFile).(int64)
	at, _ := e.Val(dwarf.AttrCallLine).(int64)
	file := int32(-1)
	if number >= 0 && number < int64(len(files)) && files[number] != nil {
		file = r.file(files[number].Name)
	}
	for _, s := range spans {
		from, ok := address(s[0])
		to, ok2 := address(s[1])
		if ok && ok2 && from < to {
			r.calls = append(r.calls, pending{call{from, to, file, int32(min(max(at, 0), 1<<30)), "", deep}, origin})
		}
	}
	return nil
}

// finish sorts what was read.
func (r *reader) finish() {
	t := r.t
	slices.SortStableFunc(t.lines, func(a, b line) int {
		if a.at != b.at {
			return int(int64(a.at) - int64(b.at))
		}
		return int(b.end()) - int(a.end()) // where one sequence ends another may begin
	})
	for _, c := range r.calls {
		c.name = r.names[c.origin]
		t.inline = append(t.inline, c.call)
	}
	slices.SortStableFunc(t.inline, func(a, b call) int {
		if a.from != b.from {
			return int(int64(a.from) - int64(b.from))
		}
		return a.deep - b.deep
	})
}

// end is 1 for the end of a sequence.
func (l *line) end() int8 {
	if l.file < 0 {
		return 1
	}
	return 0
}

// At is where the instruction at an offset in the code section is, innermost call in line first; none: it is not known.
func (t *Table) At(offset uint64) []Place {
	at, ok := address(offset)
	if !ok {
		return nil
	}
	n, _ := slices.BinarySearchFunc(t.lines, at, func(l line, at uint32) int {
		if l.at <= at {
			return -1 // the last one of those at the same address
		}
		return 1
	})
	if n == 0 || t.lines[n-1].file < 0 || t.lines[n-1].line == 0 { // 0: the compiler's own
		return nil
	}
	l := t.lines[n-1]
	place := Place{File: t.files[l.file], Line: int(l.line)}
	var around []call
	end, _ := slices.BinarySearchFunc(t.inline, at, func(c call, at uint32) int {
		if c.from <= at {
			return -1
		}
		return 1
	})
	for k := max(0, end-mostLook); k < end; k++ {
		if c := t.inline[k]; at < c.to && len(around) < mostDeep {
			around = append(around, c)
		}
	}
	slices.SortStableFunc(around, func(a, b call) int { return b.deep - a.deep })
	var places []Place
	for _, c := range around {
		place.Function = tidy(c.name)
		places = append(places, place)
		place = Place{Line: int(c.line)}
		if c.file >= 0 {
			place.File = t.files[c.file]
		}
	}
	return append(places, place)
}

// mostLook is how many calls in line that begin before an instruction are looked at, at most.
const mostLook = 4096
