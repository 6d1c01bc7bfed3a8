package dwarfline

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// A table that was appended and decoded is the table; cut anywhere it is none, and so it is with a file that is not there.
func TestCodec(t *testing.T) {
	_, section := cart(t)
	table, err := Read(section)
	if err != nil {
		t.Fatal(err)
	}
	b := table.Append(nil)
	got, err := Decode(b)
	if err != nil || !reflect.DeepEqual(got, table) {
		t.Fatalf("%d lines, %v", len(table.lines), err)
	}
	for n := range b {
		if _, err := Decode(b[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes it is a table", n, len(b))
		}
	}
	for name, wrong := range map[string]*Table{
		"a file that is not there": {files: []string{"a"}, lines: []line{{1, 1, 1}}},
		"lines out of order":       {files: []string{"a"}, lines: []line{{2, 0, 1}, {1, 0, 1}}},
		"calls out of order":       {files: []string{"a"}, lines: []line{{1, 0, 1}}, inline: []call{{from: 2, to: 3}, {from: 1, to: 2}}},
		"a call of no file":        {files: []string{"a"}, lines: []line{{1, 0, 1}}, inline: []call{{from: 1, to: 2, file: 1}}},
		"too deep":                 {files: []string{"a"}, lines: []line{{1, 0, 1}}, inline: []call{{from: 1, to: 2, deep: mostDeep + 1}}},
	} {
		if _, err := Decode(wrong.Append(nil)); !errors.Is(err, errTable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Decode((&Table{}).Append(nil)); !errors.Is(err, ErrNone) {
		t.Errorf("an empty one: %v", err)
	}
	if _, err := Decode(append(bytes.Clone(b), 0)); !errors.Is(err, errTable) {
		t.Errorf("more than a table: %v", err)
	}
}

// FuzzDecode: what is decoded can be asked for any place, and is the same again.
func FuzzDecode(f *testing.F) {
	_, section := cart(f)
	table, err := Read(section)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(table.Append(nil), uint32(100))
	f.Fuzz(func(t *testing.T, b []byte, at uint32) {
		table, err := Decode(b)
		if err != nil {
			return
		}
		for _, p := range table.At(uint64(at)) {
			if p.Line < 0 || p.File != "" && !slices.Contains(table.files, p.File) {
				t.Errorf("%+v", p)
			}
		}
		table.Append(nil)
	})
}
