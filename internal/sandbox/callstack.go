package sandbox

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// keepStack is how large a call stack an instance may keep between two entries, in
// bytes. wazero begins with 10 KiB on Go's heap, grows it when calls nest, up to
// some times ImageConfig.StackLimit, and never shrinks it.
const keepStack = 256 << 10

// stackFields is where the functions of wazero's engines keep the slice of their
// call stack, by type: 0 if they have none, as in the interpreter.
// TestCallStackIsGivenBack notices should another version of wazero call it
// otherwise.
var stackFields sync.Map // of reflect.Type to uintptr

func stackField(f api.Function) uintptr {
	t := reflect.TypeOf(f)
	if at, ok := stackFields.Load(t); ok {
		return at.(uintptr)
	}
	at := uintptr(0)
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		if field, ok := t.Elem().FieldByName("stack"); ok && len(field.Index) == 1 && field.Type == reflect.TypeFor[[]byte]() {
			at = field.Offset
		}
	}
	stackFields.Store(t, at)
	return at
}

// stackBytes is the size of the call stack; 0 if it is not known.
func (x *Instance) stackBytes() int {
	if x.stackAt == 0 || x.enter == nil {
		return 0
	}
	object := (*[2]unsafe.Pointer)(unsafe.Pointer(&x.enter))[1] // of the interface's pair of type and value
	return len(*(*[]byte)(unsafe.Add(object, x.stackAt)))
}

// shrinkStack takes a new call stack if the present one has grown large.
func (x *Instance) shrinkStack() {
	if x.stackBytes() > keepStack {
		x.enter = x.module.ExportedFunction(rewrite.ExportEnter)
	}
}
