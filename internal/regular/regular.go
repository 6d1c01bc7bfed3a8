// Package regular reads files that a stranger has named: only regular ones, never
// more than a bound, and not a moment longer than the context lasts.
package regular

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors of Read, wrapped in a *fs.PathError.
var (
	// ErrKind: a device, a FIFO, a socket or a folder.
	ErrKind = errors.New("not a regular file")
	// ErrSize: more than the bound.
	ErrSize = errors.New("larger than allowed")
)

// piece is how much is read between two looks at the context.
const piece = 1 << 20

// Read reads a file of at most most bytes. Links are followed; what they lead to
// must be a regular file. It is looked at before it is opened, because opening a
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

func read(ctx context.Context, path string, most int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info, most); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := check(path, info, most); err != nil {
		return nil, err
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
			return nil, tooLarge(path, most)
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func check(path string, info fs.FileInfo, most int64) error {
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w but %s", ErrKind, kind(info.Mode()))}
	}
	if info.Size() > most {
		return tooLarge(path, most)
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
