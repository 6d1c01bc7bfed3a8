package filewatch

import (
	"crypto/sha256"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Set is what is watched.
type Set struct {
	Files []string // their contents; one that is missing is waited for
	Dirs  []Dir    // the names in them
	Skip  []string // folders: nothing in them counts, whatever Files and Dirs say
}

// skips reports whether a path lies in a folder that does not count.
func (s Set) skips(path string) bool {
	return slices.ContainsFunc(s.Skip, func(dir string) bool { return within(path, dir) })
}

// within reports whether a path is a folder, or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Dir is a folder in which names may come and go. The contents of files count only if
// they are in Set.Files.
type Dir struct {
	Path string
	Deep bool                   // and all folders below; hidden and temporary names do not count
	Name func(name string) bool // which names count; nil: all
}

// mostBelow bounds the names of a deep folder that are looked at.
const mostBelow = 50_000

// stamp is what a file was when it was looked at.
type stamp struct {
	exists bool
	size   int64
	time   int64 // of the last change, ns
	sum    [sha256.Size]byte
	looked time.Time
	info   fs.FileInfo
}

// racy is how long after its last change a file may change again without another time,
// on file systems with coarse clocks.
const racy = 2 * time.Second

// mostRead bounds the files that are compared by their contents, in bytes: of larger ones
// size and time count.
const mostRead = 64 << 20

// look is the stamp of a file, given the one before.
func look(path string, before stamp, now time.Time) stamp {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return stamp{looked: now}
	}
	s := stamp{exists: true, size: info.Size(), time: info.ModTime().UnixNano(), looked: now, info: info}
	same := before.exists && before.size == s.size && before.time == s.time
	if same && before.looked.Sub(info.ModTime()) > racy {
		s.sum = before.sum
		return s
	}
	if s.size > mostRead {
		return s
	}
	if data, err := os.ReadFile(path); err == nil {
		s.sum = sha256.Sum256(data)
	} else {
		s.sum = before.sum // it is just being written, or forbidden: the next look tells
	}
	return s
}

// differs reports whether a file holds something else.
func (s stamp) differs(t stamp) bool {
	if s.exists != t.exists || s.size != t.size {
		return true
	}
	return s.sum != t.sum || s.size > mostRead && s.time != t.time
}

// rewritten reports whether a file that holds the same was written again meanwhile, so that it may have
// held something else in between.
func (s stamp) rewritten(t stamp) bool {
	return s.exists && t.exists && !s.differs(t) && (s.time != t.time || !os.SameFile(s.info, t.info))
}

// names are those of a folder that count, sorted, and the folders to listen to.
func (d Dir) names(skips func(path string) bool) (names, folders []string) {
	counts := func(name string) bool { return d.Name == nil || d.Name(name) }
	if !d.Deep {
		entries, _ := os.ReadDir(d.Path) // one that is missing is empty
		for _, e := range entries {
			if !e.IsDir() && counts(e.Name()) {
				names = append(names, e.Name())
			}
		}
		return names, []string{d.Path}
	}
	_ = filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case skips(path):
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case len(names) >= mostBelow:
			return filepath.SkipAll
		case e.IsDir() && path != d.Path && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case e.IsDir():
			folders = append(folders, path)
		case counts(e.Name()) && !temporary(e.Name()):
			names = append(names, path)
		}
		return nil
	})
	return names, folders
}

// temporary reports whether a name is one of those that editors and tools give to files that
// nobody else is to read.
func temporary(name string) bool {
	return name[0] == '.' || name[0] == '#' || name == "4913" || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".tmp")
}

// state is what all that is watched was at a look.
type state struct {
	files map[string]stamp
	names map[string][]string // by folder
}

// with is the state, and of what it has not looked at that of another one.
func (s state) with(other state) state {
	t := state{files: map[string]stamp{}, names: map[string][]string{}}
	for _, from := range []state{other, s} {
		maps.Copy(t.files, from.files)
		maps.Copy(t.names, from.names)
	}
	return t
}

// lookAt takes stock. What is in before is only read where it seems to have changed.
// listen are the folders whose changes concern the set.
func lookAt(set Set, before state, now time.Time) (s state, listen []string) {
	s = state{files: map[string]stamp{}, names: map[string][]string{}}
	folders := map[string]bool{}
	for _, f := range set.Files {
		if set.skips(f) {
			continue
		}
		s.files[f] = look(f, before.files[f], now)
		folders[existing(filepath.Dir(f))] = true
	}
	for _, d := range set.Dirs {
		if set.skips(d.Path) {
			continue
		}
		names, below := d.names(set.skips)
		s.names[d.key()] = names
		for _, f := range below {
			folders[existing(f)] = true
		}
	}
	return s, slices.Sorted(maps.Keys(folders))
}

func (d Dir) key() string {
	if d.Deep {
		return d.Path + "/..."
	}
	return d.Path
}

// existing is the folder itself, or the one above it that is there.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

// changes are the paths of what differs between two looks; what only one of them has looked
// at does not count.
func changes(before, now state) []string {
	found := map[string]bool{}
	for path, s := range now.files {
		if old, ok := before.files[path]; ok && old.differs(s) {
			found[path] = true
		}
	}
	for key, names := range now.names {
		old, ok := before.names[key]
		if !ok || slices.Equal(old, names) {
			continue
		}
		dir, deep := strings.CutSuffix(key, "/...")
		for _, list := range [][2][]string{{old, names}, {names, old}} {
			for _, n := range list[0] {
				if _, there := slices.BinarySearch(list[1], n); !there {
					if !deep {
						n = filepath.Join(dir, n)
					}
					found[n] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
