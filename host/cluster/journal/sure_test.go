package journal

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/record"
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

// An actor that was in a turn when its shard was lost reads nothing from what it knows when the shard is here again, and neither does one
// whose fence was replaced. It begins again from the log.
func TestAnActorOfAnEarlierFenceReadsNothing(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	ask := func(key string, n note) error {
		p, err := l.system.Request(l.region, keyed.For(key, n))
		if err != nil {
			t.Fatal(err)
		}
		s.pass(200 * time.Millisecond) // it would end when it is idle
		select {
		case m := <-p.Answer():
			return m.Err()
		default:
			return errors.New("no answer")
		}
	}
	no := shard.Of("k0", simShards)
	other := ""
	for i := 1; other == ""; i++ {
		if name := fmt.Sprint("o", i); shard.Of(name, simShards) == no {
			other = name
		}
	}
	p := l.journal.kinds["carts"].shards
	for name, lose := range map[string]func(){
		"the shard was elsewhere": func() {
			l.journal.mu.Lock()
			epoch := p[no].epoch
			l.journal.mu.Unlock()
			l.journal.Release("carts", no)
			l.journal.Serve("carts", no, epoch, 0)
		},
		"another key was refused": func() {
			l.journal.opt.Log.Last("carts", no, func(_ []byte, at uint64, _ error) {
				f := frame{form: fenceForm, epoch: p[no].epoch, number: 1 << 40, owner: owner{l.journal.opt.Node, l.journal.opt.Born}}
				l.journal.opt.Log.Fence("carts", no, f.encode(), at, func(uint64, error) {})
			})
			s.pass(100 * time.Millisecond)
			if err := ask(other, note{Add: 9}); err == nil {
				t.Error("what is stored under an earlier fence is confirmed")
			}
		},
	} {
		for _, key := range []string{"k0", other} {
			_ = ask(key, note{}) // it begins again, if it was of the shard that was elsewhere
			if err := ask(key, note{}); err != nil {
				t.Fatal(err)
			}
		}
		lose()
		if err := ask("k0", note{}); err == nil {
			t.Errorf("%s: what is read is what the actor knew before", name)
		}
		if err := ask("k0", note{}); err != nil {
			t.Errorf("%s, and it has begun again: %v", name, err)
		}
	}
	sure := true
	l.journal.opt.Sure = func() (uint64, bool) { return 0, sure }
	if err := ask("k0", note{}); err != nil {
		t.Error(err)
	}
	l.journal.Freeze()
	if err := ask("k0", note{}); err != nil {
		t.Errorf("the system ends in order: %v", err)
	}
	sure = false
	if err := ask("k0", note{}); err == nil {
		t.Error("the system ends since its node is lost, and what is read is answered")
	}
}

// The last turn of an actor is answered at once, since its worker waits for it.
func TestAnEndDoesNotWait(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	s.early = false
	defer s.close()
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	if _, err := l.system.Request(l.region, keyed.For("k0", note{Add: 1})); err != nil {
		t.Fatal(err)
	}
	s.pass(200 * time.Millisecond)
	sure := true
	l.journal.opt.Sure = func() (uint64, bool) { return 0, sure }
	for _, k := range l.journal.keys {
		for _, want := range []error{nil, errUnsure} {
			sure = want == nil
			last := &record.Turn{Done: 1, Waits: true}
			l.journal.hold(last, k)
			if err, there := last.Answered(); !there || err != want {
				t.Errorf("sure: %v: answered %v, with %v", sure, there, err)
			}
		}
	}
	if len(l.journal.keys) != 1 || len(l.journal.held) != 0 {
		t.Errorf("%d keys live, %d turns wait", len(l.journal.keys), len(l.journal.held))
	}
}

// One node alone takes nothing from another before its lease is over, and nothing is noted while a node is there that could not read it.
func TestOneWitnessIsNotEnough(t *testing.T) {
	for _, x := range []struct {
		nodes      int
		before     bool // a node of the release before is there, which cannot read a doubt
		note, want bool
	}{{2, false, true, false}, {3, false, true, true}, {3, true, false, false}} {
		s := newSim(1, map[string]int{}, broken{})
		s.early, s.brief = false, lease/2
		for range x.nodes {
			s.start()
		}
		s.pass(5 * time.Second)
		if x.before {
			entry, err := cbor.Marshal(&cluster.Member{Number: 9, ID: 9, Name: "before", Oldest: 1, Newest: 1})
			if err != nil {
				t.Fatal(err)
			}
			s.running()[1].machine.Put("node.9", entry, 0, func(_ uint64, err error) {
				if err != nil {
					t.Error(err)
				}
			})
			s.pass(100 * time.Millisecond)
		}
		noted, passed, gone := false, false, false
		s.Changed(func(_ *clustertest.Machine, _, now cluster.Entry) {
			if m, err := cluster.DecodeMember(now); err == nil {
				noted, passed, gone = noted || m.Doubter != 0, passed || m.Passed > 0, gone || m.Gone
			}
		})
		s.running()[0].machine.Crash()
		s.pass(lease * 3 / 4) // it may have renewed its lease up to a quarter of it before
		if noted != x.note || passed != x.want || gone {
			t.Errorf("%+v, before the lease is over: noted %v, passed %v, gone %v", x, noted, passed, gone)
		}
		s.pass(lease)
		if !gone {
			t.Errorf("%+v: the lease is over, and the node is there", x)
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
