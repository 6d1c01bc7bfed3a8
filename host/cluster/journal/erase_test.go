package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// erasing is a cluster of two nodes, and what it takes to erase in it.
type erasing struct {
	*sim
	t *testing.T
}

func newErasing(t *testing.T, b broken) *erasing {
	t.Helper()
	s := newSim(1, map[string]int{}, b)
	t.Cleanup(s.close)
	s.start()
	s.start()
	s.pass(3 * time.Second)
	return &erasing{s, t}
}

func (e *erasing) store(key string, n uint64) {
	e.t.Helper()
	l := e.running()[0]
	q, err := l.system.Request(l.region, keyed.For(key, note{Add: n}))
	if err != nil {
		e.t.Fatal(err)
	}
	e.pass(2 * time.Second)
	select {
	case m := <-q.Answer():
		if m.Err() != nil {
			e.t.Fatal(m.Err())
		}
	default:
		e.t.Fatal("no answer")
	}
}

func (e *erasing) has(key string) []uint64 {
	e.t.Helper()
	has, err := e.atLast(e.running()[0], key)
	if err != nil {
		e.t.Fatal(err)
	}
	return has
}

// ended passes time until the actor of a key has ended, since it is idle.
func (e *erasing) ended() { e.pass(10 * time.Second) }

// owner is the node whose journal serves the shard of a key, and another one.
func (e *erasing) owner(key string) (owner, other *life) {
	e.t.Helper()
	for _, l := range e.running() {
		l.journal.mu.Lock()
		p, _ := l.journal.partOf("/user/carts/" + key)
		if p.served {
			owner = l
		} else {
			other = l
		}
		l.journal.mu.Unlock()
	}
	if owner == nil || other == nil {
		e.t.Fatal("one of the two has not the shard")
	}
	return owner, other
}

func (e *erasing) erase(l *life, key string) error {
	e.t.Helper()
	err := errors.New("not done")
	l.journal.Erase("carts", key, 10*time.Second, func(x error) { err = x })
	e.pass(15 * time.Second)
	return err
}

func (e *erasing) look(l *life, key string) Kept {
	e.t.Helper()
	var k Kept
	err := errors.New("not done")
	l.journal.Look("carts", key, func(x Kept, y error) { k, err = x, y })
	e.pass(time.Second)
	if err != nil {
		e.t.Error(err)
	}
	return k
}

// Erased keys begin empty, on any node; a key that lives, or of which there is nothing, and a node that has not the shard, erase nothing.
func TestErase(t *testing.T) {
	e := newErasing(t, broken{})
	e.store("k0", 1)
	e.store("k0", 2)
	e.store("k1", 3)
	owner, other := e.owner("k0")
	if err := e.erase(owner, "k9"); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
	e.store("k0", 4)
	if _, err := owner.system.Request(owner.region, keyed.For("k0", note{})); err != nil {
		t.Fatal(err)
	}
	err := errors.New("not done")
	for range 100 { // until it has begun
		e.pass(5 * time.Millisecond)
		owner.journal.mu.Lock()
		p, _ := owner.journal.partOf("/user/carts/k0")
		lives := len(p.keys) > 0
		owner.journal.mu.Unlock()
		if lives {
			owner.journal.Erase("carts", "k0", time.Second, func(x error) { err = x })
			break
		}
	}
	if !errors.Is(err, ErrLives) {
		t.Errorf("a key that lives: %v", err)
	}
	e.ended()
	if err := e.erase(other, "k0"); !errors.Is(err, ErrMoved) {
		t.Errorf("another node: %v", err)
	}
	if err := e.erase(owner, "../x"); !errors.Is(err, errKind) {
		t.Errorf("no name: %v", err)
	}
	for _, l := range []*life{owner, other} {
		if k := e.look(l, "k0"); k.Last != 3 || k.Events < 1 || k.Records < 1 || k.Bytes == 0 {
			t.Errorf("before: %+v", k)
		}
	}
	if err := e.erase(owner, "k0"); err != nil {
		t.Fatal(err)
	}
	if k := e.look(other, "k0"); k.Last != 0 || k.Events != 0 || k.Snapshots != 0 || k.Records != 1 {
		t.Errorf("after: %+v", k)
	}
	if has := e.has("k0"); len(has) != 0 {
		t.Errorf("it has %v", has)
	}
	if has := e.has("k1"); len(has) != 1 {
		t.Errorf("another key has %v", has)
	}
	e.store("k0", 5)
	e.ended()
	if has := e.has("k0"); len(has) != 1 || has[0] != 5 {
		t.Errorf("then it has %v", has)
	}
}

// What was under way when a key was erased has no effect on what it stores later: a copy that comes late counts for nothing.
func TestErasedLate(t *testing.T) {
	for _, guard := range []guard{0, guardNumber} {
		e := newErasing(t, broken{guard: guard})
		e.store("k0", 1)
		e.ended()
		owner, _ := e.owner("k0")
		if err := e.erase(owner, "k0"); err != nil {
			t.Fatal(err)
		}
		var late []byte
		owner.machine.Log().Read("carts", shard.Of("k0", simShards), "k0", 0, func(list []cluster.LogEntry, err error) {
			if err != nil || len(list) != 1 {
				t.Fatalf("%d records, %v", len(list), err)
			}
			late = list[0].Record
		})
		e.pass(time.Second)
		e.store("k0", 2)
		e.ended()
		fences := e.FencesOf("carts", shard.Of("k0", simShards))
		owner.machine.Log().Append("carts", shard.Of("k0", simShards), fences[len(fences)-1].At, "k0", late, func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		e.pass(time.Second)
		if has := e.has("k0"); (len(has) == 1) != (guard == 0) {
			t.Errorf("guard %d: after a copy of the erasure it has %v", guard, has)
		}
	}
}

// A key that is asked while it is erased waits, and then begins empty: it never goes on from what is erased under it.
func TestAKeyBeginsWhileItIsErased(t *testing.T) {
	noticed := 0
	for _, guard := range []guard{0, guardErase} {
		e := newErasing(t, broken{guard: guard})
		for n := range uint64(3) {
			e.store("k0", n+1)
		}
		e.ended()
		owner, _ := e.owner("k0")
		err := errors.New("not done")
		owner.journal.Erase("carts", "k0", 10*time.Second, func(x error) { err = x })
		q, wrong := owner.system.Request(owner.region, keyed.For("k0", note{Add: 9}))
		if wrong != nil {
			t.Fatal(wrong)
		}
		e.pass(20 * time.Second)
		var answer error
		select {
		case m := <-q.Answer():
			answer = m.Err()
		default:
			answer = errors.New("no answer")
		}
		e.ended()
		has, wrong := e.atLast(owner, "k0")
		if good := err == nil && answer == nil && wrong == nil && len(has) == 1 && has[0] == 9; !good {
			if noticed++; guard == 0 {
				t.Errorf("erased: %v, answered: %v, it has %v, %v", err, answer, has, wrong)
			}
		}
	}
	if noticed != 1 {
		t.Errorf("without the rule nothing is noticed")
	}
}

// A full log takes an erasure, and has room then.
func TestErasedInAFullLog(t *testing.T) {
	e := newErasing(t, broken{})
	for n := range uint64(5) {
		e.store("k0", n+1)
	}
	e.ended()
	owner, _ := e.owner("k0")
	before := len(e.LogOf("carts", "k0"))
	e.FillLog(true)
	if err := e.erase(owner, "k0"); err != nil {
		t.Errorf("a full log: %v", err)
	}
	if n := len(e.LogOf("carts", "k0")); n != 1 || before < 2 {
		t.Errorf("%d records are left of %d", n, before)
	}
	e.FillLog(false)
	if has := e.has("k0"); len(has) != 0 {
		t.Errorf("it has %v", has)
	}
}
