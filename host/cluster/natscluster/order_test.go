package natscluster

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// boundIdentity is the identity of a node whose token was for bundles.
func boundIdentity(t *testing.T, authority *Identity, node string, bundles ...string) *Identity {
	t.Helper()
	text, err := authority.Token(node, time.Hour, bundles...)
	if err != nil {
		t.Fatal(err)
	}
	id, err := enrolled(t, authority, text, filepath.Join(t.TempDir(), node), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// An order is taken from who has a right to the bundle, by the start of the node that it is for, and as it was signed.
func TestOrders(t *testing.T) {
	ids := founded(t, 1, 2)
	self := cluster.Member{Name: ids[1].Node, Number: 2, ID: 77}
	shop, bank := boundIdentity(t, ids[0], "b", "shop"), boundIdentity(t, ids[0], "c", "bank")
	sign := func(by *Identity, to cluster.Member, bundle string) []byte {
		b, err := by.SignOrder(to, bundle, []byte("delete ann"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, by := range []*Identity{ids[0], shop} {
		order, name, err := ids[1].OpenOrder(self, "shop", sign(by, self, "shop"))
		if err != nil || string(order) != "delete ann" || name != by.Node {
			t.Errorf("of %s: %q of %s, %v", by.Node, order, name, err)
		}
	}
	later := self
	later.ID++
	stranger := founded(t, 1, 1)[0]
	changed := signedOrder{}
	if err := strict.Unmarshal(sign(shop, self, "shop"), &changed); err != nil {
		t.Fatal(err)
	}
	changed.Order = []byte("delete bob")
	borrowed := changed
	borrowed.Order, borrowed.Certificate = []byte("delete ann"), ids[0].certificate.Raw
	for name, x := range map[string]struct {
		b   []byte
		why string
	}{
		"of a member of another bundle":         {sign(bank, self, "shop"), "was for bundle bank only, not for shop"},
		"for another bundle":                    {sign(ids[0], self, "bank"), "has not signed it"},
		"for another start":                     {sign(ids[0], later, "shop"), "has not signed it"},
		"for another node":                      {sign(ids[0], cluster.Member{Name: "n9", ID: 77}, "shop"), "has not signed it"},
		"of another cluster":                    {sign(stranger, self, "shop"), "another authority"},
		"changed":                               {mustEncode(changed), "has not signed it"},
		"with the certificate of another node":  {mustEncode(borrowed), "has not signed it"},
		"without a certificate":                 {mustEncode(signedOrder{Order: []byte("x")}), "malformed"},
		"with a certificate without end":        {mustEncode(signedOrder{Certificate: make([]byte, maxCertificate+1)}), "malformed"},
		"without end":                           {make([]byte, MaxSignedOrder+1), "malformed"},
		"nothing":                               {nil, "malformed"},
		"with a key that no node writes":        {append([]byte{0xa4, 4, 0}, sign(shop, self, "shop")[1:]...), "malformed"},
		"with the authority as if it were one":  {mustEncode(signedOrder{Certificate: ids[0].authority.Raw, Order: []byte("x")}), ""},
		"with a signature that is none at all ": {mustEncode(signedOrder{Certificate: shop.certificate.Raw, Order: []byte("x")}), "has not signed it"},
	} {
		order, _, err := ids[1].OpenOrder(self, "shop", x.b)
		if err == nil || order != nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %q, %v", name, order, err)
		}
	}
	if _, err := shop.SignOrder(self, "shop", make([]byte, MaxOrder+1)); err == nil {
		t.Error("an order without end is signed")
	}
}

// A member has a right to the bundles of its certificate, and to none with that of another.
func TestRights(t *testing.T) {
	ids := founded(t, 1, 2)
	shop := boundIdentity(t, ids[0], "b", "shop")
	member := func(id *Identity) cluster.Member {
		return cluster.Member{Name: id.Node, Number: 3, Identity: id.Certificate()}
	}
	if err := ids[1].RightTo(member(shop), "shop"); err != nil {
		t.Error(err)
	}
	if err := ids[1].RightTo(member(ids[0]), "bank"); err != nil {
		t.Error(err)
	}
	liar := member(shop)
	liar.Identity = ids[0].Certificate()
	for name, m := range map[string]cluster.Member{"another bundle": member(shop), "another's certificate": liar, "no certificate": {Name: "b"}, "another authority": member(founded(t, 1, 1)[0])} {
		if err := ids[1].RightTo(m, "bank"); err == nil {
			t.Errorf("%s: it has a right", name)
		}
	}
}

func FuzzOrder(f *testing.F) {
	dir := f.TempDir()
	id, err := Init(filepath.Join(dir, "a"), "a", Description{Name: "c", Keepers: []Keeper{{"a", "127.0.0.1:4000"}}})
	if err != nil {
		f.Fatal(err)
	}
	self := cluster.Member{Name: "a", ID: 7}
	good, err := id.SignOrder(self, "shop", []byte("delete ann"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if order, _, err := id.OpenOrder(self, "shop", b); err == nil && !bytes.Equal(order, []byte("delete ann")) {
			t.Errorf("%q was not signed", order)
		}
	})
}
