package natscluster

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// What bundles have is the sum of their entries, however these change, and nothing is left of a bundle without any.
func TestSharesAreSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, model := newShares(), map[string]int64{}
		sum := func(bundle string) (n int64) {
			for key, size := range model {
				if key[:1] == bundle {
					n += size
				}
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			bundle := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "bundle")
			key := fmt.Sprintf("%s.k%d", bundle, rapid.IntRange(0, 4).Draw(t, "key"))
			value := make([]byte, rapid.SampledFrom([]int{0, 1, 100, service.MaxSharedValue}).Draw(t, "value"))
			x.changed(bundle, cluster.Entry{Key: key, Value: value})
			if delete(model, key); len(value) > 0 {
				model[key] = int64(len(key) + len(value) + service.SharedOverhead)
			}
			for _, b := range []string{"a", "b"} {
				if x.of[b] != sum(b) {
					t.Fatalf("bundle %s has %d, counted are %d", b, sum(b), x.of[b])
				}
			}
		}
		if len(x.entry) != len(model) || len(x.of) > 2 {
			t.Fatalf("%d entries are counted, %d bundles, of %d", len(x.entry), len(x.of), len(model))
		}
	})
}

// A bundle has half of what there is; a value that is replaced by a smaller one, or by one of its size, always fits.
func TestABundleHasHalf(t *testing.T) {
	x := newShares()
	value := make([]byte, service.MaxSharedValue)
	size := int64(len("a.k00") + len(value) + service.SharedOverhead)
	n := 0
	for ; x.fits(fmt.Sprintf("a.k%02d", n), size); n++ {
		x.changed("a", cluster.Entry{Key: fmt.Sprintf("a.k%02d", n), Value: value})
	}
	if has := x.of["a"]; has > mostOfBundle || has < mostOfBundle-size {
		t.Errorf("it has %d of %d", has, mostOfBundle)
	}
	if !x.fits("a.k00", size) || !x.fits("a.k00", size-1) || x.fits("a.new", size) {
		t.Error("what fits is not what does not grow")
	}
	if !x.fits("b.k", size) {
		t.Error("another bundle has no room")
	}
	x.changed("a", cluster.Entry{Key: "a.k00"})
	if !x.fits("a.new", size) {
		t.Error("a removal gives no room")
	}
}

// A member that is bound to a bundle cannot take the room of another one.
func TestABundleThatStoresWithoutEnd(t *testing.T) {
	all := bound(t, &events{}, "shop")
	keeper, member := all[0], all[1]
	shop, bank := sharedOf(t, member, "kv", "shop"), sharedOf(t, keeper, "kv", "bank")
	stored := 0
	for i := range service.MaxSharedTotal / service.MaxSharedValue {
		o := put(shop, fmt.Sprint("shop.n.k", i), make([]byte, service.MaxSharedValue), 0, 0)
		if errors.Is(o.err, service.ErrFull) {
			break
		}
		if o.err != nil {
			t.Fatal(o.err)
		}
		stored++
	}
	if most := mostOfBundle / service.MaxSharedValue; stored > most+4 || stored < most-1 {
		t.Errorf("it has stored %d values, of %d that it may", stored, most)
	}
	if o := put(bank, "bank.n.k", make([]byte, service.MaxSharedValue), 0, 0); o.err != nil || !o.ok {
		t.Errorf("another bundle: %+v", o)
	}
	if o := put(shop, "shop.n.small", []byte("x"), 0, 0); !errors.Is(o.err, service.ErrFull) && o.err != nil {
		t.Error(o.err)
	}
}
