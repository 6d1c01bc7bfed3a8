package sandbox

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// Where code is in the module that it stands for. wazero tells of each call where it is in the rewritten module, but only of modules that
// have debugging information. So an image with ImageConfig.Places gets some that says nothing, and the rewriter knows where its
// code comes from.

// placed is what an instance knows of places beside.
type placed struct {
	block  api.MutableGlobal // nil: it was not looked up yet
	noted  uint64            // rewrite.GlobalBlock at the last refuel
	failed []uint64          // offsets of the calls of the last failure, like Failure.Stack
}

// noteBlock reads rewrite.GlobalBlock.
func (x *Instance) noteBlock() {
	p := x.places
	if p.block == nil {
		p.block, _ = x.module.ExportedGlobal(rewrite.GlobalBlock).(api.MutableGlobal)
		if p.block == nil {
			return
		}
	}
	p.noted = p.block.Get()
	p.block.Set(0)
}

// Block is the first parameter of the function that has just been charged for itself, if that is an i32: in code of standard Go the number of
// the block that comes next. It is known while a Run has stopped there, and after one that has ended there for fuel or from outside, in an
// image with Places.
func Block(x *Instance) (block uint32, ok bool) {
	p := x.places
	if p == nil || x.hosted || p.noted>>32 != 1 {
		return 0, false
	}
	return uint32(p.noted), true
}

// failedAt reads where the calls of wazero's stack trace are; names are what frames has read of it.
func (x *Instance) failedAt(trace string, names []string) {
	if x.places == nil {
		return
	}
	list := make([]uint64, 0, len(names))
	trace, _, _ = strings.Cut(trace, "\n\n")
	own := false
	for line := range strings.Lines(trace) {
		line = strings.TrimRight(line, "\n")
		if at, ok := strings.CutPrefix(line, "\t\t"); ok {
			if own {
				text, _, _ := strings.Cut(at, ":")
				list[len(list)-1], _ = strconv.ParseUint(text, 0, 64) // 0 if it is none
			}
			own = false
			continue
		}
		if own = len(frames(line, false)) == 1; own {
			list = append(list, 0)
		}
	}
	x.places.failed = list[:min(len(list), len(names))]
}

// FailedAt are the offsets of the calls of the last failure, in the order of its Stack: of the instruction under way, in the code section of the
// rewritten module. 0 is not known; without Places there are none.
func FailedAt(x *Instance) []uint64 {
	if x.places == nil {
		return nil
	}
	return slices.Clone(x.places.failed)
}
