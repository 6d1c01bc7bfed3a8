package cache

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// storeCode stores this as the entry's machine code.
func storeCode(t *testing.T, e *Entry, text []byte) {
	t.Helper()
	temp, err := e.c.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	from, to := filepath.Join(temp, "from"), filepath.Join(temp, "to")
	for dir, body := range map[string][]byte{from: text, to: []byte("stub")} {
		if err := os.MkdirAll(filepath.Join(dir, "wazero-v1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "wazero-v1", "code"), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(MoveCode(from, to), e.StoreCode(to)); err != nil {
		t.Fatal(err)
	}
}

func TestCode(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	e := use(t, c, key(1))
	if _, err := e.Code(); err != ErrMissing {
		t.Fatal(err)
	}
	storeCode(t, e, []byte("machine code"))
	storeCode(t, e, []byte("that of another process, a moment later"))
	code, err := e.Code()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(code.Dir, "wazero-v1", "code")
	if text, err := os.ReadFile(file); err != nil || string(text) != "machine code" {
		t.Errorf("%q %v", text, err)
	}
	if !code.Used() {
		t.Error("nothing has changed")
	}
	beside := filepath.Join(code.Dir, "wazero-v1", "beside")
	if err := os.WriteFile(beside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code.Used() {
		t.Error("another file was put beside it")
	}
	if err := os.Remove(beside); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte("machine code"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if code.Used() {
		t.Error("it was replaced")
	}
	if _, err := use(t, c, key(2)).Code(); err != ErrMissing {
		t.Error("another key:", err)
	}
}

// TestDamagedCode changes the file and its sum at random places, from a seed: it
// is never offered, and can be stored again.
func TestDamagedCode(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 1))
	c := openTest(t, t.TempDir(), 1<<20)
	e := use(t, c, key(1))
	text := bytes.Repeat([]byte("machine code "), 50)
	dir := filepath.Join(c.path(key(1)), codeDir)
	file, sum := filepath.Join(dir, "wazero-v1", "code"), filepath.Join(dir, codeSum)
	for n := range 300 {
		storeCode(t, e, text)
		target := []string{file, sum}[n%2]
		raw, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		at := r.IntN(len(raw))
		what := fmt.Sprintf("seed %d, %s, ", seed, filepath.Base(target))
		switch r.IntN(5) {
		case 0:
			raw[at] ^= 1 << r.IntN(8)
			what += fmt.Sprintf("flipped at %d", at)
		case 1:
			raw = raw[:at]
			what += fmt.Sprintf("cut at %d", at)
		case 2:
			raw = append(raw, byte(at))
			what += "longer"
		case 3:
			clear(raw[at:])
			what += fmt.Sprintf("zeros from %d", at)
		case 4:
			what += "removed"
			raw = nil
		}
		if raw == nil {
			err = os.Remove(target)
		} else {
			err = os.WriteFile(target, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Code(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := e.Code(); err != ErrMissing {
			t.Errorf("%s: still there: %v", what, err)
		}
	}
}
