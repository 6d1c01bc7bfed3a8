package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// lateLog is a log that keeps appends back until they are let go, and says meanwhile that it is not known what became of them.
type lateLog struct {
	cluster.Log
	on   bool
	kept []func()
}

func (l *lateLog) Append(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	if !l.on {
		l.Log.Append(kind, shard, fence, name, record, done)
		return
	}
	l.kept = append(l.kept, func() { l.Log.Append(kind, shard, fence, name, record, func(uint64, error) {}) })
	done(0, errors.New("the log does not answer"))
}

// An erasure whose outcome is not known when its time is over does not take effect later, under a key that has begun meanwhile: whatever
// the key had and stores is there, or nothing before it.
func TestAnErasureThatArrivesAfterItsTime(t *testing.T) {
	e := newErasing(t, broken{})
	for n := range uint64(3) {
		e.store("k0", n+1)
	}
	e.ended()
	owner, _ := e.owner("k0")
	log := &lateLog{Log: owner.journal.opt.Log, on: true}
	owner.journal.opt.Log = log
	if err := e.erase(owner, "k0"); err == nil || errors.Is(err, ErrMoved) {
		t.Fatalf("%v", err)
	}
	log.on = false
	before := e.running()[0]
	q, err := before.system.Request(before.region, keyed.For("k0", note{}))
	if err != nil {
		t.Fatal(err)
	}
	e.pass(time.Second) // it has begun, with what it had
	if len(log.kept) == 0 {
		t.Fatal("nothing is under way")
	}
	for _, f := range log.kept {
		f()
	}
	e.pass(time.Second)
	e.store("k0", 4)
	e.ended()
	var began []uint64
	select {
	case m := <-q.Answer():
		if err := m.Decode(&began); err != nil {
			t.Fatal(err, m.Err())
		}
	default:
		t.Fatal("no answer")
	}
	if has := e.has("k0"); len(has) != len(began)+1 {
		t.Errorf("it began with %v, stored one, and has %v", began, has)
	}
}

// stuckLog is a log that does not answer some replacements.
type stuckLog struct {
	cluster.Log
	stuck int
}

func (l *stuckLog) Replace(kind, name string, record []byte, after uint64, done func(uint64, error)) {
	if l.stuck > 0 {
		l.stuck--
		done(0, errors.New("the log does not answer"))
		return
	}
	l.Log.Replace(kind, name, record, after, done)
}

// What no node writes can be erased, and the key begins then, also when the log does not answer at once. If it does not answer at all the
// erasure does not say that it has worked.
func TestWhatNoNodeWritesIsErased(t *testing.T) {
	for _, stuck := range []int{0, 2, 1000} {
		e := newErasing(t, broken{})
		e.store("k0", 1)
		e.ended()
		owner, _ := e.owner("k0")
		no := shard.Of("k0", simShards)
		fences := e.FencesOf("carts", no)
		owner.machine.Log().Append("carts", no, fences[len(fences)-1].At, "k0", []byte("no record"), func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		e.pass(time.Second)
		owner.journal.Look("carts", "k0", func(_ Kept, err error) {
			if !errors.Is(err, ErrSpoilt) {
				t.Errorf("before: %v", err)
			}
		})
		e.pass(time.Second)
		owner.journal.opt.Log = &stuckLog{owner.journal.opt.Log, stuck}
		err := e.erase(owner, "k0")
		if stuck > 100 {
			if err == nil {
				t.Error("the key is spoilt still, and it is said that it is erased")
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", stuck, err)
		}
		e.store("k0", 5)
		e.ended()
		if has := e.has("k0"); len(has) != 1 || has[0] != 5 {
			t.Errorf("%d: then it has %v", stuck, has)
		}
	}
}
