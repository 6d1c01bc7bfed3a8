package shard

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Tokens, which other nodes get, come from a generator that can be run backward. The key of a region does not.
func TestTheKeyIsNoneOfTheDraws(t *testing.T) {
	s := three(t)
	for _, l := range s.up() {
		s.ask(l, keyed.For("k1", seen("k1")), new(string))
	}
	o := s.owner("k1")
	from := o.system.Secret()
	seed := from.Derive(secret.ForJitter, o.region.UID(), 0)
	pcg := rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:16]))
	drawn := map[uint64]bool{}
	for range 1000 {
		drawn[pcg.Uint64()|1] = true
	}
	feeders := o.state.own[Of("k1", shards)].feeders
	if len(feeders) == 0 {
		t.Fatal("no node has a token")
	}
	for _, f := range feeders {
		if !drawn[f.token] {
			t.Errorf("the token %x is from elsewhere: the test would notice nothing", f.token)
		}
	}
	if drawn[o.state.st.key] {
		t.Error("the key is one of the draws")
	}
}
