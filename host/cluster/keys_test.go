package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Pages together have each key that is asked for once, in order, whatever the order in which the keys come.
func TestPagesOfKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var all []KeyID
		for i := range r.IntN(60) {
			all = append(all, KeyID{fmt.Sprintf("k%d", r.IntN(3)), fmt.Sprintf("%c%d", 'a'+rune(r.IntN(3)), i)})
		}
		all = append(all, KeyID{"k1", ":3"}, KeyID{"k1", ""}) // no keys
		q := KeyQuery{Most: 1 + r.IntN(8)}
		if r.IntN(2) == 0 {
			q.Kind = "k1"
		}
		if r.IntN(2) == 0 {
			q.Prefix = "b"
		}
		var want, got []KeyID
		for _, k := range all {
			if len(k.Name) > 1 && k.Name[0] != ':' && (q.Kind == "" || k.Kind == q.Kind) && (q.Prefix == "" || k.Name[0] == 'b') {
				want = append(want, k)
			}
		}
		slices.SortFunc(want, func(a, b KeyID) int { return slices.Compare([]string{a.Kind, a.Name}, []string{b.Kind, b.Name}) })
		for more := true; more; {
			r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			f := NewFirstKeys(q)
			for _, k := range all {
				f.Add(k)
			}
			var page []KeyID
			if page, more = f.Keys(); len(page) > q.Most || more && len(page) != q.Most {
				t.Fatalf("a page of %d keys, at most %d; more: %v", len(page), q.Most, more)
			}
			if got = append(got, page...); more {
				q.After = page[len(page)-1]
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v:\n%v\nwant\n%v", q, got, want)
		}
	}
}

func TestKeyQueries(t *testing.T) {
	for _, q := range []KeyQuery{{Most: 1}, {Most: MaxKeys, Kind: "k", Prefix: "a~2F", After: KeyID{"k", "a"}}} {
		if !q.Valid() {
			t.Errorf("%+v is refused", q)
		}
	}
	for _, q := range []KeyQuery{{}, {Most: MaxKeys + 1}, {Most: -1}, {Most: 1, Kind: "a.>/"}, {Most: 1, Prefix: ":"}, {Most: 1, After: KeyID{"k", ""}}, {Most: 1, After: KeyID{"", "a"}}, {Most: 1, After: KeyID{"k", "a b"}}} {
		if q.Valid() {
			t.Errorf("%+v is taken", q)
		}
	}
}
