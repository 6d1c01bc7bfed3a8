package sandbox

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

// TestInstancesKeepNoSurplus: wazero's objects are those that surplusOf knows, and what of them
// nothing needs is gone, also from an instance that was made anew. If this fails after an update of
// wazero, look whether anything but its API for globals reads the globals of a module instance, and
// anything but its WASI the files; until then instances work as well, but weigh more.
func TestInstancesKeepNoSurplus(t *testing.T) {
	for name, cfg := range setups {
		t.Run(name, func(t *testing.T) {
			i := load(t, newEngine(t, cfg), "echo", ImageConfig{})
			var all []*Instance
			for range 3 {
				all = append(all, get(t, i))
			}
			all[2].closeModule()
			if err := all[2].open(); err != nil {
				t.Fatal(err)
			}
			for n, x := range all {
				m := reflect.ValueOf(x.module).Elem()
				globals, sys := m.FieldByName("Globals"), m.FieldByName("Sys")
				if kept := globals.Len() > 0; kept != cfg.interpreter || sys.IsNil() == cfg.interpreter || (x.block == nil) != cfg.interpreter {
					t.Errorf("instance %d: globals %d, files %v, block %v", n, globals.Len(), !sys.IsNil(), x.block)
				}
				x.Put()
			}
		})
	}
}

// TestHiddenGlobalsAreFound: an instance tells the same of its turns whether its globals are read in wazero's
// block or by its API: what was spent, in turns that end and that fail, at the end of a batch, and
// after a reset.
func TestHiddenGlobalsAreFound(t *testing.T) {
	e := newEngine(t, NewConfig())
	told := func(shown bool) (all []string) {
		i := load(t, e, "echo", ImageConfig{})
		first := get(t, i)
		if first.block == nil {
			t.Skip("wazero is not as we know it")
		}
		first.Put()
		if shown {
			i.callers.extra = nil
			for _, x := range i.pool.drain() {
				i.engine.pooled.Add(-i.footprint)
				x.discard()
			}
		}
		x := get(t, i)
		defer x.Put()
		if (x.block == nil) != shown {
			t.Fatalf("block %v", x.block)
		}
		for _, what := range []byte{10, 1, 10, 3, 10, 2, 10, 6, 10} {
			in := entry()
			in.TurnFuel = 5_000_000
			push(t, x, 10, what, 10)
			out, turns, err := run(t, x, in)
			all = append(all, fmt.Sprint(what, out.Turns, out.Unread, out.Fuel, out.Failure, len(turns), err))
			x.EndBatch()
			if out.Failure != nil {
				if err := x.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			push(t, x, 10, 10)
			out, _, err = run(t, x, in)
			all = append(all, fmt.Sprint("ended", out.Turns, out.Unread, out.Fuel, out.Failure, err))
			x.Resume()
		}
		return all
	}
	if found, shown := told(false), told(true); !slices.Equal(found, shown) {
		t.Errorf("in the block:\n%q\nby the API:\n%q", found, shown)
	}
}

// movable is a global whose value is in one of some words, or in none.
type movable struct {
	api.MutableGlobal
	words     []uint64
	get, set  int // which word is read, and which written; -1: own
	own       uint64
	alsoWrite int // another word that is written; -1: none
}

func (g *movable) Get() uint64 {
	if g.get < 0 {
		return g.own
	}
	return g.words[g.get]
}

func (g *movable) Set(v uint64) {
	if g.own = v; g.set >= 0 {
		g.words[g.set] = v
	}
	if g.alsoWrite >= 0 {
		g.words[g.alsoWrite] = v
	}
}

// TestFindTriesWhatItFinds: a word counts as a global's only if it alone is written with the
// global, and the global is read from it. Afterwards everything is as before.
func TestFindTriesWhatItFinds(t *testing.T) {
	for name, c := range map[string]struct {
		g    movable
		want bool
	}{
		"in a word":            {movable{get: 2, set: 2, alsoWrite: -1}, true},
		"nowhere":              {movable{get: -1, set: -1, alsoWrite: -1}, false},
		"written, not read":    {movable{get: -1, set: 1, alsoWrite: -1}, false},
		"written to two words": {movable{get: 1, set: 1, alsoWrite: 3}, false},
	} {
		before := []uint64{5, 6, 7, 8}
		c.g.words, c.g.own = slices.Clone(before), 9
		was := c.g.Get()
		var at uintptr
		if ok := find(&c.g, c.g.words, &at); ok != (c.want) {
			t.Errorf("%s: found is %v", name, ok)
		}
		if c.want && at != 16 {
			t.Errorf("%s: at %d", name, at)
		}
		if c.want && !slices.Equal(c.g.words, before) || c.g.Get() != was {
			t.Errorf("%s: afterwards %v, %d", name, c.g.words, c.g.Get())
		}
	}
}

// TestInstanceFitsItsSizeClass: with a word more, Go's allocator takes 128 bytes more for each guest that is
// awake. Who needs another field looks for one to give up, or accepts that here.
func TestInstanceFitsItsSizeClass(t *testing.T) {
	if n := unsafe.Sizeof(Instance{}); unsafe.Sizeof(n) == 8 && n > 768 {
		t.Errorf("an instance has %d bytes", n)
	}
}
