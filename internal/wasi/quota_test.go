package wasi

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// usage is what a directory really holds.
func usage(t testing.TB, dir string) (bytes, files int64) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && path != dir {
			b, n := weigh(info)
			bytes, files = bytes+b, files+n
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, files
}

// TestQuotaOfBytes: every way to make a file longer is charged, and every way to make
// it shorter gives back.
func TestQuotaOfBytes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), make([]byte, 40), 0o644); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, Dir{Host: dir, Guest: "/", MaxBytes: 100})
	list, n := g.data(strings.Repeat("x", 30))
	fd := g.mustOpen(3, "new", openCreate, rightsReadWrite, 0)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult) // 70
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult) // 100
	g.want(errnoDquot, "fd_write", fd, list, n, atResult)
	g.want(errnoDquot, "fd_pwrite", fd, list, n, 31, atResult)
	g.want(errnoSuccess, "fd_pwrite", fd, list, n, 30, atResult) // in place
	g.want(errnoDquot, "fd_filestat_set_size", fd, 61)
	g.want(errnoSuccess, "fd_filestat_set_size", fd, 10) // 50
	g.want(errnoDquot, "fd_pwrite", fd, list, n, 31, atResult)
	g.want(errnoSuccess, "fd_seek", fd, 29, io.SeekStart, atResult)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult) // a hole counts: 99
	g.want(errnoSuccess, "fd_close", fd)
	fd = g.mustOpen(3, "old", 0, rightWrite, flagAppend)
	g.want(errnoDquot, "fd_write", fd, list, n, atResult)
	g.want(errnoSuccess, "fd_close", fd)
	fd = g.mustOpen(3, "new", openTruncate, rightWrite, 0) // 40
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult) // 100
	at, length := g.path(atPath, "new")
	g.want(errnoBusy, "path_unlink_file", 3, at, length)
	g.want(errnoSuccess, "fd_close", fd)
	g.want(errnoSuccess, "path_unlink_file", 3, at, length) // 40
	fd = g.mustOpen(3, "again", openCreate, rightWrite, 0)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult) // 70
	g.want(errnoSuccess, "fd_close", fd)
	from, fromLength := g.path(atPath, "again")
	to, toLength := g.path(atPath+64, "old")
	g.want(errnoSuccess, "path_rename", 3, from, fromLength, 3, to, toLength) // 30
	fd = g.mustOpen(3, "old", 0, rightWrite, flagAppend)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult) // 90
	g.want(errnoDquot, "fd_write", fd, list, n, atResult)
	if bytes, _ := usage(t, dir); bytes != 90 || g.h.files.roots.dirs[0].quota.bytes != 90 {
		t.Errorf("%d bytes, counted %d", bytes, g.h.files.roots.dirs[0].quota.bytes)
	}
}

func TestQuotaOfFiles(t *testing.T) {
	dir := t.TempDir()
	g := newGuest(t, Dir{Host: dir, Guest: "/", MaxFiles: 3}, Dir{Host: dir, Guest: "/ro", ReadOnly: true, MaxFiles: 1})
	sub, n := g.path(atPath, "sub")
	g.want(errnoSuccess, "path_create_directory", 3, sub, n)
	in := g.mustOpen(3, "sub", openDirectory, rightRead, 0)
	g.want(errnoSuccess, "fd_close", g.mustOpen(in, "a", openCreate, rightWrite, 0)) // below counts, too
	g.want(errnoSuccess, "fd_close", g.mustOpen(3, "b", openCreate, rightWrite, 0))
	if _, no := g.open(3, "c", openCreate, rightWrite, 0); no != errnoDquot {
		t.Errorf("a fourth: errno %d", no)
	}
	if _, no := g.open(3, "c", 0, rightWrite, 0); no != errnoNoent {
		t.Errorf("what is not there: errno %d", no)
	}
	more, n := g.path(atPath, "more")
	g.want(errnoDquot, "path_create_directory", 3, more, n)
	g.want(errnoSuccess, "fd_close", g.mustOpen(3, "b", openCreate|openTruncate, rightWrite, 0)) // is there
	b, n := g.path(atPath, "b")
	g.want(errnoSuccess, "path_unlink_file", 3, b, n)
	g.want(errnoSuccess, "path_create_directory", 3, b, n)
	g.want(errnoSuccess, "path_remove_directory", 3, b, n)
	g.want(errnoSuccess, "fd_close", g.mustOpen(3, "c", openCreate, rightWrite, 0))
	if _, files := usage(t, dir); files != 3 || g.h.files.roots.dirs[0].quota.files != 3 {
		t.Errorf("%d files, counted %d", files, g.h.files.roots.dirs[0].quota.files)
	}
}

// What is open, for reading only as well, cannot be hidden by removing it.
func TestQuotaOfHiddenFiles(t *testing.T) {
	dir := t.TempDir()
	g := newGuest(t, Dir{Host: dir, Guest: "/", MaxBytes: 100})
	list, n := g.data(strings.Repeat("x", 60))
	fd := g.mustOpen(3, "a", openCreate, rightWrite, 0)
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult)
	g.want(errnoSuccess, "fd_close", fd)
	fd = g.mustOpen(3, "a", 0, rightRead, 0)
	a, length := g.path(atPath, "a")
	g.want(errnoBusy, "path_unlink_file", 3, a, length)
	g.want(errnoSuccess, "fd_close", g.mustOpen(3, "b", openCreate, rightWrite, 0))
	a, length = g.path(atPath, "a")
	b, bLength := g.path(atPath+64, "b")
	g.want(errnoBusy, "path_rename", 3, b, bLength, 3, a, length)
	g.want(errnoSuccess, "fd_close", fd)
	g.want(errnoSuccess, "path_unlink_file", 3, a, length)
}

// What others remove makes room, and a directory that is too full is refused.
func TestQuotaAndOthers(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, make([]byte, 100), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dir{{Host: dir, Guest: "/", MaxBytes: 99}, {Host: filepath.Dir(dir), Guest: "/", MaxFiles: 1}} {
		var e *QuotaError
		if _, err := OpenDirs([]Dir{d}); !errors.As(err, &e) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	g := newGuest(t, Dir{Host: dir, Guest: "/", MaxBytes: 100})
	list, n := g.data("x")
	fd := g.mustOpen(3, "new", openCreate, rightWrite, 0)
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	g.want(errnoDquot, "fd_write", fd, list, n, atResult) // counted a moment ago
	g.h.files.roots.dirs[0].quota.counted = time.Time{}
	before := g.h.charged
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult)
	if g.h.charged-before < costCount {
		t.Errorf("counting has cost %d", g.h.charged-before)
	}
	// A guest that cannot pay does not keep the lock.
	g.h.files.roots.dirs[0].quota.counted, g.h.budget = time.Time{}, g.h.charged+costFile+100
	func() {
		defer func() { _ = recover() }()
		g.call("fd_filestat_set_size", fd, 101)
		t.Error("not paid")
	}()
	g.h.budget = 0
	g.want(errnoSuccess, "fd_filestat_set_size", fd, 100)
}

// Whatever a guest does, the count is what the directory holds, and never more than
// the bounds.
func TestQuotaProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		const maxBytes, maxFiles = 200, 4
		g := newGuest(t, Dir{Host: dir, Guest: "/", MaxBytes: maxBytes, MaxFiles: maxFiles})
		names := []string{"a", "b", "d", "d/a", "d/b"}
		var open []uint64
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			name := rapid.SampledFrom(names).Draw(r, "name")
			at, n := g.path(atPath, name)
			fd := uint64(99)
			if len(open) > 0 {
				fd = rapid.SampledFrom(open).Draw(r, "fd")
			}
			size := rapid.Uint64Range(0, 150).Draw(r, "size")
			switch rapid.IntRange(0, 8).Draw(r, "what") {
			case 0, 1:
				how := rapid.SampledFrom([]uint32{0, openCreate, openTruncate, openCreate | openExclusive, openCreate | openTruncate}).Draw(r, "how")
				flags := rapid.SampledFrom([]uint32{0, flagAppend}).Draw(r, "flags")
				if fd, no := g.open(3, name, uint64(how), rightsReadWrite, uint64(flags)); no == errnoSuccess {
					open = append(open, fd)
				}
			case 2:
				g.call("fd_close", fd)
			case 3:
				g.call("path_create_directory", 3, at, n)
			case 4:
				g.call("path_unlink_file", 3, at, n)
			case 5:
				g.call("path_remove_directory", 3, at, n)
			case 6:
				to, toN := g.path(atPath+64, rapid.SampledFrom(names).Draw(r, "to"))
				g.call("path_rename", 3, at, n, 3, to, toN)
			case 7:
				g.call("fd_filestat_set_size", fd, size)
			case 8:
				list, k := g.data(strings.Repeat("x", int(size)))
				if rapid.Bool().Draw(r, "place") {
					g.call("fd_pwrite", fd, list, k, size, atResult)
				} else {
					g.call("fd_write", fd, list, k, atResult)
				}
			}
			q := g.h.files.roots.dirs[0].quota
			if bytes, files := usage(t, dir); bytes != q.bytes || files != q.files || bytes > maxBytes || files > maxFiles {
				r.Fatalf("%d bytes in %d files, counted as %d in %d", bytes, files, q.bytes, q.files)
			}
		}
		g.h.files.Reset()
		if n := len(g.h.files.roots.dirs[0].quota.open); n != 0 {
			r.Fatalf("%d open", n)
		}
	})
}
