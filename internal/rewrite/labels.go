package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// opened keeps track of the blocks that are open while code is rewritten, those of the guest
// and those that were put around them. Branches are renumbered by it.
type opened struct {
	blocks []guestBlock
	height uint32 // of all that is open
	loops  int    // open loops with an outer loop, see writer.loop
}

type guestBlock struct {
	at      uint32 // how many are open around it
	takes   bool   // branches to it carry values
	charged bool   // a loop that charges for its iterations
	cost    uint64 // of one
	around  uint32 // blocks that were put around it
	from    uint32 // where it is in the module, see sites
}

// enter opens a block of the guest's with its head.
func (w *writer) enter(head []byte, takes bool) {
	w.raw(head)
	w.blocks = append(w.blocks, guestBlock{at: w.height, takes: takes})
	w.height++
}

// leave ends the innermost block of the guest's.
func (w *writer) leave() {
	b := w.blocks[len(w.blocks)-1]
	w.blocks = w.blocks[:len(w.blocks)-1]
	w.height = b.at
	if b.charged {
		w.height -= b.around
		w.loops--
		w.standFor(b.from)
		w.endLoop(b.cost, b.around)
		return
	}
	w.op(wasm.OpEnd)
}

// label emits the new number of the guest's label.
func (w *writer) label(depth uint32) {
	b := w.blocks[len(w.blocks)-1-int(depth)]
	w.u32(w.height - 1 - b.at)
}

// branchIf emits br_if as an if around a br. wazero compiles that to a compare and a jump,
// and br_if often to a comparison, a test of its result and two jumps.
func (w *writer) branchIf(depth uint32) {
	if w.blocks[len(w.blocks)-1-int(depth)].takes {
		w.op(wasm.OpBrIf)
		w.label(depth)
		return
	}
	w.op(wasm.OpIf, blockEmpty)
	w.height++
	w.op(wasm.OpBr)
	w.label(depth)
	w.height--
	w.op(wasm.OpEnd)
}
