package router

import "slices"

// ring is a ring of hashes on which every routee has some points, which depend only on its name: a new routee
// takes keys from the others, and one that leaves gives its keys to them; no other key moves (Karger
// et al., Consistent hashing and random trees, 1997).
type ring struct {
	points []point // by hash, then by name
}

type point struct {
	at     uint64
	routee int
}

// fill makes the ring anew.
func (r *ring) fill(seed uint64, each int, names func(int) string, n int) {
	r.points = r.points[:0]
	for i := range n {
		h := hash(seed, names(i))
		for v := range each {
			r.points = append(r.points, point{mix(h + uint64(v)*0x9e3779b97f4a7c15), i})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int {
		switch {
		case a.at < b.at || a.at == b.at && names(a.routee) < names(b.routee):
			return -1
		case a == b:
			return 0
		}
		return 1
	})
}

// find is the first point at or after a hash.
func (r *ring) find(at uint64) int {
	i, _ := slices.BinarySearchFunc(r.points, at, func(p point, at uint64) int {
		if p.at < at {
			return -1
		}
		if p.at > at {
			return 1
		}
		return 0
	})
	return i % len(r.points)
}

// hash mixes a key, eight bytes at a time, under a seed that senders do not know: with the seed they could
// choose keys that all go to one routee.
func hash[T string | []byte](seed uint64, key T) uint64 {
	h := mix(seed ^ uint64(len(key)))
	i := 0
	for ; i+8 <= len(key); i += 8 {
		word := uint64(key[i]) | uint64(key[i+1])<<8 | uint64(key[i+2])<<16 | uint64(key[i+3])<<24 |
			uint64(key[i+4])<<32 | uint64(key[i+5])<<40 | uint64(key[i+6])<<48 | uint64(key[i+7])<<56
		h = mix(h ^ word)
	}
	for ; i < len(key); i++ {
		h = mix(h ^ uint64(key[i]) ^ 0x100)
	}
	return mix(h ^ seed)
}
