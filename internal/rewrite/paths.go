package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// A region is what runs between two charges: a function's code outside its
// loops, or a loop's outside its inner loops. Within a region control only goes
// forward, so the longest path through it bounds what one charge must pay for.
// Code that only runs one of many branches (standard Go's functions are one loop
// around a table of jumps) would otherwise pay for all of them at every turn.

// path is the cost of the longest path to the present point of a region.
type path struct {
	cost    uint64
	longest uint64 // of all paths so far: control may leave for good within an inner loop
	loop    int    // index into loops, -1 for the function
}

// add goes on by what costs n.
func (p *path) add(n uint64) {
	p.cost += n
	p.longest = max(p.longest, p.cost)
}

// label is a block that is open: branches to it go on behind its end, or at its
// head if it is a loop.
type label struct {
	op     byte
	region int    // that it lies in
	behind uint64 // the longest path to a branch to its end
	joined bool   // there is such a branch
	before uint64 // if: the cost at its head, for the else
	live   bool   // if: its head can be reached
	calls  int    // loop: the walker's, at its head
	often  uint64 // loop: how often the code around it runs
}

// walker follows the code of one function.
type walker struct {
	in     *instrumenter
	f      *function
	paths  []path
	labels []label
	last   wasm.Instr
	now    int  // region
	live   bool // the present point can be reached

	// What keeping the fuel in a local is worth, by a guess of how often code runs:
	// every loop's head gains, every call of a function that charges itself loses.
	gain, loss, often uint64
	calls             int // of such functions, so far
}

// often is how many times more code in a loop runs.
const (
	loopOften = 8
	mostOften = 1 << 12
)

// weigh computes the costs of a function's regions. Leaves must be known.
func (in *instrumenter) weigh(i int) error {
	f, body := &in.funcs[i], &in.src.Code[i]
	f.loops = f.loops[:0]
	w := walker{in: in, f: f, live: true, often: 1}
	w.enter(1+body.NumLocals()>>localShift, -1)
	w.labels = append(w.labels, label{op: wasm.OpBlock})
	it := wasm.NewInstrs(body.Code, body.Offset)
	var ins wasm.Instr
	for len(w.labels) > 0 {
		ok, err := it.Next(&ins)
		if err != nil || !ok {
			return err
		}
		w.step(&ins, &it)
		w.last = ins
	}
	f.local = w.gain > w.loss
	for _, p := range w.paths {
		if p.loop < 0 {
			f.cost = p.longest
		} else {
			f.loops[p.loop].cost = p.longest
		}
	}
	return nil
}

// enter begins a region.
func (w *walker) enter(cost uint64, loop int) {
	w.paths = append(w.paths, path{cost: cost, longest: cost, loop: loop})
	w.now = len(w.paths) - 1
}

func (w *walker) step(ins *wasm.Instr, it *wasm.Instrs) {
	w.in.steps++
	p := &w.paths[w.now]
	if w.live {
		p.add(w.price(ins))
	}
	switch ins.Op {
	case wasm.OpBlock:
		w.labels = append(w.labels, label{op: ins.Op, region: w.now})
	case wasm.OpIf:
		w.labels = append(w.labels, label{op: ins.Op, region: w.now, before: p.cost, live: w.live})
	case wasm.OpLoop:
		w.labels = append(w.labels, label{op: ins.Op, region: w.now, often: w.often, calls: w.calls})
		w.enter(1, len(w.f.loops))
		w.f.loops = append(w.f.loops, loop{})
		w.often = min(w.often*loopOften, mostOften)
		if w.live {
			w.gain += w.often
		}
	case wasm.OpElse:
		l := &w.labels[len(w.labels)-1]
		w.branch(0)
		l.op = wasm.OpElse
		p.cost, w.live = l.before, l.live
	case wasm.OpEnd:
		w.close()
	case wasm.OpCall, wasm.OpCallIndirect:
		if ins.Op == wasm.OpCallIndirect || !w.in.isLeaf(ins.X) {
			w.charges()
		}
	case wasm.OpMemoryGrow:
		w.charges()
	case wasm.OpMisc:
		if _, small := smallCost(&w.last, ins); ins.Sub >= wasm.MiscMemoryInit && !small {
			w.charges()
		}
	case wasm.OpBr:
		w.branch(ins.X)
		w.live = false
	case wasm.OpBrIf:
		w.branch(ins.X)
	case wasm.OpBrTable:
		w.in.steps += uint64(len(it.Labels()))
		for _, l := range it.Labels() {
			w.branch(l)
		}
		w.live = false
	case wasm.OpReturn, wasm.OpUnreachable:
		w.live = false
	}
}

// charges notes that something is called that charges itself.
func (w *walker) charges() {
	if w.live {
		w.loss += w.often
		w.calls++
	}
}

// branch notes a jump: what the target's region has cost so far goes on behind
// the target.
func (w *walker) branch(depth uint32) {
	if !w.live {
		return
	}
	l := &w.labels[len(w.labels)-1-int(depth)]
	if l.op == wasm.OpLoop {
		// Charged anew at its head. Regions in between have not ended; what they have
		// cost is part of their paths already.
		return
	}
	l.behind, l.joined = max(l.behind, w.paths[l.region].cost), true
}

// close ends the innermost block.
func (w *walker) close() {
	l := w.labels[len(w.labels)-1]
	w.labels = w.labels[:len(w.labels)-1]
	p := &w.paths[w.now]
	switch l.op {
	case wasm.OpLoop:
		w.f.loops[p.loop].calls = w.calls > l.calls
		w.often = l.often
		w.now = l.region // its cost stands where the loop began; live stays
		return
	case wasm.OpIf: // without an else its head goes on behind it, too
		if l.live {
			if !w.live {
				p.cost = 0
			}
			p.cost, w.live = max(p.cost, l.before), true
		}
	}
	if l.joined {
		if !w.live {
			p.cost = 0
		}
		p.cost, w.live = max(p.cost, l.behind), true
	}
}

// price is what one instruction costs, what it calls and is not charged itself
// included.
func (w *walker) price(ins *wasm.Instr) uint64 {
	if w.in.flat {
		return flatPrice(ins)
	}
	switch ins.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpEnd, wasm.OpNop:
		return 0
	case wasm.OpBrTable:
		return 3
	case wasm.OpCall:
		if int(ins.X) < w.in.imported {
			imp := &w.in.src.Imports[ins.X]
			return 1 + hostCost(imp.Module, imp.Name)
		}
		if callee := &w.in.funcs[int(ins.X)-w.in.imported]; callee.leaf {
			return 1 + callee.cost
		}
	case wasm.OpCallIndirect:
		return priceIndirect + w.in.indirect[ins.X]
	case wasm.OpMemoryGrow:
		return pageCost
	case wasm.OpMisc:
		if ins.Sub >= wasm.MiscMemoryInit {
			small, _ := smallCost(&w.last, ins)
			if ins.Sub == wasm.MiscTableGrow {
				return priceTableGrow
			}
			return 9 + small
		}
	}
	return instrPrice(ins)
}
