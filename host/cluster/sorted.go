package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

// The order of a map decides nothing.

func (n *Node) sortedAsks(node uint16) []question {
	var out []question
	for q, a := range n.asks {
		if a.holder.Node() == node {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b question) int {
		return cmp.Or(cmp.Compare(a.asker, b.asker), cmp.Compare(a.correlation, b.correlation))
	})
	return out
}

func sortedBonds[V any](m map[bond]V) []bond {
	return slices.SortedFunc(maps.Keys(m), func(a, b bond) int { return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.of, b.of)) })
}

func sortedRefs(m map[abi.Ref]abi.Ref) []abi.Ref { return slices.Sorted(maps.Keys(m)) }
