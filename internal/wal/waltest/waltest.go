// Package waltest is what every implementation of wal.Journal must pass.
package waltest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wal"
)

// Place is where a journal is kept between two lives.
type Place interface {
	// Open opens the journal, whose records have at most 100 KB and whose files are short enough that a few
	// hundred KB take several.
	Open(t testing.TB) wal.Journal
}

// Run tries the journals that a function makes places for.
func Run(t *testing.T, place func(t testing.TB) Place) {
	for name, f := range map[string]func(*testing.T, Place){
		"Order":       order,
		"From":        from,
		"Lives":       lives,
		"Large":       large,
		"Trim":        trim,
		"Fence":       fence,
		"Close":       closing,
		"Await":       await,
		"Concurrent":  concurrent,
		"WhileItRuns": whileItRuns,
	} {
		t.Run(name, func(t *testing.T) { f(t, place(t)) })
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func put(t testing.TB, j wal.Journal, parts ...[]byte) wal.Position {
	t.Helper()
	return must(j.Append(parts...))(t)
}

func end(t testing.TB, j wal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// All is what a journal has, from a position.
func All(t testing.TB, j wal.Journal, from wal.Position) (list []wal.Record) {
	t.Helper()
	for r, err := range j.Read(from) {
		if err != nil {
			t.Fatal(err)
		}
		r.Data = slices.Clone(r.Data)
		list = append(list, r)
	}
	return list
}

func text(i int) []byte { return fmt.Appendf(nil, "record %d", i) }

func order(t *testing.T, p Place) {
	j := p.Open(t)
	var last wal.Position
	for i := range 1000 {
		at := put(t, j, text(i)[:3], text(i)[3:])
		if at <= last {
			t.Fatalf("position %d after %d", at, last)
		}
		last = at
	}
	if err := j.Await(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	list := All(t, j, 0)
	if len(list) != 1000 {
		t.Fatalf("%d records", len(list))
	}
	for i, r := range list {
		if string(r.Data) != string(text(i)) || r.Epoch != j.Epoch() {
			t.Fatalf("record %d is %q of writer %d", i, r.Data, r.Epoch)
		}
	}
	end(t, j)
}

func from(t *testing.T, p Place) {
	j := p.Open(t)
	var at []wal.Position
	for i := range 300 {
		at = append(at, put(t, j, make([]byte, i*7)))
		if i%10 == 0 {
			_ = j.Await(t.Context(), at[i])
		}
	}
	_ = j.Await(t.Context(), at[299])
	for i, p := range at {
		for _, q := range []wal.Position{p, p - 1} { // gaps lead to the next one
			n := 0
			for r, err := range j.Read(q) {
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 && r.At != p {
					t.Fatalf("from %d, which is record %d, the first is %d", q, i, r.At)
				}
				if n++; n == 3 {
					break
				}
			}
			if n != min(3, 300-i) {
				t.Fatalf("from record %d: %d", i, n)
			}
		}
	}
	if n := len(All(t, j, j.Durable())); n != 0 {
		t.Errorf("%d records from the end", n)
	}
	end(t, j)
}

func lives(t *testing.T, p Place) {
	var epoch uint64
	var last wal.Position
	for life := range 5 {
		j := p.Open(t)
		if j.Epoch() <= epoch {
			t.Fatalf("epoch %d after %d", j.Epoch(), epoch)
		}
		epoch = j.Epoch()
		list := All(t, j, 0)
		if len(list) != life*20 {
			t.Fatalf("in life %d: %d records", life, len(list))
		}
		for i, r := range list {
			if string(r.Data) != string(text(i)) {
				t.Fatalf("%q", r.Data)
			}
		}
		for i := range 20 {
			at := put(t, j, text(life*20+i))
			if at <= last {
				t.Fatalf("position %d after %d", at, last)
			}
			last = at
		}
		end(t, j) // which waits until all is durable
	}
}

func large(t *testing.T, p Place) {
	j := p.Open(t)
	if _, err := j.Append(make([]byte, 60_000), make([]byte, 60_000)); !errors.Is(err, wal.ErrTooLarge) {
		t.Errorf("a record of 120 KB: %v", err)
	}
	for i := range 20 {
		at := put(t, j, make([]byte, 99_999), []byte{byte(i)})
		if err := j.Await(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	put(t, j)
	end(t, j)
	j = p.Open(t)
	list := All(t, j, 0)
	for i, r := range list[:20] {
		if len(r.Data) != 100_000 || r.Data[99_999] != byte(i) {
			t.Fatal(i, len(r.Data))
		}
	}
	if len(list) != 21 || len(list[20].Data) != 0 {
		t.Fatal(len(list))
	}
	end(t, j)
}

func trim(t *testing.T, p Place) {
	j := p.Open(t)
	var at []wal.Position
	for i := range 50 {
		at = append(at, put(t, j, text(i), make([]byte, 20_000)))
		_ = j.Await(t.Context(), at[i])
	}
	if err := j.Trim(at[40]); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		list := All(t, j, 0)
		if len(list) < 10 || len(list) > 30 {
			t.Fatalf("%d records are left", len(list))
		}
		if len(All(t, j, at[40])) != 10 {
			t.Fatal("what is needed is gone")
		}
	}
	check()
	end(t, j)
	j = p.Open(t)
	check()
	if err := j.Trim(1 << 40); err != nil { // what will be needed cannot be known
		t.Fatal(err)
	}
	next := put(t, j, []byte("next"))
	if next <= at[49] {
		t.Errorf("position %d after %d", next, at[49])
	}
	end(t, j)
}

func fence(t *testing.T, p Place) {
	j := p.Open(t)
	at := put(t, j, text(0))
	if err := j.Await(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if err := j.Fence(j.Epoch()); err != nil { // it is its own
		t.Fatal(err)
	}
	put(t, j, text(1))
	if err := j.Fence(j.Epoch() + 10); err != nil {
		t.Fatal(err)
	}
	at, err := j.Append(text(2))
	if !errors.Is(err, wal.ErrFenced) {
		t.Fatalf("appended at %d: %v", at, err)
	}
	old := j.Epoch()
	end(t, j)
	j = p.Open(t)
	if j.Epoch() < old+10 {
		t.Errorf("epoch %d after %d was fenced", j.Epoch(), old)
	}
	if list := All(t, j, 0); len(list) < 1 || len(list) > 2 || string(list[0].Data) != string(text(0)) {
		t.Errorf("%d records", len(list))
	}
	put(t, j, text(3))
	end(t, j)
}

func closing(t *testing.T, p Place) {
	j := p.Open(t)
	at := put(t, j, text(0))
	end(t, j)
	if j.Durable() <= at {
		t.Error("it was closed before its record was durable")
	}
	if _, err := j.Append(text(1)); !errors.Is(err, wal.ErrClosed) {
		t.Error(err)
	}
	if err := j.Await(t.Context(), at); err != nil {
		t.Error(err)
	}
	if err := j.Await(t.Context(), at+1000); !errors.Is(err, wal.ErrClosed) {
		t.Error(err)
	}
	end(t, j)
}

func await(t *testing.T, p Place) {
	j := p.Open(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := j.Await(ctx, 1<<40); !errors.Is(err, why) {
		t.Error(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		at := put(t, j, text(i))
		wg.Go(func() {
			if err := j.Await(t.Context(), at); err != nil || j.Durable() <= at {
				t.Error(err, j.Durable(), at)
			}
		})
	}
	wg.Wait()
	end(t, j)
}

func concurrent(t *testing.T, p Place) {
	j := p.Open(t)
	const writers, each = 8, 300
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				var b [8]byte
				binary.LittleEndian.PutUint32(b[:], uint32(w))
				binary.LittleEndian.PutUint32(b[4:], uint32(i))
				at, err := j.Append(b[:], make([]byte, i))
				if err != nil {
					t.Error(err)
					return
				}
				if i%17 == w {
					if err := j.Await(t.Context(), at); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	end(t, j)
	j = p.Open(t)
	var next [writers]uint32
	for _, r := range All(t, j, 0) {
		w, i := binary.LittleEndian.Uint32(r.Data), binary.LittleEndian.Uint32(r.Data[4:])
		if next[w] != i || len(r.Data) != 8+int(i) {
			t.Fatalf("of writer %d: %d instead of %d", w, i, next[w])
		}
		next[w]++
	}
	for w, n := range next {
		if n != each {
			t.Errorf("of writer %d there are %d", w, n)
		}
	}
	end(t, j)
}

// whileItRuns: what is durable is read while more is written and what is old is trimmed.
func whileItRuns(t *testing.T, p Place) {
	j := p.Open(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 500 {
			at, err := j.Append(text(i), make([]byte, 3000))
			if err != nil {
				t.Error(err)
				return
			}
			if i%50 == 49 {
				if err := j.Await(t.Context(), at); err != nil {
					t.Error(err)
				}
				if err := j.Trim(at); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 50 {
		last := wal.Position(0)
		for r, err := range j.Read(0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.At <= last {
				t.Fatal("out of order")
			}
			last = r.At
		}
	}
	wg.Wait()
	end(t, j)
}
