package remote

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// candidates are the nodes that a child may run on, in the order in which they are asked: by rendezvous hashing of the path in which it is
// to be, so that a node that comes or goes changes the place of few, and all see the same order. There are mostTries at most.
func candidates(members []cluster.Member, p Place, path string) (all []cluster.Member) {
	for _, m := range members {
		if (p.Role == "" || m.HasRole(p.Role)) && (p.Node == "" || m.Name == p.Node) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b cluster.Member) int {
		return cmp.Or(cmp.Compare(score(b, path), score(a, path)), cmp.Compare(a.Number, b.Number))
	})
	return all[:min(len(all), mostTries)]
}

func score(m cluster.Member, path string) uint64 { return cluster.Hash(m.Name, "\x00", path) }
