package durable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// A store that keeps its past tells all that an actor has taken in, each once, whatever checkpoints and lives were in between; and from any
// place on what came behind it. Without what is in the middle it says so.
func TestHistory(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	keeps := func(o *Options) { o.Keep = time.Hour }
	dir := t.TempDir()
	sent := 0
	open := func() *Store {
		s, err := Open(Options{Dir: dir, Keep: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 4 {
		for range 3 { // processes that write nothing leave files that begin where the next one does
			if err := open().Close(); err != nil {
				t.Fatal(err)
			}
		}
		w := mustOpen(t, dir, props, keeps)
		for range 3 {
			w.tell("a", add)
			w.report("a")
			sent += 2
		}
		w.checkpoint()
		w.tell("a", add)
		w.report("a")
		sent += 2
		w.close()
	}
	s := open()
	if kept, err := s.past.segments(); err != nil || len(kept) < 2 {
		t.Fatal(len(kept), err)
	}
	var mail, turns []uint64
	var places []record.Place
	errEnough := errors.New("enough")
	read := func(from record.Place, most int) (record.Place, error) {
		n := 0
		return s.History(t.Context(), from, func(r *record.Record) error {
			switch {
			case r.Message != nil && r.Kind == record.Accepted:
				mail = append(mail, r.Message.Position)
			case r.Entry != nil && len(r.Entry.Mail) > 0:
				turns = append(turns, r.Entry.Mail...)
			}
			if n++; n == most {
				return errEnough
			}
			return nil
		})
	}
	if _, err := read(record.Place{}, 0); err != nil {
		t.Fatal(err)
	}
	all, had := slices.Clone(mail), slices.Clone(turns)
	for i, p := range all {
		if p != uint64(i+1) {
			t.Fatalf("messages %v", all)
		}
	}
	if len(all) != sent || len(had) != sent {
		t.Errorf("%d messages, and turns about %d, of %d", len(all), len(had), sent)
	}
	mail, turns = nil, nil
	at, steps := record.Place{}, 0
	for err := errEnough; errors.Is(err, errEnough); steps++ {
		if at, err = read(at, 3); err != nil && !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		places = append(places, at)
	}
	if !slices.Equal(mail, all) || !slices.Equal(turns, had) || steps < len(all)/3 {
		t.Errorf("in %d steps: messages %v, turns %v", steps, mail, turns)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.History(ctx, record.Place{}, func(*record.Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	kept, err := s.past.segments()
	if err != nil {
		t.Fatal(err)
	}
	middle := 1
	for kept[middle].start == kept[0].start || kept[middle].start == kept[middle+1].start { // empty files are missed by nobody
		middle++
	}
	if err := os.Remove(kept[middle].path); err != nil {
		t.Fatal(err)
	}
	if _, err := read(record.Place{}, 0); err == nil {
		t.Error("nobody has seen that a file is missing")
	}
	for _, f := range kept {
		_ = os.Remove(f.path)
	}
	if _, err := read(places[0], 0); !errors.Is(err, wal.ErrNowhere) {
		t.Error(err)
	}
	if _, err := read(record.Place{}, 0); err != nil { // from what there is
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, pastFolder)); err != nil {
		t.Error(err)
	}
}
