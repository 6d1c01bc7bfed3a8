package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Parts of an image's entry in the disk cache. A start with a warm cache reads
// the first, and the machine code. The module is needed by the interpreter, and where the
// machine code is missing.
const (
	imagePart  = "image"
	modulePart = "module"
)

// open opens the image's entry in the disk cache.
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

// cachedRecord reads the record from the cache, nil if there is none that can be used.
func (i *Image) cachedRecord() *record {
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
		i.engine.log.Warn("a cached image cannot be used and is built again", "key", i.key.String(), "error", err)
	}
	return nil
}

// storeRecord writes the record to the cache.
func (i *Image) storeRecord(rec *record) {
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

// noteUse marks the entry as used; if something was added, it evicts until the cache is
// within its bound.
func (i *Image) noteUse(cached bool) {
	if i.entry == nil {
		return
	}
	if cached {
		i.entry.Touch()
		return
	}
	_ = i.entry.Describe(i.cfg.Name) // a full disk was reported already
	if err := i.engine.cache.Trim(); err != nil {
		i.engine.log.Warn("the cache cannot be kept below its limit", "dir", i.engine.cache.Dir(), "error", err)
	}
}

// errNoModule says that a cached record's module is gone.
var errNoModule = errors.New("runtime: the cached module is gone")

// compile makes wazero's runtime for the image: from the machine code that comes
// with the record, from that in the cache, or by compiling the module.
func (i *Image) compile(ctx context.Context, rec *record, code []byte) error {
	if i.engine.cfg.interpreter {
		if err := i.needModule(rec); err != nil {
			return err
		}
		return i.compileWith(ctx, rec.meta, rec.module, nil)
	}
	if code == nil {
		if ok, err := i.compileCached(ctx, rec); ok || err != nil {
			return err
		}
		if err := i.needModule(rec); err != nil {
			return err
		}
		limits := i.cfg.compileLimits(rec.meta.WasmBytes)
		err := i.engine.within(ctx, limits.Memory, func() (err error) {
			code, err = i.compileNow(ctx, rec, limits)
			return err
		})
		if err != nil {
			return err
		}
	} else if err := i.useCompiled(ctx, rec, code); err != nil {
		return err
	}
	i.storeCode(code)
	return nil
}

// needModule reads the rewritten module, which a start with a warm cache does not.
func (i *Image) needModule(rec *record) (err error) {
	if rec.module == nil {
		if rec.module, err = i.entry.Load(modulePart); err != nil {
			return fmt.Errorf("%w: %w", errNoModule, err)
		}
	}
	return nil
}

// compileNow compiles the module, here or in a process, and returns its machine
// code; nil if that cannot be kept.
func (i *Image) compileNow(ctx context.Context, rec *record, limits compileLimits) ([]byte, error) {
	if c := i.engine.compiler; c != nil {
		p, err := c.run(ctx, i, job{compile: true, module: rec.module, meta: rec.meta, limits: limits})
		if err != nil {
			return nil, err
		}
		return p.code, i.useCompiled(ctx, rec, p.code)
	}
	if i.entry == nil {
		return nil, i.compileWith(ctx, rec.meta, rec.module, nil)
	}
	var s codeStore
	err := i.compileWith(ctx, rec.meta, rec.module, &s)
	if errors.Is(err, errCodeStore) {
		i.engine.log.Warn("machine code cannot be kept in the cache; images are compiled at every start", "error", err)
		return nil, i.compileWith(ctx, rec.meta, rec.module, nil)
	}
	return s.made, err
}

// useCompiled loads machine code that a process has compiled.
func (i *Image) useCompiled(ctx context.Context, rec *record, code []byte) error {
	o, err := wasm.Decode(rec.outline)
	if err == nil {
		err = checkCode(code, len(o.Code), i.cfg.Places)
	}
	if err == nil {
		err = i.compileServed(ctx, rec, bytes.NewReader(code))
	}
	if err != nil && ctx.Err() == nil {
		return i.blame(&CompileError{What: "has made the compile process send a malformed answer: " + err.Error()})
	}
	return err
}

// compileServed has wazero load machine code. wazero decodes and validates a module before
// it asks for its code, which would be most of the time of a warm start. So it is given the
// outline of the module, in which every body is "unreachable", together with the module's
// code. If it does not accept the code, it compiles the outline; that is noticed, and the
// result thrown away.
func (i *Image) compileServed(ctx context.Context, rec *record, code io.Reader) error {
	s := codeStore{serve: code}
	if err := i.compileWith(ctx, rec.meta, rec.outline, &s); err != nil {
		return err
	}
	if s.made != nil || s.asked == (codeKey{}) {
		closeRuntime(i.runtime, i.codeCache)
		i.runtime, i.codeCache, i.compiled = nil, nil, nil
		return errors.New("wazero does not take the machine code")
	}
	return nil
}

// codePart is an image's machine code, preceded by the key of the machine that it is for.
const codePart = "code"

// compileCached loads machine code from the cache; false if there is none that can be used.
func (i *Image) compileCached(ctx context.Context, rec *record) (bool, error) {
	if i.entry == nil {
		return false, nil
	}
	here, err := machine()
	if err != nil {
		return false, nil // compileNow reports the error
	}
	code, err := i.entry.Open(codePart)
	if errors.Is(err, cache.ErrMissing) {
		return false, nil
	}
	if err == nil {
		defer code.Close()
		var name codeKey
		if _, err = io.ReadFull(code, name[:]); err == nil && name != here {
			return false, nil // another processor's, or another version's: replaced by ours
		}
		if err == nil {
			if err = i.compileServed(ctx, rec, code); err == nil {
				return true, nil
			}
		}
		_ = i.entry.Drop(codePart)
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	i.engine.log.Warn("cached machine code cannot be used and is compiled again", "key", i.key.String(), "error", err)
	return false, nil
}

// storeCode writes machine code to the cache.
func (i *Image) storeCode(code []byte) {
	here, err := machine()
	if i.entry == nil || code == nil || err != nil {
		return
	}
	if err := i.entry.Store(codePart, append(here[:], code...)); err != nil {
		i.engine.log.Warn("machine code cannot be kept in the cache", "key", i.key.String(), "error", err)
	}
}

// outline is a module with the imports, exports and types of m whose functions do nothing.
// It contains the hash of m's encoding, so that no two modules have the same outline.
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
