package natscluster

import (
	"os"
	"path/filepath"
	"testing"
)

// here is a place of locks that a test chooses.
func here(boot string) func(*os.File) (where, bool) {
	return func(f *os.File) (where, bool) {
		i, err := f.Stat()
		return where{boot, i.Name() + filepath.Dir(f.Name())}, err == nil // a copy of the folder is another one
	}
}

// Who holds the folder of a node knows which life is over: that of a process that has held it before, here, since the machine was started. A
// life that may still act is never among them.
func TestHold(t *testing.T) {
	first := t.TempDir()
	begins := func(h *Hold, id uint64) {
		t.Helper()
		if err := h.Begins(id); err != nil {
			t.Fatal(err)
		}
	}
	over := func(what string, h *Hold, want uint64) {
		t.Helper()
		if got := h.Over(); got != want {
			t.Errorf("%s: the life %d is over, not %d", what, got, want)
		}
	}
	closed := func(h *Hold) {
		t.Helper()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a := holdOf(first, here("monday"))
	over("a new folder", a, 0)
	begins(a, 7)
	begins(a, 8) // it was lost, and has joined again
	b := holdOf(first, here("monday"))
	over("a second process while the first one lives", b, 0)
	begins(b, 9) // it has no hold: nothing is noted
	closed(a)
	c := holdOf(first, here("monday"))
	over("the process after it", c, 8)
	closed(c)
	over("a machine that was started again", holdOf(first, here("tuesday")), 0)

	second := t.TempDir()
	for _, name := range []string{fileHold, fileLife} {
		data, err := os.ReadFile(filepath.Join(first, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(second, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	over("a copy of the folder", holdOf(second, here("monday")), 0)

	third := t.TempDir()
	d := holdOf(third, func(*os.File) (where, bool) { return where{"monday", "1"}, false })
	over("where locks prove nothing", d, 0)
	begins(d, 5)
	over("afterwards", holdOf(third, func(*os.File) (where, bool) { return where{"monday", "1"}, true }), 0)
	for _, text := range []string{"", "{", `{"id":"x"}`, `{"where":{"boot":"monday","inode":"1"},"id":5}`, `{"where":{},"id":"5"}`} {
		if err := os.WriteFile(filepath.Join(third, fileLife), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := holdOf(third, func(*os.File) (where, bool) { return where{"monday", "2"}, true })
		over("a note such as "+text, h, 0)
		closed(h)
	}
	if err := os.RemoveAll(third); err != nil {
		t.Fatal(err)
	}
	h := holdOf(third, here("monday"))
	over("no folder", h, 0)
	begins(h, 5)
	closed(h)
	closed(nil)
}

// The place of a lock is that of the file, and of the machine's start.
func TestWhere(t *testing.T) {
	var at []where
	for range 2 {
		dir := t.TempDir()
		for range 2 {
			f, err := os.OpenFile(filepath.Join(dir, "x"), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			w, ok := whereOf(f)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if !ok {
				t.Skip("locks prove nothing here")
			}
			at = append(at, w)
		}
	}
	if at[0] != at[1] || at[2] != at[3] || at[0] == at[2] || at[0].Boot != at[2].Boot || at[0].Boot == "" {
		t.Errorf("%+v", at)
	}
}
