package cache

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// leftover is the age from which a temporary file must belong to a process that has died: no
	// compilation takes as long.
	leftover = time.Hour
	// outdated is how long ago another version must have used its folder for it to
	// be removed.
	outdated = 30 * 24 * time.Hour
)

var errInUse = errors.New("cache: the entry is in use")

// remove removes an entry if it is not in use and still returns true; still may be nil.
func (c *Cache) remove(dir string, still func() bool) error {
	release, ok := lockAlone(filepath.Join(dir, usesFile))
	if !ok {
		return errInUse
	}
	defer release()
	if still != nil && !still() {
		return nil
	}
	err := c.discard(dir)
	if err != nil && runtime.GOOS == "windows" {
		return errInUse // a folder with an open file in it
	}
	return err
}

// Trim evicts what exceeds the bound.
func (c *Cache) Trim() error {
	_, err := c.Shrink(c.maxBytes, time.Time{})
	return err
}

// Removed says what Shrink or Clear have removed, and what they have left because it is in use.
type Removed struct {
	Entries, InUse int
	Bytes          int64
}

// Shrink removes the entries that were last used before a time, and, if more than maxBytes are
// left, the least recently used ones, until at most nine tenths of maxBytes are left, so that it
// does not happen at every Store. Entries in use stay.
func (c *Cache) Shrink(maxBytes int64, before time.Time) (Removed, error) {
	c.sweep()
	items, err := c.Items()
	if err != nil {
		return Removed{}, err
	}
	var sum int64
	for _, it := range items {
		sum += it.Bytes
	}
	goal := sum
	if sum > maxBytes {
		goal = maxBytes / 10 * 9
	}
	var done Removed
	var failed error
	for _, it := range slices.Backward(items) {
		if sum <= goal && !it.Used.Before(before) {
			break
		}
		switch err := c.remove(filepath.Join(c.dir, it.Key), nil); {
		case errors.Is(err, errInUse):
			done.InUse++
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			done.Entries++
			done.Bytes += it.Bytes
			sum -= it.Bytes
		}
	}
	return done, failed
}

// sweep removes leftovers of processes that died, and folders that other versions have not used
// for long.
func (c *Cache) sweep() {
	names, _ := os.ReadDir(c.dir)
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), tempPrefix) {
			continue
		}
		if info, err := n.Info(); err == nil && time.Since(info.ModTime()) > leftover {
			_ = os.RemoveAll(filepath.Join(c.dir, n.Name()))
		}
	}
	for _, dir := range c.others() {
		if _, last := measure(dir); time.Since(last) > outdated {
			_ = os.RemoveAll(dir)
		}
	}
}

// others returns the folders of other versions of the cache.
func (c *Cache) others() []string {
	names, _ := os.ReadDir(c.root)
	var dirs []string
	for _, n := range names {
		if v, ok := strings.CutPrefix(n.Name(), "v"); n.IsDir() && ok && n.Name() != format && v != "" && strings.Trim(v, "0123456789") == "" {
			dirs = append(dirs, filepath.Join(c.root, n.Name()))
		}
	}
	return dirs
}

// Clear removes every entry, those in use included: their users have read them already, or make
// them again. It also removes the folders of other versions.
func (c *Cache) Clear() (Removed, error) {
	items, err := c.Items()
	var done Removed
	for _, it := range items {
		if e := c.discard(filepath.Join(c.dir, it.Key)); e != nil {
			err = errors.Join(err, e)
			continue
		}
		done.Entries++
		done.Bytes += it.Bytes
	}
	names, _ := os.ReadDir(c.dir)
	for _, n := range names {
		if strings.HasPrefix(n.Name(), tempPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, n.Name())))
		}
	}
	for _, dir := range c.others() {
		b, _ := measure(dir)
		done.Bytes += b
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return done, err
}
