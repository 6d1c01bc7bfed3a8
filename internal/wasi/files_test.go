package wasi

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const rightsReadWrite = rightRead | rightWrite

func TestPrestat(t *testing.T) {
	dir := sandbox(t)
	g := newGuest(t, Dir{Host: dir, Guest: "/data"}, Dir{Host: filepath.Join(dir, "sub"), Guest: "/sub", ReadOnly: true})
	for i, name := range []string{"/data", "/sub"} {
		fd := uint64(3 + i)
		g.want(errnoSuccess, "fd_prestat_get", fd, atResult)
		if g.u32(atResult) != 0 || g.u32(atResult+4) != uint32(len(name)) {
			t.Errorf("%s: kind %d, length %d", name, g.u32(atResult), g.u32(atResult+4))
		}
		g.want(errnoSuccess, "fd_prestat_dir_name", fd, atPath, uint64(len(name)))
		if got := g.text(atPath, uint32(len(name))); got != name {
			t.Errorf("name %q, want %q", got, name)
		}
		g.want(errnoNametoolong, "fd_prestat_dir_name", fd, atPath, uint64(len(name)-1))
		g.want(errnoFault, "fd_prestat_dir_name", fd, atEnd-1, uint64(len(name)))
		g.want(errnoFault, "fd_prestat_get", fd, atEnd-7)
		g.want(errnoNotsup, "fd_close", fd)
		g.want(errnoSuccess, "fd_fdstat_get", fd, atResult)
		writes := g.u64(atResult+16)&rightWrite != 0
		if writes != (i == 0) || g.text(atResult, 1)[0] != typeDir {
			t.Errorf("%s: may be written: %v", name, writes)
		}
	}
	g.want(errnoBadf, "fd_prestat_get", 5, atResult)
}

func TestReadAFile(t *testing.T) {
	g := newGuest(t, Dir{Host: sandbox(t), Guest: "/", ReadOnly: true})
	fd := g.mustOpen(3, "hello.txt", 0, rightRead, 0)
	list, n := g.data("....", "..........")
	g.want(errnoSuccess, "fd_read", fd, list, n, atResult)
	if got := g.text(atData, 14); g.u32(atResult) != 12 || got != "hello, guest.." {
		t.Errorf("%d bytes: %q", g.u32(atResult), got)
	}
	g.want(errnoSuccess, "fd_read", fd, list, n, atResult)
	if g.u32(atResult) != 0 {
		t.Error("more than the file has")
	}
	g.want(errnoSuccess, "fd_seek", fd, 7, io.SeekStart, atResult)
	g.want(errnoSuccess, "fd_tell", fd, atResult)
	if g.u64(atResult) != 7 {
		t.Errorf("at %d, want 7", g.u64(atResult))
	}
	g.want(errnoSuccess, "fd_pread", fd, list, 1, 7, atResult)
	if got := g.text(atData, 4); got != "gues" {
		t.Errorf("pread: %q", got)
	}
	g.want(errnoInval, "fd_pread", fd, list, 1, 1<<63, atResult)
	g.want(errnoInval, "fd_seek", fd, 0, 3, atResult)
	g.want(errnoInval, "fd_seek", fd, 1<<63, io.SeekStart, atResult)
	g.want(errnoFault, "fd_seek", fd, 0, io.SeekStart, atEnd-7)
	g.want(errnoFault, "fd_read", fd, list, n, atEnd-3)
	g.want(errnoBadf, "fd_write", fd, list, n, atResult)
	g.want(errnoBadf, "fd_pwrite", fd, list, n, 0, atResult)
	g.want(errnoBadf, "fd_filestat_set_size", fd, 0)
	g.want(errnoSuccess, "fd_filestat_get", fd, atResult)
	if size, kind := g.u64(atResult+32), g.text(atResult+16, 1)[0]; size != 12 || kind != typeRegular {
		t.Errorf("size %d, type %d", size, kind)
	}
	g.want(errnoFault, "fd_filestat_get", fd, atEnd-63)
	g.want(errnoSuccess, "fd_advise", fd, 0, 0, 5)
	g.want(errnoInval, "fd_advise", fd, 0, 0, 6)
	g.want(errnoSuccess, "fd_fdstat_set_flags", fd, flagNonblock)
	g.want(errnoNotsup, "fd_fdstat_set_flags", fd, flagAppend)
	g.want(errnoInval, "fd_fdstat_set_flags", fd, 32)
	g.want(errnoNotdir, "fd_readdir", fd, atData, 100, 0, atResult)
	g.want(errnoSuccess, "fd_close", fd)
	g.want(errnoBadf, "fd_close", fd)
	g.want(errnoBadf, "fd_read", fd, list, n, atResult)
}

func TestWriteAFile(t *testing.T) {
	dir := sandbox(t)
	g := newGuest(t, Dir{Host: dir, Guest: "/"})
	fd := g.mustOpen(3, "new.txt", openCreate|openExclusive, rightsReadWrite, 0)
	list, n := g.data("first ", "second")
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult)
	if g.u32(atResult) != 12 {
		t.Errorf("%d bytes written", g.u32(atResult))
	}
	g.want(errnoSuccess, "fd_pwrite", fd, list, 1, 12, atResult)
	g.want(errnoFbig, "fd_pwrite", fd, list, 1, MaxFileSize, atResult)
	g.want(errnoInval, "fd_pwrite", fd, list, 1, 1<<63, atResult)
	g.want(errnoSuccess, "fd_seek", fd, MaxFileSize-1, io.SeekStart, atResult)
	g.want(errnoFbig, "fd_write", fd, list, n, atResult)
	g.want(errnoFbig, "fd_filestat_set_size", fd, MaxFileSize+1)
	g.want(errnoSuccess, "fd_filestat_set_size", fd, 15)
	g.want(errnoSuccess, "fd_sync", fd)
	g.want(errnoSuccess, "fd_datasync", fd)
	g.want(errnoSuccess, "fd_close", fd)
	if _, no := g.open(3, "new.txt", openCreate|openExclusive, rightsReadWrite, 0); no != errnoExist {
		t.Errorf("exclusive creation of what is there: errno %d", no)
	}

	fd = g.mustOpen(3, "new.txt", openCreate, rightWrite, flagAppend)
	list, n = g.data("!")
	g.want(errnoSuccess, "fd_write", fd, list, n, atResult)
	g.want(errnoInval, "fd_pwrite", fd, list, n, 0, atResult)
	g.want(errnoBadf, "fd_read", fd, list, n, atResult)
	g.want(errnoSuccess, "fd_close", fd)
	if got, err := os.ReadFile(filepath.Join(dir, "new.txt")); err != nil || string(got) != "first secondfir!" {
		t.Errorf("%q, %v", got, err)
	}

	fd = g.mustOpen(3, "new.txt", openTruncate, rightWrite, flagSync)
	g.want(errnoSuccess, "fd_close", fd)
	if info, err := os.Stat(filepath.Join(dir, "new.txt")); err != nil || info.Size() != 0 {
		t.Errorf("not truncated: %v, %v", info, err)
	}
}

func TestDirectories(t *testing.T) {
	dir := sandbox(t)
	g := newGuest(t, Dir{Host: dir, Guest: "/"})
	at, n := g.path(atPath, "made")
	g.want(errnoSuccess, "path_create_directory", 3, at, n)
	g.want(errnoExist, "path_create_directory", 3, at, n)
	g.want(errnoIsdir, "path_unlink_file", 3, at, n)
	for i := range 50 {
		if err := os.WriteFile(filepath.Join(dir, "made", fmt.Sprintf("%02d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("%02d", i))
	}
	fd := g.mustOpen(3, "made", openDirectory, rightRead, 0)
	for _, buffer := range []uint64{26, 50, 100, 4096} {
		if got := g.names(fd, buffer); got != strings.Join(want, " ") {
			t.Errorf("buffer of %d: %s", buffer, got)
		}
	}
	g.want(errnoInval, "fd_readdir", fd, atData, 100, 51, atResult)
	g.want(errnoFault, "fd_readdir", fd, atEnd-99, 100, 0, atResult)
	g.want(errnoFault, "fd_readdir", fd, atData, 100, 0, atEnd-3)
	if got := g.names(3, 4096); got != "hello.txt made/ sub/" {
		t.Errorf("the root has %s", got)
	}
	// A directory's descriptor is a border of its own.
	if _, no := g.open(fd, "../hello.txt", 0, rightRead, 0); no != errnoNotcapable {
		t.Errorf("up from a subdirectory: errno %d", no)
	}
	list, count := g.data("x")
	g.want(errnoIsdir, "fd_read", fd, list, count, atResult)
	g.want(errnoIsdir, "fd_seek", fd, 0, 0, atResult)
	g.want(errnoSuccess, "fd_sync", fd)
	g.want(errnoSuccess, "fd_filestat_get", fd, atResult)
	if kind := g.text(atResult+16, 1)[0]; kind != typeDir {
		t.Errorf("type %d", kind)
	}
	if _, no := g.open(3, "made", 0, rightsReadWrite, 0); no != errnoIsdir {
		t.Errorf("a directory for writing: errno %d", no)
	}
	if _, no := g.open(3, "hello.txt", openDirectory, rightRead, 0); no != errnoNotdir {
		t.Errorf("a file as a directory: errno %d", no)
	}

	at, n = g.path(atPath, "made")
	if no := g.call("path_remove_directory", 3, at, n); no == errnoSuccess {
		t.Error("a directory that is not empty was removed")
	}
	for _, name := range want {
		at, n := g.path(atPath, "made/"+name)
		g.want(errnoNotdir, "path_remove_directory", 3, at, n)
		g.want(errnoSuccess, "path_unlink_file", 3, at, n)
	}
	at, n = g.path(atPath, "made")
	g.want(errnoSuccess, "path_remove_directory", 3, at, n)
	g.want(errnoNoent, "path_remove_directory", 3, at, n)

	at, n = g.path(atPath, "hello.txt")
	to, toN := g.path(atPath2, "sub/moved.txt")
	g.want(errnoSuccess, "path_rename", 3, at, n, 3, to, toN)
	g.want(errnoNoent, "path_rename", 3, at, n, 3, to, toN)
	sub := g.mustOpen(3, "sub", 0, rightRead, 0)
	at, n = g.path(atPath, "sub/moved.txt")
	g.want(errnoXdev, "path_rename", 3, at, n, sub, to, toN)
	g.want(errnoSuccess, "path_filestat_get", 3, followSymlink, at, n, atResult)
	if size := g.u64(atResult + 32); size != 12 {
		t.Errorf("size %d", size)
	}
	g.want(errnoSuccess, "path_filestat_get", 3, 0, at, n, atResult)
	g.want(errnoInval, "path_readlink", 3, at, n, atData, 10, atResult)
}

func TestNothingEscapes(t *testing.T) {
	dir := sandbox(t)
	outside := filepath.Join(filepath.Dir(dir), "secret")
	for link, target := range map[string]string{
		"absolute": outside, "relative": "../secret", "inside": "sub/inner.txt", "loop": "loop", "updir": "..",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	g := newGuest(t, Dir{Host: dir, Guest: "/"})
	for _, path := range []string{
		"../secret", "sub/../../secret", "/etc/passwd", "..", "absolute", "relative", "updir/secret", "sub/../updir/secret",
	} {
		for name, how := range map[string]uint64{"open": 0, "create": openCreate} {
			if _, no := g.open(3, path, how, rightRead, 0); no != errnoNotcapable {
				t.Errorf("%s %s: errno %d", name, path, no)
			}
		}
		at, n := g.path(atPath, path)
		g.want(errnoNotcapable, "path_filestat_get", 3, followSymlink, at, n, atResult)
		if strings.Contains(path, "/") {
			g.want(errnoNotcapable, "path_unlink_file", 3, at, n)
			g.want(errnoNotcapable, "path_create_directory", 3, at, n)
			to, toN := g.path(atPath2, "stolen")
			g.want(errnoNotcapable, "path_rename", 3, at, n, 3, to, toN)
		}
	}
	for path, want := range map[string]errno{
		"": errnoNoent, "a\x00b": errnoInval, "\xff": errnoIlseq, strings.Repeat("x", maxPath+1): errnoNametoolong,
		"loop": errnoLoop, "missing": errnoNoent, "hello.txt/x": errnoNotdir,
	} {
		if _, no := g.open(3, path, 0, rightRead, 0); no != want {
			t.Errorf("%.20q: errno %d, want %d", path, no, want)
		}
	}
	at, n := g.path(atPath, "inside")
	g.want(errnoLoop, "path_open", 3, 0, at, n, 0, rightRead, 0, 0, atResult)
	g.want(errnoSuccess, "path_open", 3, followSymlink, at, n, 0, rightRead, 0, 0, atResult)
	g.want(errnoSuccess, "path_filestat_get", 3, 0, at, n, atResult)
	if kind := g.text(atResult+16, 1)[0]; kind != typeSymlink {
		t.Errorf("type %d of a link", kind)
	}
	g.want(errnoSuccess, "path_readlink", 3, at, n, atData, 5, atResult)
	if got := g.text(atData, g.u32(atResult)); got != "sub/i" {
		t.Errorf("link to %q", got)
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "not for guests" {
		t.Errorf("the file outside: %q, %v", content, err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := sandbox(t)
	g := newGuest(t, Dir{Host: dir, Guest: "/", ReadOnly: true})
	sub := g.mustOpen(3, "sub", 0, rightRead, 0)
	for fd, name := range map[uint64]string{3: "hello.txt", sub: "inner.txt"} {
		for what, open := range map[string][2]uint64{
			"create": {openCreate, rightRead}, "truncate": {openTruncate, rightRead}, "write": {0, rightsReadWrite},
		} {
			if _, no := g.open(fd, name, open[0], open[1], 0); no != errnoNotcapable {
				t.Errorf("%s %s: errno %d", what, name, no)
			}
		}
		at, n := g.path(atPath, name)
		g.want(errnoNotcapable, "path_unlink_file", fd, at, n)
		g.want(errnoNotcapable, "path_remove_directory", fd, at, n)
		g.want(errnoNotcapable, "path_create_directory", fd, at, n)
		g.want(errnoNotcapable, "path_rename", fd, at, n, fd, at, n)
		g.want(errnoSuccess, "path_filestat_get", fd, 0, at, n, atResult)
	}
	if got := g.names(3, 4096); got != "hello.txt sub/" {
		t.Errorf("%s", got)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	g := newGuest(t, Dir{Host: sandbox(t), Guest: "/"})
	fds := map[uint64]bool{}
	for range 4 {
		fds[g.mustOpen(3, "hello.txt", 0, rightRead, 0)] = true
	}
	if len(fds) != 4 || !fds[4] || !fds[7] || g.h.files.Open() != 4 {
		t.Errorf("descriptors %v", fds)
	}
	if _, no := g.open(3, "hello.txt", 0, rightRead, 0); no != errnoMfile {
		t.Errorf("one too many: errno %d", no)
	}
	g.want(errnoSuccess, "fd_close", 5)
	if _, no := g.open(3, "missing", 0, rightRead, 0); no != errnoNoent {
		t.Errorf("errno %d", no)
	}
	if fd := g.mustOpen(3, "sub", 0, rightRead, 0); fd != 5 {
		t.Errorf("descriptor %d, want the lowest free one", fd)
	}
	g.h.files.Reset()
	g.want(errnoBadf, "fd_tell", 4, atResult)
	if g.h.files.Open() != 0 {
		t.Error("open after Reset")
	}
	g.h.files.roots.open.Store(MaxOpenPerRoots)
	if _, no := g.open(3, "hello.txt", 0, rightRead, 0); no != errnoNfile {
		t.Errorf("more than all may have together: errno %d", no)
	}
	g.h.files.roots.open.Store(0)
}

func TestOnlyFilesAndDirectories(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no devices in the file system")
	}
	g := newGuest(t, Dir{Host: "/dev", Guest: "/dev"})
	if _, no := g.open(3, "zero", 0, rightRead, 0); no != errnoAcces {
		t.Errorf("a device: errno %d", no)
	}
}

func TestOpenDirsRefuses(t *testing.T) {
	dir := sandbox(t)
	for _, test := range []struct {
		dirs []Dir
		want string
	}{
		{[]Dir{{Host: filepath.Join(dir, "missing"), Guest: "/x"}}, "missing"},
		{[]Dir{{Host: filepath.Join(dir, "hello.txt"), Guest: "/x"}}, "hello.txt"},
		{[]Dir{{Host: dir}}, "not a path"},
		{[]Dir{{Host: dir, Guest: "a\x00"}}, "not a path"},
		{[]Dir{{Host: dir, Guest: strings.Repeat("x", maxPath+1)}}, "not a path"},
		{[]Dir{{Host: dir, Guest: "/x"}, {Host: filepath.Join(dir, "sub"), Guest: "/x"}}, "both"},
	} {
		if _, err := OpenDirs(test.dirs); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.dirs, err, test.want)
		}
	}
}
