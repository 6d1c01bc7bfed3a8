package cache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func openTest(t *testing.T, dir string, max int64) *Cache {
	t.Helper()
	c, err := Open(dir, max)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func key(i int) Key { return KeyOf(fmt.Append(nil, i)) }

func TestStoreAndLoad(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	if _, err := c.Load(key(1)); err != ErrMissing {
		t.Fatalf("empty cache: %v", err)
	}
	body := bytes.Repeat([]byte("abc"), 1000)
	if err := c.Store(key(1), body); err != nil {
		t.Fatal(err)
	}
	got, err := c.Load(key(1))
	if err != nil || !bytes.Equal(got, body) {
		t.Fatal("not what was stored", err)
	}
	if err := c.Store(key(2), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Load(key(2)); err != nil || len(got) != 0 {
		t.Fatal("empty entry", got, err)
	}
	if err := c.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(key(1)); err != ErrMissing {
		t.Fatal("survived Clear", err)
	}
}

func TestKeysKeepPartsApart(t *testing.T) {
	if KeyOf([]byte("ab"), []byte("c")) == KeyOf([]byte("a"), []byte("bc")) {
		t.Error("parts run together")
	}
}

// TestDamage flips, cuts and extends a stored file at many places: it never
// comes back as a body, and a damaged entry can be stored again.
func TestDamage(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	body := bytes.Repeat([]byte{1, 2, 3, 4}, 50)
	k := key(1)
	file := filepath.Join(c.path(k), "image")
	whole := seal(k, body)
	damages := map[string][]byte{"empty": {}, "longer": append(bytes.Clone(whole), 0), "of another key": seal(key(2), body)}
	for at := 0; at < len(whole); at += 7 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		damages[fmt.Sprintf("flipped at %d", at)] = flipped
		damages[fmt.Sprintf("cut at %d", at)] = whole[:at]
	}
	for name, damaged := range damages {
		if err := c.Store(k, body); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Load(k); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Load(k); err != ErrMissing {
			t.Errorf("%s: still there: %v", name, err)
		}
	}
}

func TestEvictsWhatWasUsedLeast(t *testing.T) {
	c := openTest(t, t.TempDir(), 10_000)
	body := make([]byte, 2000)
	for i := range 4 {
		if err := c.Store(key(i), body); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(filepath.Join(c.path(key(i)), "image"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Load(key(0)); err != nil { // used again: now the youngest
		t.Fatal(err)
	}
	if dir, err := c.CodeDir(key(2)); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(filepath.Join(dir, "code"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Store(key(9), body); err != nil { // 11,000 and headers: too much
		t.Fatal(err)
	}
	for i, want := range map[int]bool{0: true, 1: false, 3: true, 9: true} {
		if _, err := c.Load(key(i)); (err == nil) != want {
			t.Errorf("entry %d: %v, want kept=%v", i, err, want)
		}
	}
	if n, err := c.Bytes(); err != nil || n > 10_000 {
		t.Errorf("%d bytes kept, %v", n, err)
	}
	if err := c.Store(key(10), make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(key(10)); err != ErrMissing {
		t.Error("an entry above the bound was stored")
	}
}

func TestSweepsLeftovers(t *testing.T) {
	c := openTest(t, t.TempDir(), 1<<20)
	old, young := c.temp("image"), c.temp("image")
	for _, f := range []string{old, young} {
		if err := os.WriteFile(f, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * leftover)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if err := c.Store(key(1), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old leftover stays")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("another process's file was taken away")
	}
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "cache"), 1000); err == nil {
		t.Error("opened a cache below a file")
	}
}

// TestManyWriters stores, loads, damages and evicts the same few keys from many
// goroutines, as processes that share a directory do. Nothing but a whole body
// may come back.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	bodyOf := func(k Key) []byte { s := sha256.Sum256(k[:]); return bytes.Repeat(s[:], 100) }
	var wg sync.WaitGroup
	for w := range 6 {
		c := openTest(t, dir, 12_000)
		wg.Go(func() {
			for i := range 60 {
				k := key((i + w) % 5)
				switch (i * 7 % 11) % 4 {
				case 0:
					_ = c.Store(k, bodyOf(k)) // may lose a race with an eviction
				case 1, 2:
					if got, err := c.Load(k); err == nil && !bytes.Equal(got, bodyOf(k)) {
						t.Error("a wrong body")
					}
				case 3:
					_ = os.Truncate(filepath.Join(c.path(k), "image"), int64(i*50))
				}
			}
		})
	}
	wg.Wait()
}
