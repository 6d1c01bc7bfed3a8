// Package planted builds tests with mistakes in the code that they test.
package planted

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mistake is a text of a file that is replaced by another one, in which planted is whether the mistake is switched on.
type Mistake struct {
	Name string
	File string // relative to the root
	Old  string // comes once
	New  string
}

// Variable of the environment is the number of the mistake that is switched on, from 1.
const Variable = "PLANTED_MISTAKE"

// Build builds the tests of the package in the present folder with all mistakes, and returns the binary. root is a folder of the
// same module.
func Build(t testing.TB, root string, mistakes []Mistake) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "planted.test")
	build := exec.Command("go", "test", "-c", "-overlay", overlay(t, dir, root, mistakes), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// Applies is an error if the mistake's text does not come once in its file. root is as for Build.
func (m *Mistake) Applies(root string) error {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err == nil {
		err = m.comesOnce(string(text))
	}
	return err
}

func (m *Mistake) comesOnce(text string) error {
	if n := strings.Count(text, m.Old); n != 1 {
		return fmt.Errorf("%s: its text comes %d times in %s", m.Name, n, m.File)
	}
	return nil
}

// overlay writes the files that have all mistakes, and the list of them for go build.
func overlay(t testing.TB, dir, root string, mistakes []Mistake) string {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	files, packages := map[string]string{}, map[string]string{}
	for i, m := range mistakes {
		path := filepath.Join(root, m.File)
		text, ok := files[path]
		if !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
			_, after, _ := strings.Cut("\n"+text, "\npackage ")
			packages[filepath.Dir(path)], _, _ = strings.Cut(after, "\n")
		}
		if err := m.comesOnce(text); err != nil {
			t.Fatal(err)
		}
		files[path] = strings.Replace(text, m.Old, strings.ReplaceAll(m.New, "planted", fmt.Sprintf("(plantedNumber == %d)", i+1)), 1)
	}
	for folder, name := range packages {
		files[filepath.Join(folder, "planted_overlay.go")] = "package " + name + "\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar plantedNumber, _ = strconv.Atoi(os.Getenv(\"" + Variable + "\"))\n"
	}
	replace := map[string]string{}
	for path, text := range files {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)+1))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
