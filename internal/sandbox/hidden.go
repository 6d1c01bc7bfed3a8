package sandbox

import (
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// hidden is one of the rewriter's globals that the host uses.
type hidden int

const (
	hiddenFuel hidden = iota
	hiddenQuantum
	hiddenBegun
	hiddenEnded
	hiddenOut
	hiddenDirty
	hiddenSpent
	hiddenStop
	hiddenCount
)

var hiddenNames = [hiddenCount]string{rewrite.GlobalFuel, rewrite.GlobalQuantum, rewrite.GlobalBegun, rewrite.GlobalEnded, rewrite.GlobalOut, rewrite.GlobalDirty, rewrite.GlobalSpent, rewrite.GlobalStop}

// hiddenGlobals are those of a module instance: words in wazero's block of the instance if we know
// where, see surplus, and otherwise what wazero's API shows, looked up when first needed.
type hiddenGlobals struct {
	block unsafe.Pointer // nil: by the API
	shown *[hiddenCount]api.MutableGlobal
}

// word is where a global's value is; only if there is a block.
func (x *Instance) word(g hidden) *uint64 {
	return (*uint64)(unsafe.Add(x.block, x.image.callers.extra.places[g]))
}

// hidden reads a global.
func (x *Instance) hidden(g hidden) uint64 {
	if x.block != nil {
		return *x.word(g)
	}
	return x.shownGlobal(g).Get()
}

func (x *Instance) setHidden(g hidden, v uint64) {
	if x.block != nil {
		*x.word(g) = v
		return
	}
	x.shownGlobal(g).Set(v)
}

func (x *Instance) shownGlobal(g hidden) api.MutableGlobal {
	if x.shown == nil {
		x.shown = new([hiddenCount]api.MutableGlobal)
		for k, name := range hiddenNames {
			x.shown[k] = x.module.ExportedGlobal(name).(api.MutableGlobal)
		}
	}
	return x.shown[g]
}
