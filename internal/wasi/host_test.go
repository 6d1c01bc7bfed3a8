package wasi

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// fakeHost is an actor instance as the functions see it.
type fakeHost struct {
	context.Context
	now      int64
	args     []string
	env      []string
	files    *FileTable
	out, err []byte
	charged  uint64
	budget   uint64 // 0: no limit
	waited   int
	refuse   bool // to wait
}

type spent struct{}

func (h *fakeHost) WASIHost() Host    { return h }
func (h *fakeHost) Now() int64        { return h.now }
func (h *fakeHost) Stdout(p []byte)   { h.out = append(h.out, p...) }
func (h *fakeHost) Stderr(p []byte)   { h.err = append(h.err, p...) }
func (h *fakeHost) Args() []string    { return h.args }
func (h *fakeHost) Env() []string     { return h.env }
func (h *fakeHost) Files() *FileTable { return h.files }
func (h *fakeHost) Wait() bool        { h.waited++; return !h.refuse }
func (h *fakeHost) Exit(code uint32)  { panic(&ExitError{code}) }

func (h *fakeHost) Random(p []byte) {
	for i := range p {
		p[i] = byte(i + 1)
	}
}

func (h *fakeHost) Charge(fuel uint64) {
	h.charged += fuel
	if h.budget > 0 && h.charged > h.budget {
		panic(spent{})
	}
}

// guest calls functions the way wazero does.
type guest struct {
	t   testing.TB
	h   *fakeHost
	mod api.Module
}

func newGuest(t testing.TB, dirs ...Dir) *guest {
	t.Helper()
	roots, err := OpenDirs(dirs)
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{
		Context: context.Background(),
		now:     1_700_000_000_123_456_789,
		args:    []string{"actor", "-v"},
		env:     []string{"KEY=value"},
		files:   NewFileTable(roots, 4),
	}
	t.Cleanup(func() {
		h.files.Reset()
		if n := roots.open.Load(); n != 0 {
			t.Errorf("%d files open after Reset", n)
		}
		if err := roots.Close(); err != nil {
			t.Error(err)
		}
	})
	return &guest{t: t, h: h, mod: onePage(t)}
}

// onePage is a module with a memory of one page and nothing else.
func onePage(t testing.TB) api.Module {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = r.Close(ctx) })
	mod, err := r.Instantiate(ctx, []byte("\x00asm\x01\x00\x00\x00"+
		"\x05\x04\x01\x01\x01\x01"+ // memory 1 1
		"\x07\x0a\x01\x06memory\x02\x00")) // (export "memory")
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

func byName(t testing.TB, name string) *function {
	for i := range functions {
		if functions[i].name == name {
			return &functions[i]
		}
	}
	t.Fatalf("no function %s", name)
	return nil
}

// call calls a function and returns its errno.
func (g *guest) call(name string, args ...uint64) errno {
	g.t.Helper()
	f := byName(g.t, name)
	if len(args) != len(f.params) {
		g.t.Fatalf("%s takes %d arguments, not %d", name, len(f.params), len(args))
	}
	stack := append(make([]uint64, 0, 16), args...)
	stack = append(stack, 0)[:max(1, len(args))]
	f.goFunc()(g.h, g.mod, stack)
	return errno(stack[0])
}

// want calls and compares the errno.
func (g *guest) want(want errno, name string, args ...uint64) {
	g.t.Helper()
	if got := g.call(name, args...); got != want {
		g.t.Errorf("%s%v: errno %d, want %d", name, args, got, want)
	}
}

func (g *guest) u32(at uint32) uint32 {
	v, _ := g.mod.Memory().ReadUint32Le(at)
	return v
}

func (g *guest) u64(at uint32) uint64 {
	v, _ := g.mod.Memory().ReadUint64Le(at)
	return v
}

func (g *guest) text(at, n uint32) string {
	p, ok := g.mod.Memory().Read(at, n)
	if !ok {
		g.t.Fatalf("text at %d+%d", at, n)
	}
	return string(p)
}

// Places in the guest's memory that the tests use.
const (
	atResult = 1 << 10
	atPath   = 2 << 10
	atPath2  = 8 << 10
	atList   = 16 << 10
	atData   = 32 << 10
	atEnd    = 1 << 16
)

// path puts a path into memory and returns its place and length.
func (g *guest) path(at uint32, path string) (uint64, uint64) {
	g.mod.Memory().WriteString(at, path)
	return uint64(at), uint64(len(path))
}

// data puts buffers into memory, and their list, and returns that.
func (g *guest) data(parts ...string) (uint64, uint64) {
	at := uint32(atData)
	for i, part := range parts {
		g.mod.Memory().WriteString(at, part)
		g.mod.Memory().WriteUint32Le(uint32(atList+8*i), at)
		g.mod.Memory().WriteUint32Le(uint32(atList+8*i+4), uint32(len(part)))
		at += uint32(len(part))
	}
	return atList, uint64(len(parts))
}

// open opens a path under the directory fd.
func (g *guest) open(fd uint64, path string, how, rights, flags uint64) (uint64, errno) {
	at, n := g.path(atPath, path)
	no := g.call("path_open", fd, followSymlink, at, n, how, rights, rights, flags, atResult)
	return uint64(g.u32(atResult)), no
}

// mustOpen is open that succeeds.
func (g *guest) mustOpen(fd uint64, path string, how, rights, flags uint64) uint64 {
	g.t.Helper()
	opened, no := g.open(fd, path, how, rights, flags)
	if no != errnoSuccess {
		g.t.Fatalf("open %s: errno %d", path, no)
	}
	return opened
}

// sandbox is a directory with a file in it and a secret beside it.
func sandbox(t testing.TB) (dir string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "granted")
	for path, content := range map[string]string{
		"secret": "not for guests", "granted/hello.txt": "hello, guest", "granted/sub/inner.txt": "inner",
	} {
		path = filepath.Join(top, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// names lists a directory through fd_readdir with a buffer of the given size.
func (g *guest) names(fd uint64, buffer uint64) string {
	g.t.Helper()
	var list []string
	for cookie := uint64(0); ; {
		g.want(errnoSuccess, "fd_readdir", fd, atData, buffer, cookie, atResult)
		used := uint64(g.u32(atResult))
		p, _ := g.mod.Memory().Read(atData, uint32(used))
		for len(p) >= direntSize {
			n := int(binary.LittleEndian.Uint32(p[16:]))
			if len(p) < direntSize+n {
				break
			}
			list = append(list, string(p[direntSize:direntSize+n])+map[byte]string{typeDir: "/", typeSymlink: "@"}[p[20]])
			cookie = binary.LittleEndian.Uint64(p)
			p = p[direntSize+n:]
		}
		if used < buffer {
			return strings.Join(list, " ")
		}
	}
}
