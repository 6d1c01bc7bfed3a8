// Package cache stores on disk what is expensive to make: built guests, frozen images, and the
// machine code that wazero compiled from them.
//
// A key is the hash of everything that an entry depends on, versions included, so nothing in the
// cache is ever out of date, only missing. Any number of processes may use one directory: a part
// of an entry appears by a rename, whole or not at all, and is authenticated with the user's
// [Secret]. What was damaged, swapped or planted is removed and counts as missing. When the cache
// exceeds its bound, the least recently used entries are evicted first, but none that a running
// process uses.
//
// Layout: DIR/FORMAT/NAME/ holds the parts, and the file uses: every use is a byte
// of it, its time is that of the last use, and a user of the entry holds a shared
// lock on it. NAME is the key under the secret.
package cache

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// format names the layout of the directory and of the files; it changes with
// them.
const format = "v3"

// Key identifies an entry.
type Key [sha256.Size]byte

// String is the key in hexadecimal.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// KeyOf hashes the parts, each with its length, so that no two lists of parts
// share a key.
func KeyOf(parts ...[]byte) Key {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return Key(h.Sum(nil))
}

// Errors of this package. A damaged entry has been removed when the error is returned.
var (
	ErrMissing = errors.New("cache: no such entry")
	ErrDamaged = errors.New("cache: the entry was damaged or not authentic, and has been removed")
)

// Cache is a directory. It is safe for concurrent use, also by several
// processes.
type Cache struct {
	root     string // as it was given
	dir      string // the real path, with the format
	secret   *Secret
	maxBytes int64
}

// Options say which cache to open.
type Options struct {
	Dir      string
	MaxBytes int64  // bounds what is kept
	KeyFile  string // see LoadSecret; it must not be in Dir
}

// Open creates the directory if necessary. A read-only directory serves what is in it. One that
// others own or can write to is refused, parents included; the error says which, and what to do.
func Open(o Options) (*Cache, error) {
	secret, err := LoadSecret(o.KeyFile)
	if err != nil {
		return nil, err
	}
	dir, err := trust.MakeFolder(filepath.Join(o.Dir, format))
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if o.KeyFile != "" && within(filepath.Dir(dir), o.KeyFile) {
		return nil, fmt.Errorf("cache: the key %s is in the cache that it protects: keep it elsewhere", o.KeyFile)
	}
	return &Cache{root: o.Dir, dir: dir, secret: secret, maxBytes: o.MaxBytes}, nil
}

// within reports whether a file is somewhere in a folder, which is a real path.
func within(dir, file string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return false
	}
	if real, err = filepath.Abs(real); err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, real)
	return err == nil && filepath.IsLocal(rel)
}

// Dir is the directory that the cache was opened with.
func (c *Cache) Dir() string { return c.root }

// MaxBytes is the bound.
func (c *Cache) MaxBytes() int64 { return c.maxBytes }

// temp is an unused name in the cache.
func (c *Cache) temp(kind string) string {
	var r [12]byte
	_, _ = rand.Read(r[:]) // never fails (crypto/rand)
	return filepath.Join(c.dir, tempPrefix+kind+"-"+hex.EncodeToString(r[:]))
}

const tempPrefix = "tmp-"

func (c *Cache) path(k Key) string { return filepath.Join(c.dir, c.secret.name(k).String()) }

// discard removes a file or a directory atomically: no process sees it half removed.
func (c *Cache) discard(path string) error {
	trash := c.temp("trash")
	if err := os.Rename(path, trash); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process was first
		}
		return fmt.Errorf("cache: %w", err)
	}
	return os.RemoveAll(trash)
}
