package cache

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestSeal: what is sealed comes back, at once and piece by piece, whatever its
// size, and the same body is never sealed twice alike.
func TestSeal(t *testing.T) {
	s := &Secret{key: [32]byte{1}}
	for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 9*chunk + 5} {
		body := bytes.Repeat([]byte{7, byte(n), 3}, n/3+1)[:n]
		file := s.seal(key(1), "p", body)
		if got, ok := s.unseal(key(1), "p", file); !ok || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: not what was sealed", n)
		}
		if bytes.Equal(file, s.seal(key(1), "p", body)) {
			t.Error("sealed alike")
		}
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		open := func() *Part {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := s.open(f, key(1), "p", int64(n))
			if err != nil {
				t.Fatal(n, err)
			}
			t.Cleanup(func() { p.Close() })
			return p
		}
		if p := open(); p.Size() != int64(n) {
			t.Error(p.Size())
		}
		if got, err := io.ReadAll(open()); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes, piece by piece: %v", n, err)
		}
		if n < 2*chunk && n > 0 {
			if err := iotest.TestReader(open(), body); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTampering changes one byte, or moves, drops or repeats chunks and tags of a
// file of several chunks: no byte comes out that is not where it was sealed.
func TestTampering(t *testing.T) {
	s := &Secret{key: [32]byte{1}}
	const n = 4*chunk + 1000
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i / 1000)
	}
	whole := s.seal(key(1), "p", body)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		file := bytes.Clone(whole)
		first := len(file) - n
		switch rapid.IntRange(0, 5).Draw(t, "how") {
		case 0:
			file[rapid.IntRange(0, len(file)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		case 1: // two chunks change places, and their tags with them
			a, b := rapid.IntRange(0, 3).Draw(t, "a"), rapid.IntRange(0, 3).Draw(t, "b")
			if a == b {
				return
			}
			swap(file[first:], a*chunk, b*chunk, chunk)
			swap(file[headerSize:], a*tagSize, b*tagSize, tagSize)
		case 2: // the last chunk is gone, and the length says so
			cut := s.seal(key(1), "p", body[:4*chunk])
			copy(cut[headerSize:], whole[headerSize:headerSize+4*tagSize])
			copy(cut[len(magic):], whole[len(magic):len(magic)+saltSize])
			file = cut
		case 3:
			file = file[:rapid.IntRange(0, len(file)-1).Draw(t, "length")]
		case 4:
			file = append(file, make([]byte, rapid.IntRange(1, 2*chunk).Draw(t, "more"))...)
		case 5: // the header of another sealing
			copy(file, s.seal(key(1), "p", body)[:headerSize])
		}
		if bytes.Equal(file, whole) {
			return
		}
		if _, ok := s.unseal(key(1), "p", bytes.Clone(file)); ok {
			t.Fatal("unsealed")
		}
		name := filepath.Join(dir, "file")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, err := s.open(f, key(1), "p", 2*n)
		if err == nil {
			var got []byte
			got, err = io.ReadAll(p)
			if !bytes.HasPrefix(body, got) {
				t.Fatal("bytes that were not sealed there")
			}
			if _, again := p.Read(make([]byte, 1)); !errors.Is(again, ErrDamaged) {
				t.Fatal("it goes on after the damage", again)
			}
		}
		if !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}

func swap(b []byte, i, j, n int) {
	c := bytes.Clone(b[i : i+n])
	copy(b[i:], b[j:j+n])
	copy(b[j:], c)
}

func BenchmarkPart(b *testing.B) {
	s := &Secret{key: [32]byte{1}}
	name := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(name, s.seal(key(1), "p", make([]byte, 8<<20)), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(8 << 20)
	to := make([]byte, 8<<20)
	for b.Loop() {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		p, err := s.open(f, key(1), "p", 8<<20)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(p, to); err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}
