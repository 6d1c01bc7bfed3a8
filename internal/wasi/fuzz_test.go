package wasi

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzCalls makes a series of calls with arbitrary arguments over a memory with
// arbitrary contents. Nothing may panic, everything must stay bounded, and what
// lies outside of the granted directories must stay as it is.
//
// Each call takes 2 bytes for the function and one byte for each argument, which
// stands for a value that is likely to matter.
func FuzzCalls(f *testing.F) {
	for i := range functions {
		f.Add([]byte{byte(i), 3, 16, 32, 1, 16, 8, 8, 1, 16, byte(i), 4, 32, 32, 1, 0, 16}, []byte("hello.txt"))
	}
	f.Add([]byte{31, 3, 1, 20, 4, 33, 10, 10, 0, 16, 26, 4, 17, 2, 16, 17, 4, 17, 2, 16}, []byte("sub"))
	values := []uint64{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, rightRead | rightWrite, 64, 128, 1 << 8, 1 << 9, maxVectors,
		atResult, atList, atPath, atPath2, atData, atEnd, atEnd - 1, atEnd - 4, atEnd - 8, 1 << 20,
		0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc, 0x100000000, 1<<63 - 1, 1 << 63, 1<<64 - 1,
	}
	f.Fuzz(func(t *testing.T, program, contents []byte) {
		if len(program) > 400 {
			return
		}
		dir := sandbox(t)
		// Links that exist already are what a guest would attack.
		_ = os.Symlink("../secret", filepath.Join(dir, "s"))
		g := newGuest(t, Dir{Host: dir, Guest: "/"}, Dir{Host: filepath.Join(dir, "sub"), Guest: "/r", ReadOnly: true})
		g.h.budget = 1 << 28
		mem := g.mod.Memory()
		for _, at := range []uint32{atPath, atPath2, atData} {
			mem.Write(at, contents[:min(len(contents), 4096)])
		}
		g.data("some", "data")
		mem.WriteString(atPath, "s/../hello.txt")
		mem.Write(atPath, contents[:min(len(contents), 4096)])
		defer func() {
			switch p := recover().(type) {
			case nil, spent, *ExitError:
			default:
				panic(p)
			}
			if secret, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "secret")); err != nil || string(secret) != "not for guests" {
				t.Errorf("the file outside: %q, %v", secret, err)
			}
			if inner, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(inner) != 2 {
				t.Errorf("files outside: %v, %v", inner, err)
			}
		}()
		for len(program) > 0 {
			fn := &functions[int(program[0])%len(functions)]
			program = program[1:]
			stack := make([]uint64, max(1, len(fn.params)))
			for i := range fn.params {
				if len(program) == 0 {
					break
				}
				stack[i] = values[int(program[0])%len(values)]
				program = program[1:]
			}
			fn.goFunc()(g.h, g.mod, stack)
			if g.h.files.Open() > 4 {
				t.Fatal("too many files open")
			}
			if no := errno(stack[0]); no > 76 {
				t.Fatalf("%s: errno %d", fn.name, no)
			}
			if len(g.h.out)+len(g.h.err) > 4*maxTransfer {
				g.h.out, g.h.err = nil, nil
			}
		}
	})
}

// FuzzPath: whatever the path, what is opened lies in the sandbox.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"hello.txt", "../secret", "sub/../../secret", "/x", "s", "sub/./inner.txt", "..\\secret", "C:\\x", "a\x00", "\xff"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if len(path) > 4000 {
			return
		}
		dir := sandbox(t)
		_ = os.Symlink("../secret", filepath.Join(dir, "s"))
		g := newGuest(t, Dir{Host: dir, Guest: "/"})
		fd, no := g.open(3, path, 0, rightRead, 0)
		if no != errnoSuccess {
			return
		}
		e := g.h.files.get(uint32(fd))
		if e.file == nil {
			return
		}
		opened, err := e.file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		secret, err := os.Stat(filepath.Join(filepath.Dir(dir), "secret"))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(opened, secret) {
			t.Fatalf("%q leads outside", path)
		}
	})
}
