package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/wasm"
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

// PlacesOf knows which instructions of a module the code of its image, one with Places, stands for. It takes as long as to rewrite the module.
func PlacesOf(i *Image, module []byte) (*rewrite.Sites, error) {
	m, err := wasm.Decode(module)
	if err == nil {
		var res *rewrite.Result
		cfg := i.cfg
		cfg.Places = true
		if res, err = rewrite.Instrument(m, cfg.rewriting()); err == nil {
			return res.Sites(), nil
		}
	}
	return nil, fmt.Errorf("runtime: %s: %w", i.cfg.Name, err)
}

// noLines is debugging information of one unit, with one line for all code: with it wazero tells where in the code section calls are.
func noLines() []wasm.Custom {
	return []wasm.Custom{
		{Name: ".debug_abbrev", Data: []byte{1, 0x11, 0, 0x11, 1, 0x12, 1, 0x10, 6, 0, 0, 0}}, // a unit: its first and last address, its lines
		{Name: ".debug_info", Data: []byte{20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 1, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0}},
		{Name: ".debug_line", Data: []byte{44, 0, 0, 0, 2, 0, 21, 0, 0, 0, // lengths
			1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 'x', 0, 0, 0, 0, 0, // operations, folders, files
			0, 5, 2, 1, 0, 0, 0, 1, 2, 0xfd, 0xff, 0xff, 0xff, 7, 0, 1, 1}},
	}
}
