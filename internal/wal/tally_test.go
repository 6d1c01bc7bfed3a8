package wal_test

import (
	crand "crypto/rand"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// TestTally: what is said without the lock is what it would be with it, whatever has happened.
func TestTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := wal.Open(wal.Options{FS: crashfs.New(), Segment: 64 << 10, Record: 100_000, Limit: 400 << 10, Rand: crand.Reader, Manual: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			switch rapid.IntRange(0, 7).Draw(t, "do") {
			case 0:
				l.Work()
			case 1:
				if err := l.Trim(l.Durable()); err != nil {
					t.Fatal(err)
				}
			default:
				if _, err := l.Append(make([]byte, rapid.IntRange(0, 40_000).Draw(t, "bytes"))); err != nil && !errors.Is(err, wal.ErrFull) {
					t.Fatal(err)
				}
			}
			pending, used := l.Tally()
			if l.Pending() != pending || l.Used() != used {
				t.Fatalf("%d bytes wait instead of %d, %d are used instead of %d", l.Pending(), pending, l.Used(), used)
			}
		}
		if err := l.Close(); err != nil && !errors.Is(err, wal.ErrFull) {
			t.Fatal(err)
		}
	})
}
