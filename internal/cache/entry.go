package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// usesFile counts the uses of an entry and carries its lock.
const usesFile = "uses"

// maxUses is where counting stops, so that the file stays small.
const maxUses = 1 << 16

// Entry is an entry in use: it will not be evicted before Close. Its methods may
// be called concurrently.
type Entry struct {
	c    *Cache
	name Key
	dir  string
	lock *os.File // nil: the cache can only be read
}

// Use takes an entry into use, whether or not anything is in it.
func (c *Cache) Use(k Key) (*Entry, error) {
	e := &Entry{c: c, name: c.secret.name(k)}
	e.dir = filepath.Join(c.dir, e.name.String())
	name := filepath.Join(e.dir, usesFile)
	for range 100 {
		if err := os.Mkdir(e.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return c.readOnly(e, err)
		}
		if info, err := os.Lstat(e.dir); err == nil && !info.IsDir() {
			if err := c.discard(e.dir); err != nil { // a link, say
				return nil, err
			}
			continue
		}
		f, err := openPlain(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // evicted in between
		}
		if errors.Is(err, errNotPlain) {
			if err := c.discard(name); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return c.readOnly(e, err)
		}
		if err := lockShared(f); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("cache: %s: %w", name, err)
		}
		mine, err1 := f.Stat()
		there, err2 := os.Lstat(name)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			if trust.Single(mine) {
				e.lock = f
				return e, nil
			}
			_ = f.Close() // a second name of another file: nothing is written to that
			if err := c.discard(name); err != nil {
				return nil, err
			}
			continue
		}
		_ = f.Close() // evicted before the lock was held
	}
	return nil, fmt.Errorf("cache: %s is evicted as often as it is made", e.dir)
}

// readOnly is an entry of a cache that cannot be written, if there is one.
func (c *Cache) readOnly(e *Entry, cause error) (*Entry, error) {
	if info, err := os.Lstat(e.dir); err == nil && info.IsDir() {
		return e, nil
	}
	return nil, cause
}

// Load reads a part. The error is or wraps ErrMissing or ErrDamaged, or is the
// system's.
func (e *Entry) Load(part string) ([]byte, error) {
	name := filepath.Join(e.dir, part)
	file, err := readPlain(name, sealedSize(e.c.maxBytes))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil && !errors.Is(err, errNotPlain) {
		return nil, err
	}
	body, ok := e.c.secret.unseal(e.name, part, file)
	if !ok {
		return nil, errors.Join(ErrDamaged, e.c.discard(name))
	}
	return body, nil
}

// Open begins to read a part that is used piece by piece. The error is or wraps ErrMissing or
// ErrDamaged, or is the system's; Read may find it damaged later; the caller must then drop it.
func (e *Entry) Open(part string) (*Part, error) {
	name := filepath.Join(e.dir, part)
	f, err := openPlain(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	var p *Part
	if err == nil {
		if p, err = e.c.secret.open(f, e.name, part, e.c.maxBytes); err == nil {
			return p, nil
		}
		_ = f.Close() // it was only read
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, errNotPlain) {
		return nil, errors.Join(ErrDamaged, e.c.discard(name))
	}
	return nil, err
}

// Has reports whether there is such a part, damaged or not.
func (e *Entry) Has(part string) bool {
	info, err := os.Lstat(filepath.Join(e.dir, part))
	return err == nil && info.Mode().IsRegular()
}

// Drop removes a part that cannot be used.
func (e *Entry) Drop(part string) error { return e.c.discard(filepath.Join(e.dir, part)) }

// Touch counts a use that saved work.
func (e *Entry) Touch() {
	if e.lock == nil {
		return // a read-only cache still serves
	}
	if info, err := e.lock.Stat(); err == nil && info.Size() >= maxUses {
		now := time.Now()
		_ = os.Chtimes(e.lock.Name(), now, now)
		return
	}
	_, _ = e.lock.Write([]byte{'.'}) // on a full disk only the count is lost
}

// Store writes a part, whole or not at all. A part above the cache's bound is not
// stored, which is not an error. What exceeds the bound is evicted by Trim, not here.
func (e *Entry) Store(part string, body []byte) error {
	if int64(len(body)) > e.c.maxBytes {
		return nil
	}
	temp := e.c.temp(part)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(e.c.secret.seal(e.name, part, body))
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, filepath.Join(e.dir, part)); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return nil
}

// Close ends the use. An entry in which nothing was stored is removed.
func (e *Entry) Close() error {
	if e.lock == nil {
		return nil
	}
	err := e.lock.Close()
	if empty(e.dir) {
		if d := e.c.remove(e.dir, func() bool { return empty(e.dir) }); !errors.Is(d, errInUse) {
			err = errors.Join(err, d)
		}
	}
	return err
}

// empty reports whether nothing was stored in an entry.
func empty(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && len(names) <= 1
}
