// Package cache keeps on disk what is expensive to make: built guests, frozen
// images, and the machine code that wazero compiled from them.
//
// A key is the hash of everything that an entry depends on, versions included, so
// nothing in the cache is ever out of date, only missing. Any number of
// processes may use one directory: a part of an entry appears by a rename, whole
// or not at all, and carries a checksum. A damaged part is removed and counts as
// missing. When the cache outgrows its bound, the entries that were not used for
// longest go first, but none that a living process uses.
//
// Layout: DIR/FORMAT/KEY/ holds the parts, the folder code, which is wazero's, and
// the file uses: every use is a byte of it, its time is that of the last use, and
// who uses the entry holds a shared lock on it.
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
	"runtime"
)

// format names the layout of the directory and of the files; it changes with
// them.
const format = "v2"

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

// Errors of this package. What is damaged is gone when the error is returned.
var (
	ErrMissing = errors.New("cache: no such entry")
	ErrDamaged = errors.New("cache: the entry was damaged and has been removed")
)

// Cache is a directory. It is safe for concurrent use, also by several
// processes.
type Cache struct {
	root     string
	dir      string // with the format
	maxBytes int64
}

// Open creates the directory if necessary. maxBytes bounds what is kept. A
// directory that may only be read serves what is in it; one that everybody may
// write to is refused, because machine code from it is trusted.
func Open(dir string, maxBytes int64) (*Cache, error) {
	c := &Cache{root: dir, dir: filepath.Join(dir, format), maxBytes: maxBytes}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	for _, d := range []string{dir, c.dir} {
		info, err := os.Stat(d)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: d, Err: errors.New("not a folder")}
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
			return nil, fmt.Errorf("cache: %s can be written by everybody, so the machine code in it cannot be trusted: chmod o-w", d)
		}
	}
	return c, nil
}

// Dir is the directory that the cache was opened with.
func (c *Cache) Dir() string { return c.root }

// MaxBytes is the bound.
func (c *Cache) MaxBytes() int64 { return c.maxBytes }

// temp is a name in the cache that nobody else uses.
func (c *Cache) temp(kind string) string {
	var r [12]byte
	_, _ = rand.Read(r[:]) // never fails (crypto/rand)
	return filepath.Join(c.dir, tempPrefix+kind+"-"+hex.EncodeToString(r[:]))
}

const tempPrefix = "tmp-"

// TempDir makes a folder on the cache's own file system. The caller removes it;
// if it cannot, because it was killed, another process will.
func (c *Cache) TempDir() (string, error) {
	dir := c.temp("dir")
	return dir, os.Mkdir(dir, 0o700)
}

func (c *Cache) path(k Key) string { return filepath.Join(c.dir, k.String()) }

// discard removes a file or a directory so that nobody sees it half removed.
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
