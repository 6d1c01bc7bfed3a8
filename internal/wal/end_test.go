package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// A log that is opened with an end has what was before it, and goes on there; so it is after that, too, without an end.
func TestEnd(t *testing.T) {
	fs, h := crashfs.New(), &history{}
	opt := small(fs)
	h.live(t, fs, opt, 3, 40, 8000, rand.New(rand.NewPCG(1, 1)))
	type first struct {
		at     wal.Position
		before int // records
	}
	var firsts []first
	all := 0
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range l.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.First {
			firsts = append(firsts, first{r.At, all})
		}
		all++
	}
	if err := l.Close(); err != nil || len(firsts) < 10 {
		t.Fatal(len(firsts), err)
	}
	for _, x := range firsts {
		opt := small(fs.Copy())
		opt.End = x.at
		for life := range 3 {
			l, err := wal.Open(opt)
			if err != nil {
				t.Fatal(x.at, err)
			}
			at, err := l.Append([]byte(fmt.Sprint("life ", life)))
			if err == nil {
				err = errors.Join(l.Await(t.Context(), at), l.Close())
			}
			if err != nil {
				t.Fatal(x.at, err)
			}
			opt.End = 0
			got, err := records(opt)
			if err != nil || len(got) != x.before+life+1 {
				t.Fatalf("end %d, life %d: %d records, %v", x.at, life, len(got), err)
			}
			for i, b := range got[:x.before] {
				if !bytes.Equal(b, h.data[i]) {
					t.Fatalf("end %d: record %d is another one", x.at, i)
				}
			}
		}
	}
	opt = small(fs.Copy())
	for _, end := range []wal.Position{1, firsts[3].at + 1} {
		opt.End = end
		if l, err := wal.Open(opt); err == nil {
			t.Errorf("it ends at %d", end)
			_ = l.Close()
		}
	}
}
