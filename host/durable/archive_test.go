package durable

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// exported is the archive of a store with some actors, and the folder that it is from.
func exported(t testing.TB) (archive []byte, dir string, props Props) {
	t.Helper()
	props = Props{"a": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props)
	for range 5 {
		w.tell("a", add)
	}
	if n := w.report("a"); n != 5 {
		t.Fatal("a has counted ", n)
	}
	w.close()
	s, err := Open(Options{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := errors.Join(s.Export(t.Context(), &b), s.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), w.dir, props
}

// What was exported goes on elsewhere as if it had been there all the time, with the same refs.
func TestAnExportGoesOnElsewhere(t *testing.T) {
	archive, _, props := exported(t)
	dir := filepath.Join(t.TempDir(), "deep", "new")
	if err := Import(t.Context(), Options{Dir: dir}, bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	w := mustOpen(t, dir, props)
	if n := w.report("a"); n != 5 {
		t.Errorf("a has %d, and had 5", n)
	}
	w.close()
	if err := Import(t.Context(), Options{Dir: dir}, bytes.NewReader(archive)); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("imported over another store: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "secret")); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Cut or changed anywhere it is refused, or is the same; where it is refused nothing is left.
func TestDamagedArchives(t *testing.T) {
	archive, _, _ := exported(t)
	parent := t.TempDir()
	try := func(b []byte) error {
		dir := filepath.Join(parent, "x")
		err := Import(t.Context(), Options{Dir: dir}, bytes.NewReader(b))
		if err == nil {
			_, all := repeated(t, dir)
			if len(all) != 1 || all[0].Turns != 7 {
				t.Errorf("imported: %+v", all)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Fatalf("%v, %v are left", err, left)
		}
		return err
	}
	if err := try(archive); err != nil {
		t.Fatal(err)
	}
	step := max(1, len(archive)/60)
	for at := 0; at < len(archive); at += step {
		if err := try(archive[:at]); err == nil {
			t.Errorf("cut at %d: taken", at)
		}
		changed := bytes.Clone(archive)
		changed[at] ^= 0x10
		_ = try(changed)
	}
}

// made is an archive with these entries.
func made(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, h := range entries {
		body := strings.Repeat("1", int(h.Size))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An archive can write nothing but the files of a store, and not more than store.size.
func TestForgedArchives(t *testing.T) {
	head := tar.Header{Typeflag: tar.TypeReg, Name: archiveHead, Size: 1}
	file := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
	}
	for name, c := range map[string]struct {
		archive []byte
		says    string
	}{
		"nothing":     {nil, "before it is whole"},
		"no archive":  {[]byte("PK\x03\x04 something else"), "not an archive"},
		"no head":     {made(t, file("secret", 1)), `begins with "secret"`},
		"version":     {made(t, tar.Header{Typeflag: tar.TypeReg, Name: archiveHead, Size: 2}, file("secret", 1)), `version "11"`},
		"no secret":   {made(t, head), "before it is whole"},
		"above":       {made(t, head, file("../secret", 1)), "unexpected entry"},
		"absolute":    {made(t, head, file("/log/x", 1)), "unexpected entry"},
		"below":       {made(t, head, file("log/../../x", 1)), "unexpected entry"},
		"deep":        {made(t, head, file("log/x/y", 1)), "unexpected entry"},
		"dots":        {made(t, head, file("log/..", 1)), "unexpected entry"},
		"backslashes": {made(t, head, file(`log/..\..\x`, 1)), "unexpected entry"},
		"a lock":      {made(t, head, file("log/LOCK", 1)), "unexpected entry"},
		"twice":       {made(t, head, file("secret", 1), file("secret", 1)), "unexpected entry"},
		"a link":      {made(t, head, tar.Header{Typeflag: tar.TypeSymlink, Name: "log/x", Linkname: "/etc/passwd"}), "unexpected entry"},
		"a folder":    {made(t, head, tar.Header{Typeflag: tar.TypeDir, Name: "log/"}), "unexpected entry"},
		"large":       {made(t, head, file("log/x", MinSize+1)), "store.size"},
		"together":    {made(t, head, file("log/x", MinSize/2), file("log/y", MinSize/2+1)), "store.size"},
	} {
		parent := t.TempDir()
		err := Import(t.Context(), Options{Dir: filepath.Join(parent, "s"), Size: MinSize}, bytes.NewReader(c.archive))
		if !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s: %v are left", name, left)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it was cancelled"))
	if err := Import(ctx, Options{Dir: filepath.Join(t.TempDir(), "s")}, bytes.NewReader(made(t, head))); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Error(err)
	}
}

func FuzzArchive(f *testing.F) {
	archive, _, _ := exported(f)
	f.Add(archive)
	f.Add(made(f, tar.Header{Typeflag: tar.TypeReg, Name: archiveHead, Size: 1}, tar.Header{Typeflag: tar.TypeReg, Name: "secret", Size: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "inside")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_ = unpackArchive(t.Context(), dir, bytes.NewReader(b), 1<<20)
		all, err := os.ReadDir(parent)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v: %v beside its folder", err, all)
		}
	})
}
