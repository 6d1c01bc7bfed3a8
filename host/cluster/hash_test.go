package cluster_test

import (
	"hash/fnv"
	"testing"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// Nodes of all releases agree where a key is, so the hash never changes.
func TestHash(t *testing.T) {
	h := fnv.New64a()
	_, _ = h.Write([]byte("node\x00/user/carts/ann"))
	want := h.Sum64()
	if got := cluster.Hash("node", "\x00", "/user/carts/ann"); got != cluster.Mix(want) {
		t.Errorf("%x instead of the finalizer of %x", got, want)
	}
	if got := cluster.Mix(1); got != 0xb456bcfc34c2cb2c {
		t.Errorf("1 is mixed to %x", got)
	}
}
