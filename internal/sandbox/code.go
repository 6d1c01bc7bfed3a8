package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"
)

// codeStore takes the place of wazero's file cache: wazero asks it for machine code, and
// gives it what it has compiled. So machine code comes from authenticated bytes in our
// memory, and never from a file that could change between the check and the use. It serves
// one module and one call of CompileModule.
type codeStore struct {
	serve io.Reader // what to answer, once; nil to compile
	made  []byte    // what was compiled
	asked codeKey
}

// codeKey is wazero's name for a module's machine code. The processor's features
// are part of it.
type codeKey = [32]byte

// Get, Add and Delete are the interface internal/filecache.Cache of wazero.
func (s *codeStore) Get(key codeKey) (io.ReadCloser, bool, error) {
	s.asked = key
	if s.serve == nil {
		return nil, false, nil
	}
	return io.NopCloser(s.serve), true, nil
}

func (s *codeStore) Add(_ codeKey, content io.Reader) (err error) {
	if r, ok := content.(*bytes.Reader); ok {
		s.made = make([]byte, r.Len())
		_, err = io.ReadFull(r, s.made)
		return err
	}
	s.made, err = io.ReadAll(content)
	return err
}

func (s *codeStore) Delete(codeKey) error { return nil }

// errCodeStore says that this version of wazero has no such field.
var errCodeStore = errors.New("runtime: the machine code of this version of wazero cannot be saved and loaded")

// compilationCache is a compilation cache of wazero's whose storage is s. wazero's API
// offers files only; its internal field for them is an interface, which codeStore implements.
func compilationCache(s *codeStore) (wazero.CompilationCache, error) {
	c := wazero.NewCompilationCache()
	v := reflect.ValueOf(c)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, errCodeStore
	}
	f := v.Elem().FieldByName("fileCache")
	if !f.IsValid() || f.Kind() != reflect.Interface || !reflect.TypeOf(s).Implements(f.Type()) {
		return nil, errCodeStore
	}
	reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Set(reflect.ValueOf(s))
	return c, nil
}

// machine identifies this version of wazero on this processor: it is wazero's cache key for
// the empty module.
var machine = sync.OnceValues(func() (codeKey, error) {
	var s codeStore
	c, err := compilationCache(&s)
	if err != nil {
		return codeKey{}, err
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false).WithCompilationCache(c))
	defer closeRuntime(r, c)
	if _, err := r.CompileModule(ctx, []byte("\x00asm\x01\x00\x00\x00")); err != nil {
		return codeKey{}, err
	}
	if s.asked == (codeKey{}) {
		return codeKey{}, errCodeStore
	}
	return s.asked, nil
})

// checkCode checks the structure of machine code that a process has compiled from a hostile
// module: it has as many functions as the module, each lies within the code, and no count
// makes wazero allocate more than is there. What the instructions do cannot be checked. Only an image with places may have a source map.
func checkCode(code []byte, functions int, places bool) error {
	bad := func(what string) error { return fmt.Errorf("malformed machine code: %s", what) }
	head, rest, ok := split(code, 7)
	if !ok || string(head[:6]) != "WAZEVO" {
		return bad("no header")
	}
	if _, rest, ok = split(rest, uint64(head[6])); !ok {
		return bad("no version")
	}
	word, rest, ok := split(rest, 4)
	if !ok || uint64(binary.LittleEndian.Uint32(word)) != uint64(functions) {
		return bad("another number of functions")
	}
	offsets, rest, ok := split(rest, 8*uint64(functions))
	if !ok {
		return bad("it is truncated")
	}
	size, rest, ok := split(rest, 8)
	if !ok {
		return bad("it is truncated")
	}
	text, rest, ok := split(rest, binary.LittleEndian.Uint64(size))
	if !ok {
		return bad("it is truncated")
	}
	if len(text) > 0 {
		if _, rest, ok = split(rest, 4); !ok {
			return bad("no checksum")
		}
	}
	for last := uint64(0); len(offsets) > 0; offsets = offsets[8:] {
		at := binary.LittleEndian.Uint64(offsets)
		if at < last || at >= uint64(len(text)) {
			return bad("a function outside of the code")
		}
		last = at
	}
	if places && len(rest) > 9 && rest[0] == 1 { // a source map: pairs of where code is in the module, and in the machine code
		n := binary.LittleEndian.Uint64(rest[1:])
		if rest = rest[9:]; n > uint64(len(rest))/16 {
			return bad("it is truncated")
		}
		for ; n > 0; n-- {
			if at := binary.LittleEndian.Uint64(rest[8:]); at > uint64(len(text)) {
				return bad("a place outside of the code")
			}
			rest = rest[16:]
		}
		rest = append([]byte{0}, rest...)
	}
	if !bytes.Equal(rest, make([]byte, 1+4)) {
		return bad("it has a source map or exception handlers, which rewritten modules never have")
	}
	return nil
}

// split cuts n bytes off.
func split(b []byte, n uint64) (head, rest []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
