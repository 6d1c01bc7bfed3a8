package durable

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/runtime"
)

// someModule is a module with an identity that differs by n, and the fingerprint.
func someModule(n byte, code []byte) (fingerprint []byte, m *Module) {
	sum := sha256.Sum256(code)
	identity := append(sum[:], bytes.Repeat([]byte{n}, 2*sha256.Size)...)
	sum = sha256.Sum256(identity)
	return sum[:], &Module{Name: "m", Config: []byte("{}"), Code: code, Identity: identity}
}

// What is kept under a fingerprint is the code of that fingerprint: nothing else is kept, nor read, whoever has written the file.
func TestOtherModules(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	loads := 0
	s.opt.Code = func([]byte, *Module) (*runtime.Image, error) { loads++; return nil, nil }
	fingerprint, module := someModule(1, []byte("code"))
	other, another := someModule(2, []byte("other code"))
	mixed := *module
	mixed.Code = another.Code
	for what, m := range map[string]*Module{"another module": another, "other code": &mixed, "no identity": {Name: "m", Code: module.Code}} {
		if err := s.Keep(fingerprint, m); err == nil || s.Holds(fingerprint) {
			t.Errorf("%s is kept: %v", what, err)
		}
		b, err := s.packModule(fingerprint, m)
		if err == nil {
			err = s.Keep(other, another) // it makes the folder
		}
		if err == nil {
			name, _ := fileOf(fingerprint)
			err = os.WriteFile(filepath.Join(s.opt.Dir, moduleFiles, name), b, 0o600)
			s.modules.files[name] = int64(len(b))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Code(fingerprint); !errors.Is(err, ErrRecord) || s.Holds(fingerprint) {
			t.Errorf("%s is read: %v", what, err)
		}
	}
	if loads > 0 {
		t.Error("code was loaded", loads, "times")
	}
	if err := s.Keep(fingerprint, module); err != nil || !s.Holds(fingerprint) {
		t.Error("it is not written over what was there:", err)
	}
	if _, err := s.Code(fingerprint); err != nil || loads != 1 {
		t.Error(err, loads)
	}
}

// A file that is damaged is found, does not count as kept, and is written again.
func TestDamagedModules(t *testing.T) {
	for _, key := range [][]byte{nil, bytes.Repeat([]byte{7}, 32)} {
		o := Options{Dir: t.TempDir(), Key: key}
		fingerprint, module := someModule(1, bytes.Repeat([]byte("code"), 1000))
		file := filepath.Join(o.Dir, moduleFiles, hex.EncodeToString(fingerprint))
		in := func(f func(s *Store)) {
			t.Helper()
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			f(s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		in(func(s *Store) {
			if s.Holds(fingerprint) || s.Keep(fingerprint, module) != nil || !s.Holds(fingerprint) || s.CheckModules(t.Context()) != nil {
				t.Error("it is not kept")
			}
		})
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		damaged[len(damaged)/2] ^= 1
		for _, b := range [][]byte{damaged, whole[:len(whole)/2], whole[:1]} {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			in(func(s *Store) {
				if _, err := s.Kept(fingerprint); err == nil || s.Holds(fingerprint) || s.CheckModules(t.Context()) == nil {
					t.Errorf("%d bytes: a damaged file counts: %v", len(b), err)
				}
				before := s.used()
				if err := s.Keep(fingerprint, module); err != nil {
					t.Error(err)
				}
				again, err := s.Kept(fingerprint)
				if err != nil || !bytes.Equal(again.Code, module.Code) || !s.Holds(fingerprint) || s.CheckModules(t.Context()) != nil {
					t.Errorf("%d bytes: it was not written again: %v", len(b), err)
				}
				if now, err := os.Stat(file); err != nil || s.used()-before != now.Size()-int64(len(b)) {
					t.Errorf("%d bytes: the store counts %d more", len(b), s.used()-before)
				}
			})
		}
		if err := os.WriteFile(filepath.Join(o.Dir, moduleFiles, "x"), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		in(func(s *Store) {
			if err := s.CheckModules(t.Context()); !errors.Is(err, ErrRecord) {
				t.Error(err)
			}
		})
	}
}

// Modules leave the last quarter of a store to what was admitted, and to checkpoints.
func TestModulesDoNotFillAStore(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Size: MinSize})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	keep := func(n byte, size int) ([]byte, error) {
		code := make([]byte, size)
		_, _ = rand.Read(code)
		fingerprint, module := someModule(n, code)
		return fingerprint, s.Keep(fingerprint, module)
	}
	first, err := keep(1, MinSize/8*5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keep(2, MinSize/8); !errors.Is(err, ErrFull) {
		t.Error("kept:", err)
	}
	if s.full() {
		t.Error("messages are refused")
	}
	select {
	case <-s.wanted:
		t.Error("a checkpoint without a reason")
	default:
	}
	s.Release(first)
	select {
	case <-s.wanted:
	default:
		t.Error("no checkpoint gives back the room")
	}
}
