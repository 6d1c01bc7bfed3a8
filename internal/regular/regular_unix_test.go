//go:build unix

package regular

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	whole := bytes.Repeat([]byte("wasm"), 700_000)
	if err := errors.Join(
		os.WriteFile(in("file"), whole, 0o600), os.WriteFile(in("empty"), nil, 0o600),
		os.Symlink("file", in("link")), os.Symlink("/dev/zero", in("to zero")), os.Symlink("nowhere", in("to nothing")),
		syscall.Mkfifo(in("fifo"), 0o600), os.Symlink("fifo", in("to fifo"))); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	size := int64(len(whole))
	for _, c := range []struct {
		name string
		most int64
		want []byte
		err  error
		says string
	}{
		{"file", size, whole, nil, ""},
		{"link", size, whole, nil, ""},
		{"empty", 0, []byte{}, nil, ""},
		{"file", size - 1, nil, ErrSize, "more than 2799999 bytes"},
		{"fifo", size, nil, ErrKind, "a FIFO"},
		{"to fifo", size, nil, ErrKind, "a FIFO"},
		{"to zero", size, nil, ErrKind, "a device"},
		{"/dev/zero", size, nil, ErrKind, "a device"},
		{"/dev/tty", size, nil, ErrKind, "a device"},
		{"socket", size, nil, ErrKind, "a socket"},
		{".", size, nil, ErrKind, "a folder"},
		{"to nothing", size, nil, fs.ErrNotExist, ""},
	} {
		path := c.name
		if !filepath.IsAbs(path) {
			path = in(path)
		} else if _, err := os.Stat(path); err != nil {
			continue
		}
		got, err := Read(context.Background(), path, c.most)
		if !bytes.Equal(got, c.want) || !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d bytes, %v", c.name, len(got), err)
		}
	}
}

// TestGrows: a file that somebody goes on writing to is not read for ever.
func TestGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for chunk := make([]byte, 1<<20); ; {
			if _, err := f.Write(chunk); err != nil {
				return
			}
			if info, err := f.Stat(); err != nil || info.Size() >= 64<<20 {
				return
			}
		}
	}()
	if data, err := Read(context.Background(), path, 8<<20); err == nil && len(data) > 8<<20 {
		t.Errorf("%d bytes", len(data))
	}
	<-ended
	if _, err := Read(context.Background(), path, 8<<20); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	// Size says nothing where the kernel makes the file up as it is read.
	if _, err := Read(context.Background(), "/proc/self/status", 10); err != nil && !errors.Is(err, ErrSize) && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	} else if err == nil {
		t.Error("more than 10 bytes were accepted")
	}
}

func TestInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := Read(ctx, path, 4<<30); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Error(took)
	}
}

// TestOpen: what is no regular file is refused at once, by all ways to open one.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.MkdirAll(in("root/sub"), 0o700), os.WriteFile(in("root/sub/file"), []byte("in"), 0o600), os.WriteFile(in("secret"), []byte("out"), 0o600),
		syscall.Mkfifo(in("fifo"), 0o600), syscall.Mkfifo(in("root/fifo"), 0o600),
		os.Symlink("sub/file", in("root/link")), os.Symlink("../secret", in("root/out")), os.Symlink("/dev/zero", in("root/zero")),
		os.Symlink("loop", in("root/loop"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"secret": nil, "fifo": ErrKind, "root": ErrKind, "none": fs.ErrNotExist} {
		f, err := Open(in(path))
		if !errors.Is(err, want) || (f == nil) != (err != nil) {
			t.Errorf("%s: %v", path, err)
		}
		if f != nil {
			f.Close()
		}
		if _, err := ReadFile(in(path), 10); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"fifo", "secret", "none"} {
		if r, err := OpenRoot(in(path)); err == nil {
			r.Close()
			t.Errorf("%s is a folder", path)
		}
	}
	root, err := OpenRoot(in("root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]error{
		"sub/file": nil, "link": nil, "fifo": ErrKind, "zero": ErrOutside, "out": ErrOutside, "../secret": ErrOutside, "none": fs.ErrNotExist, "loop": syscall.ELOOP,
	} {
		if data, err := ReadIn(root, name, 2); !errors.Is(err, want) || err == nil && string(data) != "in" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if f, err := OpenIn(root, name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil {
			f.Close()
		}
	}
	if _, err := ReadIn(root, "sub/file", 1); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	if _, err := ReadIn(root, "sub", 1); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	if _, err := FS(root).Open("../secret"); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	if _, err := FS(root).Open("fifo"); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	below, err := fs.Sub(FS(root), "sub")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(below, "file"); err != nil {
		t.Error(err)
	}
}

// A file that is replaced has the mode that any new file would have.
func TestReplaceObeysTheMask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "x")
	if err := Replace(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
