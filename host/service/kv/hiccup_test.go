package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// One operation finds no room while a store is opened, whichever it is, and the next one does: so
// it is where somebody makes room meanwhile. Pebble goes on after what it calls fatal; nothing of
// that may reach the files. What was acknowledged is there when the store opens again.
func TestRoomComesWhileItOpens(t *testing.T) {
	began := vfs.NewMem()
	dir := filepath.Join(t.TempDir(), "kv")
	values := map[string]string{}
	r := rand.New(rand.NewPCG(3, 4)) // what compresses well makes one small table
	for run := range 2 {
		s := openOn(t, dir, began)
		for i := range 40 {
			b := make([]byte, 60_000)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			key := fmt.Sprint("k", run, "-", i)
			values[key] = string(b)
			if err := try(s, key, string(b)); err != nil {
				t.Fatal(err)
			}
		}
		s.engine().(*onDisk).fail(errors.New("the process ends")) // its log is read again
		_ = s.close()
	}
	step := thorough.SlowOf[int64](5, 1)
	for n := int64(1); ; n += step {
		mem := vfs.NewMem()
		if _, err := vfs.Clone(began, mem, dir, dir); err != nil {
			t.Fatal(err)
		}
		fs := newBadFS(mem)
		var ops atomic.Int64
		fail := func(op string) error {
			if op != "read" && op != "open" && op != "remove" && ops.Add(1) == n {
				return syscall.ENOSPC
			}
			return nil
		}
		fs.fail.Store(&fail)
		eng, err := openOnDisk(dir, fs, quiet())
		if err != nil {
			t.Fatal(n, err)
		}
		fs.fail.Store(nil)
		failed := ops.Load() >= n
		for tries := 0; eng.failure() != nil; tries++ {
			next, err := eng.reopen()
			if err != nil || tries > 3 {
				t.Fatal(n, err)
			}
			eng = next
		}
		s, err := openStore(eng, host.RealClock(), quiet(), reopenOnDisk)
		if err != nil {
			t.Fatal(n, err)
		}
		eventually(t, func() bool { return try(s, "other", "v") == nil }) // it may fail after it was opened, too
		for key, value := range values {
			if e, err := s.get("n", key); err != nil || string(e.Value) != value {
				t.Fatalf("room for all but operation %d: %s: %v", n, key, err)
			}
		}
		if err := s.close(); err != nil {
			t.Fatal(n, err)
		}
		if !failed {
			if n < 20 {
				t.Fatalf("opening a store takes %d operations", n)
			}
			t.Logf("opening took %d operations", n)
			return
		}
	}
}

// Nobody is told that something is on the disk that was left out.
func TestFailureIsKnownFirst(t *testing.T) {
	fs := newBadFS(vfs.NewMem())
	var d *disk
	told := 0
	d = newDisk(fs, func(error) {
		told++
		if d.left.Load() {
			t.Error("operations are left out, and nobody knows yet that the store has failed")
		}
		d.leave()
	})
	d.works()
	fail := func(string) error { return syscall.EIO }
	fs.fail.Store(&fail)
	if _, err := d.Create("/a"); err != nil || told != 1 {
		t.Fatal(err, told)
	}
	fs.fail.Store(nil)
	if _, err := d.Create("/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat("/b"); err == nil {
		t.Error("what came after a failure has reached the disk")
	}
}

// What a failed store does is over when whoever told it goes on.
func TestFailedAtOnce(t *testing.T) {
	mem := vfs.NewMem()
	s := openOn(t, filepath.Join(t.TempDir(), "kv"), mem)
	e := s.engine().(*onDisk)
	for i := range 100 {
		name := fmt.Sprintf("/%d", i)
		if _, err := mem.Create(name); err != nil {
			t.Fatal(err)
		}
		e.Fatalf("it is over")
		if err := e.disk.Remove(name); err != nil {
			t.Fatal(err)
		}
		if _, err := mem.Stat(name); err != nil {
			t.Fatal("a file was removed by a store that had failed")
		}
	}
	_ = s.close()
}

// A store that closes fails where the disk is full. That is no reason to open it again: its files
// belong to whoever opens them next.
func TestClosedStaysClosed(t *testing.T) {
	for range 50 {
		dir := filepath.Join(t.TempDir(), "kv")
		eng, err := openOnDisk(dir, vfs.NewMem(), quiet())
		if err != nil {
			t.Fatal(err)
		}
		var opened []engine
		s, err := openStore(eng, host.RealClock(), quiet(), func(old engine) (engine, error) {
			e, err := reopenOnDisk(old)
			if err == nil {
				opened = append(opened, e)
			}
			return e, err
		})
		if err != nil {
			t.Fatal(err)
		}
		eng.fail(syscall.ENOSPC)
		s.heal()
		_ = s.close()
		s.heal()
		s.replace()
		<-s.gone
		wantClosed(t, dir, opened...)
	}
}

// It is closed while it opens again: what comes out of that is closed, too.
func TestClosedWhileItOpens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	eng, err := openOnDisk(dir, vfs.NewMem(), quiet())
	if err != nil {
		t.Fatal(err)
	}
	opening, goOn := make(chan struct{}), make(chan struct{})
	var opened engine
	s, err := openStore(eng, host.RealClock(), quiet(), func(old engine) (engine, error) {
		close(opening)
		<-goOn
		e, err := reopenOnDisk(old)
		opened = e
		return e, err
	})
	if err != nil {
		t.Fatal(err)
	}
	eng.fail(syscall.ENOSPC)
	s.heal()
	<-opening
	closed := make(chan error)
	go func() { closed <- s.close() }()
	<-s.quit
	close(goOn)
	<-closed
	<-s.gone
	wantClosed(t, dir, opened)
}

// wantClosed wants that nobody has a folder open, least of all these.
func wantClosed(t *testing.T, dir string, engines ...engine) {
	t.Helper()
	for _, e := range engines {
		if _, _, err := e.get([]byte("x")); err == nil {
			t.Fatal("its files are open")
		}
	}
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.release()
}
