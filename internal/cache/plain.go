package cache

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/wasmactors/wasmactors/internal/trust"
)

var errNotPlain = errors.New("not a regular file")

// openPlain opens a regular file. A link, a FIFO or a device is errNotPlain; none
// is followed or waited for.
func openPlain(path string, flags int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotPlain}
	}
	f, err := os.OpenFile(path, flags|trust.OpenFlags, mode)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: path, Err: errNotPlain})
	}
	return f, nil
}

// readPlain reads a regular file of at most so many bytes.
func readPlain(path string, most int64) ([]byte, error) {
	f, err := openPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotPlain}
	}
	data := make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // truncated meanwhile: the checksum detects it
	}
	return data[:n], err
}
