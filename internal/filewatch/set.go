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

	"github.com/wasmactors/wasmactors/internal/regular"
)

// Set is what is watched.
type Set struct {
	Files []string // their contents; missing ones may appear
	Dirs  []Dir    // the names in them
	Skip  []string // folders: ignored with all that is in them, even if Files or Dirs name it
}

// skips reports whether a path is in an ignored folder.
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
	Deep bool                   // and all folders below; hidden and temporary names are ignored
	Name func(name string) bool // which names count; nil: all
}

// mostBelow bounds the names of a deep folder that are checked.
const mostBelow = 50_000

// stamp is the state of a file at a check.
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

// mostRead bounds the files that are compared by their contents, in bytes: larger ones are
// compared by size and time.
const mostRead = 64 << 20

// look returns the stamp of a file, given the previous one.
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
	if data, err := regular.ReadFile(path, mostRead); err == nil {
		s.sum = sha256.Sum256(data)
	} else {
		s.sum = before.sum // it is just being written, or not readable: the next check will show
	}
	return s
}

// differs reports whether the contents of a file differ.
func (s stamp) differs(t stamp) bool {
	if s.exists != t.exists || s.size != t.size {
		return true
	}
	return s.sum != t.sum || s.size > mostRead && s.time != t.time
}

// rewritten reports whether a file that holds the same was written again since, so that it may have
// held something else in between.
func (s stamp) rewritten(t stamp) bool {
	return s.exists && t.exists && !s.differs(t) && (s.time != t.time || !os.SameFile(s.info, t.info))
}

// names returns the relevant names of a folder, sorted, and the folders to listen to.
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

// temporary reports whether a name is one that editors and tools give to their temporary files.
func temporary(name string) bool {
	return name[0] == '.' || name[0] == '#' || name == "4913" || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".tmp")
}

// state is the state of all watched files at a check.
type state struct {
	files map[string]stamp
	names map[string][]string // by folder
}

// with adds the stamps of another state for files that this one does not have.
func (s state) with(other state) state {
	t := state{files: map[string]stamp{}, names: map[string][]string{}}
	for _, from := range []state{other, s} {
		maps.Copy(t.files, from.files)
		maps.Copy(t.names, from.names)
	}
	return t
}

// lookAt checks a set. Files in before are only read if they seem to have changed. listen are the
// folders whose changes concern the set.
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

// existing is the folder itself, or its nearest parent that exists.
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

// changes are the paths that differ between two checks; those that only one of them has are left
// out.
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
