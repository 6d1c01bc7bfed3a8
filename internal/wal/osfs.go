package wal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Folder is the file system of a folder, which is made if it is missing, for its owner alone.
func Folder(path string) (FS, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return folder(path), nil
}

type folder string

func (f folder) in(name string) string { return filepath.Join(string(f), name) }

func (f folder) Create(name string) (File, error) {
	file, err := os.OpenFile(f.in(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (f folder) Open(name string) (File, error) {
	file, err := os.Open(f.in(name))
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (f folder) List() ([]string, error) {
	entries, err := os.ReadDir(string(f))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (f folder) Rename(from, to string) error { return os.Rename(f.in(from), f.in(to)) }

func (f folder) Remove(name string) error { return os.Remove(f.in(name)) }

func (f folder) Lock() (io.Closer, error) {
	l := flock.New(f.in("lock"), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", ErrLocked, string(f))
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
