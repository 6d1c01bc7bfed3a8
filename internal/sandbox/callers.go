package sandbox

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// callers are the function objects through which an image's instances are called.
//
// In wazero each api.Function has a call stack of its own, 10 KiB at first, which is in use
// only during a call. One for each instance made up nearly half of a small actor's memory
// and most of the cost of making it. All instances of an image run the same code, and
// wazero's function object refers to its instance by a single pointer. So instances share a
// stock of functions: one is taken for the time of a call, and its pointer is set. wazero has
// no API for that. callLayout checks that its objects have the fields that we know; if they
// have not, or in the interpreter, each instance has a function of its own.
type callers struct {
	once   sync.Once
	layout *callLayout // nil: not shared
	extra  *surplus    // nil: instances keep it
	stock  sync.Pool   // of *caller; the garbage collector takes what is not used

	stackOnce   sync.Once
	stackLayout *stackLayout // nil: there are no stacks
}

// caller is a function object that instances share, one at a time.
type caller struct {
	enter  api.Function
	object unsafe.Pointer // the function object
}

// maxKeptStack is how large a call stack may have grown for the function to be used
// again.
const maxKeptStack = 64 << 10

// callLayout holds the offsets of fields in wazero's objects.
type callLayout struct {
	engine uintptr // in the module instance: an interface that holds what parent points to
	parent uintptr // in the function: a pointer to the instance's module engine
	stack  uintptr // in the function: the call stack, a slice of bytes
}

// knownCall are the fields of wazero 1.12's function object. Only parent depends on the
// instance: executable and preambleExecutable belong to the code, the numbers to the
// function, and everything else to the call under way.
var knownCall = []string{"WazeroOnly", "stack", "stackTop", "executable", "preambleExecutable", "parent", "indexInModule",
	"sizeOfParamResultSlice", "requiredParams", "execCtx", "execCtxPtr", "numberOfResults", "stackIteratorImpl", "tryHandlers", "pendingException"}

// layoutOf is the layout of a module instance and a function of it, nil if their fields are
// not the known ones.
func layoutOf(module api.Module, f api.Function) *callLayout {
	m, c := reflect.ValueOf(module), reflect.ValueOf(f)
	if m.Kind() != reflect.Pointer || c.Kind() != reflect.Pointer || m.Elem().Kind() != reflect.Struct || c.Elem().Kind() != reflect.Struct {
		return nil
	}
	mt, ct := m.Elem().Type(), c.Elem().Type()
	if ct.Name() != "callEngine" || !strings.HasSuffix(ct.PkgPath(), "/wazevo") {
		return nil
	}
	var names []string
	for i := range ct.NumField() {
		names = append(names, ct.Field(i).Name)
	}
	if !slices.Equal(names, knownCall) {
		return nil
	}
	engine, ok := mt.FieldByName("Engine")
	parent, _ := ct.FieldByName("parent")
	stack, _ := ct.FieldByName("stack")
	if !ok || engine.Type.Kind() != reflect.Interface || engine.Type.NumMethod() == 0 ||
		parent.Type.Kind() != reflect.Pointer || stack.Type != reflect.TypeFor[[]byte]() {
		return nil
	}
	held := m.Elem().FieldByName("Engine").Elem()
	if held.Type() != parent.Type || held.UnsafePointer() != c.Elem().FieldByName("parent").UnsafePointer() {
		return nil
	}
	return &callLayout{engine.Offset, parent.Offset, stack.Offset}
}

// pointerOf is the data word of an interface that holds a pointer.
func pointerOf(i unsafe.Pointer) unsafe.Pointer { return (*[2]unsafe.Pointer)(i)[1] }

func objectOf[T any](v T) unsafe.Pointer { return pointerOf(unsafe.Pointer(&v)) }

// join prepares a new instance for calls: as a user of the stock, or with a function of
// its own.
func (s *callers) join(x *Instance) {
	s.once.Do(func() {
		f := x.module.ExportedFunction(rewrite.ExportEnter)
		if s.layout = layoutOf(x.module, f); s.layout != nil {
			s.stock.Put(&caller{f, objectOf(f)})
			if !x.image.cfg.Places { // of those a further global is read
				s.extra = surplusOf(x.module, s.partOf(x.module))
			}
		} else {
			x.own = f
		}
	})
	if s.layout == nil {
		if x.own == nil {
			x.own = x.module.ExportedFunction(rewrite.ExportEnter)
		}
		return
	}
	x.engine = s.partOf(x.module)
	if s.extra != nil {
		x.block = s.extra.drop(x.module, x.engine)
	}
}

// partOf is the engine's part of a module instance.
func (s *callers) partOf(module api.Module) unsafe.Pointer {
	return pointerOf(unsafe.Add(objectOf(module), s.layout.engine))
}

// lastCaller caches in an Entry the function that it was used with last. A worker uses one
// Entry for one Run after the other, so it goes to the stock only when the image changes.
// The cache is not valid in a copy of the Entry.
type lastCaller struct {
	entry *Entry // whose it is
	from  *callers
	it    *caller
	lent  bool // in use by a call under way
}

// take returns a function from the stock that enters x, for x alone until giveBack.
func (s *callers) take(x *Instance) *caller {
	c, _ := s.stock.Get().(*caller)
	if c == nil {
		f := x.module.ExportedFunction(rewrite.ExportEnter)
		x.entered = objectOf(f)
		return &caller{f, x.entered}
	}
	x.entered = c.object
	s.aim(c, x)
	return c
}

// aim makes a function enter x.
func (s *callers) aim(c *caller, x *Instance) {
	if at := (*unsafe.Pointer)(unsafe.Add(c.object, s.layout.parent)); *at != x.engine {
		*at = x.engine
	}
}

// stackLen is the size of the function's call stack, in bytes.
func (s *callers) stackLen(c *caller) int {
	return len(*(*[]byte)(unsafe.Add(c.object, s.layout.stack)))
}

// giveBack puts the function back, unless its stack has grown.
func (s *callers) giveBack(x *Instance, c *caller) {
	in := x.in
	grown := s.stackLen(c) > maxKeptStack
	if in == nil {
		if !grown {
			s.stock.Put(c)
		}
		return
	}
	last := &in.last
	if last.it == c && last.entry == in && !grown {
		last.lent = false
		return
	}
	if last.it != nil && last.it != c && last.entry == in {
		last.from.stock.Put(last.it)
	}
	*last = lastCaller{}
	if !grown {
		*last = lastCaller{entry: in, from: s, it: c}
	}
}

// noteStack puts a call stack that has grown on the account, before others run: they may have grown ones, too. wazero
// makes it larger than what the calls on it take.
func (x *Instance) noteStack() {
	if x.in.Account == nil || x.own != nil {
		return
	}
	object := x.caller()
	if object == nil {
		return
	}
	n := uint64(len(*(*[]byte)(unsafe.Add(object, x.image.callers.layout.stack))))
	if n <= maxKeptStack || n <= x.in.stacked {
		return
	}
	if !x.in.Account.Grow(x.in.stacked, n) {
		x.endTurn(abi.FailureMemoryLimit, fmt.Sprintf("the system has no room for a call stack of %d bytes", n))
	}
	x.in.stacked = n
}

// stackBytes is how large the call stack under way is; 0: that is not known.
func (x *Instance) stackBytes() int {
	object := x.caller()
	if object == nil {
		return 0
	}
	return len(*(*[]byte)(unsafe.Add(object, x.image.callers.layout.stack)))
}

// dropStack takes it from the account.
func (x *Instance) dropStack() {
	x.in.Account.Grow(x.in.stacked, 0)
	x.in.stacked = 0
}
