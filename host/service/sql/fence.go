package sql

import (
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// fence limits SQLite's access to files: to the one database, its log and its journal. The guard
// prevents statements from asking for more; the fence does not rely on it.
type fence struct {
	os   vfs.VFSFilename
	path string       // of the database
	most int64        // of the log, in bytes
	full atomic.Int64 // how often the log was full
	step func()       // before each write of the log; nil in all but tests
}

var _ vfs.VFSFilename = (*fence)(nil)

func newFence(path string, mostWAL int64) *fence {
	return &fence{os: vfs.Find("os").(vfs.VFSFilename), path: path, most: mostWAL}
}

// covers reports whether a file belongs to the database.
func (f *fence) covers(name string) bool {
	return name == f.path || name == f.path+"-wal" || name == f.path+"-journal"
}

// Open implements [vfs.VFS]: temporary files, which have no name, are not to be had.
func (f *fence) Open(string, vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, 0, sqlite3.CANTOPEN
}

// OpenFilename implements [vfs.VFSFilename].
func (f *fence) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name == nil || !f.covers(name.String()) {
		return nil, 0, sqlite3.CANTOPEN
	}
	file, flags, err := f.os.OpenFilename(name, flags)
	if err == nil && name.String() == f.path+"-wal" {
		file = &logFile{File: file, fence: f}
	}
	return file, flags, err
}

func (f *fence) Delete(name string, syncDir bool) error {
	if !f.covers(name) {
		return sqlite3.PERM
	}
	return f.os.Delete(name, syncDir)
}

func (f *fence) Access(name string, flags vfs.AccessFlag) (bool, error) {
	if !f.covers(name) {
		return false, nil
	}
	return f.os.Access(name, flags)
}

// theDatabase is the name under which the database is opened: so its path need not be escaped for
// a URI.
const theDatabase = "db"

// FullPathname implements [vfs.VFS]. The path of the database has no links in it any more.
func (f *fence) FullPathname(name string) (string, error) {
	if name != theDatabase {
		return "", sqlite3.PERM
	}
	return f.path, nil
}

// logFile is a write-ahead log of bounded length.
type logFile struct {
	vfs.File
	fence  *fence
	synced bool // its entry in the folder is durable
}

// WriteAt fails like a full disk if the log would become too long: the transaction is rolled
// back.
func (l *logFile) WriteAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > l.fence.most {
		l.fence.full.Add(1)
		return 0, sqlite3.FULL
	}
	if l.fence.step != nil {
		l.fence.step()
	}
	return l.File.WriteAt(b, at)
}

// Sync syncs the folder, too, the first time.
func (l *logFile) Sync(flags vfs.SyncFlag) error {
	if err := l.File.Sync(flags); err != nil || l.synced {
		return err
	}
	if err := syncDir(filepath.Dir(l.fence.path)); err != nil {
		return err
	}
	l.synced = true
	return nil
}

// syncDir makes the entries of a folder durable, on systems that can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && canSyncDirs {
		return err
	}
	return nil
}
