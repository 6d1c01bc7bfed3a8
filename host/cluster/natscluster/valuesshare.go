package natscluster

import (
	"hash/maphash"
	"strings"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// mostOfBundle is how many bytes of what a service shares one bundle may have: others always find room. Nodes that are bound to one bundle ask
// keepers, which know this; the service of a node bounds its own bundle besides.
const mostOfBundle = service.MaxSharedTotal / 2

// shares is how many bytes bundles have of what a service shares, as a keeper was told by its changes. It needs a lock.
type shares struct {
	seed  maphash.Seed
	entry map[uint64]int32 // by the hash of a key; MaxSharedTotal bounds how many there are
	of    map[string]int64 // by bundle, as keys begin with it
}

func newShares() *shares {
	return &shares{maphash.MakeSeed(), map[uint64]int32{}, map[string]int64{}}
}

// changed notes a change.
func (x *shares) changed(bundle string, e cluster.Entry) {
	key, size := maphash.String(x.seed, e.Key), int32(0)
	if len(e.Value) > 0 {
		size = int32(len(e.Key) + len(e.Value) + service.SharedOverhead)
	}
	if x.of[bundle] += int64(size - x.entry[key]); x.of[bundle] == 0 {
		delete(x.of, bundle)
	}
	if x.entry[key] = size; size == 0 {
		delete(x.entry, key)
	}
}

// fits says whether a bundle may have a value of this size under a key. What other keepers store at this moment is not known, which is
// bytesPutOf for each.
func (x *shares) fits(key string, size int64) bool {
	bundle, _, _ := strings.Cut(key, ".")
	more := size - int64(x.entry[maphash.String(x.seed, key)])
	return more <= 0 || x.of[bundle]+more <= mostOfBundle
}
