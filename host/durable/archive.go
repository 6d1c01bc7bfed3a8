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
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/regular"
	"github.com/wasmactors/wasmactors/internal/wal"
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
func (s *Store) Export(ctx context.Context, to io.Writer) error { return s.export(ctx, to, false) }

// ExportAll is Export with what is kept of the past: ImportAt makes of it the store as it was at a time.
func (s *Store) ExportAll(ctx context.Context, to io.Writer) error { return s.export(ctx, to, true) }

func (s *Store) export(ctx context.Context, to io.Writer, all bool) error {
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
	file := func(name string, in ...string) error {
		f, err := regular.Open(filepath.Join(s.opt.Dir, filepath.Join(in...), filepath.FromSlash(name)))
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
		if all && err == nil {
			err = s.pastOf(folder, names, func(name string, in ...string) error { return file(name, in...) })
		}
		for _, name := range names {
			if err != nil {
				break
			}
			err = file(folder + "/" + name)
		}
	}
	return errors.Join(err, w.Close(), z.Close())
}

// pastOf calls put with the kept files of a folder that it does not have.
func (s *Store) pastOf(folder string, has []string, put func(name string, in ...string) error) error {
	if s.past == nil || folder == "events" {
		return nil
	}
	list := s.past.segments
	if folder == moduleFiles {
		list = s.past.modules
	}
	files, err := list()
	for _, f := range files {
		if err != nil || slices.Contains(has, f.name) {
			continue
		}
		err = put(folder+"/"+f.name, pastFolder)
	}
	return err
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
func Import(ctx context.Context, o Options, from io.Reader) error {
	return o.imports(ctx, from, time.Time{})
}

// ErrNotBack says that the store does not go back to a time.
var ErrNotBack = errors.New("the store does not go back so far")

// ImportAt is Import of the store as it was at a time, for what ExportAll has written: as if its process had been killed then, and the
// power had failed. It is [ErrNotBack] if that is not kept any more. A store of actors that keep events cannot be had so.
func ImportAt(ctx context.Context, o Options, from io.Reader, at time.Time) error {
	return o.imports(ctx, from, at)
}

func (o Options) imports(ctx context.Context, from io.Reader, at time.Time) (err error) {
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
	if !at.IsZero() {
		if err := cutImported(ctx, o, at); err != nil {
			return err
		}
	}
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

// cutImported takes from a store's log what came after a time.
func cutImported(ctx context.Context, o Options, at time.Time) error {
	if names, err := filesOf(filepath.Join(o.Dir, "events")); err != nil || len(names) > 0 {
		return errors.Join(err, errors.New("durable: a store with events cannot be had as it was at a time"))
	}
	o.Keep = 0 // what is before its last checkpoint the copy does not need
	s, err := Open(o)
	if err != nil {
		return err
	}
	end, mark, err := s.endAt(ctx, at)
	if err == nil && end == 0 {
		err = s.log.Trim(mark)
	}
	if err = errors.Join(err, s.Close()); err != nil || end == 0 {
		return err
	}
	o.until = end
	if s, err = Open(o); err != nil {
		return err
	}
	return errors.Join(s.log.Trim(mark), s.Close())
}

// endAt is the first record that is not of a time, nor of one before it, with all that were written with it; 0: there is none. The mark is
// where what the last checkpoint before it needs begins.
func (s *Store) endAt(ctx context.Context, at time.Time) (end, mark wal.Position, err error) {
	var all records
	var complete, before struct{ at, mark wal.Position } // checkpoints: the last one, and the one before
	last := func(end wal.Position) wal.Position {
		if end != 0 && complete.at >= end {
			return before.mark
		}
		return complete.mark
	}
	var first, begins wal.Position
	whole := false // there is a checkpoint, or the log has its beginning
	for r, err := range s.log.Read(0) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return 0, 0, err
		}
		if first == 0 {
			first, whole = r.At, r.At <= firstPosition
		}
		if r.First {
			begins = r.At
		}
		v, err := all.next(&r)
		if err != nil {
			return 0, 0, fmt.Errorf("position %d: %w", r.At, err)
		}
		switch v := v.(type) {
		case *done:
			if v.mark >= first {
				whole, before, complete = true, complete, struct{ at, mark wal.Position }{r.At, v.mark}
			}
		case *ended:
			if v.low >= first {
				whole, before, complete = true, complete, struct{ at, mark wal.Position }{r.At, v.low}
			}
		case *record.Record:
			if v.Time <= at.UnixNano() {
				continue
			}
			if !whole || begins <= first {
				return 0, 0, ErrNotBack
			}
			return begins, last(begins), nil
		}
	}
	return 0, last(0), nil
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
