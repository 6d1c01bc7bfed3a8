package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// badFS is a file system that fails as it is told to.
type badFS struct {
	vfs.FS
	room atomic.Int64                          // bytes that may still be written; below 0: any number
	fail atomic.Pointer[func(op string) error] // nil: nothing fails
}

func newBadFS(fs vfs.FS) *badFS {
	b := &badFS{FS: fs}
	b.room.Store(-1)
	return b
}

// take is room for a write: how much of it there is.
func (b *badFS) take(n int) int {
	for {
		left := b.room.Load()
		if left < 0 {
			return n
		}
		got := min(int64(n), left)
		if b.room.CompareAndSwap(left, left-got) {
			return int(got)
		}
	}
}

func (b *badFS) check(op string) error {
	if f := b.fail.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

func (b *badFS) made(op string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &badFile{f, b}, nil
}

func (b *badFS) creates(op string) error {
	if b.room.Load() == 0 {
		return syscall.ENOSPC
	}
	return b.check(op)
}

func (b *badFS) Create(name string) (vfs.File, error) {
	if err := b.creates("create"); err != nil {
		return nil, err
	}
	f, err := b.FS.Create(name)
	return b.made("create", f, err)
}

func (b *badFS) ReuseForWrite(old, name string) (vfs.File, error) {
	if err := b.creates("reuse"); err != nil {
		return nil, err
	}
	f, err := b.FS.ReuseForWrite(old, name)
	return b.made("reuse", f, err)
}

func (b *badFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if err := b.check("open"); err != nil {
		return nil, err
	}
	f, err := b.FS.Open(name, o...)
	return b.made("open", f, err)
}

func (b *badFS) OpenDir(name string) (vfs.File, error) {
	f, err := b.FS.OpenDir(name)
	return b.made("open", f, err)
}

func (b *badFS) Rename(old, name string) error {
	if err := b.creates("rename"); err != nil {
		return err
	}
	return b.FS.Rename(old, name)
}

func (b *badFS) Remove(name string) error {
	if err := b.check("remove"); err != nil {
		return err
	}
	return b.FS.Remove(name)
}

type badFile struct {
	vfs.File
	fs *badFS
}

func (f *badFile) Write(p []byte) (int, error) {
	if err := f.fs.check("write"); err != nil {
		return 0, err
	}
	got := f.fs.take(len(p))
	n, err := f.File.Write(p[:got])
	if err == nil && got < len(p) {
		err = &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return n, err
}

func (f *badFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.fs.check("read"); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f *badFile) Sync() error {
	if err := f.fs.check("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *badFile) SyncData() error {
	if err := f.fs.check("sync"); err != nil {
		return err
	}
	return f.File.SyncData()
}

// openOn is a store on a file system, which opens again what fails.
func openOn(t testing.TB, dir string, fs vfs.FS) *store {
	t.Helper()
	eng, err := openOnDisk(dir, fs, quiet())
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(eng, host.RealClock(), quiet(), reopenOnDisk)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func try(s *store, key, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _, err := s.change(ctx, "n", Quota{}, []Op{put(key, value)}, Disk)
	return err
}

// fillUp writes until there is no room, and returns how many were acknowledged.
func fillUp(t testing.TB, s *store, value string) int {
	t.Helper()
	for i := 0; ; i++ {
		err := try(s, fmt.Sprint("k", i), value)
		if err == nil {
			if i > 100_000 {
				t.Fatal("the disk is never full")
			}
			continue
		}
		if service.CodeOf(err) != service.Unavailable || !strings.Contains(err.Error(), "the disk is full") {
			t.Fatalf("write %d: %v", i, err)
		}
		return i
	}
}

// checkFilled finds what was acknowledged.
func checkFilled(t testing.TB, s *store, n int, value string) {
	t.Helper()
	for i := range n {
		if e, err := s.get("n", fmt.Sprint("k", i)); err != nil || string(e.Value) != value {
			t.Fatalf("k%d of %d: %v", i, n, err)
		}
	}
}

// On a full disk writes are refused, reads are answered, the process lives, and when there is
// room again writes go on; also when the run ends before that.
func TestFullDisk(t *testing.T) {
	for _, room := range []int64{0, 3, 5_000, 3_000_000, 9_000_000} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kv")
			fs := newBadFS(vfs.Default)
			s := openOn(t, dir, fs)
			if err := try(s, "first", "v"); err != nil {
				t.Fatal(err)
			}
			fs.room.Store(room)
			value := strings.Repeat("0123456789", 3000)
			n := fillUp(t, s, value)
			fullAndBack(t, s, n, value, func() { fs.room.Store(-1) })
			fs.room.Store(0)
			if n = fillUp(t, s, value); n != 0 {
				t.Fatal(n)
			}
			began := time.Now()
			_ = s.close()
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("closing took %v", d)
			}
			fs.room.Store(-1)
			s = openOn(t, dir, fs)
			defer s.close()
			if _, err := s.get("n", "first"); err != nil {
				t.Fatal(err)
			}
			if err := try(s, "last", "v"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func fullAndBack(t testing.TB, s *store, n int, value string, makeRoom func()) {
	t.Helper()
	began := time.Now()
	for range 10 {
		if err := try(s, "other", "v"); service.CodeOf(err) != service.Unavailable {
			t.Fatal(err)
		}
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("ten refusals took %v", d)
	}
	checkFilled(t, s, n, value)
	if _, _, err := s.list(listing{ns: "n"}); err != nil {
		t.Fatal(err)
	}
	makeRoom()
	eventually(t, func() bool { return try(s, "other", "v") == nil })
	checkFilled(t, s, n, value)
	for i := range 150 { // through a few tables
		if err := try(s, fmt.Sprint("m", i), value); err != nil {
			t.Fatal(err)
		}
	}
	checkFilled(t, s, n, value)
}

// The same on a real file system that is full: a small tmpfs, where one may be mounted.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := mountTmpfs(dir, 32<<20); err != nil {
		t.Skip("no file system may be mounted here: ", err)
	}
	defer func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	}()
	s := openOn(t, filepath.Join(dir, "kv"), vfs.Default)
	ballast, spare := filepath.Join(dir, "ballast"), filepath.Join(dir, "spare")
	for file, size := range map[string]int{ballast: 10 << 20, spare: 10 << 20} {
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	value := strings.Repeat("0123456789", 3000)
	r := rand.New(rand.NewPCG(1, 2)) // what compresses well would never fill it
	b := []byte(value)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	value = string(b)
	n := fillUp(t, s, value)
	t.Logf("full after %d writes of 30 kB", n)
	for range 5 {
		if err := try(s, "other", "v"); service.CodeOf(err) != service.Unavailable {
			t.Fatal(err)
		}
	}
	checkFilled(t, s, n, value)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return try(s, "other", "v") == nil })
	checkFilled(t, s, n, value)
	fillUp(t, s, value)
	_ = s.close() // on a full disk
	s = openOn(t, filepath.Join(dir, "kv"), vfs.Default)
	if err := try(s, "other", "v"); service.CodeOf(err) != service.Unavailable || !strings.Contains(err.Error(), "full") {
		t.Fatal(err)
	}
	if err := os.Remove(spare); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return try(s, "other", "v") == nil })
	checkFilled(t, s, n, value)
	if err := s.close(); err != nil {
		t.Log(err)
	}
}

// A disk that fails in any other way ends the store, not the process: it fails closed, and is
// opened again by itself when the disk is well. What was acknowledged is there.
func TestBadDisk(t *testing.T) {
	for round := range rounds(t, 1, 3) {
		for _, op := range []string{"write", "sync", "create", "rename", "remove", "read", "open", "reuse", ""} {
			t.Run(fmt.Sprintf("%d-%s", round, op), func(t *testing.T) { badDisk(t, op, uint64(round)) })
		}
	}
}

func badDisk(t *testing.T, op string, seed uint64) {
	fs := newBadFS(vfs.Default)
	s := openOn(t, filepath.Join(t.TempDir(), "kv"), fs)
	value := strings.Repeat("v", 50_000)
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 7))
	fail := func(what string) error {
		mu.Lock()
		defer mu.Unlock()
		if (op == "" || op == what) && r.IntN(40) == 0 {
			return &os.PathError{Op: what, Path: "x", Err: syscall.EIO}
		}
		return nil
	}
	acked := map[string]bool{}
	hit := false
	fs.fail.Store(&fail)
	for i := range 200 {
		key := fmt.Sprint("k", i)
		err := try(s, key, value)
		if err == nil {
			acked[key] = true
			continue
		}
		if service.CodeOf(err) != service.Unavailable {
			t.Fatal(err)
		}
		hit = true
		break
	}
	fs.fail.Store(nil)
	eventually(t, func() bool { return try(s, "after", "v") == nil })
	for key := range acked {
		var e *Entry
		var err error
		eventually(t, func() bool { // what runs in the background may have failed a moment ago
			e, err = s.get("n", key)
			return service.CodeOf(err) != service.Unavailable
		})
		if err != nil || string(e.Value) != value {
			t.Fatalf("%s was acknowledged: %v", key, err)
		}
	}
	if (op == "write" || op == "sync") && !hit {
		t.Error("no operation has failed")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// After a failure of power all is there that was acknowledged as being on the disk; what was
// with the operating system may be lost, but in order and whole.
func TestPowerFailure(t *testing.T) {
	for seed := range uint64(rounds(t, 2, 20)) {
		powerFailure(t, seed)
	}
}

func powerFailure(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	fs := vfs.NewStrictMem()
	open := func() *store {
		eng, err := openLocked("kv", fs, quiet())
		if err != nil {
			t.Fatal(seed, err)
		}
		s, err := openStore(eng, host.RealClock(), quiet(), nil)
		if err != nil {
			t.Fatal(seed, err)
		}
		return s
	}
	written, onDisk := 0, 0
	for range 3 {
		s := open()
		last := -1
		for i := range written {
			if _, err := s.get("n", fmt.Sprint("k", i)); err != nil {
				if i < onDisk {
					t.Fatalf("seed %d: k%d of %d on disk: %v", seed, i, onDisk, err)
				}
				if last < 0 {
					last = i
				}
			} else if last >= 0 {
				t.Fatalf("seed %d: k%d is there, and k%d is not", seed, i, last)
			}
		}
		written = onDisk
		for range 50 + r.IntN(300) {
			d := Durability(r.IntN(3))
			if r.IntN(4) > 0 {
				d = OS
			}
			if _, _, err := s.change(context.Background(), "n", Quota{}, []Op{put(fmt.Sprint("k", written), strings.Repeat("v", r.IntN(60_000)))}, d); err != nil {
				t.Fatal(err)
			}
			written++
			if d == Disk {
				onDisk = written
			}
		}
		fs.SetIgnoreSyncs(true)
		_ = s.close()
		fs.ResetToSyncedState()
		fs.SetIgnoreSyncs(false)
	}
}

// Nobody opens a store that is open, from this process or another one; the error names the
// folder.
func TestInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := openOn(t, dir, vfs.Default)
	if _, err := openOnDisk(dir, vfs.Default, quiet()); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	link := dir + "-link"
	if err := os.Symlink(dir, link); err == nil {
		if _, err := openOnDisk(link, vfs.Default, quiet()); err == nil {
			t.Error("by another name it is opened twice")
		}
	}
	said, _ := runChild(t, dir)
	if !strings.Contains(said, "in use") || !strings.Contains(said, dir) || !strings.Contains(said, "another run") {
		t.Errorf("another process says %q", said)
	}
	if err := try(s, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = openOn(t, dir, vfs.Default)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// Files that cannot be read are an error that names the folder; so is a format of the future.
func TestDamage(t *testing.T) {
	make := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "kv")
		s := openOn(t, dir, vfs.Default)
		for i := range 400 {
			if err := try(s, fmt.Sprint("k", i), strings.Repeat(fmt.Sprint(i), 5000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	smash := func(t *testing.T, dir, pattern string) {
		files, _ := filepath.Glob(filepath.Join(dir, "db", pattern))
		if len(files) == 0 {
			t.Fatal("no ", pattern)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for i := range b {
				b[i] ^= 0x55
			}
			if err := os.WriteFile(f, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, pattern := range []string{"MANIFEST-*", "*.sst"} {
		t.Run(pattern, func(t *testing.T) {
			dir := make(t)
			smash(t, dir, pattern)
			eng, err := openOnDisk(dir, vfs.Default, quiet())
			if err == nil {
				var s *store
				if s, err = openStore(eng, host.RealClock(), quiet(), nil); err == nil {
					_, err = s.get("n", "k1")
					if service.CodeOf(err) != service.Unavailable {
						t.Error(err)
					}
					err = err.(*service.Error).Err
					_ = s.close()
				} else {
					_ = eng.close()
				}
			}
			if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("format", func(t *testing.T) {
		eng := newMemory()
		var w writes
		w.set(metaFormat, []byte{99})
		_, _ = eng.apply(&w, Disk)
		if _, err := openStore(eng, host.RealClock(), quiet(), nil); err == nil || !strings.Contains(err.Error(), "format 99") {
			t.Error(err)
		}
	})
}
