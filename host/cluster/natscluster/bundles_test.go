package natscluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/service"
)

// A node whose token was for one bundle can write what services share of that bundle only.
func TestANodeThatIsBoundToABundle(t *testing.T) {
	first := founded(t, 1, 1)[0]
	for _, bad := range [][]string{{""}, {"a b"}, {"a", "b", "c", "d", "e", "f", "g", "h", "i"}} {
		if _, err := first.Token("b", time.Hour, bad...); err == nil {
			t.Errorf("a token for %q", bad)
		}
	}
	text, err := first.Token("b", time.Hour, "shop", "shop.2")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := parseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range [][]string{nil, {"shop"}, {"shop", "shop.2", "bank"}} { // the holder changes what it is for
		forged := *tok
		forged.Bundles = other
		e, b, err := newEnrolment(&forged)
		if err != nil {
			t.Fatal(err)
		}
		reply, _, _ := first.admit(b, time.Now())
		if _, err := e.finish(filepath.Join(t.TempDir(), "x"), reply); err == nil || !strings.Contains(err.Error(), "not one of this cluster") {
			t.Errorf("%q: %v", other, err)
		}
	}
	bound, err := enrolled(t, first, text, filepath.Join(t.TempDir(), "b"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !bound.Shares("shop") || !bound.Shares("shop.2") || bound.Shares("bank") || !first.Shares("bank") {
		t.Error("it is for other bundles")
	}
	all := opened(t, []*Identity{first, bound}, &events{})
	put := func(c *Cluster, bundle string) error {
		x, err := c.Shared(within(t, 20*time.Second), "kv", bundle)
		if err != nil {
			return err
		}
		done := make(chan error, 1)
		x.Put(string(service.AppendSharedName(nil, bundle))+".n.k", []byte("x"), 0, 0, func(_ uint64, _ bool, err error) { done <- err })
		return <-done
	}
	for bundle, may := range map[string]bool{"shop": true, "shop.2": true, "bank": false, "shopx": false, "shop.": false, "": false} {
		if err := put(all[1], bundle); (err == nil) != may {
			t.Errorf("what is shared of %q: %v", bundle, err)
		}
		if _, err := all[1].Journal(within(t, 20*time.Second), bundle); (err == nil) != may {
			t.Errorf("the journal of %q: %v", bundle, err)
		}
	}
	for bundle, may := range map[string]bool{"shop": true, "shop.2": true, "bank": false, "shopx": false} {
		if _, err := all[1].dir.put(shard.KeyOf(bundle, "carts"), []byte("x"), 0, 0); (err == nil) != may {
			t.Errorf("the table of a kind of %q: %v", bundle, err)
		}
	}
	if err := put(all[0], "bank"); err != nil {
		t.Errorf("a node that is bound to none: %v", err)
	}
}
