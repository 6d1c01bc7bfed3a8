package wasi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// quota bounds what a granted directory may hold: the sum of the sizes of its files,
// holes included, and the number of files, directories and links. It is counted when
// the directory is opened, and then with every change that a guest makes. All instances
// over the same Roots share it.
//
// Two grants of one directory are counted each for itself. What others than guests do
// in the directory is noticed when a guest finds no room.
type quota struct {
	root     *os.Root
	maxBytes int64 // MaxInt64: none
	maxFiles int64

	mu      sync.Mutex
	bytes   int64
	files   int64
	counted time.Time
	open    map[*entry]fs.FileInfo // what guests have open
}

// recountEvery is how often a directory is counted again for guests that find no room.
const recountEvery = time.Second

// costCount is what counting costs a guest, in units of fuel for a file.
const costCount = 4096

// QuotaError is a directory that holds more than it may when it is opened.
type QuotaError struct {
	Guest string // the path for guests
	What  string // bytes or files
	Limit int64
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the directory for %q holds more than its quota of %d %s already", e.Guest, e.Limit, e.What)
}

// newQuota counts a directory; nil without bounds.
func newQuota(root *os.Root, d Dir) (*quota, error) {
	if d.ReadOnly || d.MaxBytes == 0 && d.MaxFiles == 0 {
		return nil, nil
	}
	bound := func(n uint64) int64 {
		if n == 0 || n > 1<<62 {
			return 1 << 62
		}
		return int64(n)
	}
	q := &quota{root: root, maxBytes: bound(d.MaxBytes), maxFiles: bound(d.MaxFiles), open: map[*entry]fs.FileInfo{}}
	if err := q.count(); err != nil {
		return nil, err
	}
	switch {
	case q.bytes > q.maxBytes:
		return nil, &QuotaError{d.Guest, "bytes", q.maxBytes}
	case q.files > q.maxFiles:
		return nil, &QuotaError{d.Guest, "files", q.maxFiles}
	}
	return q, nil
}

var errEnough = errors.New("more than the quota")

// count walks the directory, until it is clear that there is too much.
func (q *quota) count() error {
	q.bytes, q.files = 0, 0
	err := fs.WalkDir(q.root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil // gone meanwhile, or nobody's business
		case err != nil:
			return err
		case path == ".":
			return nil
		}
		if info, err := e.Info(); err == nil {
			bytes, files := weigh(info)
			q.bytes, q.files = q.bytes+bytes, q.files+files
		}
		if q.bytes > q.maxBytes || q.files > q.maxFiles {
			return errEnough
		}
		return nil
	})
	q.counted = time.Now()
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// weigh is what a file counts; nil weighs nothing.
func weigh(info fs.FileInfo) (bytes, files int64) {
	if info == nil {
		return 0, 0
	}
	if info.Mode().IsRegular() {
		bytes = info.Size()
	}
	return bytes, 1
}

// room reports whether so much more fits. The caller holds the lock.
func (q *quota) room(h Host, bytes, files int64) errno {
	fits := func() bool {
		return (bytes <= 0 || q.bytes+bytes <= q.maxBytes) && (files <= 0 || q.files+files <= q.maxFiles)
	}
	if !fits() && time.Since(q.counted) >= recountEvery {
		h.Charge(uint64(max(q.files, 1)) * costCount)
		if err := q.count(); err != nil {
			return errnoOf(err)
		}
	}
	if !fits() {
		return errnoDquot
	}
	return errnoSuccess
}

func (q *quota) add(bytes, files int64) {
	q.bytes, q.files = max(q.bytes+bytes, 0), max(q.files+files, 0)
}

// isOpen reports whether a guest has a file open. The caller holds the lock.
func (q *quota) isOpen(info fs.FileInfo) bool {
	for _, o := range q.open {
		if os.SameFile(o, info) {
			return true
		}
	}
	return false
}

// closed forgets an entry.
func (q *quota) closed(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, e)
}

// grow does what may make a file longer, to end bytes at least.
func (d *entry) grow(h Host, end int64, change func() errno) errno {
	q := d.quota
	if q == nil {
		return change()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	before, err := d.file.Stat()
	if err != nil {
		return errnoOf(err)
	}
	if no := q.room(h, end-before.Size(), 0); no != errnoSuccess {
		return no
	}
	no := change()
	if after, err := d.file.Stat(); err == nil {
		q.add(after.Size()-before.Size(), 0)
	}
	return no
}

// openCounted opens what is at path, which may make or empty a file. Until it is closed
// a file cannot be removed.
func (d *entry) openCounted(h Host, path string, create bool, open func() (*entry, errno)) (*entry, errno) {
	q := d.quota
	if q == nil {
		return open()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	before, err := d.root.Stat(path)
	if err != nil {
		before = nil
	}
	bytes, files := weigh(before)
	if create {
		if no := q.room(h, 0, 1-files); no != errnoSuccess {
			return nil, no
		}
	}
	e, no := open()
	if no != errnoSuccess || e.file == nil {
		if e != nil {
			e.quota = q
		}
		return e, no
	}
	e.quota = q
	if after, err := e.file.Stat(); err == nil {
		b, n := weigh(after)
		q.add(b-bytes, n-files)
		q.open[e] = after
	}
	return e, no
}

// mkdir makes a directory.
func (d *entry) mkdir(h Host, path string) errno {
	q := d.quota
	if q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		if no := q.room(h, 0, 1); no != errnoSuccess {
			return no
		}
	}
	no := errnoOf(d.root.Mkdir(path, 0o755))
	if q != nil && no == errnoSuccess {
		q.add(0, 1)
	}
	return no
}

// remove removes a file or an empty directory. Under a quota a file that a guest has open stays: it
// would take up space that is not visible.
func (d *entry) remove(path string, directory bool) errno {
	q := d.quota
	if q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
	}
	info, err := d.root.Lstat(path)
	switch {
	case err != nil:
		return errnoOf(err)
	case directory && !info.IsDir():
		return errnoNotdir
	case !directory && info.IsDir():
		return errnoIsdir
	case q != nil && q.isOpen(info):
		return errnoBusy
	}
	no := errnoOf(d.root.Remove(path))
	if q != nil && no == errnoSuccess {
		bytes, files := weigh(info)
		q.add(-bytes, -files)
	}
	return no
}

// rename renames, and what had the name before is gone.
func (d *entry) rename(old, path string) errno {
	q := d.quota
	if q == nil {
		return errnoOf(d.root.Rename(old, path))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	from, err := d.root.Lstat(old)
	if err != nil {
		return errnoOf(err)
	}
	to, err := d.root.Lstat(path)
	switch {
	case err != nil || os.SameFile(from, to):
		to = nil
	case q.isOpen(to):
		return errnoBusy
	}
	no := errnoOf(d.root.Rename(old, path))
	if no == errnoSuccess {
		bytes, files := weigh(to)
		q.add(-bytes, -files)
	}
	return no
}
