package natscluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// begun are the turns that are under way.
func (t *turns) begun() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, has := range t.has {
		n += has
	}
	return n
}

// Whatever bundles take and give back: all of them have no more than there is, each of the first sixteen gets what is sure for it, and
// one that is alone gets all but that.
func TestSharesOfBundles(t *testing.T) {
	const most, sure = 1000, 40
	rapid.Check(t, func(t *rapid.T) {
		s := newQuotas(shareOfBytes, most, sure)
		var has [mostJournals + 3]int64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(has)-1).Draw(t, "bundle")
			name, n := fmt.Sprint("b", i), rapid.Int64Range(1, 300).Draw(t, "bytes")
			if rapid.Bool().Draw(t, "give") {
				if n = min(n, has[i]); n > 0 {
					s.give(name, n)
					has[i] -= n
				}
				continue
			}
			total, holders := int64(0), 0
			for _, x := range has {
				total += x
				if x > 0 {
					holders++
				}
			}
			err := s.take(name, n)
			switch share := (*ShareError)(nil); {
			case err == nil:
				has[i] += n
				if total+n > most {
					t.Fatalf("%d bytes, of %d", total+n, most)
				}
			case !errors.Is(err, cluster.ErrBusy) || !errors.As(err, &share) || share.Bundle != name || !strings.Contains(err.Error(), name):
				t.Fatalf("%v", err)
			case n <= sure && has[i] == 0 && holders < mostJournals:
				t.Fatalf("%s does not get %d bytes that are sure: %v", name, n, has)
			case total == has[i] && total+n <= most-(mostJournals-1)*sure:
				t.Fatalf("%s is alone, and does not get %d of %d bytes: %v", name, n, most, has)
			}
			if got := s.used(); got != sum(has[:]) {
				t.Fatalf("%d bytes are used, want %d", got, sum(has[:]))
			}
		}
		for i, n := range has {
			s.give(fmt.Sprint("b", i), n)
		}
		if len(s.of) != 0 || s.sures != 0 || s.beyond != 0 {
			t.Fatalf("left: %v, %d, %d", s.of, s.sures, s.beyond)
		}
	})
}

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

// A bundle that floods a keeper does not keep another one waiting: turns are left for others, and the next that is free is one of the
// bundle that has the fewest.
func TestTurnsOfBundles(t *testing.T) {
	turns := newTurns(mostKeysRead, mostKeysOf)
	over, stop := context.WithCancel(t.Context())
	begin := func(ctx context.Context, bundle string) chan error {
		c := make(chan error, 1)
		turns.mu.Lock()
		n := len(turns.waiting) + sumOf(turns.has)
		turns.mu.Unlock()
		go func() { c <- turns.begin(ctx, bundle) }()
		for { // until it waits, or goes on
			turns.mu.Lock()
			m := len(turns.waiting) + sumOf(turns.has)
			turns.mu.Unlock()
			if m > n {
				return c
			}
			time.Sleep(50 * time.Microsecond)
		}
	}
	var flood []chan error
	for range 100 {
		flood = append(flood, begin(over, "flood"))
	}
	if n := turns.begun(); n != mostKeysOf {
		t.Fatalf("the flood has %d turns, want %d", n, mostKeysOf)
	}
	for range 50 { // each turn of the other begins at once
		if err := <-begin(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		turns.end("shop")
	}
	var shop []chan error
	for range 4 {
		shop = append(shop, begin(t.Context(), "shop"))
	}
	for i := range 2 { // of turns that the flood gives back the other gets the next ones
		turns.end("flood")
		if err := <-shop[2+i]; err != nil {
			t.Fatal(err)
		}
	}
	if turns.has["shop"] != 4 || turns.has["flood"] != 4 {
		t.Errorf("%v", turns.has)
	}
	stop()
	refused := 0
	for _, c := range flood {
		if err := <-c; err != nil {
			share := (*ShareError)(nil)
			if !errors.As(err, &share) || share.Bundle != "flood" || !errors.Is(err, cluster.ErrBusy) {
				t.Fatal(err)
			}
			refused++
		}
	}
	if refused != 100-mostKeysOf || len(turns.waiting) != 0 {
		t.Errorf("%d are refused, %d wait", refused, len(turns.waiting))
	}
}

func sumOf(has map[string]int) (n int) {
	for _, x := range has {
		n += x
	}
	return n
}

// A bundle that has used up its shares at a keeper is told so, with its name. Meanwhile each request of another one is carried out.
func TestAFloodOfOneBundle(t *testing.T) {
	nodes := opened(t, founded(t, 1, 2), &events{})
	keeper, member := nodes[0], nodes[1]
	shop, flood := journalsOf(t, []*Cluster{member}, "shop")[0], journalsOf(t, []*Cluster{member}, "flood")[0]
	s := keeper.serves
	if err := s.under.take("flood", bytesUnder-(mostJournals-1)*bytesSure-s.under.used()); err != nil {
		t.Fatal(err)
	}
	for range mostKeysOf {
		if err := s.reads.begin(t.Context(), "flood"); err != nil {
			t.Fatal(err)
		}
	}
	if got := written(t, shop); !strings.Contains(got, `"two"`) {
		t.Errorf("the other bundle: %s", got)
	}
	c := make(chan error, 1)
	flood.Fence("carts", 3, []byte("fence"), 0, func(_ uint64, err error) { c <- err })
	share := (*ShareError)(nil)
	if err := <-c; !errors.As(err, &share) || *share != (ShareError{"flood", shareOfBytes}) || !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("the flood: %v", err)
	}
	s.under.give("flood", 1<<20)
	flood.Read("carts", 3, "ann", 0, func(_ []cluster.LogEntry, err error) { c <- err })
	if err := <-c; !errors.As(err, &share) || *share != (ShareError{"flood", shareOfReads}) {
		t.Errorf("a read of the flood: %v", err)
	}
}

// A bundle whose requests wait for its journal to open does not keep those of another one from waiting for theirs.
func TestAFloodOfOpenings(t *testing.T) {
	nodes := opened(t, founded(t, 1, 2), &events{})
	s, member := nodes[0].serves, nodes[1]
	n := 0
	for s.opening.take("flood", 1) == nil {
		n++
	}
	if want := mostOpening - (mostJournals-1)*opensSure; n != want {
		t.Errorf("%d requests of one bundle wait, want %d", n, want)
	}
	open := func(bundle string) error {
		_, err := member.askOnce(within(t, 30*time.Second), member.id.subjectKeys(bundle), whatJournal, mustEncode(keeperRequest{Op: keysOpen}))
		return err
	}
	share := (*ShareError)(nil)
	if err := open("flood"); !errors.As(err, &share) || share.Of != shareOfOpens || !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("the flood: %v", err)
	}
	if err := open("shop"); err != nil {
		t.Errorf("the other bundle: %v", err)
	}
	s.opening.give("flood", int64(n))
	if err := open("flood"); err != nil {
		t.Errorf("after it: %v", err)
	}
}
