package cache

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestLargePages: what a large part is read into is to be backed with large pages, and what a small one is not.
func TestLargePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("this kernel has no large pages")
	}
	for size, want := range map[int]bool{8 << 20: true, 64 << 10: false} {
		s := &Secret{key: [32]byte{1}}
		body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, s.seal(key(1), "p", body), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, err := s.open(f, key(1), "p", int64(size))
		if err != nil {
			t.Fatal(err)
		}
		to, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Munmap(to) }()
		if _, err := io.ReadFull(p, to[:10]); err != nil { // so that chunks do not lie where pages begin
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p, to[10:]); err != nil || !bytes.Equal(to, body) {
			t.Fatal("not what was stored:", err)
		}
		if got := strings.Contains(flagsOf(t, to), " hg"); got != want {
			t.Errorf("%d bytes: large pages %v, want %v", size, got, want)
		}
	}
}

// flagsOf are what the kernel says of the mapping in which b ends.
func flagsOf(t *testing.T, b []byte) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	last, within := uintptr(unsafe.Pointer(unsafe.SliceData(b)))+uintptr(len(b))-1, false
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			within = from <= last && last < to
		}
		if within && strings.HasPrefix(line, "VmFlags:") {
			return line
		}
	}
	t.Fatal("there is no such mapping")
	return ""
}
