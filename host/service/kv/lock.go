package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/vfs"
)

// ErrInUse is what opening a store says that is open already, in this process or in
// another one.
var ErrInUse = errors.New("the store is in use")

// folderLock keeps other stores, of this process and of others, out of a folder.
type folderLock struct {
	info fs.FileInfo
	file io.Closer
}

// lockedFolders are those of this process: a lock of the system's does not keep a process
// out that has it already.
var lockedFolders struct {
	sync.Mutex
	list []*folderLock
}

func lockFolder(dir string) (*folderLock, error) {
	lockedFolders.Lock()
	defer lockedFolders.Unlock()
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	for _, l := range lockedFolders.list {
		if os.SameFile(l.info, info) {
			return nil, fmt.Errorf("%w: %s: this process has opened it", ErrInUse, dir)
		}
	}
	file, err := vfs.Default.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		if errors.Is(err, fs.ErrPermission) && !isLocked(err) || noRoom(err) {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		return nil, fmt.Errorf("%w: %s: another process has opened it. Stop that run, or give this one a state folder of its own", ErrInUse, dir)
	}
	l := &folderLock{info, file}
	lockedFolders.list = append(lockedFolders.list, l)
	return l, nil
}

// isLocked tells a lock that somebody has from a file that may not be opened: both may be
// EACCES.
func isLocked(err error) bool {
	var path *fs.PathError
	return !errors.As(err, &path)
}

func (l *folderLock) release() error {
	lockedFolders.Lock()
	defer lockedFolders.Unlock()
	for i, x := range lockedFolders.list {
		if x == l {
			lockedFolders.list = append(lockedFolders.list[:i], lockedFolders.list[i+1:]...)
			return l.file.Close()
		}
	}
	return nil
}

// Lock implements vfs.FS: the folder is locked already, for longer than pebble would.
func (d *disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }
