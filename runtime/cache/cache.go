// Package cache keeps what is expensive to make on disk: frozen images, and
// beside each the machine code that wazero compiled from it.
//
// A key is the hash of everything that an entry depends on, versions included, so
// nothing in the cache is ever out of date, only missing. Any number of
// processes may use one directory: an entry appears by a rename, whole or not at
// all, and carries a checksum. A damaged entry is removed and counts as
// missing. When the cache outgrows its bound, the entries that were not used for
// longest go first.
//
// Layout: DIR/FORMAT/KEY/image and DIR/FORMAT/KEY/code/, the latter wazero's.
package cache

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// format names the layout of the directory and of the files; it changes with
// them.
const format = "v1"

const magic = "WAIMAGE1"

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

// Errors of Load. ErrMissing is wrapped by ErrDamaged's text, not its identity:
// after ErrDamaged the entry is gone, too.
var (
	ErrMissing = errors.New("cache: no such entry")
	ErrDamaged = errors.New("cache: the entry was damaged and has been removed")
)

// Cache is a directory. It is safe for concurrent use, also by several
// processes.
type Cache struct {
	dir      string // with the format
	maxBytes int64
}

// Open creates the directory if necessary and makes sure that it can be
// written. maxBytes bounds what is kept.
func Open(dir string, maxBytes int64) (*Cache, error) {
	c := &Cache{dir: filepath.Join(dir, format), maxBytes: maxBytes}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	probe := c.temp("probe")
	if err := os.WriteFile(probe, []byte(format), 0o600); err != nil {
		return nil, err
	}
	return c, os.Remove(probe)
}

// temp is a name in the cache that nobody else uses.
func (c *Cache) temp(kind string) string {
	var r [12]byte
	_, _ = rand.Read(r[:]) // never fails (crypto/rand)
	return filepath.Join(c.dir, tempPrefix+kind+"-"+hex.EncodeToString(r[:]))
}

const tempPrefix = "tmp-"

func (c *Cache) path(k Key) string { return filepath.Join(c.dir, k.String()) }

// CodeDir is the directory for the entry's machine code, which exists when
// CodeDir returns.
func (c *Cache) CodeDir(k Key) (string, error) {
	dir := filepath.Join(c.path(k), "code")
	return dir, os.MkdirAll(dir, 0o700)
}

// DropCode removes the entry's machine code, because it could not be used.
func (c *Cache) DropCode(k Key) error { return c.discard(filepath.Join(c.path(k), "code")) }

// Load reads an entry and marks it as used now.
func (c *Cache) Load(k Key) ([]byte, error) {
	name := filepath.Join(c.path(k), "image")
	file, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	body, ok := open(k, file)
	if !ok {
		return nil, errors.Join(ErrDamaged, c.discard(c.path(k)))
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // a cache that we may only read still serves
	return body, nil
}

// Store writes an entry, and evicts others if the cache has become too large.
// An entry above the bound is not stored, which is no error.
func (c *Cache) Store(k Key, body []byte) error {
	if int64(len(body)) > c.maxBytes {
		return nil
	}
	if err := os.MkdirAll(c.path(k), 0o700); err != nil {
		return err
	}
	temp := c.temp("image")
	if err := os.WriteFile(temp, seal(k, body), 0o600); err != nil {
		_ = os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, filepath.Join(c.path(k), "image")); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return c.evict(k)
}

// seal puts the header before the body: magic, key, length, checksum.
func seal(k Key, body []byte) []byte {
	sum := sha256.Sum256(body)
	file := make([]byte, 0, headerSize+len(body))
	file = append(file, magic...)
	file = append(file, k[:]...)
	file = binary.LittleEndian.AppendUint64(file, uint64(len(body)))
	file = append(file, sum[:]...)
	return append(file, body...)
}

const headerSize = len(magic) + sha256.Size + 8 + sha256.Size

// open checks a file and returns its body.
func open(k Key, file []byte) ([]byte, bool) {
	if len(file) < headerSize || string(file[:len(magic)]) != magic {
		return nil, false
	}
	head := file[len(magic):headerSize]
	body := file[headerSize:]
	if !bytes.Equal(head[:len(k)], k[:]) || binary.LittleEndian.Uint64(head[len(k):]) != uint64(len(body)) {
		return nil, false
	}
	sum := sha256.Sum256(body)
	return body, bytes.Equal(sum[:], head[len(k)+8:])
}

// discard removes a directory so that nobody sees it half removed.
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
