package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What is counted in a package that has all of it: a circle of three files by a function, a field and a
// method, one that only uses, one by itself.
func TestCounts(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module github.com/wasmactors/wasmactors\n\ngo 1.25\n",
		"host/a.go":      "package host\n\ntype actor struct{ field int }\n\nfunc (a *actor) one() { two(a) }\n",
		"host/b.go":      "package host\n\nfunc two(a any) { three() }\n",
		"host/c.go":      "package host\n\nfunc three() { (&actor{}).one() }\n",
		"host/d.go":      "package host\n\nfunc four() int { var x struct{ y int }; return x.y + len(name) }\n\nconst name = \"d\"\n",
		"host/e.go":      "package host\n\ntype System struct{}\n\nfunc (System) Shown() { three(); two(1) }\n\nfunc (System) hidden() {}\n",
		"host/a_test.go": "package host\n\nfunc test() { four() }\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := load(dir, "./host")
	if err != nil {
		t.Fatal(err)
	}
	got := report(io.Discard, loaded)
	for name, want := range map[string]int{
		"files in the largest circle of host": 3, "uses between files of host": 5, "lines of host": 5 + 3 + 3 + 5 + 7,
		"methods of actor and guest": 1, "methods of System": 2, "methods of System, exported": 1, "methods of Context": 0,
		"lines of the product": 5 + 3 + 3 + 5 + 7,
	} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
}

// A count beyond its limit, one without a limit, and a limit of nothing are told; less is well.
func TestCompare(t *testing.T) {
	got := compare(map[string]int{"more": 3, "less": 1, "new": 1}, map[string]int{"more": 2, "less": 2, "gone": 1})
	want := []string{"gone: a limit of what is not counted", "more: 3, the limit is 2", "new: 1, without a limit: go run ./tools/shape -update"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
