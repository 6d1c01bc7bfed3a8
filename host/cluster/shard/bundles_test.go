package shard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// directory is what a node has of the directory.
func (s *sim) directory(l *life) cluster.Directory {
	if l.earlier {
		return beforeBundles{l.machine, l.id}
	}
	return l.machine
}

// beforeBundles is the directory of a node of the release before: it says of itself that it understands no tables of bundles.
type beforeBundles struct {
	cluster.Directory
	id uint64
}

func (d beforeBundles) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	var m cluster.Member
	if strings.HasPrefix(key, "node.") && cbor.Unmarshal(value, &m) == nil && m.ID == d.id {
		m.Newest = cluster.NamesBundles - 1
		value, _ = cbor.Marshal(m)
	}
	d.Directory.Put(key, value, revision, done)
}

// begins checks the table with which that of all bundles is closed, and the first one of a bundle.
func (s *sim) begins(before *table, now cluster.Entry, t *table) {
	switch {
	case !ofBundle(now.Key) && s.closed != nil:
		s.failf("the table of all bundles is closed twice")
	case !ofBundle(now.Key):
		s.closed, s.closedBy = t.clone(), t.mark()
		s.closed.drop(func(h hosting) bool { return h.Born == immortal })
		s.closed.places = s.closed.places[:shards]
		s.follows(before, s.closed)
		s.stats["closed"]++
		for _, l := range s.lives {
			if l.earlier && slices.ContainsFunc(s.closed.hosts, func(h hosting) bool { return h.Ref.Node() == l.number && h.Born == l.node.Self().Born }) {
				s.failf("the table of all bundles is closed while %s takes shards, which is of the release before", l.name)
			}
		}
	case s.closed == nil:
		s.failf("%s begins before the table of all bundles is closed", now.Key)
	case s.closedBy == bundleOf(now.Key).mark():
		s.stats["goes on"]++
		s.follows(s.closed, t)
	default:
		s.stats["begins anew"]++
		s.follows(&table{places: []place{{epoch: s.closed.last()}}}, t)
	}
}

// bundleOf is the configuration of the bundle of a table's key.
func bundleOf(key string) *Config { return &Config{bundle: strings.Split(key, ".")[1]} }

// mine reports whether all regions of a table are of a bundle.
func (s *sim) mine(t *table, bundle string) bool {
	return !slices.ContainsFunc(t.hosts, func(h hosting) bool {
		return slices.ContainsFunc(s.lives, func(l *life) bool {
			return l.number == h.Ref.Node() && l.node.Self().Born == h.Born && l.bundle != bundle
		})
	})
}

// next decides of which bundle and release the next node is. While there is one table for all bundles and nodes of the release before may be
// there, there is one bundle: two would share it.
func (s *sim) nextNode(mixed bool) {
	s.bundle, s.earlier = "shop", false
	switch {
	case mixed && s.closed == nil:
		s.earlier = s.Random.IntN(2) == 0
	case s.Random.IntN(2) == 0:
		s.bundle = "bank"
		fallthrough
	default:
		s.earlier = s.closed != nil && s.Random.IntN(5) == 0
	}
}

// endEarlier ends nodes of the release before, at most so many.
func (s *sim) endEarlier(n int) {
	for _, l := range s.up() {
		if l.earlier && n > 0 && l.system != nil && l.machine.Runs() {
			n--
			if s.Random.IntN(3) == 0 {
				l.machine.Crash()
				continue
			}
			l.over = true
			l.node.Leave(func(error) {})
		}
	}
}

// simulateBundles is a run with two bundles of which each has a kind of the same name. In two of three runs a bundle was there before, and its
// nodes are replaced by those of this release.
func simulateBundles(t *testing.T, seed uint64, stats map[string]int, b broken) string {
	s := newSim(seed, stats, b)
	defer s.close()
	mixed := seed%3 != 0
	s.calm = seed%6 == 0
	for range 3 {
		if s.nextNode(mixed); mixed {
			s.earlier = true
		}
		s.start()
	}
	s.pass(3 * time.Second)
	for round := range 14 {
		s.nextNode(mixed)
		switch {
		case s.calm:
			if s.Random.IntN(3) == 0 && len(s.lives) < 6 {
				s.earlier = false
				s.start()
			}
			s.Faults = clustertest.Faults{Delay: s.Random.IntN(400), Late: s.Random.IntN(300), Behind: s.Random.IntN(300), Most: lease / 16}
		default:
			if len(s.up()) < 5 && s.Random.IntN(3) == 0 {
				s.start()
			}
			s.fault()
		}
		if round >= 5 && !s.calm {
			s.endEarlier(1 + s.Random.IntN(2))
		}
		s.move()
		for range 8 {
			s.act()
			s.pass(time.Duration(s.Random.IntN(200)) * time.Millisecond)
		}
	}
	s.Heal()
	for s.earlier = false; s.failure == "" && slices.ContainsFunc(s.up(), func(l *life) bool { return l.earlier }); s.pass(lease) {
		s.endEarlier(9)
	}
	s.back = true
	for _, s.bundle = range []string{"shop", "bank"} {
		s.start()
		s.pass(4 * lease) // until nodes that have crashed are gone
	}
	s.pass(8*lease + 4*patience)
	if s.failure == "" {
		s.finish()
		for _, l := range s.up() {
			if r := l.state; s.failure == "" && r.table != nil && (r.common || !s.mine(r.table, l.bundle)) {
				s.failf("%s of %s: its table has %+v, %v", l.name, l.bundle, r.table.hosts, r.common)
			}
		}
	}
	if s.failure != "" && *show {
		s.dump(t)
	}
	return s.failure
}

// Two bundles with a kind of one name have keys of their own, also while the nodes of one are replaced that had a table for all bundles, and
// nothing that is promised fails meanwhile.
func TestSimulationOfBundles(t *testing.T) {
	n := *seeds
	if n == 0 {
		if n = thorough.SlowOf(60, 300); race.Enabled || testing.Short() { // one goroutine
			n = 20
		}
	}
	stats, bad := map[string]int{}, 0
	for i := range uint64(n) {
		if why := simulateBundles(t, *first+i, stats, broken{}); why != "" {
			t.Error(why)
			if bad++; bad == 5 {
				break
			}
		}
	}
	t.Log(stats)
	for _, want := range []string{"told", "closed", "goes on", "begins anew", "taken over", "moved"} {
		if stats[want] == 0 && n >= 30 {
			t.Errorf("%q has not happened", want)
		}
	}
}

// bundleMistakes are rules about bundles that are left out, and seeds of simulations that notice it.
var bundleMistakes = []struct {
	name   string
	broken broken
	seed   uint64
}{
	{"two bundles have one table", broken{one: true}, 1},
	{"the table of all bundles stays open", broken{guard: guardClosed}, 1},
	{"it is closed while nodes of the release before have shards", broken{guard: guardAllNew}, 1},
	{"a bundle's table does not begin with what the closed one says", broken{guard: guardFrom | guardStolen}, 80},
}

// Each of them is noticed; see TestMistakes.
func TestMistakesOfBundles(t *testing.T) {
	for _, m := range bundleMistakes {
		t.Run(m.name, func(t *testing.T) {
			n := uint64(max(*seeds, 1))
			for seed := m.seed; seed < m.seed+n; seed++ {
				if why := simulateBundles(t, seed, map[string]int{}, m.broken); why != "" {
					t.Log(why)
					return
				}
			}
			t.Errorf("not noticed in %d simulations from seed %d on: run it with -seeds 2000, and note the seed that is shown", n, m.seed)
		})
	}
}

// mixedBundles is a cluster with two nodes of bundle shop, of which the first is of the release before, and one of bank.
func mixedBundles(t *testing.T, b broken) (s *sim, earlier, shop, bank *life) {
	t.Helper()
	s = newSim(7, map[string]int{}, b)
	t.Cleanup(s.close)
	s.back = true
	for i, bundle := range []string{"shop", "shop", "bank"} {
		s.bundle, s.earlier = bundle, i == 0
		s.start()
		s.pass(3 * time.Second)
	}
	s.earlier = false
	return s, s.lives[0], s.lives[1], s.lives[2]
}

// While a node of the release before is there a second bundle with a kind of the name is refused, and says so. When that node has ended
// each bundle has its keys, and those of the first go on.
func TestASecondBundleWaits(t *testing.T) {
	s, earlier, shop, bank := mixedBundles(t, broken{})
	for k := range keys {
		key := fmt.Sprint("k", k)
		for _, l := range []*life{earlier, shop} {
			s.ask(l, keyed.For(key, note{Op: "ask", Key: key, Of: "shop"}), new(string))
		}
		if err := s.outcome(bank, bank.region, keyed.For(key, note{Op: "ask", Key: key, Of: "bank"})); err == nil || err.Error() != ErrOther.Error()+fmt.Sprint(": node ", shop.number) {
			t.Fatalf("%s: %v", key, err)
		}
	}
	begun := s.stats["begun"]
	var x State
	if s.ask(bank, bank.order("state", wish{}), &x); !strings.Contains(x.Wrong, "another bundle") || x.Owned != 0 {
		t.Errorf("%+v", x)
	}
	earlier.over = true
	earlier.node.Leave(func(error) {})
	s.pass(time.Second)
	for k := range keys {
		key := fmt.Sprint("k", k)
		for _, l := range []*life{shop, bank} {
			s.ask(l, keyed.For(key, note{Op: "ask", Key: key, Of: l.bundle}), new(string))
		}
	}
	// The keys that were on the other node, and those of the second bundle, have begun; no other.
	if n := s.stats["begun"] - begun; n < keys || n > 2*keys || s.stats["goes on"] != 1 || s.stats["begins anew"] != 1 {
		t.Errorf("%d actors have begun; %v", n, s.stats)
	}
	if s.failure != "" {
		t.Error(s.failure)
	}
	s, _, _, bank = mixedBundles(t, broken{guard: guardWhose})
	s.told(t, bank)
	s.pass(time.Second)
	if s.failure == "" {
		t.Error("without the rule the test would not notice")
	}
}

// A node of the release before that comes when the table of all bundles is closed gets no keys, and says that the kind lives otherwise. So is
// a kind that is of no bundle refused.
func TestTooLateForTheCommonTable(t *testing.T) {
	for name, old := range map[string]bool{"the release before": true, "of no bundle": false} {
		s := newSim(7, map[string]int{}, broken{})
		s.back, s.bundle = true, "shop"
		s.start()
		s.pass(3 * time.Second)
		shop := s.lives[0]
		if s.earlier = old; !old {
			s.bundle = ""
		}
		s.start()
		s.pass(3 * time.Second)
		late, want := s.lives[1], ErrBundles
		if old {
			want = ErrShards
		}
		for k := range keys {
			key := fmt.Sprint("k", k)
			if err := s.outcome(late, late.region, keyed.For(key, note{Op: "ask", Key: key, Of: late.bundle})); err == nil || err.Error() != want.Error() {
				t.Errorf("%s: %v", name, err)
			}
		}
		shop.machine.Crash() // also when nobody else is left
		s.pass(3 * lease)
		if err := s.outcome(late, late.region, keyed.For("k1", note{Op: "ask", Key: "k1", Of: late.bundle})); err == nil || err.Error() != want.Error() {
			t.Errorf("%s, alone: %v", name, err)
		}
		if s.stats["begun"] != 0 || s.failure != "" {
			t.Errorf("%s: %d actors were started; %s", name, s.stats["begun"], s.failure)
		}
		s.close()
	}
}

// A closed table can be read by nodes of the release before, which see another number of shards and a region that does not end.
func TestAClosedTable(t *testing.T) {
	mark := (&Config{bundle: "shop"}).mark()
	if other := (&Config{bundle: "bank"}).mark(); other == mark || mark.Node() == 0 {
		t.Errorf("%x %x", mark, other)
	}
	for _, n := range []int{1, 2, 5, MaxShards - 1, MaxShards} {
		x := &table{hosts: []hosting{{Ref: 1<<54 | 9, Born: 3, Weight: 1}, {Ref: 2<<54 | 9, Born: 4, Weight: 1}}, places: make([]place, n)}
		for i := range x.places {
			x.places[i] = place{owner: x.hosts[i%2].Ref, epoch: uint64(i%7) + 1}
		}
		c, err := decodeTable(cluster.Entry{Key: Key("carts"), Value: x.closed(mark).encode(), Revision: 9})
		if err != nil || len(c.places) == n || c.mark() != mark || x.mark() != 0 {
			t.Fatalf("%d: %v, %d shards", n, err, len(c.places))
		}
		v := &view{self: hosting{Ref: 3<<54 | 7, Born: 9, Weight: 1}, hosts: true, plans: true, shards: n, moves: 1, held: func(int) bool { return false },
			gone: func(h hosting) bool { return h.Born < 9 }}
		if c.next(v) != nil {
			t.Errorf("%d: one that does not know it goes on with it", n)
		}
		r := newRegion(Config{bundle: "shop", kind: "carts", shards: n, node: &cluster.Node{}}, nil, &store{})
		r.close(c)
		switch last := r.begins.last(); {
		case last != x.last():
			t.Errorf("%d: the last epoch is %d and was %d", n, last, x.last())
		case n < MaxShards && !r.begins.same(x):
			t.Errorf("%d: %+v", n, r.begins)
		case n == MaxShards && len(r.begins.hosts) != 0:
			t.Errorf("%d: %+v", n, r.begins.hosts)
		}
		r = newRegion(Config{bundle: "bank", kind: "carts", shards: n, node: &cluster.Node{}}, nil, &store{})
		if r.close(c); len(r.begins.hosts) != 0 || r.begins.last() != x.last() {
			t.Errorf("%d: another bundle begins with %+v", n, r.begins)
		}
		next := r.begins.next(v)
		for i, p := range next.places {
			if p.epoch <= x.last() {
				t.Fatalf("%d: shard %d of another bundle has epoch %d, after %d", n, i, p.epoch, x.last())
			}
		}
	}
}
