package observe

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// index finds the actors of a snapshot by their refs, which are random already: a table of
// open addressing, several times as fast as a map.
type index struct {
	keys []abi.Ref
	at   []int32
}

func indexOf(infos []host.Info) index {
	size := 64
	for size < 2*len(infos) {
		size *= 2
	}
	x := index{make([]abi.Ref, size), make([]int32, size)}
	for i := range infos {
		uid := infos[i].Ref.UID()
		at := x.slot(uid)
		x.keys[at], x.at[at] = uid, int32(i)
	}
	return x
}

// slot is where a ref is, or would be.
func (x index) slot(uid abi.Ref) uint64 {
	mask := uint64(len(x.keys) - 1)
	at := uint64(uid) & mask
	for x.keys[at] != 0 && x.keys[at] != uid {
		at = (at + 1) & mask
	}
	return at
}

// find is where in the snapshot an actor is, -1 if it is not there.
func (x index) find(uid abi.Ref) int32 {
	if uid == 0 {
		return -1
	}
	at := x.slot(uid)
	if x.keys[at] == 0 {
		return -1
	}
	return x.at[at]
}
