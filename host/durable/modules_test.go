package durable

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/host/record"
)

// A file that is damaged is found, does not count as kept, and is written again.
func TestDamagedModules(t *testing.T) {
	for _, key := range [][]byte{nil, bytes.Repeat([]byte{7}, 32)} {
		o := Options{Dir: t.TempDir(), Key: key}
		fingerprint := bytes.Repeat([]byte{1}, record.FingerprintBytes)
		file := filepath.Join(o.Dir, moduleFiles, hex.EncodeToString(fingerprint))
		module := &Module{Name: "m", Config: []byte("{}"), Code: bytes.Repeat([]byte("code"), 1000)}
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
	keep := func(n byte, size int) error {
		code := make([]byte, size)
		_, _ = rand.Read(code)
		return s.Keep(bytes.Repeat([]byte{n}, record.FingerprintBytes), &Module{Name: "m", Code: code})
	}
	if err := keep(1, MinSize/8*5); err != nil {
		t.Fatal(err)
	}
	if err := keep(2, MinSize/8); !errors.Is(err, ErrFull) {
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
	s.Release(bytes.Repeat([]byte{1}, record.FingerprintBytes))
	select {
	case <-s.wanted:
	default:
		t.Error("no checkpoint gives back the room")
	}
}
