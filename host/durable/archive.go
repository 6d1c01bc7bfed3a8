package durable

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// An archive is a tar file, compressed by zstd: archiveHead first, which has the version, then the files of the store's folder.
const (
	archiveHead    = "wasmactors-store"
	archiveVersion = "1"
	mostFiles      = 100_000 // of an archive; a log's have 16 MiB
)

// ErrArchive says that what is imported is no archive of a store, is damaged, or is too large.
var ErrArchive = errors.New("not an archive of a store")

// folders are those of a store; no file is anywhere else but the secret.
var folders = []string{"log", "events", "modules"}

// Export writes all that the store has: the log, the events, modules and the secret, from which refs follow. Whoever reads it can pretend to
// be the system's actors. It is for a store without a system.
func (s *Store) Export(ctx context.Context, to io.Writer) error {
	if s.opt.FS != nil {
		return errors.New("durable: a store that is not in a folder cannot be exported")
	}
	z, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	put := func(name string, size int64, from io.Reader) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: size, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := io.CopyN(w, &cancelled{ctx, from}, size)
		return err
	}
	file := func(name string) error {
		f, err := regular.Open(filepath.Join(s.opt.Dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return put(name, info.Size(), f)
	}
	err = put(archiveHead, int64(len(archiveVersion)), strings.NewReader(archiveVersion))
	if err == nil {
		err = file("secret")
	}
	for _, folder := range folders {
		if err != nil {
			break
		}
		var names []string
		if names, err = filesOf(filepath.Join(s.opt.Dir, folder)); err != nil {
			break
		}
		for _, name := range names {
			if err = file(folder + "/" + name); err != nil {
				break
			}
		}
	}
	return errors.Join(err, w.Close(), z.Close())
}

// filesOf are the names of a folder's files, in order; none if it does not exist. Locks are left out.
func filesOf(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range all {
		if f.Type().IsRegular() && !isLock(f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// isLock reports whether a file says which process has the log or the events open.
func isLock(name string) bool { return strings.EqualFold(name, "lock") }

// cancelled reads until its context ends.
type cancelled struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (c *cancelled) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// Import makes the store of a folder, which must not exist or be empty, from what Export has written. The options are those with
// which it will be opened: it is read once, with its key, and must fit into its size. Where that fails the folder is as before.
func Import(ctx context.Context, o Options, from io.Reader) (err error) {
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	if all, err := os.ReadDir(o.Dir); err == nil && len(all) > 0 {
		return fmt.Errorf("%s is not empty: a store is imported into a new folder", o.Dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(filepath.Clean(o.Dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, ".import-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := unpackArchive(ctx, dir, from, o.Size); err != nil {
		return err
	}
	target := o.Dir
	o.Dir = dir
	if err := checkImported(ctx, o); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty one
		return err
	}
	if err := os.Rename(dir, target); err != nil {
		return err
	}
	return syncDir(parent)
}

func checkImported(ctx context.Context, o Options) error {
	s, err := Open(o)
	if err != nil {
		return err
	}
	if _, err = s.Actors(ctx); err == nil {
		err = s.CheckModules(ctx)
	}
	return errors.Join(err, s.Close())
}

// unpackArchive writes the files of an archive, of at most so many bytes together.
func unpackArchive(ctx context.Context, dir string, from io.Reader, most int64) error {
	z, err := zstd.NewReader(&cancelled{ctx, from}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	defer z.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r := tar.NewReader(z)
	bad := func(what string, args ...any) error {
		return fmt.Errorf("%w: "+what, append([]any{ErrArchive}, args...)...)
	}
	seen := map[string]bool{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) && seen["secret"] {
			break
		}
		switch {
		case errors.Is(err, io.EOF):
			return bad("it ends before it is whole")
		case err != nil:
			return bad("%w", err)
		case len(seen) == 0 && h.Name != archiveHead:
			return bad("it begins with %q", clip(h.Name))
		case len(seen) == 0:
			b, err := io.ReadAll(io.LimitReader(r, 20))
			if err != nil {
				return bad("%w", err)
			}
			if string(b) != archiveVersion {
				return bad("version %q, this program reads %s", b, archiveVersion)
			}
			seen[h.Name] = true
			continue
		case h.Typeflag != tar.TypeReg || !nameOfStore(h.Name) || seen[h.Name]:
			return bad("unexpected entry %q", clip(h.Name))
		case len(seen) > mostFiles:
			return bad("more than %d files", mostFiles)
		case h.Size < 0 || h.Size > most:
			return bad("its files have more bytes than store.size")
		}
		seen[h.Name] = true
		most -= h.Size
		if err := extract(root, h.Name, r); err != nil {
			return err
		}
	}
	for _, folder := range append([]string{"."}, folders...) {
		if err := syncDir(filepath.Join(dir, folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// nameOfStore reports whether a store has a file of that name.
func nameOfStore(name string) bool {
	if name == "secret" {
		return true
	}
	folder, file, found := strings.Cut(name, "/")
	return found && slices.Contains(folders, folder) && file != "" && !strings.ContainsAny(file, "/\\:") && filepath.IsLocal(file) && !isLock(file)
}

func extract(root *os.Root, name string, from io.Reader) (err error) {
	if folder, _, found := strings.Cut(name, "/"); found {
		if err := root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, from); err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrArchive, name, err)
	} else {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// clip bounds what an error shows of a name.
func clip(s string) string { return s[:min(len(s), 100)] }
