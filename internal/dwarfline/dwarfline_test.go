package dwarfline

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// cart is a module that clang has built, and its sections.
func cart(t testing.TB) (m *wasm.Module, section func(string) []byte) {
	t.Helper()
	code, err := os.ReadFile("../../host/debug/testdata/cart.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if m, err = wasm.Decode(code); err != nil {
		t.Fatal(err)
	}
	return m, func(name string) []byte {
		b, _ := m.FindCustom(name)
		return b
	}
}

// Each instruction has a line of its function, and what was put in line has the line of its call around it.
func TestRead(t *testing.T) {
	m, section := cart(t)
	table, err := Read(section)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../host/debug/testdata/cart.c")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	known, inLine := 0, 0
	for _, body := range m.Code {
		it := wasm.NewInstrs(body.Code, body.Offset)
		var ins wasm.Instr
		for {
			if ok, err := it.Next(&ins); err != nil || !ok {
				break
			}
			places := table.At(uint64(body.Offset - m.CodeStart + ins.Start))
			if len(places) == 0 {
				continue
			}
			known++
			for k, p := range places {
				if p.File != "cart.c" || p.Line < 1 || p.Line > len(lines) {
					t.Errorf("%+v", p)
				}
				if k == 0 && len(places) == 2 {
					inLine++
					if p.Function != "checked" || !strings.Contains(lines[places[1].Line-1], "checked(n)") || places[1].Function != "" {
						t.Errorf("%+v", places)
					}
				}
			}
			if ins.Op == wasm.OpUnreachable && !strings.Contains(lines[places[0].Line-1], "__builtin_trap") {
				t.Errorf("the trap is at %+v", places)
			}
		}
	}
	if known < 50 || inLine == 0 {
		t.Errorf("%d instructions have lines, %d are in line", known, inLine)
	}
	for _, at := range []uint64{0, 1, 1 << 31, 1<<32 - 1, 1 << 40} {
		if p := table.At(at); p != nil {
			t.Errorf("%#x is at %+v", at, p)
		}
	}
}

// Without sections there are no lines, and with too many bytes neither.
func TestNone(t *testing.T) {
	if _, err := Read(func(string) []byte { return nil }); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := Read(func(string) []byte { return make([]byte, mostBytes/4) }); err == nil || errors.Is(err, ErrNone) {
		t.Error(err)
	}
	_, section := cart(t)
	for _, name := range []string{".debug_info", ".debug_abbrev", ".debug_line"} {
		for _, bad := range [][]byte{{1}, bytes.Repeat([]byte{0xff}, 100), section(name)[:len(section(name))/2]} {
			table, err := Read(func(n string) []byte {
				if n == name {
					return bad
				}
				return section(n)
			})
			if err == nil && table == nil {
				t.Errorf("%s of %d bytes: neither a table nor an error", name, len(bad))
			}
		}
	}
}

// Where several calls were put in line within one another, the innermost comes first; texts are bounded and valid.
func TestAt(t *testing.T) {
	table := &Table{
		files: []string{"a.c", "b.c"},
		lines: []line{{10, 0, 1}, {20, 1, 7}, {20, 1, 8}, {30, -1, 0}, {40, 0, 3}, {50, -1, 0}},
		inline: []call{
			{10, 30, 0, 2, "outer", 1}, {18, 25, 1, 5, "inner", 2}, {26, 28, -1, 0, strings.Repeat("x", 2*mostText) + "\xff", 2},
		},
	}
	for at, want := range map[uint64]string{
		9: "", 10: "a.c:1 outer, a.c:2 ", 18: "a.c:1 inner, b.c:5 outer, a.c:2 ", 20: "b.c:8 inner, b.c:5 outer, a.c:2 ", 25: "b.c:8 outer, a.c:2 ",
		30: "", 39: "", 40: "a.c:3 ", 49: "a.c:3 ", 50: "",
	} {
		var texts []string
		for _, p := range table.At(at) {
			texts = append(texts, fmt.Sprintf("%s:%d %s", p.File, p.Line, p.Function))
		}
		if got := strings.Join(texts, ", "); got != want {
			t.Errorf("at %d: %q, not %q", at, got, want)
		}
	}
	if p := table.At(27); len(p) != 3 || len(p[0].Function) > mostText+3 || !strings.HasSuffix(p[0].Function, "\uFFFD") {
		t.Errorf("%+v", p)
	}
}

// FuzzRead: whatever the sections of a module have, they are read without a panic, and places are within what was read.
func FuzzRead(f *testing.F) {
	_, section := cart(f)
	f.Add(section(".debug_info"), section(".debug_abbrev"), section(".debug_line"), section(".debug_str"), section(".debug_ranges"), uint32(100))
	f.Fuzz(func(t *testing.T, info, abbrev, lines, text, ranges []byte, at uint32) {
		table, err := Read(func(name string) []byte {
			switch name {
			case ".debug_info":
				return info
			case ".debug_abbrev":
				return abbrev
			case ".debug_line":
				return lines
			case ".debug_str", ".debug_line_str":
				return text
			case ".debug_ranges", ".debug_rnglists":
				return ranges
			}
			return nil
		})
		if err != nil {
			return
		}
		for _, p := range table.At(uint64(at)) {
			if p.Line < 0 || p.File != "" && !slices.Contains(table.files, p.File) {
				t.Errorf("%+v", p)
			}
		}
	})
}
