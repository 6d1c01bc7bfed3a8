package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Parts of an image's entry in the disk cache. A start with a warm cache reads
// the first, and the machine code; the module is there for the interpreter, and
// for when the machine code is missing.
const (
	imagePart  = "image"
	modulePart = "module"
)

// open takes an entry of the disk cache into use for the image.
func (i *Image) open(key cache.Key) {
	c := i.engine.cache
	if c == nil {
		return
	}
	var err error
	if i.entry, err = c.Use(key); err != nil {
		i.engine.log.Warn("the cache directory cannot be used", "dir", c.Dir(), "error", err)
		i.entry = nil
	}
}

// recall reads a record from the cache, nil if there is none that can be used.
func (i *Image) recall() *record {
	if i.entry == nil {
		return nil
	}
	raw, err := i.entry.Load(imagePart)
	if err == nil {
		var rec *record
		if rec, err = decodeRecord(raw); err == nil {
			return rec
		}
	}
	if !errors.Is(err, cache.ErrMissing) {
		i.engine.log.Warn("a cached image cannot be used and is built anew", "key", i.key.String(), "error", err)
	}
	return nil
}

// remember stores a record.
func (i *Image) remember(rec *record) {
	if i.entry == nil {
		return
	}
	err := errors.Join(
		i.entry.Store(modulePart, rec.module),
		i.entry.Store(imagePart, rec.encode()))
	if err != nil {
		i.engine.log.Warn("an image cannot be kept in the cache", "key", i.key.String(), "error", err)
	}
}

// settle notes what was used, and keeps the cache within its bound after
// something was added.
func (i *Image) settle(cached bool) {
	if i.entry == nil {
		return
	}
	if cached {
		i.entry.Touch()
		return
	}
	_ = i.entry.Describe(i.cfg.Name) // a full disk was reported already
	if err := i.engine.cache.Trim(); err != nil {
		i.engine.log.Warn("the cache cannot be kept within its bound", "dir", i.engine.cache.Dir(), "error", err)
	}
}

// errNoModule says that a cached record's module is gone.
var errNoModule = errors.New("runtime: the cached module is gone")

// compile makes wazero's runtime for the image: from machine code in the cache,
// or by compiling the module. A cache that fails is done without.
func (i *Image) compile(ctx context.Context, rec *record) error {
	useCode := i.entry != nil && !i.engine.cfg.interpreter
	if useCode {
		if ok, err := i.compileKept(ctx, rec); ok || err != nil {
			return err
		}
	}
	if rec.module == nil {
		var err error
		if rec.module, err = i.entry.Load(modulePart); err != nil {
			return fmt.Errorf("%w: %w", errNoModule, err)
		}
	}
	if useCode {
		err := i.compileAndKeep(ctx, rec)
		if i.compiled != nil {
			if err != nil {
				i.engine.log.Warn("machine code cannot be kept in the cache", "key", i.key.String(), "error", err)
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		i.engine.log.Warn("the cache directory cannot be used for machine code", "key", i.key.String(), "error", err)
	}
	return i.compileWith(ctx, rec.meta, rec.module, "")
}

// compileKept takes machine code from the cache. wazero would decode and validate
// the whole module before it takes its code from a file, which is most of the
// time that a warm start would need. So it is shown the outline of the module, in
// which every body is "unreachable", and finds the module's code under the
// outline's name. Should it not find it there, for whatever reason, it would
// compile the outline; that is noticed, and the result thrown away.
func (i *Image) compileKept(ctx context.Context, rec *record) (bool, error) {
	code, err := i.entry.Code()
	if errors.Is(err, cache.ErrMissing) {
		return false, nil
	}
	if err == nil {
		if err = i.compileWith(ctx, rec.meta, rec.outline, code.Dir); err == nil {
			if code.Used() {
				return true, nil
			}
			closeRuntime(i.runtime, i.kept)
			i.runtime, i.kept, i.compiled = nil, nil, nil
			err = errors.New("it was made for another processor, or was replaced meanwhile")
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	i.engine.log.Warn("cached machine code cannot be used and is made anew", "key", i.key.String(), "error", err)
	_ = i.entry.DropCode() // whatever is wrong with it, it is not needed
	return false, nil
}

// compileAndKeep compiles the module and puts its machine code into the cache
// under the outline's name. After an error the module may be compiled all the
// same: i.compiled tells.
func (i *Image) compileAndKeep(ctx context.Context, rec *record) error {
	temp, err := i.engine.cache.TempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	// wazero gives up a compilation that it cannot write, after all the work. So
	// see first whether there is room: code is four times as large as its module.
	if err := makeRoom(temp, 6*len(rec.module)); err != nil {
		return err
	}
	whole, outline := filepath.Join(temp, "whole"), filepath.Join(temp, "outline")
	if err := i.compileWith(ctx, rec.meta, rec.module, whole); err != nil {
		return err
	}
	named := &Image{engine: i.engine}
	if err := named.compileWith(ctx, rec.meta, rec.outline, outline); err != nil {
		return err
	}
	closeRuntime(named.runtime, named.kept)
	if err := cache.MoveCode(whole, outline); err != nil {
		return err
	}
	return i.entry.StoreCode(outline)
}

// makeRoom reports why a file of this size could not be written.
func makeRoom(dir string, size int) error {
	name := filepath.Join(dir, "room")
	err := os.WriteFile(name, make([]byte, size), 0o600)
	return errors.Join(err, os.Remove(name))
}

// outline is a module that looks like m from outside and does nothing. The hash
// of what m is encoded to goes into it, so that no two modules share one.
func outline(m *wasm.Module, encoded []byte) []byte {
	sum := sha256.Sum256(encoded)
	o := *m
	o.Code = make([]wasm.Body, len(m.Code))
	for f := range o.Code {
		o.Code[f].Code = []byte{wasm.OpUnreachable, wasm.OpEnd}
	}
	o.Customs = append([]wasm.Custom{{Name: "wasmactors.outline", Data: sum[:]}}, m.Customs...)
	return o.Encode()
}

// cacheIn is wazero's cache in a directory, nil for none.
func cacheIn(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return nil, nil
	}
	return wazero.NewCompilationCacheWithDir(dir)
}
