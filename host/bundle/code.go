package bundle

import (
	"cmp"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// CodeUse is a version of a module's code: the one that actors start with, or one that some still run.
type CodeUse struct {
	Module  string
	Hash    string // see [Bundle.Hash]
	Actors  int    // that run it
	Present bool   // actors that start now run it
}

// codes are the images of a bundle: those of its modules, and those that were replaced and have actors still.
type codes struct {
	mu      sync.Mutex
	present []code // sorted by module
	old     []code // from the oldest one
}

type code struct {
	module, hash string
	image        *runtime.Image
	fetch        fetch
	spec         Module
}

// set says which images the modules have.
func (c *codes) set(all map[string]*loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.present = c.present[:0]
	for name, l := range all {
		c.present = append(c.present, code{name, l.hash, l.image, l.fetch, l.spec})
	}
	slices.SortFunc(c.present, func(a, b code) int { return cmp.Compare(a.module, b.module) })
}

// of is the module of an image, the hash of its code, and what reads the code; false if no module has the image now.
func (c *codes) of(image *runtime.Image) (module, hash string, read fetch, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.present {
		if x.image == image {
			return x.module, x.hash, x.fetch, true
		}
	}
	return "", "", nil, false
}

// foreign are the settings that a module's place gives to code of other nodes now: its limits, and neither folders nor variables.
func (c *codes) foreign(module string) (spec Module, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.present {
		if x.module == module {
			spec = x.spec
			spec.Go, spec.Wasm, spec.Env, spec.Dirs, spec.Upgrade = "", "", nil, nil, nil
			return spec, true
		}
	}
	return Module{}, false
}

// has reports whether a module has this code now.
func (c *codes) has(digest []byte) bool {
	hash := hex.EncodeToString(digest)
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.present, func(x code) bool { return x.hash == hash })
}

// retire closes an image as soon as no actor runs it.
func (c *codes) retire(module string, l *loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	if l.image.Retire(); sandbox.Users(l.image) > 0 {
		c.old = append(c.old, code{module: module, hash: l.hash, image: l.image})
	}
}

// forget drops the images that were closed.
func (c *codes) forget() {
	c.old = slices.DeleteFunc(c.old, func(x code) bool { return sandbox.Users(x.image) == 0 })
}

// Codes are the versions of the modules' code that actors run or start with, by module, and for each from the oldest one. It is safe
// for concurrent use.
func (b *Bundle) Codes() (all []CodeUse) {
	c := &b.codes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	for _, x := range c.present {
		for _, old := range c.old {
			if old.module == x.module {
				all = append(all, CodeUse{x.module, old.hash, sandbox.Users(old.image), false})
			}
		}
		all = append(all, CodeUse{x.module, x.hash, sandbox.Users(x.image), true})
	}
	for _, old := range c.old {
		if !slices.ContainsFunc(c.present, func(x code) bool { return x.module == old.module }) {
			all = append(all, CodeUse{old.module, old.hash, sandbox.Users(old.image), false})
		}
	}
	return all
}
