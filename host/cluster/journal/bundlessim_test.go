package journal

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// mix is a run in which nodes of the release before, which has one table for all bundles, are replaced by those of this one. The log of a bundle
// is the same in both.
type mix struct {
	bundle  string // of the next nodes
	earlier bool   // the next nodes are of the release before
	alone   bool   // there is one bundle only
	closed  bool   // the table of all bundles is closed
	calm    bool   // nothing fails any more
}

// mixed has a run be one. Its first nodes are of the release before.
func mixed(s *sim, alone bool) *mix {
	s.mix = &mix{bundle: "shop", earlier: true, alone: alone}
	s.Changed(func(_ *clustertest.Machine, before, now cluster.Entry) { s.mix.saw(s, before, now) })
	return s.mix
}

// kindOf is what the keys of a bundle's kind are called in the log of a world, which is one for all bundles.
func kindOf(bundle string) string { return strings.TrimPrefix(bundle+".carts", ".") }

func (m *mix) of() string {
	if m == nil {
		return ""
	}
	return "shop"
}

// logOf is a node's log: that of its bundle.
func logOf(l *life) cluster.Log { return bundleLog{l.machine.Log(), l.bundle} }

type bundleLog struct {
	cluster.Log
	bundle string
}

func (b bundleLog) Last(_ string, shard int, done func([]byte, uint64, error)) {
	b.Log.Last(kindOf(b.bundle), shard, done)
}

func (b bundleLog) Fence(_ string, shard int, fence []byte, after uint64, done func(uint64, error)) {
	b.Log.Fence(kindOf(b.bundle), shard, fence, after, done)
}

func (b bundleLog) Append(_ string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	b.Log.Append(kindOf(b.bundle), shard, fence, name, record, done)
}

func (b bundleLog) Spare(_ string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	b.Log.Spare(kindOf(b.bundle), shard, fence, name, record, done)
}

func (b bundleLog) Replace(_, name string, record []byte, after uint64, done func(uint64, error)) {
	b.Log.Replace(kindOf(b.bundle), name, record, after, done)
}

func (b bundleLog) Read(_ string, shard int, name string, least uint64, done func([]cluster.LogEntry, error)) {
	b.Log.Read(kindOf(b.bundle), shard, name, least, done)
}

// directory is what a node has of the directory.
func (m *mix) directory(l *life) cluster.Directory {
	switch {
	case m != nil && l.earlier:
		return beforeBundles{l.machine, l}
	case l.sim.broken.anew:
		return anew{l.machine}
	}
	return l.machine
}

// anew is the directory of a node that begins a bundle's table as if nothing had been before: with the epochs of a first table.
type anew struct{ cluster.Directory }

func (d anew) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	var t map[int]any
	if revision == 0 && strings.HasSuffix(key, ".carts") && cbor.Unmarshal(value, &t) == nil {
		t[4] = []uint64{1, 1, 1}
		value, _ = cbor.Marshal(t)
	}
	d.Directory.Put(key, value, revision, done)
}

// beforeBundles is the directory of a node of the release before. It says of itself that it understands no tables of bundles; and a closed table
// is to it one with a region that it does not know, and with another number of shards.
type beforeBundles struct {
	cluster.Directory
	life *life
}

func (d beforeBundles) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	var m cluster.Member
	if strings.HasPrefix(key, "node.") && cbor.Unmarshal(value, &m) == nil && m.ID == d.life.id {
		m.Newest = cluster.NamesBundles - 1
		value, _ = cbor.Marshal(m)
	}
	d.Directory.Put(key, value, revision, done)
}

func (d beforeBundles) Watch(each func(cluster.Entry)) (stop func()) {
	return d.Directory.Watch(func(e cluster.Entry) {
		if e.Key == shard.Key("carts") {
			e.Value = bytes.ReplaceAll(e.Value, immortal, append(slices.Clone(immortal[:8]), 0xfe))
		}
		each(e)
	})
}

// immortal is the life of the region that a closed table has, as it is written.
var immortal, _ = cbor.Marshal(uint64(math.MaxUint64))

// saw looks at a change of the directory.
func (m *mix) saw(s *sim, before, now cluster.Entry) {
	switch {
	case now.Key == shard.Key("carts") && bytes.Contains(now.Value, immortal):
		m.closed = true
		s.stats[map[bool]string{false: "closed while something fails", true: "closed"}[m.calm]]++
	case before.Revision == 0 && (now.Key == shard.KeyOf("shop", "carts") || now.Key == shard.KeyOf("bank", "carts")):
		s.stats["begins "+now.Key]++
	}
}

// next decides of which bundle and release the next nodes are, and ends some of the release before. While there is one table for all bundles there
// is one bundle: two would share it.
func (m *mix) next(s *sim, round int) {
	if m == nil {
		return
	}
	m.bundle, m.earlier = "shop", s.dice.IntN(2) == 0
	if m.closed {
		if m.earlier = s.dice.IntN(5) == 0; !m.alone && s.dice.IntN(2) == 0 {
			m.bundle = "bank"
		}
	}
	if s.dice.IntN(3) == 0 && len(s.up()) < 5 {
		s.start()
	}
	if round >= 2 {
		m.end(s, 1+s.dice.IntN(2))
	}
}

// end ends nodes of the release before, at most so many.
func (m *mix) end(s *sim, n int) {
	for _, l := range s.running() {
		if l.earlier && n > 0 {
			n--
			if s.dice.IntN(3) == 0 {
				l.machine.Crash()
				continue
			}
			l.over = true
			l.node.Leave(func(error) {})
		}
	}
}

// replaced has no fault any more, and ends all nodes of the release before.
func (m *mix) replaced(s *sim) {
	if m == nil {
		return
	}
	s.Heal()
	s.FillLog(false)
	m.earlier, m.calm = false, true
	for s.failure == "" && slices.ContainsFunc(s.up(), func(l *life) bool { return l.earlier }) {
		m.end(s, 9)
		s.Clock.AfterFunc(lease, func() {})
		s.pass(lease)
	}
	for _, m.bundle = range []string{"bank", "shop"} {
		if m.bundle == "bank" && m.alone {
			continue
		}
		s.start()
		s.Clock.AfterFunc(4*lease, func() {}) // until nodes that have crashed are gone
		s.pass(4 * lease)
	}
}

// changeover is a run in which a bundle's nodes are replaced by those of this release, and a second bundle with a kind of the same name comes.
// In every second one nodes that are silent are passed over.
func changeover(seed uint64, stats map[string]int, b broken) string {
	s := newSim(seed, stats, b)
	if s.dice = rand.New(rand.NewPCG(seed, 19)); seed%2 == 0 {
		s.early, s.brief = false, lease/2
	}
	mixed(s, false)
	return s.run()
}

// moveover is the same for keys that are remembered, of one bundle.
func moveover(seed uint64, stats map[string]int, b broken) string {
	v := newVillage(seed, stats, b)
	mixed(v.sim, true)
	return v.live()
}

// TestSimulationOfBundles is TestSimulation, TestTakeovers and TestSimulationOfRemembered while nodes of the release before are replaced: what
// was confirmed under the table of all bundles is there under that of the bundle, and another bundle has none of it.
func TestSimulationOfBundles(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = thorough.SlowOf(16, 60)
		if race.Enabled || testing.Short() {
			n = 8
		}
	}
	stats, lived := map[string]int{}, map[string]int{}
	for i := range uint64(n) {
		if why := changeover(*first+i, stats, broken{}); why != "" {
			t.Error(why)
			break
		}
		if why := moveover(*first+i, lived, broken{}); why != "" {
			t.Error("keys that are remembered: ", why)
			break
		}
	}
	for _, all := range []map[string]int{stats, lived} {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			t.Logf("%s: %d", k, all[k])
		}
	}
	for _, k := range []string{"stored", "read", "loaded", "closed while something fails", "begins " + shard.KeyOf("shop", "carts"), "begins " + shard.KeyOf("bank", "carts")} {
		if stats[k] == 0 && n >= 8 {
			t.Errorf("%s: never", k)
		}
	}
	if n >= 8 && (lived["closed while something fails"] == 0 || lived["answered"] == 0) {
		t.Error(fmt.Sprint("keys that are remembered: ", lived))
	}
}
