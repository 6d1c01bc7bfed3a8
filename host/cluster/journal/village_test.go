package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
)

const (
	villagers = 12
	aYear     = 365 * 24 * time.Hour
)

// village is a run whose keys are remembered: whoever lives is to live, on one node, whatever has happened.
type village struct {
	*sim
	plain  bool // they keep no events
	bodies map[string][]*body
	asks   []*plea
	ends   map[string]int  // how often a key was told to end
	doomed map[string]int  // how many of these were not answered: they may come late, or never
	lives  map[string]bool // keys that have answered, and cannot have been told to end since they were asked
	ended  map[string]int  // actors that have ended because they were told to
}

// plea is a question to a key.
type plea struct {
	by     *life
	key    string
	ends   int // how often the key was told to end before, all of which have been answered; -1: not all
	end    bool
	answer *host.Pending
}

// body is an actor of a key.
type body struct {
	v    *village
	life *life
	key  string
	told bool // to end
}

func newVillage(seed uint64, stats map[string]int, b broken) *village {
	v := &village{sim: newSim(seed, stats, b), plain: seed%2 == 0, bodies: map[string][]*body{}, ends: map[string]int{}, doomed: map[string]int{}, lives: map[string]bool{}, ended: map[string]int{}}
	if seed%6 == 3 {
		v.brief = lease / 2
	}
	v.early, v.sim.village, v.dice = false, v, rand.New(rand.NewPCG(seed, 11))
	return v
}

// forgetful is a memory that leaves out a rule.
type forgetful struct {
	*Journal
	broken broken
}

func (m forgetful) Recall(kind string, shard int, done func([]string, error)) {
	if !m.broken.again {
		m.Journal.Recall(kind, shard, done)
	}
}

func (m forgetful) Settled(kind string, shard int) bool {
	return m.broken.moves || m.Journal.Settled(kind, shard)
}

// kind is the region of a node.
func (v *village) kind(l *life) shard.Config {
	props := host.Native(func() host.Actor { return &body{v: v, life: l} })
	if !v.plain {
		props = l.journal.Events().Props(definition, func(log *persist.Log) persist.Actor { return &landed{body{v: v, life: l}, cart{life: l, log: log}} }, MaxBytes)
	}
	c := shard.New("carts", l.node, keyed.New(props).WithIdle(aYear).WithSupervision(Supervised(supervision.Stopping()))).
		WithShards(simShards).WithMoves(2).WithPatience(2*time.Second).WithMemory(forgetful{l.journal, v.broken}, 50)
	if !v.plain {
		c = c.WithJournal(l.journal)
	}
	return c
}

func (b *body) acts() bool { return !b.life.over && !b.life.machine.Dead() && b.life.node.Acting() }

// Started implements host.Starter.
func (b *body) Started(ctx *host.Context) error {
	b.begin(ctx)
	return nil
}

func (b *body) begin(ctx *host.Context) {
	b.key = ctx.Self().Name()
	b.v.bodies[b.key] = append(b.v.bodies[b.key], b)
	b.alone()
	b.v.stats["begun"]++
}

// alone checks that no other actor of the key acts. Of keys that keep events two may, if a node was passed: one of them stores nothing.
func (b *body) alone() {
	if b.v.brief > 0 {
		return
	}
	for _, o := range b.v.bodies[b.key] {
		if o != b && o.acts() && b.acts() {
			b.v.failf("key %s acts on node %d and on node %d", b.key, o.life.number, b.life.number)
		}
	}
}

// Stopped implements host.Stopper.
func (b *body) Stopped(*host.Context) {
	b.v.bodies[b.key] = slices.DeleteFunc(b.v.bodies[b.key], func(o *body) bool { return o == b })
	if b.told {
		b.v.ended[b.key]++
	}
}

func (b *body) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage || !b.acts() {
		return nil
	}
	b.alone()
	var x note
	if err := m.Decode(&x); err != nil {
		return err
	}
	switch x.Op {
	case "crash":
		b.v.stats["crashed"]++
		return errors.New("crashed")
	case "end":
		b.told = true
		ctx.Stop(ctx.Self())
	}
	return ctx.Reply("yes")
}

// landed is a body that keeps events.
type landed struct {
	body
	cart cart
}

func (b *landed) Apply(e *persist.Event) error             { return b.cart.Apply(e) }
func (b *landed) Snapshot() (any, error)                   { return b.cart.Snapshot() }
func (b *landed) Restore(v uint16, payload host.Raw) error { return b.cart.Restore(v, payload) }

// Recovered implements persist.Recovered.
func (b *landed) Recovered(ctx *host.Context) error {
	b.begin(ctx)
	return nil
}

func (b *landed) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage {
		return nil
	}
	var x note
	if err := m.Decode(&x); err != nil || x.Op != "" {
		return errors.Join(err, b.body.Receive(ctx, m))
	}
	b.alone()
	return b.cart.Receive(ctx, m)
}

// plead has a client ask a key.
func (v *village) plead(l *life, key string, x note) {
	var err error
	p := &plea{by: l, key: key, end: x.Op == "end"}
	if p.answer, err = l.system.Request(l.region, keyed.For(key, x)); err != nil || x.Op == "crash" {
		return
	}
	if p.end {
		v.ends[key]++
		v.doomed[key]++
		delete(v.lives, key)
	}
	if p.ends = v.ends[key]; v.doomed[key] > 0 {
		p.ends = -1
	}
	v.asks = append(v.asks, p)
}

// hear takes the answers that there are.
func (v *village) hear() {
	v.asks = slices.DeleteFunc(v.asks, func(p *plea) bool {
		if p.by.over || !p.by.machine.Runs() {
			return p.by.over || p.by.machine.Dead()
		}
		select {
		case m := <-p.answer.Answer():
			if err := m.Err(); err != nil {
				v.stats[fmt.Sprintf("refused: %.60s", err)]++
				return true
			}
			v.stats["answered"]++
			if p.end {
				v.doomed[p.key]--
			} else if v.ends[p.key] == p.ends {
				v.lives[p.key] = true
			}
			return true
		default:
			return false
		}
	})
}

// wait is pass, and takes answers.
func (v *village) wait(d time.Duration) {
	v.Clock.AfterFunc(d, func() {})
	v.pass(d)
	v.hear()
}

func villager(i int) string { return fmt.Sprint("v", i) }

// talk has clients ask, and has some keys end or crash.
func (v *village) talk() {
	up := v.running()
	if len(up) == 0 {
		return
	}
	for range 1 + v.dice.IntN(3) {
		l, key, x := up[v.dice.IntN(len(up))], villager(v.dice.IntN(villagers)), note{}
		switch v.dice.IntN(12) {
		case 0:
			x.Op = "end"
		case 1:
			x.Op = "crash"
		case 2, 3, 4:
			v.number++
			x.Add = v.number
		}
		v.plead(l, key, x)
	}
}

// listed are the keys that are to live, as the log has it.
func (v *village) listed() map[string]bool {
	all := map[string]bool{}
	for s := range simShards {
		l := living{names: map[string]bool{}}
		for _, e := range v.LogOf(kindOf(v.mix.of()), listName(s)) {
			if err := l.take(e, ^uint64(0), ^uint64(0), 0); err != nil {
				v.failf("%v", err)
			}
		}
		maps.Copy(all, l.names)
	}
	return all
}

// census checks who lives: each key of those that are to live, once, and nobody else.
func (v *village) census(when string, want map[string]bool) {
	if v.failure != "" || len(v.running()) == 0 {
		return
	}
	listed := v.listed()
	for i := range villagers {
		key, n := villager(i), 0
		for _, l := range v.running() {
			if l.has(key) {
				n++
			}
		}
		switch is := listed[key]; {
		case n > 1:
			v.failf("%s %s lives %d times", when, key, n)
		case is != (n == 1):
			v.failf("%s it is recorded that %s lives: %v, and there are %d actors", when, key, is, n)
		case want != nil && want[key] && n == 0:
			v.failf("%s %s does not live, and was not told to end", when, key)
		case want != nil && !want[key] && n == 1 && when != "at first":
			v.failf("%s %s has come back", when, key)
		}
	}
}

// living are the keys with an actor.
func (v *village) living() map[string]bool {
	is := map[string]bool{}
	for i := range villagers {
		is[villager(i)] = slices.ContainsFunc(v.running(), func(l *life) bool { return l.has(villager(i)) })
	}
	return is
}

// has reports whether the actor of a key is on the node, and acts.
func (l *life) has(key string) bool {
	_, err := l.system.Lookup("/user/carts/" + key)
	return err == nil && l.node.Acting()
}

// calm has nothing fail any more, for long.
func (v *village) calm() {
	v.Heal()
	v.FillLog(false)
	for try := 0; try == 0 || len(v.running()) == 0; try++ { // all may be lost by what has failed just before
		if try == 3 {
			v.failf("no node runs, and nothing fails")
			return
		}
		for range 3 - min(3, len(v.up())) {
			v.start()
		}
		v.wait(8 * lease)
	}
}

// live runs it.
func (v *village) live() string {
	defer v.close()
	for range 3 {
		v.start()
	}
	v.wait(3 * time.Second)
	for round := range 7 {
		v.mix.next(v.sim, round)
		v.fault()
		if up := v.running(); len(up) > 0 && v.dice.IntN(6) == 0 {
			l := up[v.dice.IntN(len(up))]
			_ = l.system.Operate().Crash(l.region, 0, "on purpose")
			v.stats["region fails"]++
		}
		for range 8 {
			v.talk()
			v.wait(time.Duration(v.dice.IntN(300)) * time.Millisecond)
		}
	}
	v.mix.replaced(v.sim)
	v.calm()
	v.census("at first", v.lives)
	v.depart()
	v.silence()
	return v.failure
}

// depart has some keys end, and their shards move at once, while the log is late or full. Nobody is told to live.
func (v *village) depart() {
	want := v.living()
	if up := v.running(); len(up) > 0 && v.failure == "" {
		if v.brief == 0 { // otherwise a node whose directory is late is passed, and what it was about to record is lost
			v.Faults = clustertest.Faults{Late: 900, Most: 2 * time.Second}
		}
		if v.dice.IntN(3) == 0 {
			v.FillLog(true)
			v.stats["full"]++
		}
		for i := range villagers {
			if key := villager(i); want[key] && v.dice.IntN(3) == 0 {
				n := v.ended[key]
				v.plead(up[v.dice.IntN(len(up))], key, note{Op: "end"})
				for range 20 {
					if v.wait(10 * time.Millisecond); v.ended[key] > n {
						break
					}
				}
				if want[key] = v.ended[key] == n; !want[key] {
					v.stats["ended"]++
				}
			}
		}
		v.drain(up[v.dice.IntN(len(up))], true)
		v.wait(5 * time.Second)
		for _, l := range up {
			v.drain(l, false)
		}
	}
	v.calm()
	v.census("after departures", want)
}

// silence has nodes fail, also all of them, while nobody says anything.
func (v *village) silence() {
	want := v.living()
	for range 4 {
		v.fault()
		v.wait(time.Duration(v.dice.IntN(int(lease))))
	}
	if v.dice.IntN(3) == 0 {
		v.stats["all nodes end"]++
		for _, l := range v.up() {
			l.machine.Crash()
		}
		v.wait(time.Duration(v.dice.IntN(int(2 * lease))))
	}
	v.calm()
	v.census("after silence", want)
}

func (v *village) drain(l *life, on bool) {
	if l.system == nil || l.over || !l.machine.Runs() {
		return
	}
	ctx, cancel := cancelled()
	defer cancel()
	_, _ = shard.Drain(ctx, l.system, l.region, on)
}

func live(seed uint64, stats map[string]int, b broken) string {
	return newVillage(seed, stats, b).live()
}

// TestSimulationOfRemembered runs nodes whose keys are remembered: after all faults each key that is to live does, on one node, and none that has
// ended comes back.
func TestSimulationOfRemembered(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = thorough.SlowOf(20, 60)
		if race.Enabled || testing.Short() {
			n = 12
		}
	}
	stats := map[string]int{}
	for i := range uint64(n) {
		if why := live(*first+i, stats, broken{}); why != "" {
			t.Error(why)
			break
		}
	}
	for _, k := range slices.Sorted(maps.Keys(stats)) {
		t.Logf("%s: %d", k, stats[k])
	}
	for _, k := range []string{"answered", "begun", "crashed", "ended", "full", "all nodes end", "region fails"} {
		if stats[k] == 0 && n >= 20 {
			t.Errorf("%s: never", k)
		}
	}
}

// What has waited for a key when its node was passed is refused then. In this run it was handled a minute later, when the key had ended.
func TestWhatWaitsForALostKey(t *testing.T) {
	if why := live(3831, map[string]int{}, broken{}); why != "" {
		t.Error(why)
	}
}

// A key of which the log says that there is no room, when an earlier try may have recorded that it lives, is not left to live: it was refused.
func TestAKeyThatMayBeRecordedIsEnded(t *testing.T) {
	if why := live(20060203, map[string]int{}, broken{}); why != "" {
		t.Error(why)
	}
}

// A key that is on the list, and is asked before the list was read, begins: also if the log is full then.
func TestAKeyThatIsAskedWhileTheListIsRead(t *testing.T) {
	if why := live(4224, map[string]int{}, broken{}); why != "" {
		t.Error(why)
	}
}
