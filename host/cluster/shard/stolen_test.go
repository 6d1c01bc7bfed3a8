package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// steal has a member write a table, made from the one that there is.
func (s *sim) steal(t *testing.T, by *life, change func(*table)) {
	t.Helper()
	var at cluster.Entry
	stop := by.machine.Watch(func(e cluster.Entry) {
		if e.Key == Key("carts") {
			at = e
		}
	})
	s.pass(100 * time.Millisecond)
	stop()
	x, err := decodeTable(at)
	if err != nil {
		t.Fatal(err)
	}
	change(x)
	var failed error
	by.machine.Put(at.Key, x.encode(), at.Revision, func(_ uint64, err error) { failed = err })
	s.pass(50 * time.Millisecond)
	if failed != nil {
		t.Fatal(failed)
	}
}

// A member writes tables that give all shards to one node, without their owners. The owners keep them, with the actors of their keys and
// what these know, and the table is mended; who would have got them begins none.
func TestAStolenTable(t *testing.T) {
	for name, change := range map[string]func(x *table, thief int){
		"to the thief": func(x *table, thief int) {
			for i := range x.places {
				x.places[i].owner, x.places[i].from, x.places[i].epoch = x.hosts[thief].Ref, 0, x.places[i].epoch+1
			}
		},
		"with large epochs": func(x *table, thief int) {
			for i := range x.places {
				x.places[i].owner, x.places[i].from, x.places[i].epoch = x.hosts[thief].Ref, 0, x.places[i].epoch+3
			}
		},
		"without hosts": func(x *table, thief int) {
			for i := range x.places {
				x.places[i].owner, x.places[i].from, x.places[i].epoch = x.hosts[thief].Ref, 0, x.places[i].epoch+1
			}
			x.hosts = x.hosts[thief : thief+1]
		},
		"from another": func(x *table, thief int) {
			for i := range x.places {
				from := x.hosts[(thief+1)%len(x.hosts)].Ref
				if from == x.places[i].owner { // that would be a move as any other
					from = x.hosts[(thief+2)%len(x.hosts)].Ref
				}
				x.places[i].owner, x.places[i].from, x.places[i].epoch = x.hosts[thief].Ref, from, x.places[i].epoch+1
			}
		},
		"back from another": func(x *table, thief int) {
			for i := range x.places {
				other := x.hosts[thief].Ref
				if other == x.places[i].owner {
					other = x.hosts[(thief+1)%len(x.hosts)].Ref
				}
				x.places[i].from, x.places[i].epoch = other, x.places[i].epoch+1
			}
		},
	} {
		for thief := range 3 {
			t.Run(fmt.Sprint(name, " ", thief), func(t *testing.T) { theft(t, name, func(x *table) { change(x, thief) }) })
		}
	}
	// Without the rule each of them costs the actors of the keys.
	s := threeWithout(t, guardStolen)
	o := s.owner("k1")
	s.ask(o, keyed.For("k1", seen("k1")), new(string))
	begun := s.stats["begun"]
	s.steal(t, s.up()[0], func(x *table) {
		for i := range x.places {
			x.places[i].owner, x.places[i].from, x.places[i].epoch = x.hosts[(x.index(o.region.UID())+1)%3].Ref, 0, x.places[i].epoch+1
		}
	})
	s.pass(time.Second)
	s.failure = "" // two act at a time
	s.ask(s.up()[0], keyed.For("k1", seen("k1")), new(string))
	if s.stats["begun"] == begun {
		t.Error("without the rule the test would not notice")
	}
	s.failure = ""
}

// theft has a table stolen while a key has an actor on each of two nodes.
func theft(t *testing.T, name string, change func(*table)) {
	s := three(t)
	asked := []string{"k1", "k2"}
	for _, key := range asked {
		s.ask(s.up()[0], keyed.For(key, seen(key)), new(string))
	}
	begun, places := s.stats["begun"], s.up()[0].state.table.places
	s.steal(t, s.up()[0], change)
	s.pass(900 * time.Millisecond)
	for _, key := range asked { // before they are idle for long
		s.ask(s.up()[1], keyed.For(key, seen(key)), new(string))
	}
	if s.stats["begun"] != begun {
		t.Errorf("%d actors were started after %d", s.stats["begun"], begun)
	}
	s.pass(10 * time.Second)
	for k := range keys {
		for _, l := range s.up() {
			s.ask(l, keyed.For(fmt.Sprint("k", k), seen(fmt.Sprint("k", k))), new(string))
		}
	}
	var stolen uint64
	for _, l := range s.up() {
		x := l.state.state()
		stolen += x.Stolen
		if x.Wrong != "" || x.Pending {
			t.Errorf("%s: %+v", l.name, x)
		}
	}
	now, grown := s.up()[0].state.table.places, false
	for i := range now {
		grown = grown || now[i].epoch > places[i].epoch+1
		if now[i].owner != places[i].owner || now[i].from != 0 {
			t.Errorf("shard %d is at %v and was at %v", i, now[i], places[i])
		}
	}
	if stolen == 0 || !grown {
		t.Errorf("%d were stolen; the table was %v and is %v", stolen, places, now)
	}
}
