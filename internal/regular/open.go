package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// soon is how long ReadFile waits for a file system.
const soon = 10 * time.Second

// Open opens a file for reading, as Read does: it does not wait, and what is not a regular file is
// ErrKind.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkKind(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	return opened(f, checkKind)
}

// OpenRoot is os.OpenRoot, which waits for a writer if dir is a FIFO.
func OpenRoot(dir string) (*os.Root, error) {
	return os.OpenRoot(dir + string(filepath.Separator)) // the system refuses everything else before it opens it
}

// OpenIn opens a regular file or a folder below a root, links followed within it.
// Anything else is ErrKind, at once; what a link leads to outside is ErrOutside.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return openIn(root, name, func(path string, info fs.FileInfo) error {
		if info.IsDir() {
			return nil
		}
		return checkKind(path, info)
	})
}

// FS is OpenIn as a file system.
func FS(root *os.Root) fs.FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

func (r rootFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := OpenIn(r.root, name)
	if err != nil {
		return nil, err // and not a nil *os.File
	}
	return f, nil
}

func openIn(root *os.Root, name string, check func(string, fs.FileInfo) error) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, named(root, err)
	}
	if err := check(name, info); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, named(root, err)
	}
	return opened(f, check)
}

// named is the error of a root, with ErrOutside for the one that package os does not export.
func named(root *os.Root, err error) error {
	_, escape := root.Lstat("..")
	var own, other *fs.PathError
	if errors.As(err, &own) && errors.As(escape, &other) && own.Err == other.Err {
		return &fs.PathError{Op: own.Op, Path: own.Path, Err: ErrOutside}
	}
	return err
}

// opened checks a file again: it may be another one by now.
func opened(f *os.File, check func(string, fs.FileInfo) error) (*os.File, error) {
	info, err := f.Stat()
	if err == nil {
		err = check(f.Name(), info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
