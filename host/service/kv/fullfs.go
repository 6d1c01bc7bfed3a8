package kv

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// disk is the file system below a store, as pebble sees it. It adds what pebble needs to survive
// a bad disk:
//
//   - A write that finds no room waits for it. Pebble takes a failed write of its log or of
//     its manifest as the end of the process, or stops with its locks held; so it does not
//     get to know. Reads continue, and until then the store reports that it is unavailable.
//   - Any other failure to write ends the store before pebble notices. From then on
//     nothing is acknowledged and nothing reaches the files; pebble gets no error, so that it
//     can be closed. Then the folder can be opened again.
//   - A sync of the log is a sync of the disk only if a write waits for it.
type disk struct {
	vfs.FS
	broke   func(error)  // ends the store and calls leave; it must not block
	syncers atomic.Int64 // writes in progress that must reach the disk

	mu    sync.RWMutex // held by each operation; for writing to change state
	state diskState
	left  atomic.Bool // no new operations; those in progress may still reach the files

	room room
}

type diskState uint8

const (
	opening diskState = iota // errors are returned
	working
	cutOff // nothing reaches the files
)

// room is what is known about free space on the disk.
type room struct {
	mu      sync.Mutex
	waiting int           // operations that wait for room
	why     error         // of the last one
	changed chan struct{} // closed when waiting changes between none and some
	ended   chan struct{} // closed when operations must not wait any longer
}

// pollRoom is how often a write that found no room is tried again.
const pollRoom = 100 * time.Millisecond

// errCut is the error of reading a file that was never written.
var errCut = errors.New("the store was cut off from its files")

func newDisk(fs vfs.FS, broke func(error)) *disk {
	d := &disk{FS: fs, broke: broke}
	d.room.changed, d.room.ended = make(chan struct{}), make(chan struct{})
	return d
}

// noRoom reports whether an error may go away when space is freed.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// trouble is why writes wait, and a channel that closes when that changes.
func (d *disk) trouble() (<-chan struct{}, error) {
	d.room.mu.Lock()
	defer d.room.mu.Unlock()
	if d.room.waiting == 0 {
		return d.room.changed, nil
	}
	return d.room.changed, d.room.why
}

// works notes that the store is open.
func (d *disk) works() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == opening {
		d.state = working
	}
}

// leave keeps operations that begin from now on away from the files. The caller may be within an
// operation, and must have marked the store as failed before: to pebble, skipped operations look
// as if they had been done.
func (d *disk) leave() { d.left.Store(true) }

// cut keeps everything away from the files, for good. It returns when no operation is in
// progress.
func (d *disk) cut() {
	d.mu.Lock()
	was := d.state
	d.state = cutOff
	d.mu.Unlock()
	if was != cutOff {
		close(d.room.ended)
		d.room.wake()
	}
}

// try carries out an operation, unless the disk is cut off. A fatal error while the store works
// ends the store.
func (d *disk) try(fatal func(error) bool, op func() error) (state diskState, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.state == cutOff || d.left.Load() {
		return cutOff, nil
	}
	if err = op(); err != nil && d.state == working && fatal(err) {
		d.broke(err)
		return cutOff, nil
	}
	return d.state, err
}

// Fatal errors.
func always(error) bool       { return true }
func never(error) bool        { return false }
func unlessFull(e error) bool { return !noRoom(e) }

// change carries out an operation that writes, and repeats it until there is room.
func (d *disk) change(op func() error) error {
	state, err := d.try(unlessFull, op)
	if err != nil && state == working && noRoom(err) {
		d.room.enter(err)
		defer d.room.leave()
		for noRoom(err) && state == working {
			executor.Pause(executor.Machine, pollRoom, d.room.ended)
			state, err = d.try(unlessFull, op)
		}
	}
	return err
}

func (r *room) enter(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	r.why = why
	if r.waiting == 1 {
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// wake makes all waiting operations check again.
func (r *room) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
	if r.waiting == 0 {
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

func (d *disk) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	f := vfs.File(noFile{})
	err := d.change(func() error {
		opened, err := open()
		if err == nil {
			f = opened
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, disk: d, log: filepath.Ext(name) == ".log"}, nil
}

// Create implements vfs.FS.
func (d *disk) Create(name string) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.Create(name) })
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(old, name string) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.ReuseForWrite(old, name) })
}

// OpenReadWrite implements vfs.FS.
func (d *disk) OpenReadWrite(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, o...) })
}

// OpenDir implements vfs.FS.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	return d.file("", func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

// Link implements vfs.FS.
func (d *disk) Link(old, name string) error {
	return d.change(func() error { return d.FS.Link(old, name) })
}

// Rename implements vfs.FS.
func (d *disk) Rename(old, name string) error {
	return d.change(func() error { return d.FS.Rename(old, name) })
}

// MkdirAll implements vfs.FS.
func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.change(func() error { return d.FS.MkdirAll(dir, perm) })
}

// Remove implements vfs.FS. What cannot be removed now is removed later.
func (d *disk) Remove(name string) error {
	_, err := d.try(never, func() error { return d.FS.Remove(name) })
	return err
}

// RemoveAll implements vfs.FS.
func (d *disk) RemoveAll(name string) error {
	_, err := d.try(never, func() error { return d.FS.RemoveAll(name) })
	return err
}

// diskFile is a file that is written.
type diskFile struct {
	vfs.File
	disk  *disk
	log   bool // of pebble's write-ahead log
	dirty bool // a log: written and not synced. Used by one goroutine at a time, as writes are
}

// Write implements vfs.File. What is left of a write without room is written later.
func (f *diskFile) Write(p []byte) (int, error) {
	f.dirty = true
	written := 0
	err := f.disk.change(func() error {
		n, err := f.File.Write(p[written:])
		written += n
		return err
	})
	if err != nil {
		return written, err
	}
	return len(p), nil
}

// WriteAt implements vfs.File.
func (f *diskFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.disk.change(func() error { _, err := f.File.WriteAt(p, at); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Preallocate implements vfs.File. It makes later writes faster, and is not needed.
func (f *diskFile) Preallocate(offset, length int64) error {
	_, _ = f.disk.try(never, func() error { return f.File.Preallocate(offset, length) })
	return nil
}

// Sync implements vfs.File. A sync that fails may have lost what it was to write: it is
// not tried again, not even if it says that there is no room.
func (f *diskFile) Sync() error { return f.sync(f.File.Sync) }

// SyncData implements vfs.File.
func (f *diskFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *diskFile) sync(op func() error) error {
	if f.spared() {
		return nil
	}
	_, err := f.disk.try(always, op)
	if err == nil {
		f.dirty = false
	}
	return err
}

// SyncTo implements vfs.File.
func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	_, err = f.disk.try(always, func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// spared reports whether no caller waits for the disk. A waiting caller is counted before anything
// is written for it, until its sync has returned.
func (f *diskFile) spared() bool { return f.log && f.disk.syncers.Load() == 0 }

// Close implements vfs.File. A log has reached the disk before the next one is begun, so that a
// power failure leaves no gap.
func (f *diskFile) Close() error {
	err := error(nil)
	if f.log && f.dirty {
		f.log = false // a full sync this time
		err = f.sync(f.File.Sync)
	}
	return errors.Join(err, f.File.Close())
}

// noFile is a file of a disk that is cut off.
type noFile struct{}

func (noFile) Close() error                           { return nil }
func (noFile) Read([]byte) (int, error)               { return 0, errCut }
func (noFile) ReadAt([]byte, int64) (int, error)      { return 0, errCut }
func (noFile) Write(p []byte) (int, error)            { return len(p), nil }
func (noFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (noFile) Preallocate(int64, int64) error         { return nil }
func (noFile) Stat() (os.FileInfo, error)             { return nil, errCut }
func (noFile) Sync() error                            { return nil }
func (noFile) SyncTo(int64) (bool, error)             { return false, nil }
func (noFile) SyncData() error                        { return nil }
func (noFile) Prefetch(int64, int64) error            { return nil }
func (noFile) Fd() uintptr                            { return vfs.InvalidFd }
