package cache

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Item is an entry of the cache.
type Item struct {
	Key   string // its name in hexadecimal; it tells nothing about what it is
	Bytes int64
	Used  time.Time // the last time
	Uses  int       // uses that saved the work of making it, at most 65536
	InUse bool      // by a running process
	About string    // its description, see Describe; "" if unknown
}

// aboutPart is the part with the description of an entry.
const aboutPart = "about"

// maxAbout is more than any description takes, in bytes.
const maxAbout = 64 << 10

// Describe says what the entry is, for people: a line of text.
func (e *Entry) Describe(text string) error {
	if old, err := e.Load(aboutPart); err == nil && string(old) == text {
		return nil
	}
	return e.Store(aboutPart, []byte(text))
}

// Items lists the entries, the one used last first.
func (c *Cache) Items() ([]Item, error) {
	keys, err := c.keys()
	items := make([]Item, 0, len(keys))
	for _, k := range keys {
		items = append(items, c.item(k))
	}
	slices.SortFunc(items, func(a, b Item) int {
		if d := b.Used.Compare(a.Used); d != 0 {
			return d
		}
		return strings.Compare(a.Key, b.Key)
	})
	return items, err
}

// keys are the names of the entries. Anything else in the directory, such as links, does not
// belong to the cache.
func (c *Cache) keys() ([]string, error) {
	names, err := os.ReadDir(c.dir)
	var keys []string
	for _, n := range names {
		if n.IsDir() && len(n.Name()) == 2*len(Key{}) {
			keys = append(keys, n.Name())
		}
	}
	return keys, err
}

// item measures an entry. Files that disappear during the call count as nothing.
func (c *Cache) item(name string) Item {
	it := Item{Key: name}
	root := filepath.Join(c.dir, name)
	it.Bytes, it.Used = measure(root)
	uses := filepath.Join(root, usesFile)
	if info, err := os.Lstat(uses); err == nil {
		it.Used, it.Uses = info.ModTime(), int(info.Size())
	}
	if release, ok := lockAlone(uses); ok {
		release()
	} else {
		it.InUse = true
	}
	var k Key
	if n, err := hex.Decode(k[:], []byte(name)); err == nil && n == len(k) {
		if file, err := readPlain(filepath.Join(root, aboutPart), maxAbout); err == nil {
			about, _ := c.secret.unseal(k, aboutPart, file)
			it.About = string(about)
		}
	}
	return it
}

// measure adds up the files of a folder and finds the latest change.
func measure(root string) (bytes int64, last time.Time) {
	_ = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
		if !d.IsDir() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes, last
}

// Bytes is what the entries take on disk.
func (c *Cache) Bytes() (int64, error) {
	items, err := c.Items()
	var sum int64
	for _, it := range items {
		sum += it.Bytes
	}
	return sum, err
}
