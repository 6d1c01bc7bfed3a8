package sandbox

import (
	"context"
	"reflect"
	"strings"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// The guest's call stack, read within a host function. wazero shows it to function listeners
// only, and with those it compiles every call of a guest differently. Its iterator works
// without listeners if it is given the return addresses, which we find as wazero does. As
// with callLayout, fields are found by name, and if one is not as expected there are no
// stacks.

// stackLayout holds the offsets of fields in wazero's function object.
type stackLayout struct {
	top, sp, fp, ret uintptr
	iterator         reflect.Type
	at               uintptr // of the iterator
	addrs, cursor    uintptr // in the iterator
	engine           uintptr
	parent           [3]uintptr // function, module engine, compiled module, engine
}

// stackLayoutOf is the layout of a function object, nil if its fields are not the known ones.
func stackLayoutOf(t reflect.Type) *stackLayout {
	l := &stackLayout{}
	ok := true
	at := func(t reflect.Type, name string, kind reflect.Kind) (uintptr, reflect.Type) {
		f, found := t.FieldByName(name)
		if !found || f.Type.Kind() != kind || len(f.Index) != 1 {
			ok = false
			return 0, nil
		}
		return f.Offset, f.Type
	}
	exec, execType := at(t, "execCtx", reflect.Struct)
	iter, iterType := at(t, "stackIteratorImpl", reflect.Struct)
	l.top, _ = at(t, "stackTop", reflect.Uintptr)
	p0, mod := at(t, "parent", reflect.Pointer)
	if !ok {
		return nil
	}
	sp, _ := at(execType, "stackPointerBeforeGoCall", reflect.Pointer)
	fp, _ := at(execType, "framePointerBeforeGoCall", reflect.Uintptr)
	ret, _ := at(execType, "goCallReturnAddress", reflect.Pointer)
	l.sp, l.fp, l.ret = exec+sp, exec+fp, exec+ret
	addrs, addrsType := at(iterType, "retAddrs", reflect.Slice)
	l.addrs, l.at, l.iterator = addrs, iter, iterType
	l.cursor, _ = at(iterType, "retAddrCursor", reflect.Int)
	engine, engineType := at(iterType, "eng", reflect.Pointer)
	l.engine = engine
	p1, compiled := at(mod.Elem(), "parent", reflect.Pointer)
	if !ok {
		return nil
	}
	p2, owner := at(compiled.Elem(), "parent", reflect.Pointer)
	l.parent = [3]uintptr{p0, p1, p2}
	if !ok || addrsType != reflect.TypeFor[[]uintptr]() || owner != engineType || !reflect.PointerTo(iterType).Implements(reflect.TypeFor[experimental.StackIterator]()) {
		return nil
	}
	return l
}

// mostFrames bounds the frames of a stack that are read, hidden ones included.
const mostFrames = abi.MaxFrames + 8

// callStack appends the names of the guest's functions, innermost first. Only host functions
// may call it, while the guest waits for them. addrs is scratch.
func (x *Instance) callStack(names []string, addrs []uintptr) []string {
	x.eachFrame(addrs, func(f api.FunctionDefinition, _ experimental.StackIterator) bool {
		names = append(names, strings.TrimPrefix(f.DebugName(), "."))
		return len(names) < abi.MaxFrames
	})
	return names
}

// eachFrame calls f with the guest's functions, and with what knows where they are, innermost first, until it returns false. It reads as many
// frames as addrs, which is scratch, has room for.
func (x *Instance) eachFrame(addrs []uintptr, f func(fn api.FunctionDefinition, it experimental.StackIterator) bool) {
	object := x.caller()
	if object == nil {
		return
	}
	l := x.image.callers.stacks(x)
	if l == nil {
		return
	}
	at := func(offset uintptr) uintptr { return *(*uintptr)(unsafe.Add(object, offset)) }
	top, stack := at(l.top), *(*[]byte)(unsafe.Add(object, x.image.callers.layout.stack))
	if len(stack) == 0 {
		return
	}
	low := uintptr(unsafe.Pointer(&stack[0]))
	if top < low || top > low+uintptr(len(stack)) {
		return
	}
	addrs = append(addrs[:0], at(l.ret))
	addrs = unwind(stack[:top-low], low, at(l.sp), at(l.fp), addrs)
	p := unsafe.Pointer(object)
	for _, offset := range l.parent {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, offset)); p == nil {
			return
		}
	}
	iterator := unsafe.Add(object, l.at)
	*(*[]uintptr)(unsafe.Add(iterator, l.addrs)) = addrs
	*(*int)(unsafe.Add(iterator, l.cursor)) = 0
	*(*unsafe.Pointer)(unsafe.Add(iterator, l.engine)) = p
	frames := reflect.NewAt(l.iterator, iterator).Interface().(experimental.StackIterator)
	for frames.Next() {
		fn := frames.Function().Definition()
		if name := strings.TrimPrefix(fn.DebugName(), "."); strings.HasPrefix(name, rewrite.ImportModule+".") || name == enterName {
			continue
		}
		if !f(fn, frames) {
			break
		}
	}
	*(*[]uintptr)(unsafe.Add(iterator, l.addrs)) = nil
}

// callWith is a function that is always called with the same context.
type callWith struct {
	api.Function
	ctx context.Context
}

// CallWithStack implements api.Function.
func (f *callWith) CallWithStack(_ context.Context, stack []uint64) error {
	return f.Function.CallWithStack(f.ctx, stack)
}

// caller is the function object that the call under way goes through, nil if it is not known.
func (x *Instance) caller() unsafe.Pointer {
	l := x.image.callers.layout
	if l == nil {
		return nil // not the compiler
	}
	if f, ok := x.own.(*callWith); ok {
		return objectOf(f.Function)
	}
	if x.own != nil {
		return objectOf(x.own)
	}
	c := x.entered
	if in := x.in; in != nil && in.last.lent && in.last.entry == in && in.last.from == &x.image.callers {
		c = in.last.it.object
	}
	if c == nil || *(*unsafe.Pointer)(unsafe.Add(c, l.parent)) != x.engine {
		return nil
	}
	return c
}

// stacks is the layout of stacks, found once.
func (s *callers) stacks(x *Instance) *stackLayout {
	s.stackOnce.Do(func() {
		if canUnwind {
			s.stackLayout = stackLayoutOf(reflect.TypeOf(x.module.ExportedFunction(rewrite.ExportEnter)).Elem())
		}
	})
	return s.stackLayout
}
