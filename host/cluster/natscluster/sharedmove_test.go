package natscluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// earlierShared makes the stream in which the release before has kept what a service shares, in the place of the one that this release has.
func earlierShared(t *testing.T, keepers []*Cluster, name string) *store {
	t.Helper()
	for _, c := range keepers {
		if _, err := c.ownShared(within(t, 60*time.Second), name); err != nil {
			t.Fatal(err)
		}
	}
	c := keepers[0]
	if err := mustStream(t, c).DeleteStream(within(t, 20*time.Second), c.id.streamShared(name)); err != nil {
		t.Fatal(err)
	}
	s := c.sharedStore(name)
	s.nc = c.nodes
	if err := c.makeStream(within(t, 20*time.Second), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// streamOf is all that the stream has.
func streamOf(t *testing.T, s *store) (all []string, first uint64) {
	t.Helper()
	for next := uint64(1); ; {
		e, err := s.leaders(within(t, 10*time.Second), next)
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return all, first
		}
		if next = e.seq + 1; first == 0 {
			first = e.seq
		}
		all = append(all, fmt.Sprintf("%s=%s", strings.TrimPrefix(e.Subject, s.prefix), e.Data))
	}
}

// What the release before has of a service is moved once and in order, with later revisions, whoever moves it, and however far one has come
// before it was killed. Nothing can be added to the earlier stream then.
func TestWhatTheReleaseBeforeShares(t *testing.T) {
	for _, keepers := range thorough.SlowOf([]int{1}, []int{1, 3}) {
		all := opened(t, founded(t, keepers, keepers+1), &events{})
		c, member := all[0], all[keepers]
		old := earlierShared(t, all[:keepers], "kv")
		var want []string
		at := map[string]uint64{}
		add := func(key, value string, stay int64) {
			n, err := old.put(key, []byte(value), at[key], stay)
			if err != nil {
				t.Fatal(err)
			}
			at[key] = n
		}
		for i := range 30 {
			add(fmt.Sprint("shop.n.k", i), "first", 0)
		}
		add("shop.n.k3", "second", 0)
		add("shop.n.removed", "", 3600)
		add("bank.n.short", "x", 2)
		add("bank.n.k", "y", 3600)
		if err := c.nodes.PublishMsg(&nats.Msg{Subject: old.prefix + "junk.>x", Data: []byte("z")}); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if i != 3 {
				want = append(want, fmt.Sprintf("shop.n.k%d=first", i))
			}
		}
		want = append(want, "shop.n.k3=second", "shop.n.removed=", "bank.n.k=y", sharedMoved+"=moved")

		// One keeper was killed when it had sealed the stream and moved some.
		half := c.sharedStore("kv")
		_, until, err := c.sealed(within(t, 20*time.Second), half)
		if err != nil {
			t.Fatal(err)
		}
		cfg := half.streamConfig(keepers)
		cfg.FirstSeq = until + 1
		if err := c.makeStreamOf(within(t, 20*time.Second), c.keys, half.what, cfg, true); err != nil {
			t.Fatal(err)
		}
		last := until
		for i := range 5 {
			if last, err = storeNext(within(t, 10*time.Second), c.keys, half.stream, &nats.Msg{Subject: fmt.Sprint(half.prefix, "shop.n.k", i), Data: []byte("first")}, last); err != nil {
				t.Fatal(err)
			}
		}
		if !eventually(func() bool {
			_, n, err := old.get(within(t, 10*time.Second), "bank.n.short")
			return err == nil && n == 0
		}) {
			t.Error("what has a time is not forgotten in the sealed stream")
		}

		// Others go on at the same time.
		var wait sync.WaitGroup
		errs := make([]error, keepers+1)
		for i := range errs {
			wait.Go(func() {
				x := all[i%keepers]
				errs[i] = x.makeShares(within(t, 60*time.Second), x.sharedStore("kv"))
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		got, first := streamOf(t, half)
		if fmt.Sprint(got) != fmt.Sprint(want) || first <= until {
			t.Errorf("from %d on, after %d, there is\n%v\nand was\n%v", first, until, got, want)
		}
		e, err := half.leaders(within(t, 10*time.Second), first)
		for err == nil && e != nil && !strings.HasSuffix(e.Subject, "bank.n.k") {
			e, err = half.leaders(within(t, 10*time.Second), e.seq+1)
		}
		if err != nil || e == nil || e.stay < 3000*time.Second || e.stay > 3600*time.Second {
			t.Errorf("the time that is left: %+v, %v", e, err)
		}
		if _, err := old.put("shop.n.k3", []byte("late"), at["shop.n.k3"], 0); err == nil {
			t.Error("a node of the release before can store something that is left behind")
		}

		// A node goes on with it; one of the release before is refused what is there no more.
		x := sharedOf(t, member, "kv", "shop")
		value, n, err := get(x, "shop.n.k3")
		if value != "second" || n <= until || err != nil {
			t.Errorf("%q at %d, %v", value, n, err)
		}
		if o := put(x, "shop.n.k3", []byte("third"), at["shop.n.k3"], 0); o.ok || o.err != nil {
			t.Errorf("with a revision of the earlier stream: %+v", o)
		}
		if o := put(x, "shop.n.k3", []byte("third"), n, 0); !o.ok {
			t.Errorf("%+v", o)
		}
		before := &store{nc: member.nodes, stream: old.stream, prefix: old.prefix, why: member.why}
		if _, _, err := before.get(within(t, time.Second), "shop.n.k3"); err == nil {
			t.Error("a node of the release before reads what is old")
		}
		if err := c.makeShares(within(t, 20*time.Second), c.sharedStore("kv")); err != nil {
			t.Error(err)
		}
		if value, _, err := get(x, "shop.n.k3"); value != "third" || err != nil {
			t.Errorf("it was moved again: %q, %v", value, err)
		}
	}
}

// A keeper that was paused while it moved values brings none of them back when others have gone on.
func TestAMoverThatWasPaused(t *testing.T) {
	c := opened(t, founded(t, 1, 1), &events{})[0]
	old := earlierShared(t, []*Cluster{c}, "kv")
	for i := range 3 {
		if _, err := old.put(fmt.Sprint("shop.n.k", i), []byte("old"), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	s := c.sharedStore("kv")
	from, until, err := c.sealed(within(t, 20*time.Second), s)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.streamConfig(1)
	cfg.FirstSeq = until + 1
	if err := c.makeStreamOf(within(t, 20*time.Second), c.keys, s.what, cfg, true); err != nil {
		t.Fatal(err)
	}
	at, done, err := s.movesAlone(within(t, 20*time.Second)) // here it is paused
	if err != nil || done || at != until {
		t.Fatal(at, done, err)
	}
	if err := c.makeShares(within(t, 60*time.Second), c.sharedStore("kv")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.move(within(t, 20*time.Second), from, at); !errors.Is(err, errMoving) {
		t.Errorf("it goes on: %v", err)
	}
	if _, done, err := s.movesAlone(within(t, 20*time.Second)); err != nil || !done {
		t.Errorf("it does not see that all was moved: %v", err)
	}
}

// What was moved has later revisions than it had: one that somebody knows from before is never that of another value.
func TestRevisionsOnlyGrow(t *testing.T) {
	c := opened(t, founded(t, 1, 1), &events{})[0]
	old := earlierShared(t, []*Cluster{c}, "kv")
	last := uint64(0)
	for i := range 5 {
		at, err := old.put("shop.n.k", []byte{byte(i)}, last, 0)
		if err != nil {
			t.Fatal(err)
		}
		last = at
	}
	s := c.sharedStore("kv")
	if err := c.makeShares(within(t, 20*time.Second), s); err != nil {
		t.Fatal(err)
	}
	if _, at, err := s.get(within(t, 10*time.Second), "shop.n.k"); err != nil || at <= last {
		t.Errorf("it is at %d, and was at %d: %v", at, last, err)
	}
}

// Without a release before there is nothing to move, and one that appears later is not.
func TestNoReleaseBefore(t *testing.T) {
	c := opened(t, founded(t, 1, 1), &events{})[0]
	x := sharedOf(t, c, "pubsub", "shop")
	if o := put(x, "shop.t", []byte("x"), 0, 0); o.err != nil || !o.ok {
		t.Fatalf("%+v", o)
	}
	s := c.sharedStore("pubsub")
	s.nc = c.nodes
	if err := c.makeStream(within(t, 20*time.Second), s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.put("shop.t2", []byte("y"), 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.makeShares(within(t, 20*time.Second), c.sharedStore("pubsub")); err != nil {
		t.Fatal(err)
	}
	if got, _ := streamOf(t, c.sharedStore("pubsub")); fmt.Sprint(got) != fmt.Sprint([]string{sharedMoved + "=there was none", "shop.t=x"}) {
		t.Errorf("%v", got)
	}
	if cfg, err := mustStream(t, c).Stream(within(t, 10*time.Second), s.stream); err != nil || differs(cfg.CachedInfo().Config, s.streamConfig(1)) != nil || cfg.CachedInfo().Config.Storage != jetstream.FileStorage {
		t.Errorf("the stream: %v", err)
	}
}
