package rewrite

// markCounted finds the functions whose frames must be counted: those on a cycle of the call
// graph, in which every call_indirect leads to every function whose address is taken. If the
// others can still nest too deeply, all are counted.
func (in *instrumenter) markCounted() {
	n := len(in.funcs)
	table := n // a node that stands for all tables
	next := func(v, k int) int {
		in.steps++
		if v == table {
			if k < len(in.takenList) {
				return in.takenList[k]
			}
			return -1
		}
		f := &in.funcs[v]
		if k < len(f.calls) {
			if c := int(f.calls[k]) - in.imported; c >= 0 {
				return c
			}
			return -2 // imported: not in the graph
		}
		if k == len(f.calls) && f.indir {
			return table
		}
		return -1
	}
	for i := range in.funcs {
		if in.funcs[i].taken {
			in.takenList = append(in.takenList, i)
		}
	}
	component, size, order := tarjan(n+1, next)
	selfCall := make([]bool, n)
	for i := range in.funcs {
		for _, c := range in.funcs[i].calls {
			selfCall[i] = selfCall[i] || int(c)-in.imported == i
		}
	}
	for i := range in.funcs {
		in.funcs[i].counted = size[component[i]] > 1 || selfCall[i]
	}
	// The deepest chain of functions that are not counted. Components come callees
	// first, so those of v's successors are known.
	deepest := make([]uint64, n+1)
	worst := uint64(0)
	for _, v := range order {
		best := uint64(0)
		for k := 0; ; k++ {
			w := next(v, k)
			if w == -1 {
				break
			}
			if w >= 0 && component[w] != component[v] {
				best = max(best, deepest[w])
			}
		}
		if v != table && !in.funcs[v].counted {
			best += in.funcs[v].weight
		}
		deepest[v] = best
		worst = max(worst, best)
	}
	if worst > staticStack {
		for i := range in.funcs {
			in.funcs[i].counted = true
		}
	}
	in.markDeep(order, next, table)
}

// tarjan finds the strongly connected components of a graph of n nodes, without
// recursion. next(v, k) is the k-th successor of v, -1 behind the last, -2 to be
// skipped. It returns each node's component, the components' sizes, and the
// nodes in an order where successors in other components come first.
func tarjan(n int, next func(v, k int) int) (component, size, order []int) {
	const unseen = -1
	index, low := make([]int, n), make([]int, n)
	component = make([]int, n)
	for v := range n {
		index[v], component[v] = unseen, unseen
	}
	type frame struct{ v, k int }
	var path []frame
	var stack []int
	counter := 0
	for root := range n {
		if index[root] != unseen {
			continue
		}
		path = append(path, frame{root, 0})
		for len(path) > 0 {
			f := &path[len(path)-1]
			v := f.v
			if f.k == 0 {
				index[v], low[v] = counter, counter
				counter++
				stack = append(stack, v)
			}
			w := next(v, f.k)
			f.k++
			switch {
			case w == -2:
			case w >= 0 && index[w] == unseen:
				path = append(path, frame{w, 0})
			case w >= 0:
				if component[w] == unseen {
					low[v] = min(low[v], index[w])
				}
			default:
				path = path[:len(path)-1]
				if len(path) > 0 {
					u := path[len(path)-1].v
					low[u] = min(low[u], low[v])
				}
				if low[v] == index[v] {
					c := len(size)
					size = append(size, 0)
					for {
						u := stack[len(stack)-1]
						stack = stack[:len(stack)-1]
						component[u] = c
						size[c]++
						order = append(order, u)
						if u == v {
							break
						}
					}
				}
			}
		}
	}
	return component, size, order
}
