package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Parts of a build's entry in the cache.
const (
	recordPart = "record"
	modulePart = "module"
)

// store is the cache of one build: the module, and a record of the files that it was made
// from. The zero value stores nothing.
type store struct {
	cache *cache.Cache
	key   cache.Key
}

// record says what a build was made from.
type record struct {
	Sum     string  // of the module
	Files   []input // sources, go.mod, go.sum
	Dirs    []listing
	Outside []Outside // what of them lies outside of Options.Root
}

// cached is a build that was found.
type cached struct {
	sum     [sha256.Size]byte
	outside []Outside
}

type input struct {
	Path string
	Size int64
	Time int64 // of the last change, ns
	Sum  string
}

// listing is a folder's list of files, to notice new and deleted ones.
type listing struct {
	Path  string
	Embed bool // a package that embeds files: whatever is below counts
	Names []string
}

func list(path string, embed bool) (listing, error) {
	names, err := sourceNames(path)
	if embed && err == nil {
		names, err = below(path)
	}
	return listing{path, embed, names}, err
}

// openStore opens the cache. If it cannot be used, nothing is cached.
func openStore(o Options, key cache.Key) store {
	if o.CacheDir == "" {
		return store{}
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	c, err := cache.Open(cache.Options{Dir: o.CacheDir, MaxBytes: o.CacheBytes, KeyFile: o.CacheKey})
	if err != nil {
		o.Progress("nothing can be kept: " + err.Error())
		return store{}
	}
	return store{c, key}
}

// within calls f with the open entry.
func (s store) within(f func(e *cache.Entry) error) error {
	e, err := s.cache.Use(s.key)
	if err != nil {
		return err
	}
	return errors.Join(f(e), e.Close())
}

// find returns the cached build, if none of its inputs has changed. Before that is known, tell
// is called with its record, which may be out of date.
func (s store) find(tell func(*record)) (found cached, ok bool) {
	if s.cache == nil {
		return found, false
	}
	_ = s.within(func(e *cache.Entry) error { // after any error it is built
		text, err := e.Load(recordPart)
		if err != nil {
			return err
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		tell(&r)
		raw, err := hex.DecodeString(r.Sum)
		if err != nil || len(raw) != len(found.sum) || !e.Has(modulePart) || !r.current() {
			return err
		}
		copy(found.sum[:], raw)
		found.outside = r.Outside
		ok = true
		e.Touch()
		return nil
	})
	return found, ok
}

// current reports whether no input of the build has changed.
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

// module reads the module, if it is still the one that find has returned.
func (s store) module(sum [sha256.Size]byte) (wasm []byte, ok bool) {
	err := s.within(func(e *cache.Entry) (err error) {
		wasm, err = e.Load(modulePart)
		return err
	})
	return wasm, err == nil && sha256.Sum256(wasm) == sum
}

func (f input) unchanged() bool {
	info, err := os.Stat(f.Path)
	if err != nil || info.Size() != f.Size || !info.Mode().IsRegular() {
		return false
	}
	if info.ModTime().UnixNano() == f.Time {
		return true
	}
	_, data, err := readSource(f.Path)
	return err == nil && sum(data) == f.Sum
}

// maxSource bounds one source file, in bytes: embedded ones are part of the module.
const maxSource = MaxModuleBytes

// readSource reads a regular file of bounded size: a pipe or a device has no end.
func readSource(path string) (os.FileInfo, []byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	data, err := regular.Read(context.Background(), path, maxSource)
	return info, data, err
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// inputs records the files that a build will be made from; nil without a cache.
func (s store) inputs(from *sources, outside []Outside) (*record, error) {
	if s.cache == nil {
		return nil, nil
	}
	r := &record{Outside: outside}
	for _, path := range from.files {
		info, data, err := readSource(path)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, input{path, info.Size(), info.ModTime().UnixNano(), sum(data)})
	}
	for _, d := range from.dirs {
		d, err := list(d.Path, d.Embed)
		if err != nil {
			return nil, err
		}
		r.Dirs = append(r.Dirs, d)
	}
	return r, nil
}

// save stores a build, unless a source has changed while it was made.
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
