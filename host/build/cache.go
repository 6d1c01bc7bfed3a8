package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Parts of a build's entry in the cache.
const (
	recordPart = "record"
	modulePart = "module"
)

// store keeps one build: the module, and a record of the files that it was made
// from. The zero value keeps nothing.
type store struct {
	cache *cache.Cache
	key   cache.Key
}

// maxSource bounds a source file, or a file that is embedded, in bytes.
const maxSource = 256 << 20

// record says what a build was made from.
type record struct {
	Sum   string  // of the module
	Files []input // sources, go.mod, go.sum
	Dirs  []listing
}

type input struct {
	Path string
	Size int64
	Time int64 // of the last change, ns
	Sum  string
}

// listing tells files that have come or gone.
type listing struct {
	Path  string
	Embed bool // a package that embeds files: whatever is below counts
	Names []string
}

func list(path string, embed bool) (listing, error) {
	names, err := sources(path)
	if embed && err == nil {
		names, err = below(path)
	}
	return listing{path, embed, names}, err
}

// openStore opens the cache. One that cannot be used is done without.
func openStore(o Options, key cache.Key, progress func(string)) store {
	if o.CacheDir == "" {
		return store{}
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	c, err := cache.Open(cache.Options{Dir: o.CacheDir, MaxBytes: o.CacheBytes, KeyFile: o.CacheKey})
	if err != nil {
		progress("nothing can be kept: " + err.Error())
		return store{}
	}
	return store{c, key}
}

// within takes the entry into use for the time of f.
func (s store) within(f func(e *cache.Entry) error) error {
	e, err := s.cache.Use(s.key)
	if err != nil {
		return err
	}
	return errors.Join(f(e), e.Close())
}

// find returns the module's sum if nothing has changed.
func (s store) find() (sum [sha256.Size]byte, ok bool) {
	if s.cache == nil {
		return sum, false
	}
	_ = s.within(func(e *cache.Entry) error { // whatever is wrong: it is built
		text, err := e.Load(recordPart)
		if err != nil {
			return err
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		raw, err := hex.DecodeString(r.Sum)
		if err != nil || len(raw) != len(sum) || !e.Has(modulePart) || !r.current() {
			return err
		}
		copy(sum[:], raw)
		ok = true
		e.Touch()
		return nil
	})
	return sum, ok
}

// current reports whether all that a build was made from is as it was.
func (r *record) current() bool {
	for _, f := range r.Files {
		if !f.unchanged() {
			return false
		}
	}
	for _, d := range r.Dirs {
		if now, err := list(d.Path, d.Embed); err != nil || !slices.Equal(now.Names, d.Names) {
			return false
		}
	}
	return len(r.Files) > 0
}

// module reads the module if it is the one that find has found.
func (s store) module(sum [sha256.Size]byte) (wasm []byte, ok bool) {
	err := s.within(func(e *cache.Entry) (err error) {
		wasm, err = e.Load(modulePart)
		return err
	})
	return wasm, err == nil && sha256.Sum256(wasm) == sum
}

func (f input) unchanged() bool {
	info, err := os.Stat(f.Path)
	if err != nil || info.Size() != f.Size {
		return false
	}
	if info.ModTime().UnixNano() == f.Time {
		return true
	}
	data, err := regular.Read(context.Background(), f.Path, maxSource)
	return err == nil && sum(data) == f.Sum
}

// sources are the names of the files of a folder that a build may look at.
func sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") || n == "go.mod" || n == "go.work" {
			names = append(names, n)
		}
	}
	return names, nil
}

// below are the names of all files in a folder, at any depth, but for tests.
func below(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !strings.HasSuffix(path, "_test.go"):
			names = append(names, path)
		case e.IsDir() && e.Name() == ".git":
			return filepath.SkipDir
		}
		return nil
	})
	return names, err
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// inputs are the files that a build is about to be made from. They are asked from
// standard Go, whoever compiles: a machine with TinyGo alone has no cache.
func (s store) inputs(ctx context.Context, dir string) (*record, error) {
	if s.cache == nil {
		return nil, nil
	}
	files, dirs, err := closure(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &record{}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		data, err := regular.Read(ctx, path, maxSource)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, input{path, info.Size(), info.ModTime().UnixNano(), sum(data)})
	}
	for _, d := range dirs {
		if d, err = list(d.Path, d.Embed); err != nil {
			return nil, err
		}
		r.Dirs = append(r.Dirs, d)
	}
	return r, nil
}

// save keeps a build, unless a source has changed while it was made.
func (s store) save(r *record, dir string, wasm []byte) error {
	if s.cache == nil || !r.current() {
		return nil
	}
	r.Sum = sum(wasm)
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = s.within(func(e *cache.Entry) error {
		return errors.Join(e.Store(modulePart, wasm), e.Store(recordPart, text), e.Describe(dir))
	})
	return errors.Join(err, s.cache.Trim())
}

// closure lists the files and folders of all packages that are not Go's own.
func closure(ctx context.Context, dir string) (files []string, dirs []listing, err error) {
	gotool, err := exec.LookPath("go")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, gotool, "list", "-deps", "-json=Dir,GoFiles,IgnoredGoFiles,EmbedFiles,EmbedPatterns,Standard,Module", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	add := func(path string) {
		if path != "" && !seen[path] {
			seen[path] = true
			files = append(files, path)
		}
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                                                string
			GoFiles, IgnoredGoFiles, EmbedFiles, EmbedPatterns []string
			Standard                                           bool
			Module                                             *struct{ GoMod string }
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if p.Standard {
			continue
		}
		dirs = append(dirs, listing{Path: p.Dir, Embed: len(p.EmbedPatterns) > 0})
		for _, f := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.EmbedFiles) {
			add(filepath.Join(p.Dir, f))
		}
		if p.Module != nil && p.Module.GoMod != "" {
			add(p.Module.GoMod)
			if gosum := filepath.Join(filepath.Dir(p.Module.GoMod), "go.sum"); exists(gosum) {
				add(gosum)
			}
		}
	}
	return files, dirs, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
