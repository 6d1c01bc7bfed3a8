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
)

// disk is the file system below a store, as pebble sees it. It keeps three promises that
// pebble needs to outlive a bad disk:
//
//   - A write that finds no room waits for it. Pebble takes a failed write of its log or of
//     its manifest as the end of the process; so it does not get to know. Reads go on, and
//     the store says meanwhile that it is unavailable.
//   - A disk that was cut off stays cut off: nothing of a store that has failed, or was
//     given up, reaches the files again, so that the folder can be opened anew.
//   - A sync of the log is a sync of the disk only if somebody waits for one.
type disk struct {
	vfs.FS
	hasty   atomic.Bool  // what finds no room fails
	syncers atomic.Int64 // writes under way that are to reach the disk

	mu   sync.RWMutex // held by each operation; by cut alone
	dead bool

	room room
}

// room is what is known of the space on the disk.
type room struct {
	mu      sync.Mutex
	waiting int           // operations that wait for room
	why     error         // of the last one
	changed chan struct{} // closed when the above changes between none and some
	ended   chan struct{} // closed when nobody is to wait any longer
}

// pollRoom is how often a write that found no room is tried again.
const pollRoom = 100 * time.Millisecond

// errCut is what a disk says that was cut off.
var errCut = errors.New("the store was cut off from its files")

func newDisk(fs vfs.FS) *disk {
	d := &disk{FS: fs}
	d.room.changed, d.room.ended = make(chan struct{}), make(chan struct{})
	return d
}

// noRoom reports whether an error may go away when somebody makes room.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// trouble is why writes wait, and a channel that closes when that changes.
func (d *disk) trouble() (error, <-chan struct{}) {
	d.room.mu.Lock()
	defer d.room.mu.Unlock()
	if d.room.waiting == 0 {
		return nil, d.room.changed
	}
	return d.room.why, d.room.changed
}

// giveUp ends all waiting for room: what finds none fails from here on.
func (d *disk) giveUp() {
	if d.hasty.CompareAndSwap(false, true) {
		d.room.mu.Lock()
		defer d.room.mu.Unlock()
		close(d.room.ended)
	}
}

// patience is the reverse.
func (d *disk) patience() {
	d.room.mu.Lock()
	defer d.room.mu.Unlock()
	d.room.ended = make(chan struct{})
	d.hasty.Store(false)
}

// cut keeps everything away from the files, for good. It returns when nothing is under
// way.
func (d *disk) cut() {
	d.giveUp()
	d.mu.Lock()
	d.dead = true
	d.mu.Unlock()
}

// do carries out an operation.
func (d *disk) do(op func() error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.dead {
		return errCut
	}
	return op()
}

// patient carries out an operation that needs room, as often as it takes.
func (d *disk) patient(op func() error) error {
	err := d.do(op)
	if !noRoom(err) || d.hasty.Load() {
		return err
	}
	ended := d.room.enter(err)
	defer d.room.leave()
	t := time.NewTicker(pollRoom)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ended:
			return err
		}
		if err = d.do(op); !noRoom(err) {
			return err
		}
	}
}

func (r *room) enter(why error) (ended <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	r.why = why
	if r.waiting == 1 {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return r.ended
}

// wake has all look again who wait for a change.
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
	var f vfs.File
	err := d.patient(func() (err error) { f, err = open(); return err })
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
	return d.patient(func() error { return d.FS.Link(old, name) })
}

// Rename implements vfs.FS.
func (d *disk) Rename(old, name string) error {
	return d.patient(func() error { return d.FS.Rename(old, name) })
}

// MkdirAll implements vfs.FS.
func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.patient(func() error { return d.FS.MkdirAll(dir, perm) })
}

// Remove implements vfs.FS.
func (d *disk) Remove(name string) error { return d.do(func() error { return d.FS.Remove(name) }) }

// RemoveAll implements vfs.FS.
func (d *disk) RemoveAll(name string) error {
	return d.do(func() error { return d.FS.RemoveAll(name) })
}

// diskFile is a file that is written.
type diskFile struct {
	vfs.File
	disk  *disk
	log   bool // of pebble's write-ahead log
	dirty bool // a log: written and not synced. Used by one goroutine at a time, as writes are
}

// Write implements vfs.File. What is left of a write without room is written later.
func (f *diskFile) Write(p []byte) (written int, err error) {
	f.dirty = true
	err = f.disk.patient(func() error {
		n, err := f.File.Write(p[written:])
		written += n
		return err
	})
	return written, err
}

// WriteAt implements vfs.File.
func (f *diskFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.disk.patient(func() error { n, err = f.File.WriteAt(p, at); return err })
	return n, err
}

// Preallocate implements vfs.File. It makes later writes faster, and is not needed.
func (f *diskFile) Preallocate(offset, length int64) error {
	err := f.disk.do(func() error { return f.File.Preallocate(offset, length) })
	if noRoom(err) {
		return nil
	}
	return err
}

// Sync implements vfs.File. A sync that fails has lost what it was to write: it is not
// tried again.
func (f *diskFile) Sync() error {
	if f.spared() {
		return nil
	}
	return f.synced(f.disk.do(f.File.Sync))
}

// SyncData implements vfs.File.
func (f *diskFile) SyncData() error {
	if f.spared() {
		return nil
	}
	return f.synced(f.disk.do(f.File.SyncData))
}

// SyncTo implements vfs.File.
func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.disk.do(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// spared reports whether nobody waits for the disk. Who does has counted before anything
// was written for it, and counts until its sync has returned.
func (f *diskFile) spared() bool { return f.log && f.disk.syncers.Load() == 0 }

func (f *diskFile) synced(err error) error {
	if err == nil {
		f.dirty = false
	}
	return err
}

// Close implements vfs.File. A log has reached the disk before the next one is begun, so
// that a failure of power leaves no hole.
func (f *diskFile) Close() error {
	err := error(nil)
	if f.log && f.dirty {
		err = f.disk.do(f.File.Sync)
	}
	return errors.Join(err, f.File.Close())
}
