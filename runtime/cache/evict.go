package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// leftover is how old a temporary file must be to belong to a process that has
// died.
const leftover = time.Hour

// Item is an entry of the cache.
type Item struct {
	Key   string // in hexadecimal
	Bytes int64  // image and code
	Used  time.Time
}

// Items lists the entries, the one used last first.
func (c *Cache) Items() ([]Item, error) {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, n := range names {
		if !n.IsDir() || strings.HasPrefix(n.Name(), tempPrefix) {
			continue
		}
		items = append(items, c.item(n.Name()))
	}
	slices.SortFunc(items, func(a, b Item) int {
		if d := b.Used.Compare(a.Used); d != 0 {
			return d
		}
		return strings.Compare(a.Key, b.Key)
	})
	return items, nil
}

// item measures an entry. Files that disappear meanwhile count as nothing.
func (c *Cache) item(name string) Item {
	it := Item{Key: name}
	root := filepath.Join(c.dir, name)
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		// The image is touched whenever it is used; an entry whose image is not
		// there yet is as young as its directory.
		if path == root || path == filepath.Join(root, "image") {
			it.Used = info.ModTime()
		}
		if !d.IsDir() {
			it.Bytes += info.Size()
		}
		return nil
	})
	return it
}

// Bytes is what the cache takes on disk.
func (c *Cache) Bytes() (int64, error) {
	items, err := c.Items()
	var sum int64
	for _, it := range items {
		sum += it.Bytes
	}
	return sum, err
}

// Trim evicts what exceeds the bound, but never the entry of this key.
func (c *Cache) Trim(keep Key) error { return c.evict(keep) }

// evict removes the entries that were not used for longest until nine tenths of
// the bound are not exceeded, so that it does not happen at every Store.
func (c *Cache) evict(keep Key) error {
	items, err := c.Items()
	if err != nil {
		return err
	}
	c.sweep()
	var sum int64
	for _, it := range items {
		sum += it.Bytes
	}
	if sum <= c.maxBytes {
		return nil
	}
	var failed error
	for _, it := range slices.Backward(items) {
		if sum <= c.maxBytes/10*9 {
			break
		}
		if it.Key == keep.String() {
			continue
		}
		if err := c.discard(filepath.Join(c.dir, it.Key)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		sum -= it.Bytes
	}
	return failed
}

// sweep removes what processes that died have left.
func (c *Cache) sweep() {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), tempPrefix) {
			continue
		}
		if info, err := n.Info(); err == nil && time.Since(info.ModTime()) > leftover {
			_ = os.RemoveAll(filepath.Join(c.dir, n.Name()))
		}
	}
}

// Clear removes every entry.
func (c *Cache) Clear() error {
	items, err := c.Items()
	for _, it := range items {
		err = errors.Join(err, c.discard(filepath.Join(c.dir, it.Key)))
	}
	return err
}
