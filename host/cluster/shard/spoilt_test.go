package shard

import (
	"math"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// A member can write anything in the place of the table. The regions go on with what they know, and mend it.
func TestASpoiltTable(t *testing.T) {
	s := three(t)
	s.good = s.up()[0].state.table
	spoil := func(value []byte) {
		t.Helper()
		at := uint64(0)
		stop := s.up()[0].machine.Watch(func(e cluster.Entry) {
			if e.Key == Key("carts") {
				at = e.Revision
			}
		})
		s.pass(100 * time.Millisecond)
		stop()
		var failed error
		s.up()[0].machine.Put(Key("carts"), value, at, func(_ uint64, err error) { failed = err })
		s.pass(100 * time.Millisecond)
		if failed != nil {
			t.Fatal(failed)
		}
	}
	o := s.owner("k1")
	for _, l := range s.up() {
		s.ask(l, keyed.For("k1", seen("k1")), new(string))
	}
	before := o.state.table.places
	huge := o.state.table.clone()
	huge.places[0].epoch = math.MaxUint64
	for _, value := range [][]byte{nil, {0xff}, []byte("x"), huge.encode(), (&table{}).encode()} {
		spoil(value)
		s.pass(2 * time.Second)
		for _, l := range s.up() {
			s.ask(l, keyed.For("k1", seen("k1")), new(string))
			if l.state.wrong != nil || l.state.mends {
				t.Errorf("%x: %s has %v", value, l.name, l.state.wrong)
			}
		}
	}
	for i, p := range o.state.table.places {
		if p != before[i] {
			t.Errorf("shard %d is at %+v and was at %+v", i, p, before[i])
		}
	}
	if n := s.stats["begun"]; n != 1 {
		t.Errorf("%d actors were started", n)
	}
	// A node that comes when all others have gone does not know the table.
	for _, l := range s.up() {
		l.machine.Crash()
	}
	last := s.lives[0].state.table.places[0].epoch
	at := uint64(0)
	s.start()
	l := s.lives[len(s.lives)-1]
	stop := l.machine.Watch(func(e cluster.Entry) {
		if e.Key == Key("carts") && e.Revision > at {
			at = e.Revision
			l.machine.Put(e.Key, []byte("x"), e.Revision, func(uint64, error) {})
			at++
		}
	})
	s.pass(time.Second)
	stop()
	s.pass(3 * lease)
	s.calm = false // what the others had is lost
	s.ask(l, keyed.For("k1", seen("k1")), new(string))
	if p := l.state.table.places[0]; p.epoch <= last {
		t.Errorf("the epoch is %d after %d", p.epoch, last)
	}
}
