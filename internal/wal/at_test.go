package wal_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// found is a record that was read.
type found struct {
	first, at wal.Position // of its batch, and its own
	data      []byte
}

// all reads a log.
func all(t *testing.T, l *wal.Log, spans []wal.Span) (list []found) {
	t.Helper()
	first := wal.Position(0)
	for r, err := range l.ReadWithout(0, spans) {
		if err != nil {
			t.Fatal(err)
		}
		if r.First {
			first = r.At
		}
		list = append(list, found{first: first, at: r.At, data: bytes.Clone(r.Data)})
	}
	return list
}

// Each record can be read by itself, and each batch be left out.
func TestReadAt(t *testing.T) {
	for seed := range uint64(8) {
		dice := rand.New(rand.NewPCG(seed, 0))
		fs, opt := crashfs.New(), wal.Options{}
		if opt = small(fs); seed%2 == 1 {
			opt.Key, opt.KeyID = key, 1
		}
		h := &history{}
		h.live(t, fs, opt, 3, 40, []int{40, 3000, 60_000}[seed%3], dice)
		l, err := wal.Open(opt)
		if err != nil {
			t.Fatal(err)
		}
		list := all(t, l, nil)
		if l.First() != list[0].at {
			t.Errorf("seed %d: the first record is at %d, not %d", seed, l.First(), list[0].at)
		}
		var batches []wal.Span
		for i, x := range list {
			if got, err := l.ReadAt(x.first, x.at); err != nil || !bytes.Equal(got, x.data) {
				t.Fatalf("seed %d, position %d: %d bytes instead of %d: %v", seed, x.at, len(got), len(x.data), err)
			}
			if x.first == x.at {
				if n := len(batches); n > 0 {
					batches[n-1].To = x.at
				}
				batches = append(batches, wal.Span{From: x.at})
			}
			if i+1 < len(list) && list[i+1].first == list[i+1].at {
				if n := len(batches); l.Behind(batches[n-1].From, x.at+lengthOf(len(x.data))) != list[i+1].at {
					t.Errorf("seed %d: behind the batch at %d is not %d", seed, batches[n-1].From, list[i+1].at)
				}
			}
			// Elsewhere there is none, or something else is there: the caller tells.
			for _, at := range []wal.Position{x.at - 1, x.at + 1, x.first - 1, x.at + 1<<20, 1 << 60} {
				_, _ = l.ReadAt(x.first, at)
				if _, err := l.ReadAt(at, at); at != x.at && !slices.ContainsFunc(list, func(y found) bool { return y.first == at }) && err == nil {
					t.Errorf("seed %d: a batch at %d", seed, at)
				}
			}
		}
		if _, err := l.ReadAt(1<<60, 1<<60); !errors.Is(err, wal.ErrNowhere) {
			t.Error(err)
		}
		batches = batches[:len(batches)-1]
		for range 20 {
			var spans []wal.Span
			for _, b := range batches {
				switch n := len(spans); {
				case dice.IntN(2) == 0:
				case n > 0 && spans[n-1].To == b.From && dice.IntN(2) == 0:
					spans[n-1].To = b.To
				default:
					spans = append(spans, b)
				}
			}
			in := func(at wal.Position) bool {
				return slices.ContainsFunc(spans, func(s wal.Span) bool { return s.From <= at && at < s.To })
			}
			want := slices.DeleteFunc(slices.Clone(list), func(x found) bool { return in(x.first) })
			if got := all(t, l, spans); !slices.EqualFunc(got, want, func(a, b found) bool { return a.at == b.at && bytes.Equal(a.data, b.data) }) {
				t.Errorf("seed %d: %d records instead of %d without %v", seed, len(got), len(want), spans)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// lengthOf is how many bytes a record takes with its length: as many as its own need, as it was said before.
func lengthOf(n int) wal.Position {
	size := 1
	for m := n; m >= 0x80; m >>= 7 {
		size++
	}
	return wal.Position(size + n)
}

// A byte of a record that has changed is found when it is read.
func TestReadAtDamage(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		fs := crashfs.New()
		opt := small(fs)
		if sealed {
			opt.Key, opt.KeyID = key, 1
		}
		h := &history{}
		h.live(t, fs, opt, 1, 12, 3000, rand.New(rand.NewPCG(3, 3)))
		names, _ := fs.List()
		l, err := wal.Open(opt)
		if err != nil {
			t.Fatal(err)
		}
		list := all(t, l, nil)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, x := range list[len(list)-3:] {
			for bit := 8 * 512; bit < 8*len(fs.Bytes(names[0])); bit += 211 {
				opt.FS = fs.Copy()
				l, err := wal.Open(opt) // the file is not the last one then
				if err != nil {
					t.Fatal(err)
				}
				opt.FS.(*crashfs.FS).Flip(names[0], bit)
				if got, err := l.ReadAt(x.first, x.at); err == nil && !bytes.Equal(got, x.data) {
					t.Fatalf("sealed %v, bit %d: the record at %d is another one", sealed, bit, x.at)
				}
				_ = l.Close()
			}
		}
	}
}
