package shard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// strangers are three nodes, of which the others do not trust the third: it is of another bundle.
func strangers(t *testing.T) *sim {
	t.Helper()
	s := newSim(4, map[string]int{}, broken{})
	s.calm = true
	s.sees = func(l *life) Node {
		return l.node.Trusting(func(m cluster.Member) error {
			if m.Name == "n3" && l.name != "n3" {
				return errors.New("it is of another bundle")
			}
			return nil
		})
	}
	t.Cleanup(func() {
		if s.close(); s.failure != "" {
			t.Error(s.failure)
		}
	})
	for range 2 {
		s.start()
	}
	s.pass(5 * time.Second)
	return s
}

// A member of another bundle writes itself into the table of a kind, with shards or all of them, or says that one is handed over to it: it
// gets none, no message, and the keys go on where they are.
func TestAStrangerGetsNoKeys(t *testing.T) {
	for name, change := range map[string]func(x *table, thief hosting){
		"as one that takes shards": func(*table, hosting) {},
		"with all shards": func(x *table, thief hosting) {
			for i := range x.places {
				x.places[i].owner, x.places[i].from, x.places[i].epoch = thief.Ref, 0, x.places[i].epoch+1
			}
		},
		"as to whom all are handed over": func(x *table, thief hosting) {
			for i := range x.places {
				x.places[i].owner, x.places[i].from, x.places[i].epoch = thief.Ref, x.places[i].owner, x.places[i].epoch+1
			}
		},
		"alone": func(x *table, thief hosting) {
			for i := range x.places {
				x.places[i].owner, x.places[i].from, x.places[i].epoch = thief.Ref, 0, x.places[i].epoch+1
			}
			x.hosts = []hosting{thief}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := strangers(t)
			a, b := s.up()[0], s.up()[1]
			s.front = true
			s.start()
			s.pass(time.Second)
			thief, heard := s.up()[2], 0
			door, err := thief.system.Spawn("thief", host.Func(func(*host.Context, host.Message) error { heard++; return nil }))
			if err != nil {
				t.Fatal(err)
			}
			s.told(t, a, b)
			begun := s.stats["begun"]
			s.steal(t, thief, func(x *table) {
				h := hosting{Ref: door.UID(), Born: thief.node.Self().Born, Weight: MaxWeight}
				x.hosts = append(x.hosts, h)
				slices.SortFunc(x.hosts, func(a, b hosting) int { return cmp.Compare(a.Ref, b.Ref) })
				change(x, h)
			})
			s.told(t, a, b)
			if heard != 0 {
				t.Errorf("it gets %d messages", heard)
			}
			if s.stats["begun"] != begun {
				t.Errorf("%d actors were started after %d", s.stats["begun"], begun)
			}
			s.pass(2 * time.Second)
			for k := range keys {
				for _, l := range []*life{a, b} {
					s.ask(l, keyed.For(fmt.Sprint("k", k), seen(fmt.Sprint("k", k))), new(string))
				}
			}
			for _, l := range []*life{a, b} {
				if l.state.table.index(door.UID()) >= 0 {
					t.Error("it is a region of the kind")
				}
			}
		})
	}
}

// told has all keys get messages for a second, by two nodes.
func (s *sim) told(t *testing.T, by ...*life) {
	t.Helper()
	for range 20 {
		for _, l := range by {
			for k := range keys {
				if err := l.system.Tell(l.region, keyed.For(fmt.Sprint("k", k), seen(fmt.Sprint("k", k)))); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.pass(50 * time.Millisecond)
	}
}
