package kv

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	crdb "github.com/cockroachdb/errors"
	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
)

// FlushEvery is the time within which a write of durability Memory reaches the operating system.
const FlushEvery = time.Second

// closeTime is how long closing a store may take. Then the store is cut off from its files;
// acknowledged writes are in its log.
const closeTime = 10 * time.Second

// onDisk is an engine on pebble, in a folder of its own.
type onDisk struct {
	dir  string
	log  *slog.Logger
	lock *folderLock
	disk *disk
	db   *pebble.DB

	opened  chan struct{} // closed when opening has ended, whether or not it succeeded
	use     sync.RWMutex  // held for reading by users of db, for writing to close it
	ending  sync.Once
	failed  atomic.Pointer[error] // why the store has failed
	failing sync.Once
	broken  chan struct{} // closed when it has failed

	flush struct {
		sync.Mutex
		timer   interface{ Stop() bool } // set while something waits for FlushEvery
		stopped bool
	}
}

// openOnDisk opens or creates a store. The folder's parent must exist.
func openOnDisk(dir string, fs vfs.FS, log *slog.Logger) (*onDisk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	e, err := openLocked(dir, fs, log)
	if noRoom(err) {
		// Return a failed store; it is opened again when there is room.
		e, err = newOnDisk(dir, fs, log), nil
		close(e.opened)
		e.fail(errFull)
	}
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	e.lock = lock
	return e, nil
}

func newOnDisk(dir string, fs vfs.FS, log *slog.Logger) *onDisk {
	e := &onDisk{dir: dir, log: log, opened: make(chan struct{}), broken: make(chan struct{})}
	e.disk = newDisk(fs, e.fail)
	return e
}

// errFull is the error of opening a store on a full disk.
var errFull = fmt.Errorf("it needs room to be opened: %w", syscall.ENOSPC)

// openLocked opens the files of a folder that is locked.
func openLocked(dir string, fs vfs.FS, log *slog.Logger) (_ *onDisk, err error) {
	e := newOnDisk(dir, fs, log)
	defer close(e.opened)
	defer func() {
		if r := recover(); r != nil {
			err = unopened(dir, panicked(r))
		}
		if err != nil {
			e.disk.cut()
		}
	}()
	if err := makeFolder(e.disk, filepath.Join(dir, "db")); err != nil {
		return nil, err
	}
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	e.db, err = pebble.Open(filepath.Join(dir, "db"), e.options(cache))
	if failed := e.failure(); failed != nil { // pebble may only say so in its log
		err = failed
	}
	if err != nil {
		return nil, unopened(dir, err)
	}
	e.disk.works()
	return e, nil
}

// unopened is why a store could not be opened: its files are damaged, unless something else is wrong with the disk.
func unopened(dir string, err error) error {
	if trouble := service.DiskTrouble(err); trouble != "" {
		return fmt.Errorf("%s: %s: %w", dir, trouble, err)
	}
	return damaged(dir, err)
}

// makeFolder makes a folder that survives a power failure: its parents are synced, too.
func makeFolder(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for range 4 { // the store's folder, that of all services, and parents that may be new
		dir = fs.PathDir(dir)
		d, err := fs.OpenDir(dir)
		if err != nil {
			return nil // above our folders
		}
		err = d.Sync()
		if err := errors.Join(err, d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// ErrDamaged is the error of a store whose files cannot be read.
var ErrDamaged = errors.New("the store is damaged")

func damaged(dir string, why error) error {
	return fmt.Errorf("%w: %s: %w. Move the folder away, or bring a backup back", ErrDamaged, dir, why)
}

// The most memory that a store takes: a cache of blocks, and up to four tables that are being
// written.
const (
	cacheBytes    = 8 << 20
	memTableBytes = 4 << 20
)

// options keep a store small: it holds the state of one bundle, beside its actors.
func (e *onDisk) options(cache *pebble.Cache) *pebble.Options {
	o := &pebble.Options{
		FS:                          e.disk,
		FormatMajorVersion:          pebble.FormatFlushableIngest, // the first that the next major version of pebble opens
		Cache:                       cache,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                500,
		L0CompactionThreshold:       2,
		LBaseMaxBytes:               16 << 20,
		MaxConcurrentCompactions:    func() int { return 1 },
		Logger:                      e,
		EventListener:               &pebble.EventListener{BackgroundError: e.background},
	}
	o.Levels = []pebble.LevelOptions{{Compression: pebble.SnappyCompression, BlockSize: 8 << 10}}
	return o
}

// Infof implements pebble.Logger.
func (e *onDisk) Infof(format string, args ...any) {
	e.log.Debug(fmt.Sprintf(format, args...), "store", e.dir)
}

// Errorf implements pebble.Logger.
func (e *onDisk) Errorf(format string, args ...any) {
	e.log.Warn(fmt.Sprintf(format, args...), "store", e.dir)
}

// Fatalf implements pebble.Logger. Pebble's own ends the process. Here the store ends, and
// the process goes on: nothing that pebble does from now on reaches the files.
func (e *onDisk) Fatalf(format string, args ...any) {
	f := &fatal{text: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			f.causes = append(f.causes, err)
		}
	}
	e.fail(f)
}

// fatal is an error that pebble calls fatal. Its text does not show the cause: a full disk is not
// damage.
type fatal struct {
	text   string
	causes []error
}

func (f *fatal) Error() string   { return f.text }
func (f *fatal) Unwrap() []error { return f.causes }

// background is told of errors of pebble's background work, which pebble would repeat at once and
// for ever.
func (e *onDisk) background(err error) { e.fail(err) }

// fail ends the store.
func (e *onDisk) fail(err error) {
	e.failing.Do(func() {
		if crdb.Is(err, pebble.ErrCorruption) { // it is marked, not wrapped
			err = damaged(e.dir, err)
		}
		e.failed.Store(&err)
		e.disk.leave() // at once: pebble continues as if the fatal error had not happened
		close(e.broken)
		e.log.Error("the store has failed", "store", e.dir, "error", err)
		// The caller may hold pebble's locks and be within an operation.
		executor.Go(executor.Machine, e.abandon)
	})
}

// abandon cuts off a failed store and ends its background work, if it can.
func (e *onDisk) abandon() {
	e.disk.cut()
	<-e.opened
	if e.db != nil {
		_ = e.closeDB()
	}
}

// closeDB closes the database when no call uses it any more. A call that is stuck keeps it open, cut off
// from its files.
func (e *onDisk) closeDB() (err error) {
	e.ending.Do(func() {
		e.use.Lock() // for good
		defer func() {
			if r := recover(); r != nil {
				err = panicked(r)
			}
		}()
		err = e.db.Close()
	})
	return err
}

// enter is called before db is used.
func (e *onDisk) enter() error {
	if err := e.failure(); err != nil {
		return err
	}
	if e.use.TryRLock() {
		return nil
	}
	if err := e.failure(); err != nil {
		return err
	}
	return errClosed
}

func (e *onDisk) failure() error {
	if p := e.failed.Load(); p != nil {
		return fmt.Errorf("the store has failed: %w", *p)
	}
	return nil
}

func (e *onDisk) get(key []byte) (value []byte, found bool, err error) {
	if err := e.enter(); err != nil {
		return nil, false, err
	}
	defer e.use.RUnlock()
	defer e.guard(&err)
	v, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, e.readError(err)
	}
	value = bytes.Clone(v)
	return value, true, closer.Close()
}

func (e *onDisk) scan(from, to []byte, reverse bool, f func(key, value []byte) bool) (err error) {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.use.RUnlock()
	defer e.guard(&err)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return e.readError(err)
	}
	defer it.Close()
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return e.readError(err)
		}
		if !f(it.Key(), v) {
			break
		}
	}
	if err := it.Error(); err != nil {
		return e.readError(err)
	}
	return nil
}

func (e *onDisk) readError(err error) error {
	if crdb.Is(err, pebble.ErrCorruption) {
		return damaged(e.dir, err)
	}
	return fmt.Errorf("%s: %w", e.dir, err)
}

// panicked is the error of a panic in pebble.
func panicked(r any) error {
	if err, ok := r.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", r)
}

// guard turns a panic of pebble into an error, and ends the store.
func (e *onDisk) guard(err *error) {
	if r := recover(); r != nil {
		e.fail(panicked(r))
		*err = e.failure()
	}
}

func (e *onDisk) apply(w *writes, d Durability) (wait func() error, err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.use.RUnlock()
	defer e.guard(&err)
	b := e.db.NewBatchWithSize(w.bytes + 16*len(w.list))
	for _, x := range w.list {
		if x.value == nil {
			err = b.Delete(x.key, nil)
		} else {
			err = b.Set(x.key, x.value, nil)
		}
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	if d == Memory {
		if err := e.db.Apply(b, pebble.NoSync); err != nil {
			return nil, err
		}
		if err := e.failure(); err != nil { // pebble does not return errors that it calls fatal
			return nil, err
		}
		e.flushLater()
		return done, b.Close()
	}
	if d == Disk {
		e.disk.syncers.Add(1)
	}
	finish := func() {
		if d == Disk {
			e.disk.syncers.Add(-1)
		}
	}
	if err := e.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		finish()
		return nil, err
	}
	if err := e.failure(); err != nil {
		finish()
		return nil, err
	}
	return func() error {
		defer finish()
		if err := b.SyncWait(); err != nil {
			e.fail(err)
		}
		if err := e.failure(); err != nil {
			return err
		}
		return b.Close()
	}, nil
}

// flushLater schedules a write of the log, for callers that do not wait for it.
func (e *onDisk) flushLater() {
	f := &e.flush
	f.Lock()
	defer f.Unlock()
	if f.timer == nil && !f.stopped {
		f.timer = executor.Machine.AfterFunc(FlushEvery, e.flushNow)
	}
}

func (e *onDisk) flushNow() {
	f := &e.flush
	f.Lock()
	f.timer = nil
	stopped := f.stopped
	f.Unlock()
	if stopped || e.enter() != nil {
		return
	}
	defer e.use.RUnlock()
	var err error
	defer e.guard(&err)
	_ = e.db.LogData(nil, pebble.Sync) // writes what is before it; syncs nothing unless somebody waits for that
}

func (e *onDisk) trouble() (<-chan struct{}, error) {
	if err := e.failure(); err != nil {
		return nil, err
	}
	return e.disk.trouble()
}

func (e *onDisk) size() int64 {
	if e.enter() != nil {
		return 0
	}
	defer e.use.RUnlock()
	return int64(e.db.Metrics().DiskSpaceUsage())
}

// close releases the files. What does not end in time is cut off.
func (e *onDisk) close() error {
	f := &e.flush
	f.Lock()
	f.stopped = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.Unlock()
	if full, why := e.trouble(); why != nil {
		e.fail(why) // do not wait for operations that wait for room
	} else {
		ended := make(chan error, 1)
		executor.Go(executor.Machine, func() { ended <- e.closeDB() })
		late := make(chan struct{})
		t := executor.Machine.AfterFunc(closeTime, func() { close(late) })
		defer t.Stop()
		for why == nil {
			select {
			case err := <-ended:
				e.disk.cut()
				return errors.Join(err, e.lock.release())
			case <-e.broken:
				why = e.failure()
			case <-full:
				full, why = e.trouble()
			case <-late:
				why = errSlow
			}
		}
		e.fail(why) // a caller that waits for a sync must not take a skipped one for done
	}
	e.disk.cut()
	if e.lock == nil { // it was handed on
		return e.failure()
	}
	return errors.Join(e.failure(), e.lock.release())
}

// errSlow ends a store that does not end by itself.
var errSlow = errors.New("it did not end in time, and was cut off")

// reopen returns a new engine on the same files, after this one has failed.
func (e *onDisk) reopen() (*onDisk, error) {
	e.disk.cut()
	n, err := openLocked(e.dir, e.disk.FS, e.log)
	if err != nil {
		return nil, err
	}
	n.lock, e.lock = e.lock, nil
	return n, nil
}

// reopenOnDisk is reopen for a store.
func reopenOnDisk(old engine) (engine, error) {
	e, err := old.(*onDisk).reopen()
	if err != nil {
		return nil, err
	}
	return e, nil
}
