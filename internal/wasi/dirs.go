package wasi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// Bounds of the files that guests may use.
const (
	// DefaultMaxOpen is how many files and directories one instance may have
	// open.
	DefaultMaxOpen = 64
	// MaxOpenPerRoots is how many files all instances over the same Roots may
	// have open together.
	MaxOpenPerRoots = 1024
	// MaxFileSize is the size beyond which guests cannot write: 1 GiB.
	MaxFileSize = 1 << 30
	// MaxDirEntries is the length beyond which a directory cannot be listed.
	MaxDirEntries = 16 << 10
)

// Dir grants a directory of the host.
type Dir struct {
	Host     string // its path on the host
	Guest    string // its path as the guest sees it, such as /data
	ReadOnly bool   // nothing under it can be created, written or removed
	// What the directory may hold; 0 means no bound. What is in it already counts.
	// Under a bound files that are open cannot be removed or replaced.
	MaxBytes uint64
	MaxFiles uint64 // directories and links included
}

// Roots are the granted directories, opened. They are shared by all instances of
// an image and safe for concurrent use. No path leads out of them, neither by
// ".." nor over symbolic links.
type Roots struct {
	dirs []entry
	open atomic.Int64 // files open over these roots
}

// OpenDirs opens the directories; none at all is fine. It refuses what is no
// directory, guest paths that are empty, contain NUL or are longer than 4096
// bytes, two directories with the same guest path, and a directory that holds more
// than it may, with a QuotaError.
func OpenDirs(dirs []Dir) (*Roots, error) {
	r := new(Roots)
	for i, d := range dirs {
		if d.Guest == "" || len(d.Guest) > maxPath || strings.ContainsRune(d.Guest, 0) {
			return nil, errors.Join(fmt.Errorf("directory %q: %q is not a path for a guest", d.Host, d.Guest), r.Close())
		}
		for _, other := range dirs[:i] {
			if other.Guest == d.Guest {
				return nil, errors.Join(fmt.Errorf("directories %q and %q are both mounted at %q", other.Host, d.Host, d.Guest), r.Close())
			}
		}
		root, err := regular.OpenRoot(d.Host)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("directory for %q: %w", d.Guest, err), r.Close())
		}
		q, err := newQuota(root, d)
		if err != nil {
			return nil, errors.Join(err, root.Close(), r.Close())
		}
		r.dirs = append(r.dirs, entry{root: root, guest: d.Guest, readOnly: d.ReadOnly, quota: q})
	}
	return r, nil
}

// Close closes the directories. Tables over them must not be used any more.
func (r *Roots) Close() error {
	var errs []error
	for _, d := range r.dirs {
		errs = append(errs, d.root.Close())
	}
	r.dirs = nil
	return errors.Join(errs...)
}

// FileTable holds the descriptors of one instance: 0 to 2 are the standard
// streams, then come the granted directories, then what the guest has opened. It
// is not safe for concurrent use. A nil table has the standard streams only.
type FileTable struct {
	roots   *Roots
	entries []*entry // descriptors from 3 on; nil where closed
	granted int      // how many of them, at the front, are Roots' directories
	maxOpen int
	open    int
}

// NewFileTable is a table over roots; nil roots grant nothing. The guest may have
// maxOpen files and directories open at a time; 0 means DefaultMaxOpen.
func NewFileTable(roots *Roots, maxOpen int) *FileTable {
	if maxOpen <= 0 {
		maxOpen = DefaultMaxOpen
	}
	t := &FileTable{roots: roots, maxOpen: maxOpen}
	if roots != nil {
		for _, d := range roots.dirs {
			t.entries = append(t.entries, &d)
		}
		t.granted = len(t.entries)
	}
	return t
}

// Reset closes everything that the guest has opened: the instance starts over, or
// ends.
func (t *FileTable) Reset() {
	if t == nil {
		return
	}
	for i, e := range t.entries {
		switch {
		case i < t.granted:
			e.list = nil
		case e != nil:
			t.close(uint32(i) + 3)
		}
	}
	t.entries = t.entries[:t.granted]
}

// Open is the number of files and directories that the guest has opened.
func (t *FileTable) Open() int {
	if t == nil {
		return 0
	}
	return t.open
}

// entry is an open file or directory; exactly one of file and root is set.
type entry struct {
	file *os.File
	root *os.Root

	guest    string // of a granted directory: its path for the guest
	readOnly bool   // of a directory: nothing under it may change
	readable bool   // of a file
	writable bool   // of a file
	appends  bool   // of a file: every write goes to the end
	list     []fs.DirEntry
	quota    *quota // of the granted directory; nil: none
}

// get is the entry of a descriptor; nil if it is not open or a standard stream.
func (t *FileTable) get(fd uint32) *entry {
	if t == nil || fd < 3 || uint64(fd)-3 >= uint64(len(t.entries)) {
		return nil
	}
	return t.entries[fd-3]
}

// dir is the entry of a directory.
func (t *FileTable) dir(fd uint32) (*entry, errno) {
	e := t.get(fd)
	switch {
	case e == nil:
		return nil, errnoBadf
	case e.root == nil:
		return nil, errnoNotdir
	}
	return e, errnoSuccess
}

// regular is the entry of a file that is not a directory.
func (t *FileTable) regular(fd uint32) (*entry, errno) {
	e := t.get(fd)
	switch {
	case e == nil:
		return nil, errnoBadf
	case e.file == nil:
		return nil, errnoIsdir
	}
	return e, errnoSuccess
}

// reserve makes sure that one more may be open; put or release follows.
func (t *FileTable) reserve() errno {
	if t.open >= t.maxOpen {
		return errnoMfile
	}
	if t.roots.open.Add(1) > MaxOpenPerRoots {
		t.roots.open.Add(-1)
		return errnoNfile
	}
	t.open++
	return errnoSuccess
}

func (t *FileTable) release() {
	t.open--
	t.roots.open.Add(-1)
}

// put gives e, for which there is a reservation, the lowest free descriptor.
func (t *FileTable) put(e *entry) uint32 {
	for i := t.granted; i < len(t.entries); i++ {
		if t.entries[i] == nil {
			t.entries[i] = e
			return uint32(i) + 3
		}
	}
	t.entries = append(t.entries, e)
	return uint32(len(t.entries)) + 2
}

// close closes what the guest has opened.
func (t *FileTable) close(fd uint32) errno {
	e := t.get(fd)
	if e == nil {
		return errnoBadf
	}
	if int(fd-3) < t.granted {
		return errnoNotsup
	}
	t.entries[fd-3] = nil
	t.release()
	if e.root != nil {
		return errnoOf(e.root.Close())
	}
	if e.quota != nil {
		e.quota.closed(e)
	}
	return errnoOf(e.file.Close())
}
