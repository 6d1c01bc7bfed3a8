package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
)

// sealed is b with the checksum that it should have.
func sealed(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	b = bytes.Clone(b)
	n := len(b) - 4
	binary.LittleEndian.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli))
	return b
}

// TestSnapshotCodec: a state goes through bytes, and nothing else does.
func TestSnapshotCodec(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{})
		x := get(t, i)
		for _, what := range []byte{10, 10, 14, 4} {
			answerless(t, x, what)
		}
		var s Snapshot
		if err := x.Save(&s); err != nil {
			t.Fatal(err)
		}
		raw := encoded(t, i, &s)
		want := answer(t, x, 10)
		drained := get(t, i)
		if err := drained.Restore(&s); err != nil {
			t.Fatal(err)
		}
		d, err := drained.Drain()
		if err != nil {
			t.Fatal(err)
		}
		drained.Put()
		if !bytes.Equal(encoded(t, i, d), raw) {
			t.Error("equal states, other bytes")
		}
		back, err := DecodeSnapshot(i, bytes.Clone(raw), 0)
		if err != nil {
			t.Fatal(err)
		}
		y, err := GetSaved(i, back)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer(t, y, 10); got != want || y.MemoryBytes() != x.MemoryBytes() {
			t.Errorf("%d, want %d", got, want)
		}
		for n := range raw {
			if _, err := DecodeSnapshot(i, raw[:n], 0); !errors.Is(err, ErrSnapshot) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			bad := bytes.Clone(raw)
			bad[n] ^= 0x40
			if _, err := DecodeSnapshot(i, bad, 0); !errors.Is(err, ErrSnapshot) {
				t.Fatalf("byte %d changed: %v", n, err)
			}
		}
		y.Put()
		x.Put()
	})
}

func encoded(t testing.TB, i *Image, s *Snapshot) []byte {
	t.Helper()
	b, err := AppendSnapshot(nil, i, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func answerless(t *testing.T, x *Instance, what byte) {
	t.Helper()
	push(t, x, what)
	if out, _, err := run(t, x, entry()); err != nil || out.Failure != nil {
		t.Fatal(out.Failure, err)
	}
}

// FuzzSnapshot: forged bytes, checksum and all, are refused or are a state that
// runs; neither panics nor runs forever.
func FuzzSnapshot(f *testing.F) {
	e := newEngine(f, NewConfig().WithPortableMemory(true).WithInterpreter(true))
	i := load(f, e, "echo", ImageConfig{MemoryLimit: 1 << 20})
	f.Cleanup(func() { _ = i.Close() })
	x := get(f, i)
	push(f, x, 10, 4)
	run(f, x, entry())
	var s Snapshot
	if err := x.Save(&s); err != nil {
		f.Fatal(err)
	}
	x.Put()
	raw := encoded(f, i, &s)
	f.Add(raw)
	f.Add(raw[:snapshotHead+4])
	f.Add(append(append([]byte{}, raw[:len(raw)-12]...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSnapshot(i, sealed(b), 0)
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		x, err := GetSaved(i, s)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Put()
		push(t, x, 10, 0)
		in := entry()
		in.TurnFuel = 1_000_000
		run(t, x, in)
	})
}
