package cache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// Secret is the key that entries are authenticated with. Without it nothing can be put into a
// cache that would ever be used.
type Secret struct{ key [sha256.Size]byte }

// hash is HMAC-SHA256 over the parts, each with its length.
func (s *Secret) hash(what string, parts ...[]byte) Key {
	h := hmac.New(sha256.New, s.key[:])
	var n [8]byte
	for i := -1; i < len(parts); i++ {
		p := []byte(what)
		if i >= 0 {
			p = parts[i]
		}
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return Key(h.Sum(nil))
}

// name is what an entry's folder is called: another secret has other entries, so that users who share a directory, or have
// lost their key, never find entries that they cannot use.
func (s *Secret) name(k Key) Key { return s.hash("name", k[:]) }

// DefaultKeyFile is where a user's key is kept.
func DefaultKeyFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cache: no folder for the key can be found (%w): name a key file", err)
	}
	return filepath.Join(dir, "wasmactors", "cache.key"), nil
}

// LoadSecret reads a key file, and makes one with 32 random bytes of the operating
// system's where there is none; "" means DefaultKeyFile. A file that others could
// have read or made is refused, as is one in a folder that others can write to.
func LoadSecret(file string) (*Secret, error) {
	if file == "" {
		var err error
		if file, err = DefaultKeyFile(); err != nil {
			return nil, err
		}
	}
	dir, err := trust.MakeFolder(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("cache: the folder of the key: %w", err)
	}
	file = filepath.Join(dir, filepath.Base(file))
	s, err := readSecret(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(file); err == nil {
			s, err = readSecret(file)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cache: the key: %w", err)
	}
	return s, nil
}

func readSecret(file string) (*Secret, error) {
	f, err := openPlain(file, os.O_RDONLY, 0)
	if errors.Is(err, errNotPlain) {
		return nil, fmt.Errorf("%s is not a regular file; remove it, and a new key is made", file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := trust.PrivateFile(f); err != nil {
		return nil, err
	}
	s := &Secret{}
	var more [1]byte
	if _, err := io.ReadFull(f, s.key[:]); err != nil {
		return nil, fmt.Errorf("%s is not a key of %d bytes; remove it, and a new one is made", file, len(s.key))
	}
	if n, _ := f.Read(more[:]); n != 0 {
		return nil, fmt.Errorf("%s is longer than a key of %d bytes; remove it, and a new one is made", file, len(s.key))
	}
	return s, nil
}

// makeSecret makes a key, unless another process is faster: the file appears complete under its
// name, and is never replaced.
func makeSecret(file string) error {
	var r [sha256.Size + 8]byte
	_, _ = rand.Read(r[:]) // never fails (crypto/rand)
	temp := file + "." + hex.EncodeToString(r[sha256.Size:])
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(r[:sha256.Size])
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(temp, file)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = os.Rename(temp, file) // a file system without links
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if gone := os.Remove(temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
