package natscluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// listedBy is a page as a node gets it.
func listedBy(l cluster.Log, q cluster.KeyQuery) (cluster.KeyPage, error) {
	type outcome struct {
		p   cluster.KeyPage
		err error
	}
	c := make(chan outcome, 1)
	l.List(q, func(p cluster.KeyPage, err error) { c <- outcome{p, err} })
	x := <-c
	return x.p, x.err
}

// A node that is bound to a bundle lists the keys of that one: of another one it is refused, and what it lists has none of them.
func TestKeysOfAnotherBundleAreNotListed(t *testing.T) {
	e := &events{}
	all := bound(t, e, "shop")
	written(t, journalsOf(t, all[:1], "bank")[0])
	shop := journalsOf(t, all[1:2], "shop")[0]
	if p, err := listedBy(shop, cluster.KeyQuery{Most: 9}); err != nil || len(p.Keys) != 0 {
		t.Errorf("before it has any: %+v, %v", p, err)
	}
	if _, err := all[1].Journal(within(t, 10*time.Second), "bank"); err == nil {
		t.Error("it opens the journal of the other bundle")
	}
	other := &asking{c: all[1], subject: all[1].id.subjectKeys("bank")}
	if p, err := listedBy(other, cluster.KeyQuery{Most: 9}); err == nil {
		t.Errorf("it lists %+v", p)
	}
	// The same by a node that is bound to none, and by the keeper: the one key of the two subjects, since a list of living keys is none.
	for _, c := range []*Cluster{all[0], all[2]} {
		p, err := listedBy(journalsOf(t, []*Cluster{c}, "bank")[0], cluster.KeyQuery{Most: 9})
		if err != nil || len(p.Keys) != 1 || p.More || p.Keys[0].KeyID != (cluster.KeyID{Kind: "carts", Name: "ann"}) || p.Keys[0].Records != 2 || p.Keys[0].Bytes != 6 {
			t.Errorf("%+v, %v", p, err)
		}
		if age := time.Since(time.Unix(0, p.Keys[0].Last)); age < 0 || age > time.Minute {
			t.Errorf("the last write was %v ago", age)
		}
	}
	// Nothing is left in the stream of what has listed.
	s, err := mustStream(t, all[0]).Stream(within(t, 10*time.Second), all[0].id.streamJournal("bank"))
	if err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool {
		is, err := s.Info(within(t, 5*time.Second))
		return err == nil && is.State.Consumers == 0
	}) {
		t.Error("a consumer is left")
	}
}

// More keys than fit into a page, or are looked at at once, are listed in pages, and one list of a bundle is made at a time.
func TestManyKeysAreListed(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	logs := journalsOf(t, all, "shop")
	const keys = mostListed + 30
	js := mustStream(t, all[0])
	j := logs[0].(*Journal)
	for i := range keys { // many at a time: what a record costs is not what this is about
		if _, err := js.PublishAsync(j.key("carts", fmt.Sprintf("k%04d", i)), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	for who, l := range logs {
		n := 0
		for q := (cluster.KeyQuery{Kind: "carts", Most: cluster.MaxKeys}); ; {
			p, err := listedBy(l, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range p.Keys {
				if k.Name != fmt.Sprintf("k%04d", n) || k.Records != 1 || k.Bytes != 1 {
					t.Fatalf("node %d: %+v instead of number %d", who, k, n)
				}
				n++
			}
			if !p.More {
				break
			}
			q.After = p.Keys[len(p.Keys)-1].KeyID
		}
		if n != keys {
			t.Errorf("node %d: %d keys of %d", who, n, keys)
		}
	}
	j.listing <- struct{}{}
	for who, l := range logs {
		if _, err := listedBy(l, cluster.KeyQuery{Most: 1}); !errors.Is(err, cluster.ErrBusy) {
			t.Errorf("node %d, while another one is made: %v", who, err)
		}
	}
	<-j.listing
	if err := all[0].serves.lists.Acquire(t.Context(), mostLists); err != nil {
		t.Fatal(err)
	}
	if _, err := listedBy(logs[1], cluster.KeyQuery{Most: 1}); !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("while as many are made as may be: %v", err)
	}
	all[0].serves.lists.Release(mostLists)
	if _, err := listedBy(logs[1], cluster.KeyQuery{}); err == nil {
		t.Error("a list of nothing is asked for")
	}
}
