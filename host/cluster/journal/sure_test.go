package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// A turn that stores nothing waits until the node is sure, under the count under which the shard is here, and ends when the shard is not.
func TestATurnWaitsUntilTheNodeIsSure(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	passed, ok := uint64(0), true
	l.journal.opt.Sure = func() (uint64, bool) { return passed, ok }
	ask := func(n note) *host.Pending {
		p, err := l.system.Request(l.region, keyed.For("k0", n))
		if err != nil {
			t.Fatal(err)
		}
		s.pass(time.Second)
		return p
	}
	answer := func(p *host.Pending) error {
		select {
		case m := <-p.Answer():
			return m.Err()
		default:
			return errors.New("none")
		}
	}
	if err := answer(ask(note{Add: 1})); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(bool){
		"it has not renewed": func(on bool) { ok = !on },
		"it was passed": func(on bool) {
			if passed = 0; on {
				passed = 1
			}
		},
	} {
		change(true)
		p := ask(note{})
		if err := answer(p); err == nil || err.Error() != "none" {
			t.Errorf("%s: what is read is answered: %v", name, err)
		}
		change(false)
		s.pass(time.Second)
		if err := answer(p); err != nil {
			t.Errorf("%s, and does now: %v", name, err)
		}
	}
	ok = false
	p, q := ask(note{}), ask(note{Add: 2})
	l.journal.Release("carts", shard.Of("k0", simShards))
	s.pass(time.Second)
	if err := answer(p); err == nil || err.Error() == "none" {
		t.Errorf("the shard has moved: %v", err)
	}
	_ = q
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	if n := len(l.journal.held); n != 0 || l.journal.looks {
		t.Errorf("%d turns wait", n)
	}
}

// One node alone takes nothing from another before its lease is over.
func TestOneWitnessIsNotEnough(t *testing.T) {
	for nodes, want := range map[int]bool{2: false, 3: true} {
		s := newSim(1, map[string]int{}, broken{})
		s.early, s.brief = false, lease/2
		for range nodes {
			s.start()
		}
		s.pass(5 * time.Second)
		noted, passed, gone := false, false, false
		s.Changed(func(_ *clustertest.Machine, _, now cluster.Entry) {
			if m, err := cluster.DecodeMember(now); err == nil {
				noted, passed, gone = noted || m.Doubter != 0, passed || m.Passed > 0, gone || m.Gone
			}
		})
		s.running()[0].machine.Crash()
		s.pass(lease)
		if !noted || passed != want || gone {
			t.Errorf("%d nodes, before the lease is over: noted %v, passed %v, gone %v", nodes, noted, passed, gone)
		}
		s.pass(lease)
		if !gone {
			t.Errorf("%d nodes: the lease is over, and the node is there", nodes)
		}
		s.Changed(nil)
		s.close()
	}
}

// What living keys have in memory is bounded: a key that does not fit does not begin, and one that grows beyond fails, until others have ended.
func TestLivingKeysAreBounded(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	l.journal.opt.Kept = 3 * padding
	store := func(key string, n uint64) error {
		p, err := l.system.Request(l.region, keyed.For(key, note{Add: n}))
		if err != nil {
			t.Fatal(err)
		}
		s.pass(200 * time.Millisecond)
		select {
		case m := <-p.Answer():
			return m.Err()
		default:
			return errors.New("no answer")
		}
	}
	for n := range uint64(2) {
		if err := store("k0", n+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := store("k1", 3); err == nil {
		t.Error("there is room for more than there is")
	}
	f := l.journal.Figures()
	if f.Crowded == 0 || f.Kept < 2*padding || f.Kept > 3*padding || f.Stored != 2 || f.Bytes < 2*padding || f.Confirm.N() != 2 {
		t.Errorf("%+v", f)
	}
	s.pass(5 * time.Second) // they are idle, and end
	if f := l.journal.Figures(); f.Kept != 0 || f.Keys != 0 {
		t.Errorf("nobody lives, and there are %+v", f)
	}
	if err := store("k1", 4); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
