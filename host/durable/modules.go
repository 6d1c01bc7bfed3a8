package durable

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/regular"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// The code that durable actors run is kept in the store, by the fingerprint that records have: an actor may run code that the
// manifest does not name any more. What no record of the log and no actor of the last checkpoint names is removed after a checkpoint.
//
// A file has "waSM", a version, a byte that says whether it is encrypted, and the rest by zstd: name, configuration and identity, each with
// its length, and the code. The fingerprint that names the file is the hash of the identity, and that has the hash of the code: both are
// checked before anything of the file is used. Version 1 had no identity, and was in no release. With the store's key the rest is a nonce and what AES-256-GCM makes of it; the fingerprint is authenticated, too.

// Module is code as it is kept.
type Module struct {
	Name   string
	Config []byte // what it is loaded with, as the caller writes it
	Code   []byte // WebAssembly

	Identity []byte // of the image that it becomes, see sandbox.Identity
}

// wrong says why a module is not what the fingerprint stands for; empty: it is.
func (m *Module) wrong(fingerprint []byte) string {
	switch {
	case !sandbox.Identifies(m.Identity, fingerprint):
		return "it is of other code than its name says"
	case !sandbox.IdentityOf(m.Identity, m.Code):
		return "its code is not what was kept"
	}
	return ""
}

// ErrNoModule says that the store has not kept the code of a fingerprint.
var ErrNoModule = errors.New("the store has not kept that code")

const (
	moduleHead  = "waSM\x02"
	moduleFiles = "modules"
	mostModule  = 512 << 20 // bytes of a file, and of what is in it
)

// modules are those of a store.
type modules struct {
	bytes atomic.Int64 // of the files

	mu    sync.Mutex
	files map[string]int64 // by name, with their bytes
	whole map[string]bool  // that this process has read or written
	held  map[string]bool  // that this process may still name in records
	since map[string]bool  // that records name since the mark of the last checkpoint
	next  map[string]bool  // that actors of the checkpoint which is made run
}

// fileOf is the name of a module's file; false if that is no fingerprint.
func fileOf(fingerprint []byte) (string, bool) {
	return hex.EncodeToString(fingerprint), len(fingerprint) == record.FingerprintBytes
}

// openModules finds out what is kept.
func (s *Store) openModules() error {
	m := &s.modules
	m.files, m.whole = map[string]int64{}, map[string]bool{}
	m.held, m.since, m.next = map[string]bool{}, map[string]bool{}, map[string]bool{}
	add := func(name string, n int64) {
		m.files[name] = n
		m.bytes.Add(n)
	}
	if s.opt.Sim != nil {
		if files := s.opt.Sim.Modules; files != nil {
			files.Range(func(name, b any) bool {
				add(name.(string), int64(len(b.([]byte))))
				m.whole[name.(string)] = true // it has not left the memory
				return true
			})
		}
		return nil
	}
	all, err := os.ReadDir(filepath.Join(s.opt.Dir, moduleFiles))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range all {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() && !strings.HasSuffix(f.Name(), ".new") {
			add(f.Name(), info.Size())
		}
	}
	return err
}

// Holds reports whether the code of a fingerprint is kept and can be read, and has it stay until [Store.Release]. It reads the file once.
func (s *Store) Holds(fingerprint []byte) bool {
	name, ok := fileOf(fingerprint)
	m := &s.modules
	m.mu.Lock()
	defer m.mu.Unlock()
	if ok = ok && s.isWhole(name, fingerprint); ok {
		m.held[name] = true
	}
	return ok
}

// isWhole reports whether there is a file, and it is what was written. The caller holds the lock.
func (s *Store) isWhole(name string, fingerprint []byte) bool {
	m := &s.modules
	if m.files[name] > 0 && !m.whole[name] {
		_, err := s.readModule(name, fingerprint)
		m.whole[name] = err == nil
	}
	return m.files[name] > 0 && m.whole[name]
}

// Keep keeps the code of an image, so that actors which run it come back with it, until no record and no actor needs it and
// [Store.Release] was called. It is durable when Keep returns. Code that is kept is not written again, unless its file is damaged. It is
// an error if the fingerprint is not that of the module's identity, or that not of its code, and [ErrFull] if three quarters of Options.Size would be exceeded: the last one is for what was admitted, and for checkpoints.
func (s *Store) Keep(fingerprint []byte, module *Module) error {
	name, ok := fileOf(fingerprint)
	if !ok {
		return fmt.Errorf("durable: a fingerprint of %d bytes", len(fingerprint))
	}
	if why := module.wrong(fingerprint); why != "" {
		return fmt.Errorf("durable: the module %s: %s", module.Name, why)
	}
	m := &s.modules
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[name] = true; s.isWhole(name, fingerprint) || s.opt.Sim != nil && s.opt.Sim.Modules == nil {
		return nil
	}
	b, err := s.packed(name, fingerprint, module)
	if err != nil {
		return err
	}
	if s.used()+int64(len(b))-m.files[name] > s.opt.Size/4*3 {
		return ErrFull
	}
	if s.opt.Sim != nil {
		s.opt.Sim.Modules.Store(name, b)
	} else {
		dir := filepath.Join(s.opt.Dir, moduleFiles)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := errors.Join(writeFile(filepath.Join(dir, name), b), syncDir(s.opt.Dir)); err != nil {
			return err
		}
	}
	m.bytes.Add(int64(len(b)) - m.files[name])
	m.files[name], m.whole[name] = int64(len(b)), true
	return nil
}

// Release says that this process will give no actor the code of a fingerprint. The next checkpoint removes it if no actor runs it; if the
// store has little room, that is made soon.
func (s *Store) Release(fingerprint []byte) {
	name, _ := fileOf(fingerprint)
	m := &s.modules
	m.mu.Lock()
	held := m.held[name]
	delete(m.held, name)
	m.mu.Unlock()
	if !held || s.used() <= s.opt.Size/2 {
		return
	}
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// Kept is code that the store has kept; ErrNoModule if it has not.
func (s *Store) Kept(fingerprint []byte) (*Module, error) {
	name, ok := fileOf(fingerprint)
	m := &s.modules
	m.mu.Lock()
	if ok = ok && m.files[name] > 0; ok {
		m.held[name] = true
	}
	m.mu.Unlock()
	if !ok {
		return nil, ErrNoModule
	}
	return s.readModule(name, fingerprint)
}

func (s *Store) readModule(name string, fingerprint []byte) (*Module, error) {
	var b []byte
	var err error
	if s.opt.Sim != nil {
		v, _ := s.opt.Sim.Modules.Load(name)
		b, _ = v.([]byte)
	} else if b, err = regular.Read(s.stop, filepath.Join(s.opt.Dir, moduleFiles, name), mostModule); err != nil {
		return nil, err
	}
	module, err := s.unpackModule(fingerprint, b)
	if err != nil {
		return nil, fmt.Errorf("the module %s of the store: %w", name, err)
	}
	return module, nil
}

// CheckModules reads all code that is kept. The error joins what is damaged. It ends with ctx.
func (s *Store) CheckModules(ctx context.Context) (err error) {
	m := &s.modules
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.files))
	m.mu.Unlock()
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fingerprint, bad := hex.DecodeString(name)
		if bad != nil || len(fingerprint) != record.FingerprintBytes {
			err = errors.Join(err, fmt.Errorf("%w: the store has a module %q, which is no fingerprint", ErrRecord, clip(name)))
		} else if _, bad := s.readModule(name, fingerprint); bad != nil {
			err = errors.Join(err, bad)
		}
	}
	return err
}

// Code implements record.Codes.
func (s *Store) Code(fingerprint []byte) (*runtime.Image, error) {
	module, err := s.Kept(fingerprint)
	switch {
	case err != nil:
		return nil, err
	case s.opt.Code == nil:
		return nil, errors.New("the store is opened without a way to load code")
	}
	return s.opt.Code(fingerprint, module)
}

// noted is told of each record.
func (m *modules) noted(r *record.Record) {
	var code []byte
	if r.Life != nil {
		code = r.Life.Code
	} else if r.Exchange != nil {
		code = r.Exchange.Code
	}
	if len(code) == 0 { // as of nearly all
		return
	}
	if name, ok := fileOf(code); ok {
		m.mu.Lock()
		m.since[name] = true
		m.mu.Unlock()
	}
}

// begin is called at the mark of a checkpoint.
func (m *modules) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.next = map[string]bool{}, map[string]bool{}
}

// has is told of the parts of a checkpoint.
func (m *modules) has(of *port.PartOf) {
	for _, code := range of.Codes {
		m.runs(code)
	}
}

// runs is told of code that actors of a checkpoint run.
func (m *modules) runs(code []byte) {
	if name, ok := fileOf(code); ok {
		m.mu.Lock()
		m.next[name] = true
		m.mu.Unlock()
	}
}

// sweepModules removes what is not needed, after a checkpoint.
func (s *Store) sweepModules() (err error) {
	m := &s.modules
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.files {
		if m.held[name] || m.since[name] || m.next[name] {
			continue
		}
		if s.opt.Sim != nil {
			s.opt.Sim.Modules.Delete(name)
		} else if gone := s.removeModule(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
			continue
		}
		delete(m.files, name)
		delete(m.whole, name)
		m.bytes.Add(-n)
	}
	return err
}

// packed is packModule, which in a simulation was perhaps called before.
func (s *Store) packed(name string, fingerprint []byte, module *Module) (b []byte, err error) {
	if m := s.opt.Sim; m != nil && m.Packed != nil {
		if v, ok := m.Packed.Load(name); ok {
			return v.([]byte), nil
		}
		defer func() {
			if err == nil {
				m.Packed.Store(name, b)
			}
		}()
	}
	return s.packModule(fingerprint, module)
}

// removeModule removes a file, or keeps it for a while.
func (s *Store) removeModule(name string) error {
	file := filepath.Join(s.opt.Dir, moduleFiles, name)
	if s.past != nil {
		return s.past.takeModule(file, name, s.opt.Clock.Now())
	}
	return os.Remove(file)
}

func (s *Store) packModule(fingerprint []byte, module *Module) ([]byte, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return nil, err
	}
	body := appendString(appendString(appendString(nil, module.Name), module.Config), module.Identity)
	if len(body)+len(module.Code) > mostModule {
		return nil, fmt.Errorf("the module %s has more than %d bytes", module.Name, mostModule)
	}
	body = z.EncodeAll(append(body, module.Code...), nil)
	if s.opt.Key == nil {
		return append([]byte(moduleHead+"\x00"), body...), nil
	}
	gcm, err := s.moduleCipher()
	if err != nil {
		return nil, err
	}
	b := append([]byte(moduleHead+"\x01"), make([]byte, gcm.NonceSize())...)
	nonce := b[len(b)-gcm.NonceSize():]
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return gcm.Seal(b, nonce, body, fingerprint), nil
}

func (s *Store) unpackModule(fingerprint, b []byte) (*Module, error) {
	if len(b) < len(moduleHead)+1 || !bytes.HasPrefix(b, []byte(moduleHead)) || b[len(moduleHead)] > 1 {
		return nil, fmt.Errorf("%w: it does not begin like a module", ErrRecord)
	}
	encrypted, body := b[len(moduleHead)] == 1, b[len(moduleHead)+1:]
	if encrypted != (s.opt.Key != nil) {
		return nil, fmt.Errorf("%w: it is encrypted: %v", ErrRecord, encrypted)
	}
	if encrypted {
		gcm, err := s.moduleCipher()
		if err == nil && len(body) < gcm.NonceSize() {
			err = fmt.Errorf("%w: it is cut", ErrRecord)
		}
		if err == nil {
			body, err = gcm.Open(nil, body[:gcm.NonceSize()], body[gcm.NonceSize():], fingerprint)
		}
		if err != nil {
			return nil, err
		}
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(mostModule))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	if body, err = z.DecodeAll(body, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	p := parser{rest: body}
	module := &Module{Name: p.string(), Config: p.data(), Identity: p.data()}
	if module.Code = p.rest; p.bad != "" {
		return nil, fmt.Errorf("%w: %s", ErrRecord, p.bad)
	}
	if why := module.wrong(fingerprint); why != "" {
		return nil, fmt.Errorf("%w: %s", ErrRecord, why)
	}
	return module, nil
}

// moduleCipher has a key of its own: nonces of the log are not those of modules.
func (s *Store) moduleCipher() (cipher.AEAD, error) {
	h := hmac.New(sha256.New, s.opt.Key)
	h.Write([]byte("wasmactors store modules"))
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
