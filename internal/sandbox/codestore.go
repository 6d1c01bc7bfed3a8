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

// noteUse notes what was used, and keeps the cache within its bound after
// something was added.
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
		i.engine.log.Warn("the cache cannot be kept within its bound", "dir", i.engine.cache.Dir(), "error", err)
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
		if ok, err := i.compileKept(ctx, rec); ok || err != nil {
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
	} else if err := i.useMade(ctx, rec, code); err != nil {
		return err
	}
	i.keepCode(code)
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
		return p.code, i.useMade(ctx, rec, p.code)
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

// useMade takes machine code that a process has made.
func (i *Image) useMade(ctx context.Context, rec *record, code []byte) error {
	o, err := wasm.Decode(rec.outline)
	if err == nil {
		err = checkCode(code, len(o.Code))
	}
	if err == nil {
		err = i.compileServed(ctx, rec, bytes.NewReader(code))
	}
	if err != nil && ctx.Err() == nil {
		return i.blame(&CompileError{What: "has brought the process that compiles to answer nonsense: " + err.Error()})
	}
	return err
}

// compileServed gives wazero machine code. wazero would decode and validate the
// whole module before it asks for its code, which is most of the time that a warm
// start would need. So it is shown the outline of the module, in which every body
// is "unreachable", and given the module's code. Should it not want it, for whatever
// reason, it would compile the outline; that is noticed, and the result thrown away.
func (i *Image) compileServed(ctx context.Context, rec *record, code io.Reader) error {
	s := codeStore{serve: code}
	if err := i.compileWith(ctx, rec.meta, rec.outline, &s); err != nil {
		return err
	}
	if s.made != nil || s.asked == (codeKey{}) {
		closeRuntime(i.runtime, i.kept)
		i.runtime, i.kept, i.compiled = nil, nil, nil
		return errors.New("wazero does not take the machine code")
	}
	return nil
}

// codePart is an image's machine code, behind the name of the machine that it is
// for.
const codePart = "code"

// compileKept takes machine code from the cache, false if there is none that can be
// used.
func (i *Image) compileKept(ctx context.Context, rec *record) (bool, error) {
	if i.entry == nil {
		return false, nil
	}
	here, err := machine()
	if err != nil {
		return false, nil // compileNow says so
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
		_ = i.entry.Drop(codePart) // whatever is wrong with it, it is not needed
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	i.engine.log.Warn("cached machine code cannot be used and is made anew", "key", i.key.String(), "error", err)
	return false, nil
}

// keepCode puts machine code into the cache.
func (i *Image) keepCode(code []byte) {
	here, err := machine()
	if i.entry == nil || code == nil || err != nil {
		return
	}
	if err := i.entry.Store(codePart, append(here[:], code...)); err != nil {
		i.engine.log.Warn("machine code cannot be kept in the cache", "key", i.key.String(), "error", err)
	}
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
