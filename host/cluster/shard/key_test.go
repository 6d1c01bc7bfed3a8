package shard

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Tokens, which other nodes get, and the key of a region, which they do not get, are no draws: the generator of these can be run backward.
func TestTheKeyIsNoneOfTheDraws(t *testing.T) {
	s := three(t)
	for _, l := range s.up() {
		s.ask(l, keyed.For("k1", seen("k1")), new(string))
	}
	o := s.owner("k1")
	from := o.system.Secret()
	drawn := func(uid abi.Ref) map[uint64]bool {
		seed := from.Derive(secret.ForJitter, uid, 0)
		pcg := rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:16]))
		all := map[uint64]bool{}
		for range 1000 {
			all[pcg.Uint64()|1] = true
		}
		return all
	}
	var one uint64
	probe, err := o.system.Spawn("probe", host.Func(func(ctx *host.Context, m host.Message) error { one = ctx.Head().Draw() | 1; return nil }))
	if err != nil {
		t.Fatal(err)
	}
	_ = o.system.Tell(probe, "draw")
	s.pass(10 * time.Millisecond)
	if !drawn(probe.UID())[one] {
		t.Fatal("draws come from elsewhere: the test would notice nothing")
	}
	all := drawn(o.region.UID())
	feeders := o.state.own[Of("k1", shards)].feeders
	if len(feeders) == 0 {
		t.Fatal("no node has a token")
	}
	given := map[uint64]bool{}
	for _, f := range feeders {
		if all[f.token] || given[f.token] || f.token == o.state.st.key {
			t.Errorf("the token %x is drawn, given twice or the key", f.token)
		}
		given[f.token] = true
	}
	if all[o.state.st.key] {
		t.Error("the key is one of the draws")
	}
}
