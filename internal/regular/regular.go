// Package regular reads files named by a user or a bundle, in a manifest or by a link: only regular
// ones, never more than a bound, and not a moment longer than the context lasts. Code of the host
// opens such files nowhere else; a test in tools/contract looks for it.
package regular

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors of this package, wrapped in a *fs.PathError.
var (
	// ErrKind: a device, a FIFO, a socket or a folder.
	ErrKind = errors.New("not a regular file")
	// ErrSize: more than the bound.
	ErrSize = errors.New("larger than allowed")
	// ErrOutside: a link that leads out of its root.
	ErrOutside = errors.New("it leads out of its folder")
)

// piece is how much is read between two checks of the context.
const piece = 1 << 20

// Read reads a file of at most most bytes. Links are followed; what they lead to
// must be a regular file. Its kind is checked before it is opened, because opening a
// device does things, and after, because it may be another one by then.
//
// It returns as soon as ctx ends, even if the file system does not answer; a
// goroutine waits for that, then.
func Read(ctx context.Context, path string, most int64) ([]byte, error) {
	if ctx.Done() == nil {
		return read(ctx, path, most)
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read(ctx, path, most)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ReadFile is Read for code that has no context. It gives up after 10 s.
func ReadFile(path string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), soon, os.ErrDeadlineExceeded)
	defer cancel()
	data, err := Read(ctx, path, most)
	if err != nil && ctx.Err() != nil {
		err = &fs.PathError{Op: "read", Path: path, Err: context.Cause(ctx)}
	}
	return data, err
}

// ReadIn reads a file of at most most bytes below a root, links followed within it.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := openIn(root, name, checkKind)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(context.Background(), f, most)
}

func read(ctx context.Context, path string, most int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(ctx, f, most)
}

func readAll(ctx context.Context, f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, tooLarge(f.Name(), most)
	}
	data := make([]byte, 0, info.Size()+1)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(data) == cap(data) { // it has grown
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), len(data)+piece)])
		data = data[:len(data)+n]
		if int64(len(data)) > most {
			return nil, tooLarge(f.Name(), most)
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func checkKind(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but %s", ErrKind, kind(info.Mode()))}
	}
	return nil
}

func tooLarge(path string, most int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: more than %d bytes", ErrSize, most)}
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
