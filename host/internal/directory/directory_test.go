package directory

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"pgregory.net/rapid"
)

// keys counts the keys of a table, those without a value included, and checks that
// there are as many free places at least: a search ends at the first of them.
func (t *Table[T]) keys() (n int, halfFree bool) {
	p := t.slots.Load()
	if p == nil {
		return 0, true
	}
	for i := range *p {
		if (*p)[i].key.Load() != 0 {
			n++
		}
	}
	return n, 2*n <= len(*p)
}

// A table grows when half its places have been used, to four times what is in it then: so
// it neither fills up, nor grows for those that have gone, nor is copied for every key.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name           string
		put, gone, end int // keys put, the first of them removed again, keys put then
		slots, used    int
	}{
		{"half full", 32, 0, 0, 64, 32},
		{"one more", 33, 0, 0, 256, 33},
		{"half full again", 128, 0, 0, 256, 128},
		{"and one more", 129, 0, 0, 1024, 129},
		{"those that have gone leave room", 32, 17, 1, 64, 16},
		{"one more lives", 32, 16, 1, 128, 17},
		{"all have gone", 32, 32, 1, 64, 1},
		{"after a growth there is room", 32, 17, 17, 64, 32},
	} {
		var tab Table[int]
		next := abi.Ref(0)
		put := func(n int) {
			for range n {
				next++
				tab.Put(next, new(int))
			}
		}
		put(c.put)
		for i := range c.gone {
			tab.Remove(abi.Ref(i + 1))
		}
		put(c.end)
		keys, ok := tab.keys()
		if got := len(*tab.slots.Load()); got != c.slots || tab.used != c.used || keys != c.used || !ok {
			t.Errorf("%s: %d keys, %d counted, in %d places, want %d in %d", c.name, keys, tab.used, got, c.used, c.slots)
		}
	}
}

// It is a map.
func TestLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab Table[int]
		model := map[abi.Ref]*int{}
		key := rapid.Custom(func(t *rapid.T) abi.Ref { return abi.Ref(rapid.IntRange(1, 300).Draw(t, "key")) << 6 })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "k"), new(int)
				if ok := tab.Put(k, v); ok != (model[k] == nil) {
					t.Fatalf("put %v: %v", k, ok)
				} else if ok {
					model[k] = v
				}
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "k")
				if got := tab.Remove(k); got != model[k] {
					t.Fatal("removed another")
				}
				delete(model, k)
			},
			"": func(t *rapid.T) {
				if k := key.Draw(t, "k"); tab.Get(k) != model[k] || tab.Len() != len(model) {
					t.Fatalf("%v: %v of %d", k, tab.Get(k), tab.Len())
				}
				if keys, ok := tab.keys(); !ok || keys != tab.used {
					t.Fatalf("%d keys, %d counted", keys, tab.used)
				}
				n := 0
				tab.Each(func(*int) { n++ })
				if n != len(model) {
					t.Fatalf("each: %d of %d", n, len(model))
				}
			},
		})
	})
	var tab Table[int]
	if tab.Get(0) != nil || tab.Get(5) != nil || tab.Remove(5) != nil {
		t.Error("found in an empty table")
	}
}

// Whoever looks finds what is there all the time, while others come and go.
func TestHammer(t *testing.T) {
	var tab Table[uint64]
	stay := uint64(1)
	tab.Put(1, &stay)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for g := range uint64(3) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(g, 1))
			for range 20_000 {
				k := abi.Ref(2 + g*1000 + r.Uint64N(500))
				v := uint64(k)
				if !tab.Put(k, &v) {
					tab.Remove(k)
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		r := rand.New(rand.NewPCG(9, 1))
		for !stop.Load() {
			if tab.Get(1) != &stay {
				t.Error("lost")
				return
			}
			if k := abi.Ref(2 + r.Uint64N(3000)); true {
				if v := tab.Get(k); v != nil && *v != uint64(k) {
					t.Errorf("%d finds %d", k, *v)
				}
			}
		}
	}()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for range 100 {
		tab.Each(func(*uint64) {})
	}
	stop.Store(true)
	<-done
}
