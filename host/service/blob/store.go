package blob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Names in the folder.
const (
	lockFile     = "lock"
	spacePrefix  = "ns-" // so that no namespace is a device name on Windows
	objectFolder = "objects"
	newFolder    = "new" // files that are not published yet
)

// store is an open folder. It is safe for concurrent use.
type store struct {
	root   *os.Root
	lock   *os.File
	random func([]byte)
	now    func() time.Time
	warn   func(text string, args ...any)
	step   func() // between two steps of a change that has a key; nil in all but tests

	mu     sync.Mutex
	spaces map[string]*space
}

// openStore opens a folder, and makes it if it is missing. While it is open no other process can open it.
func openStore(folder string, random func([]byte), now func() time.Time, warn func(string, ...any)) (_ *store, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	root, err := regular.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	s := &store{root: root, random: random, now: now, warn: warn, spaces: map[string]*space{}}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if s.lock, err = root.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := lockOnly(s.lock); err != nil {
		return nil, fmt.Errorf("another process uses the folder %s: %w", folder, err)
	}
	return s, nil
}

func (s *store) close() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
	}
	return errors.Join(err, s.root.Close())
}

func (s *store) stepped() {
	if s.step != nil {
		s.step()
	}
}

// space is a namespace: its objects by name, and how much they take.
type space struct {
	store *store
	dir   string

	load    sync.Once
	loadErr error

	mu      sync.Mutex
	objects map[string]*Object
	names   []string // sorted
	bytes   int64    // of objects, including those being written
	coming  int      // objects that are being written
	keys    keys
	stuck   error // why nothing may change any more; nil: it may
}

// space returns a namespace, whose folder is read at the first use.
func (s *store) space(name string) (*space, error) {
	s.mu.Lock()
	x := s.spaces[name]
	if x == nil {
		x = &space{store: s, dir: spacePrefix + name, objects: map[string]*Object{}}
		s.spaces[name] = x
	}
	s.mu.Unlock()
	x.load.Do(func() { x.loadErr = x.open() })
	return x, x.loadErr
}

// open reads which objects there are and removes what a crash has left.
func (x *space) open() error {
	root := x.store.root
	if err := x.openKeys(); err != nil {
		return err
	}
	if err := root.RemoveAll(x.dir + "/" + newFolder); err != nil {
		return err
	}
	for _, dir := range []string{x.dir, x.dir + "/" + objectFolder, x.dir + "/" + newFolder} {
		if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, dir := range []string{".", x.dir, x.dir + "/" + objectFolder} {
		if err := x.sync(dir); err != nil {
			return err
		}
	}
	d, err := regular.OpenIn(root, x.dir+"/"+objectFolder)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	for {
		entries, err := d.Readdirnames(1024)
		for _, name := range entries {
			o, err := x.read(name)
			if err != nil {
				x.store.warn("a file in the folder of blobs is not an object, or a damaged one; it is ignored", "file", x.dir+"/"+objectFolder+"/"+name, "err", err)
				continue
			}
			x.objects[o.Name] = o
			x.names = append(x.names, o.Name)
			x.bytes += o.Size
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	slices.Sort(x.names)
	return nil
}

func (x *space) read(file string) (*Object, error) {
	f, err := regular.OpenIn(x.store.root, x.dir+"/"+objectFolder+"/"+file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o, err := readAbout(f, info.Size())
	if err == nil && fileName(o.Name) != file {
		err = errFormat
	}
	return &o, err
}

// sync makes the entries of a folder durable.
func (x *space) sync(dir string) error {
	d, err := regular.OpenIn(x.store.root, dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && canSyncDirs {
		return err
	}
	return nil
}

// limits are the limits of a grant.
type limits struct {
	bytes   int64
	objects int
	object  int64
}

// condition is what must hold for a change.
type condition struct {
	absent bool
	match  []byte // the hash of the present object; nil: anything
}

func (c *condition) check(o *Object) error {
	switch {
	case c.absent && o != nil:
		return service.Errorf(service.Exists, "there is an object of this name already")
	case c.match != nil && o == nil:
		return service.Errorf(service.Conflict, "there is no object of this name any more")
	case c.match != nil && !bytes.Equal(c.match, o.SHA256[:]):
		return service.Errorf(service.Conflict, "the object has been replaced")
	}
	return nil
}

// stat returns the description of an object.
func (x *space) stat(name string) (Object, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.objects[name]
	if o == nil {
		return Object{}, service.Errorf(service.NotFound, "there is no object of this name")
	}
	return *o, nil
}

// openObject opens an object for reading. The reader sees that object even if it is replaced or removed while open.
func (x *space) openObject(name string) (*os.File, Object, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.objects[name]
	if o == nil {
		return nil, Object{}, service.Errorf(service.NotFound, "there is no object of this name")
	}
	f, err := regular.OpenIn(x.store.root, x.dir+"/"+objectFolder+"/"+fileName(name))
	if err != nil {
		return nil, Object{}, x.failed(err)
	}
	return f, *o, nil
}

// remove removes an object and reports whether there was one.
func (x *space) remove(name string, c condition) (bool, error) {
	return x.removeOnce(name, c, nil, 0)
}

// removeOnce is remove for a request that may have a key.
func (x *space) removeOnce(name string, c condition, r *once.Request, quota int64) (bool, error) {
	o, err := x.takeOut(name, c, r, quota)
	if err != nil {
		return false, err
	}
	if o != nil {
		if err := x.sync(x.dir + "/" + objectFolder); err != nil {
			return true, x.failed(err)
		}
	}
	return o != nil, nil
}

// takeOut removes an object, if it is there, and the condition holds.
func (x *space) takeOut(name string, c condition, r *once.Request, quota int64) (*Object, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if done := x.again(r); done != nil {
		return &done.Object, nil
	}
	o := x.objects[name]
	if err := c.check(o); err != nil || o == nil {
		return nil, err
	}
	if x.stuck != nil {
		return nil, x.failed(x.stuck)
	}
	if err := x.keep(r, &change{Object: *o}, quota); err != nil {
		return nil, err
	}
	x.store.stepped()
	if err := x.store.root.Remove(x.dir + "/" + objectFolder + "/" + fileName(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.undo(r)
		return nil, x.failed(err)
	}
	x.forget(o)
	return o, nil
}

// forget removes an object from the index. The lock must be held.
func (x *space) forget(o *Object) {
	delete(x.objects, o.Name)
	if at, ok := slices.BinarySearch(x.names, o.Name); ok {
		x.names = slices.Delete(x.names, at, at+1)
	}
	x.bytes -= o.Size
}

// list calls each for the objects whose names begin with prefix and come after a name, in order,
// until each returns false. more reports whether there are others.
func (x *space) list(prefix, after string, each func(*Object) bool) (more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, _ := slices.BinarySearch(x.names, prefix)
	if after >= prefix {
		var found bool
		if at, found = slices.BinarySearch(x.names, after); found {
			at++
		}
	}
	for ; at < len(x.names) && strings.HasPrefix(x.names[at], prefix); at++ {
		if !each(x.objects[x.names[at]]) {
			return true
		}
	}
	return false
}

// usage is how much a namespace holds.
func (x *space) usage() (bytes int64, objects int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bytes, len(x.objects)
}

// writer writes one object. It is for one goroutine.
type writer struct {
	space *space
	o     Object
	lim   limits
	cond  condition
	want  []byte // the hash the hash that it must have; nil: any
	file  *os.File
	path  string
	hash  hash.Hash
	held  int64 // bytes that the namespace counts for it
	done  bool
	once  *once.Request // nil: the request has no key
}

// create begins an object.
func (x *space) create(name, typ string, lim limits, cond condition, want []byte) (*writer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.objects[name]
	if err := cond.check(o); err != nil {
		return nil, err
	}
	if n := len(x.objects) + x.coming; o == nil && n >= lim.objects {
		return nil, service.Errorf(service.Quota, "the namespace has %d objects, as many as it may", n)
	}
	var id [16]byte
	x.store.random(id[:])
	w := &writer{space: x, o: Object{Name: name, Type: typ}, lim: lim, cond: cond, want: want, hash: sha256.New(), path: x.dir + "/" + newFolder + "/" + hex.EncodeToString(id[:])}
	var err error
	if w.file, err = x.store.root.OpenFile(w.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return nil, x.failed(err)
	}
	x.coming++
	return w, nil
}

// reserve counts n more bytes, or refuses them.
func (w *writer) reserve(n int64) error {
	if w.o.Size+n > w.lim.object {
		return service.Errorf(service.TooLarge, "an object has at most %d bytes", w.lim.object)
	}
	w.space.mu.Lock()
	defer w.space.mu.Unlock()
	if w.space.bytes+n > w.lim.bytes {
		return service.Errorf(service.Quota, "the namespace has %d bytes of %d; what is replaced counts until then", w.space.bytes, w.lim.bytes)
	}
	w.space.bytes += n
	w.held += n
	return nil
}

// Write implements [io.Writer].
func (w *writer) Write(b []byte) (int, error) {
	if err := w.reserve(int64(len(b))); err != nil {
		return 0, err
	}
	if _, err := w.file.Write(b); err != nil {
		return 0, w.space.failed(err)
	}
	_, _ = w.hash.Write(b) // never fails
	w.o.Size += int64(len(b))
	return len(b), nil
}

// publish makes the object durable and visible under its name.
func (w *writer) publish() (Object, error) {
	w.hash.Sum(w.o.SHA256[:0])
	if w.want != nil && !bytes.Equal(w.want, w.o.SHA256[:]) {
		return Object{}, service.Errorf(service.Conflict, "the SHA-256 of what was sent is not the one given")
	}
	w.o.Modified = w.space.store.now().UTC()
	x := w.space
	if _, err := w.file.Write(appendAbout(nil, &w.o)); err != nil {
		return Object{}, x.failed(err)
	}
	if err := w.file.Sync(); err != nil {
		return Object{}, x.failed(err)
	}
	if err := w.file.Close(); err != nil {
		return Object{}, x.failed(err)
	}
	w.file = nil
	if w.once != nil { // before it is written that the file will be renamed
		if err := x.sync(x.dir + "/" + newFolder); err != nil {
			return Object{}, x.failed(err)
		}
	}
	if err := w.enter(); err != nil {
		return Object{}, err
	}
	if err := x.sync(x.dir + "/" + objectFolder); err != nil {
		return Object{}, x.failed(err)
	}
	return w.o, nil
}

// enter renames the file, if the condition still holds.
func (w *writer) enter() error {
	x := w.space
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.objects[w.o.Name]
	if err := w.cond.check(old); err != nil {
		return err
	}
	if x.stuck != nil {
		return x.failed(x.stuck)
	}
	if err := x.keep(w.once, &change{Object: w.o, File: path.Base(w.path)}, w.lim.bytes); err != nil {
		return err
	}
	x.store.stepped()
	if err := x.store.root.Rename(w.path, x.dir+"/"+objectFolder+"/"+fileName(w.o.Name)); err != nil {
		x.undo(w.once)
		w.done = x.stuck != nil // then the file must stay
		return x.failed(err)
	}
	if old != nil {
		x.forget(old)
	}
	o := w.o
	x.objects[o.Name] = &o
	at, _ := slices.BinarySearch(x.names, o.Name)
	x.names = slices.Insert(x.names, at, o.Name)
	x.coming--
	w.held, w.done = 0, true // now counted for the object
	return nil
}

// abandon discards an object that was not published. It may be called in any case.
func (w *writer) abandon() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	if w.done {
		return
	}
	w.done = true
	if err := w.space.store.root.Remove(w.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.space.store.warn("an unfinished file cannot be removed and stays until the next start", "file", w.path, "err", err)
	}
	w.space.mu.Lock()
	defer w.space.mu.Unlock()
	w.space.coming--
	w.space.bytes -= w.held
	w.held = 0
}

// verify reads a whole object and compares its hash.
func verify(ctx context.Context, f io.ReaderAt, o *Object) error {
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for at := int64(0); at < o.Size; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := f.ReadAt(buf[:min(int64(len(buf)), o.Size-at)], at)
		if err != nil && err != io.EOF || n == 0 {
			return service.Errorf(service.Unavailable, "the object cannot be read")
		}
		_, _ = h.Write(buf[:n])
		at += int64(n)
	}
	if !bytes.Equal(h.Sum(nil), o.SHA256[:]) {
		return service.Errorf(service.Unavailable, "the object is damaged: its hash does not match")
	}
	return nil
}

// failed turns an error of the file system into one for the guest.
func (x *space) failed(err error) error {
	var known *service.Error
	if errors.As(err, &known) {
		return known
	}
	x.store.warn("the folder of blobs cannot be used", "err", err)
	if trouble := service.DiskTrouble(err); trouble != "" {
		return &service.Error{Code: service.Unavailable, Text: trouble + "; nothing was changed", Err: err}
	}
	return &service.Error{Code: service.Unavailable, Text: "the folder cannot be read or written; the log has why", Err: err}
}

func or[T comparable](v, otherwise T) T { return cmp.Or(v, otherwise) }
