package natscluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	member, err := all[1].Shared(within(t, 20*time.Second), "kv")
	if err != nil {
		t.Fatal(err)
	}
	put := func(x *Shared, key string) error {
		c := make(chan error, 1)
		x.Put(key, []byte("x"), 0, 0, func(_ uint64, _ bool, err error) { c <- err })
		return <-c
	}
	for key, may := range map[string]bool{"shop.n.k": true, "shop~2e2.n.k": true, "bank.n.k": false, "shopx.n.k": false, "shop~2e.n.k": false} {
		if err := put(member, key); (err == nil) != may {
			t.Errorf("%s: %v", key, err)
		}
	}
	for bundle, may := range map[string]bool{"shop": true, "shop.2": true, "bank": false} {
		if _, err := all[1].Journal(within(t, 20*time.Second), bundle); (err == nil) != may {
			t.Errorf("the journal of %s: %v", bundle, err)
		}
	}
	keeper, err := all[0].Shared(within(t, 20*time.Second), "kv")
	if err != nil {
		t.Fatal(err)
	}
	if err := put(keeper, "bank.n.k"); err != nil {
		t.Errorf("a node that is bound to none: %v", err)
	}
}
