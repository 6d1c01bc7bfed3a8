package durable

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/wal"
)

// A store that keeps its past is had as it was at any time since then, with checkpoints in between; what came later is not in it. From there
// it goes on.
func TestThePast(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	keeps := func(o *Options) { o.Keep = time.Hour }
	dir := t.TempDir()
	begun := time.Now()
	type moment struct {
		time  time.Time
		count byte
	}
	var all []moment
	for range 5 {
		w := mustOpen(t, dir, props, keeps)
		for range 3 {
			w.tell("a", add)
			n := w.report("a")
			all = append(all, moment{time.Now(), n})
			time.Sleep(2 * time.Millisecond)
		}
		w.checkpoint()
		w.tell("a", add)
		w.report("a")
		time.Sleep(2 * time.Millisecond)
		w.close()
	}
	s, err := Open(Options{Dir: dir, Keep: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := s.past.segments(); err != nil || len(kept) < 3 {
		t.Errorf("%d files are kept: %v", len(kept), err)
	}
	f := s.Figures()
	if f.Past == 0 || f.Back.Before(begun) || f.Back.After(time.Now()) || f.Limit != DefaultSize {
		t.Errorf("%+v", f)
	}
	var archive bytes.Buffer
	if err := errors.Join(s.ExportAll(t.Context(), &archive), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, m := range append(all, moment{time.Now(), 20}) {
		to := filepath.Join(t.TempDir(), "then")
		if err := ImportAt(t.Context(), Options{Dir: to}, bytes.NewReader(archive.Bytes()), m.time); err != nil {
			t.Fatal(m.count, err)
		}
		w := mustOpen(t, to, props)
		if n := w.report("a"); n != m.count {
			t.Errorf("a has counted %d, and had %d then", n, m.count)
		}
		w.tell("a", add)
		w.report("a")
		w.close()
		w = mustOpen(t, to, props)
		if n := w.report("a"); n != m.count+1 {
			t.Errorf("a has counted %d, and had %d", n, m.count+1)
		}
		w.close()
	}
	to := filepath.Join(t.TempDir(), "before")
	if err := ImportAt(t.Context(), Options{Dir: to}, bytes.NewReader(archive.Bytes()), begun.Add(-time.Hour)); !errors.Is(err, ErrNotBack) {
		t.Error(err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Error("something is left: ", err)
	}

	// Where it is not kept any more it is given back with the next checkpoint, and a start has not needed it.
	w := mustOpen(t, dir, props)
	if n := w.report("a"); n != 20 {
		t.Error("a has counted ", n)
	}
	w.checkpoint()
	w.close()
	if _, err := os.Stat(filepath.Join(dir, pastFolder)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the past is still there: ", err)
	}
}

// The past has a bound in time and in bytes: from the oldest file on it is given up, and what is left begins with a checkpoint.
func TestThePastIsBounded(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	for _, x := range []struct {
		limit int64
		marks int
		left  int // files
	}{{1 << 20, 2, 3}, {700, 1, 2}, {100, 1, 0}} {
		o := Options{Dir: t.TempDir(), Keep: time.Hour, Size: MinSize}
		p, err := o.openPast()
		if err != nil || o.Size != MinSize/4*3 || p.limit != MinSize/4 {
			t.Fatal(o.Size, err)
		}
		p.limit = x.limit
		for _, name := range []string{"0000000000000200-00000001.log", "0000000000000400-00000002.log", "0000000000000800-00000003.log", "0000000000001000-00000004.log"} {
			file := filepath.Join(t.TempDir(), name)
			if err := errors.Join(os.WriteFile(file, make([]byte, 300), 0o600), p.take(file, filepath.Join(logFolder, name))); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range []struct {
			at    wal.Position
			after time.Duration
		}{{0x250, 0}, {0x500, 30 * time.Minute}, {0x900, 91 * time.Minute}} {
			if err := p.note(m.at, m.at, begun.Add(m.after)); err != nil {
				t.Fatal(err)
			}
		}
		o.Size = MinSize
		again, err := o.openPast()
		if err != nil {
			t.Fatal(err)
		}
		files, err := again.segments()
		if err != nil || len(files) != x.left || len(again.marks) != x.marks {
			t.Errorf("limit %d: %d files, %d marks, %v", x.limit, len(files), len(again.marks), err)
		}
		if len(files) > 0 && (files[0].start == 0x200 || len(again.marks) > 0 && again.marks[0].at < files[0].start) {
			t.Errorf("limit %d: it begins with %x, and the first checkpoint is at %x", x.limit, files[0].start, again.marks[0].at)
		}
	}
	if _, err := Open(Options{Dir: t.TempDir(), Keep: time.Second}); err == nil {
		t.Error("a second is kept")
	}
}

// A file of the log that cannot be kept is removed all the same, and the past begins anew behind it: without a gap, and with no mark
// that is before what is left.
func TestAFileThatCannotBeKept(t *testing.T) {
	from := t.TempDir()
	o := Options{Dir: t.TempDir(), Keep: time.Hour, Size: MinSize}
	p, err := o.openPast()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"0000000000000200-00000001.log", "0000000000000400-00000002.log", "0000000000000800-00000003.log"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(from, name), make([]byte, 300), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := wal.Folder(from)
	if err != nil {
		t.Fatal(err)
	}
	f := &keepingFS{folder, from, p}
	begun := time.Unix(1_700_000_000, 0)
	if err := errors.Join(f.Remove(names[0]), p.note(0x250, 0x250, begun)); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(p.dir, logFolder, names[1], "x") // a folder of that name
	if err := os.MkdirAll(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(names[1]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Remove(names[2]), p.note(0x1000, 0x1000, begun.Add(time.Hour/2))); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(from); err != nil || len(left) > 0 {
		t.Errorf("%d files are left in the log: %v", len(left), err)
	}
	kept, err := p.segments()
	if err != nil || len(kept) != 1 || kept[0].name != names[2] || len(p.marks) != 1 || p.marks[0].at != 0x1000 {
		t.Errorf("kept %+v, marks %+v, %v", kept, p.marks, err)
	}
}
