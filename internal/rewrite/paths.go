package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// A region is the code that one charge pays for: that of a function outside its loops, or of
// a loop outside its inner loops. Within a region control only goes forward, so a charge for
// the longest path through it is enough. A charge for all of its code would be far too much
// where only one of many branches runs, as in standard Go's functions, which are one loop
// around a table of jumps.

// path is the cost of the longest path to the present point of a region.
type path struct {
	cost    uint64
	longest uint64 // of all paths so far: control may leave for good within an inner loop
	loop    int    // index into loops, -1 for the function
}

// add extends the path by code that costs n.
func (p *path) add(n uint64) {
	p.cost += n
	p.longest = max(p.longest, p.cost)
}

// label is an open block, as a target of branches: they go to its end, or to its head if it
// is a loop.
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

	// What is gained and lost by keeping the fuel in a local, weighted by an estimate of how
	// often code runs: every loop's head gains, every call of a function that charges itself
	// loses.
	gain, loss, often uint64
	calls             int // of such functions, so far
}

// often is the estimate of how many times code in a loop runs.
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

// branch notes a jump: the path so far, in the target's region, goes on at the target.
func (w *walker) branch(depth uint32) {
	if !w.live {
		return
	}
	l := &w.labels[len(w.labels)-1-int(depth)]
	if l.op == wasm.OpLoop {
		// A branch to a loop is charged at its head. The paths of the regions that it
		// leaves are counted already.
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
		w.now = l.region // whose path is where it was when the loop began
		return
	case wasm.OpIf: // without an else, the path from its head goes on at its end
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

// price is what one instruction costs, including callees that do not charge themselves.
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
