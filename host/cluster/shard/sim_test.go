package shard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

var (
	seeds = flag.Int("seeds", 0, "how many simulations; 0: as many as fit into CI")
	show  = flag.Bool("show", false, "show what the regions knew when a simulation has failed")
	first = flag.Uint64("first", 1, "the seed of the first one")
)

const (
	lease    = 4 * time.Second
	askLimit = 3 * time.Second
	patience = 2 * time.Second
	idle     = 3 * time.Second
	shards   = 5
	keys     = 8
	buffer   = 64
)

var simStart = time.Unix(1_700_000_000, 0)

// broken is what a simulation leaves out on purpose, to see whether it is noticed.
type broken struct {
	guard guard
	lease bool // nodes count as gone too early
	one   bool // kinds are of no bundle
}

// sim is one run: nodes come, go and fail, and their actors send to keys.
type sim struct {
	*clustertest.World
	seed    uint64
	broken  broken
	lives   []*life
	asks    map[int]*ask
	count   int
	stats   map[string]int
	failure string
	calm    bool   // nothing fails, so nothing may be lost
	good    *table // the last one that is a table; nil: all must be
	last    map[[2]string]uint64
	sent    map[[2]string]uint64
	living  map[string][]*worker
	memory  func(keyed.Config) (keyed.Config, Memory, int) // nil: keys are not remembered
	sees    func(*life) Node                               // nil: the node itself
	front   bool                                           // the next nodes take no shards
	back    bool                                           // the next nodes take some
	bundle  string                                         // of the next nodes; "": none
	earlier bool                                           // the next nodes are of the release before

	closed   *table // the table of all bundles, when it was closed; nil: it was not
	closedBy abi.Ref
}

// life is one start of a node.
type life struct {
	sim     *sim
	name    string
	machine *clustertest.Machine
	node    *cluster.Node
	number  uint16
	id      uint64
	role    string
	system  *host.System
	region  host.Ref
	state   *region
	senders []host.Ref
	bundle  string
	earlier bool
	over    bool
}

type ask struct {
	by   *life
	over int
}

type note struct {
	Op   string        `cbor:"1,keyasint"`
	Key  string        `cbor:"2,keyasint,omitempty"`
	N    uint64        `cbor:"3,keyasint,omitempty"`
	From string        `cbor:"4,keyasint,omitempty"`
	Of   string        `cbor:"6,keyasint,omitempty"` // the bundle of who sends it
	For  time.Duration `cbor:"5,keyasint,omitempty"`
}

func (s *sim) failf(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf("seed %d, after %v: %s", s.seed, s.Clock.Now().Sub(simStart), fmt.Sprintf(format, args...))
	}
}

// early is a node for which others are gone before their lease is over.
type early struct {
	*cluster.Node
	s *sim
}

func (e early) Gone(number uint16, born uint64) bool {
	for _, l := range e.s.lives {
		if l.number == number && l.node.Self().Born == born && !l.machine.Runs() {
			return true
		}
	}
	return e.Node.Gone(number, born)
}

func (s *sim) start() {
	l := &life{sim: s, id: s.Random.Uint64() | 1, role: "back", bundle: s.bundle, earlier: s.earlier}
	if s.front || len(s.lives) > 2 && !s.back && s.Random.IntN(4) == 0 {
		l.role = "front"
	}
	l.machine = s.Machine(func() uint16 { return l.number })
	s.lives = append(s.lives, l)
	l.name = fmt.Sprint("n", len(s.lives))
	n, err := cluster.New(cluster.Config{
		Name: l.name, Roles: []string{l.role}, Lease: lease, ID: l.id, Directory: s.directory(l), Links: l.machine, Clock: l.machine, Since: l.machine.Since,
		Lost: func(error) { l.over = true },
	})
	if err != nil {
		panic(err)
	}
	l.node = n
	n.Join(func(m cluster.Member, err error) {
		if err != nil {
			l.over = true
			l.machine.Crash()
			return
		}
		l.number = m.Number
		l.system, err = host.New(host.NewConfig("sim").WithNode(m.Number).WithManual().WithClock(l.machine).WithSeed(l.id))
		if err == nil {
			err = n.Attach(l.system)
		}
		if err != nil {
			panic(err)
		}
		var node Node = n
		if s.broken.lease {
			node = early{n, s}
		}
		if s.sees != nil {
			node = s.sees(l)
		}
		each := keyed.New(host.Native(func() host.Actor { return &worker{life: l} })).WithIdle(idle)
		var memory Memory
		starts := 0
		if s.memory != nil {
			each, memory, starts = s.memory(each)
		}
		c := New("carts", node, each).WithMemory(memory, starts).
			WithShards(shards).WithRole("back").WithMoves(2).WithPatience(patience).WithBuffer(buffer, 1<<16)
		if s.calm {
			c = c.WithBuffer(10_000, 1<<20)
		}
		if c.skip = s.broken.guard; l.earlier {
			c.skip |= guardKnows
		} else if !s.broken.one {
			c = c.WithBundle(l.bundle)
		}
		if l.region, err = l.system.Spawn("carts", c.props(func(r *region) { l.state = r })); err != nil {
			panic(err)
		}
		for i := range 2 {
			ref, err := l.system.Spawn(fmt.Sprint("s", i), host.Func(l.send))
			if err != nil {
				panic(err)
			}
			l.senders = append(l.senders, ref)
		}
	})
}

func (l *life) acts() bool { return !l.over && !l.machine.Dead() && l.node.Acting() }

// order is one of Go code of the node to its region.
func (l *life) order(op string, w wish) host.Headed { return manageOrder(l.system, l.region, op, w) }

// worker is the actor of a key.
type worker struct {
	life *life
	key  string // with its bundle
	name string
}

func (w *worker) Started(ctx *host.Context) error {
	s := w.life.sim
	w.name = ctx.Self().Name()
	w.key = w.life.bundle + w.name
	s.living[w.key] = append(s.living[w.key], w)
	w.alone()
	s.stats["begun"]++
	return nil
}

// alone checks that no other actor of the key may act.
func (w *worker) alone() {
	s := w.life.sim
	if !w.life.acts() {
		return
	}
	for _, o := range s.living[w.key] {
		if o != w && o.life.acts() {
			s.failf("key %s acts on %s and on %s", w.key, w.life.name, o.life.name)
		}
	}
}

func (w *worker) Stopped(*host.Context) {
	s := w.life.sim
	s.living[w.key] = slices.DeleteFunc(s.living[w.key], func(o *worker) bool { return o == w })
}

func (w *worker) Receive(ctx *host.Context, m host.Message) error {
	s := w.life.sim
	if m.Kind != abi.KindMessage || !w.life.acts() {
		return nil
	}
	w.alone()
	var x note
	if err := m.Decode(&x); err != nil {
		return err
	}
	if x.Key != w.name || x.Of != w.life.bundle {
		s.failf("a message for %s of bundle %q has come to %s of %q", x.Key, x.Of, w.name, w.life.bundle)
	}
	if x.N > 0 {
		pair := [2]string{x.From, x.Key}
		if last := s.last[pair]; x.N <= last || s.whole() && x.N != last+1 {
			s.failf("message %d of %s to %s after %d", x.N, x.From, x.Key, last)
		}
		s.last[pair] = x.N
		s.stats["told"]++
	}
	switch x.Op {
	case "ask":
		return ctx.Reply("yes")
	case "busy": // it does not rest for a while
		return ctx.After(1, x.For, 0, nil)
	case "crash":
		return errors.New("crashed")
	case "end":
		ctx.Stop(ctx.Self())
	}
	return nil
}

// send is what senders do: they send to keys what they are told to.
func (l *life) send(ctx *host.Context, m host.Message) error {
	s := l.sim
	if l.over {
		return nil
	}
	switch m.Kind {
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		a := s.asks[int(m.Correlation)]
		if a == nil || a.over > 0 {
			s.failf("ask %d ends twice, or was not made", m.Correlation)
			return nil
		}
		a.over++
		s.stats["ask "+m.Kind.String()]++
		if s.whole() && m.Kind == abi.KindReplyError {
			var why string
			_ = m.Decode(&why)
			s.failf("ask %d: %s: %s", m.Correlation, m.Kind, why)
		}
		return nil
	case abi.KindMessage:
	default:
		return nil
	}
	var x note
	if err := m.Decode(&x); err != nil {
		return err
	}
	x.From, x.Of = l.name+"/"+ctx.Self().Name(), l.bundle
	pair := [2]string{x.From, x.Key}
	if !s.calm || x.Op != "ask" { // one that nobody waits for any more is not delivered
		s.sent[pair]++
		x.N = s.sent[pair]
	}
	var v any = keyed.For(x.Key, x)
	if s.sent[pair]%2 == 0 {
		v = host.Below(l.region, x.Key).Message(x)
	}
	if x.Op != "ask" {
		return ctx.Tell(l.region, v)
	}
	s.count++
	s.asks[s.count] = &ask{by: l}
	if err := ctx.Ask(l.region, v, uint64(s.count), askLimit); err != nil {
		delete(s.asks, s.count)
	}
	return nil
}

func (s *sim) settle() {
	for again := true; again && s.failure == ""; {
		again = false
		for _, l := range s.lives {
			if l.system != nil && l.machine.Runs() && !l.over && l.system.RunUntilIdle(10_000) > 0 {
				again = true
			}
		}
	}
}

func (s *sim) pass(d time.Duration) {
	for end := s.Clock.Now().Add(d); s.failure == ""; {
		s.settle()
		next, ok := s.Clock.Next()
		if !ok || next.After(end) {
			break
		}
		s.Clock.AdvanceToNext()
	}
	s.settle()
}

// up are the nodes that have not ended.
func (s *sim) up() (up []*life) {
	for _, l := range s.lives {
		if !l.machine.Dead() && !l.over {
			up = append(up, l)
		}
	}
	return up
}

func (s *sim) act() {
	up := slices.DeleteFunc(s.up(), func(l *life) bool { return l.system == nil || !l.machine.Runs() })
	for _, l := range up {
		if !s.calm && l.state.waits > buffer {
			s.failf("%d messages wait at %s", l.state.waits, l.name)
		}
	}
	if len(up) == 0 {
		return
	}
	l := up[s.Random.IntN(len(up))]
	x := note{Op: []string{"tell", "tell", "ask", "ask", "tell", "busy", "end", "crash"}[s.Random.IntN(8)], Key: fmt.Sprint("k", s.Random.IntN(keys))}
	switch {
	case x.Op == "busy" && s.Random.IntN(3) == 0:
		x.For = 3 * patience
	case x.Op == "busy":
		x.For = time.Duration(s.Random.Int64N(int64(patience / 4)))
	case (x.Op == "crash" || x.Op == "end") && (s.Random.IntN(4) > 0 || s.calm):
		x.Op = "tell"
	}
	for range 1 + s.Random.IntN(4) {
		_ = l.system.Tell(l.senders[s.Random.IntN(len(l.senders))], x)
	}
}

// move moves a shard by hand, or has a node drained or not.
func (s *sim) move() {
	up := slices.DeleteFunc(s.up(), func(l *life) bool { return l.system == nil || !l.machine.Runs() })
	if len(up) == 0 {
		return
	}
	l, to := up[s.Random.IntN(len(up))], up[s.Random.IntN(len(up))]
	if s.Random.IntN(3) == 0 {
		_ = l.system.Tell(l.region, l.order("drain", wish{On: s.Random.IntN(2) == 0}))
		s.stats["drains"]++
		return
	}
	_ = l.system.Tell(l.region, l.order("move", wish{Key: fmt.Sprint("k", s.Random.IntN(keys)), Node: to.number}))
	s.stats["moves"]++
}

// whole reports whether nothing may have been lost.
func (s *sim) whole() bool {
	return s.calm && !slices.ContainsFunc(s.lives, func(l *life) bool { return l.over || l.number != 0 && !l.acts() })
}

// crash has a region fail.
func (s *sim) crash() {
	up := slices.DeleteFunc(s.up(), func(l *life) bool { return l.system == nil || !l.machine.Runs() })
	if len(up) > 0 {
		l := up[s.Random.IntN(len(up))]
		_ = l.system.Operate().Crash(l.region, 0, "on purpose")
		s.stats["region fails"]++
	}
}

func (s *sim) fault() {
	up := s.up()
	pick := func() *life { return up[s.Random.IntN(len(up))] }
	switch n := s.Random.IntN(14); {
	case len(up) < 3:
		s.start()
	case n == 0 && len(up) > 2:
		pick().machine.Crash()
	case n == 1 && len(up) < 5:
		s.start()
	case n <= 3:
		l := pick()
		l.machine.Pause()
		s.Clock.AfterFunc(time.Duration(s.Random.Int64N(int64(2*lease))), func() { l.machine.Resume() })
	case n <= 5:
		a, b := pick().machine, pick().machine
		s.Cut(a, b, true)
		s.Clock.AfterFunc(time.Duration(s.Random.Int64N(int64(2*lease))), func() { s.Cut(a, b, false) })
	case n <= 7:
		s.Faults = clustertest.Faults{Lose: s.Random.IntN(200), Double: s.Random.IntN(200), Delay: s.Random.IntN(200), Most: time.Second}
	case n == 8:
		s.Faults = clustertest.Faults{Late: s.Random.IntN(300), Twice: s.Random.IntN(200), Fail: s.Random.IntN(300), Behind: s.Random.IntN(300), Most: 2 * lease}
	case n == 9:
		if l := pick(); l.system != nil && l.machine.Runs() {
			l.over = true
			l.node.Leave(func(error) {})
		}
	case n == 10:
		s.crash()
	default:
		s.Faults = clustertest.Faults{}
	}
}

// changed checks each change of the table.
func (s *sim) changed(_ *clustertest.Machine, before, now cluster.Entry) {
	if now.Key != Key("carts") && !(ofBundle(now.Key) && strings.HasSuffix(now.Key, ".carts")) {
		return
	}
	t, err := decodeTable(now)
	if err != nil {
		if s.good == nil {
			s.failf("%v", err)
		}
		return
	}
	old := &table{places: make([]place, len(t.places))}
	if s.good != nil && s.good.revision > 0 {
		old = s.good
	} else if before.Revision > 0 {
		old, _ = decodeTable(before)
	}
	if s.good != nil {
		s.good = t
	}
	if t.mark() != 0 || ofBundle(now.Key) && before.Revision == 0 {
		s.begins(old, now, t)
		return
	}
	s.follows(old, t)
}

// follows checks that a table may come after another one.
func (s *sim) follows(old, t *table) {
	for i, p := range t.places {
		b := old.places[i%len(old.places)]
		if p.epoch < b.epoch || p.owner != b.owner && p.epoch == b.epoch {
			s.failf("shard %d: epoch %d of %v after epoch %d of %v", i, p.epoch, p.owner, b.epoch, b.owner)
		}
		switch {
		case b.from != 0 && p.owner == b.from && p.from == 0:
			s.stats["given up or back"]++
		case b.from != 0 && p.from == 0 && p.owner == b.owner:
			s.stats["moved"]++
		case b.owner != 0 && p.from == 0 && p.owner != b.owner:
			s.stats["taken over"]++
		}
	}
}

func newSim(seed uint64, stats map[string]int, b broken) *sim {
	s := &sim{World: clustertest.New(seed), seed: seed, broken: b, asks: map[int]*ask{}, stats: stats, last: map[[2]string]uint64{}, sent: map[[2]string]uint64{}, living: map[string][]*worker{}}
	s.Changed(s.changed)
	return s
}

// dump shows what the regions know.
func (s *sim) dump(t *testing.T) {
	for _, l := range s.lives {
		t.Logf("%s: node %d %s of %s (earlier: %v), acts %v, runs %v", l.name, l.number, l.role, l.bundle, l.earlier, l.acts(), l.machine.Runs())
		r := l.state
		if r == nil || r.table == nil || !l.acts() {
			continue
		}
		t.Logf("  table %d %+v open %v putting %v wrong %v common %v begins %v unknown %v wanted %v, all understand %d", r.table.revision, r.table.hosts, r.open, r.putting, r.wrong, r.common, r.begins, r.unknown, r.wanted, l.node.Common())
		for i := range r.own {
			t.Logf("  %d: %+v\n    %+v\n    %+v", i, r.table.places[i], r.own[i], r.feeds[i])
		}
	}
}

func (s *sim) close() {
	for _, l := range s.lives {
		l.over = true
	}
	s.Clock.Advance(3 * lease) // nothing is sent any more
	for _, l := range s.lives {
		l.over = true
		if l.system != nil {
			_ = l.system.Close(context.Background())
		}
	}
}

// simulate returns what has gone wrong; empty if nothing has.
func simulate(t *testing.T, seed uint64, stats map[string]int, b broken) string {
	s := newSim(seed, stats, b)
	defer s.close()
	s.calm = seed%4 == 0 // only moves, and a slow directory: nothing is lost
	for range 3 {
		s.start()
	}
	s.pass(3 * time.Second)
	for range 12 {
		switch {
		case s.calm:
			if s.Random.IntN(4) == 0 && len(s.lives) < 5 {
				s.start()
			}
			s.Faults = clustertest.Faults{Delay: s.Random.IntN(400), Most: 200 * time.Millisecond}
			if s.Random.IntN(2) == 0 {
				s.Faults = clustertest.Faults{Late: s.Random.IntN(500), Twice: s.Random.IntN(200), Fail: s.Random.IntN(150), Most: lease / 8}
			}
		case seed%4 == 1: // regions fail while shards move
			s.crash()
			s.Faults = clustertest.Faults{Lose: s.Random.IntN(200), Double: s.Random.IntN(200), Delay: s.Random.IntN(300), Most: time.Second}
		default:
			s.fault()
		}
		for range 1 + s.Random.IntN(2) {
			s.move()
		}
		for range 10 {
			s.act()
			s.pass(time.Duration(s.Random.IntN(200)) * time.Millisecond)
		}
	}
	s.Heal()
	s.pass(8*lease + 4*patience)
	if s.failure == "" {
		s.finish()
	}
	if s.failure != "" && *show {
		s.dump(t)
	}
	return s.failure
}

// finish checks what must be true when nothing has gone wrong for a while.
func (s *sim) finish() {
	up := s.up()
	for number, a := range s.asks {
		if a.over != 1 && !a.by.over && !a.by.machine.Dead() {
			s.failf("ask %d has not ended", number)
		}
	}
	if s.whole() {
		for pair, n := range s.sent {
			if s.last[pair] != n {
				s.failf("%d of %d messages of %s to %s have arrived", s.last[pair], n, pair[0], pair[1])
			}
		}
	}
	owned := map[string]int{}
	for _, l := range up {
		if !slices.ContainsFunc(up, func(o *life) bool { return o.role == "back" && o.bundle == l.bundle }) {
			return // nobody may have shards
		}
		var x State
		s.ask(l, l.order("state", wish{}), &x)
		if x.Pending || x.Waiting != 0 || x.Wrong != "" || x.Moving != 0 {
			s.failf("%s is not at rest: %+v", l.name, x)
		}
		if d, err := l.system.View().Inspect(context.Background(), l.region); err != nil || d.Counts == nil || d.Counts.Stash != 0 {
			s.failf("%s: messages are left: %+v, %v", l.name, d.Counts, err)
		}
		owned[l.bundle] += x.Owned
	}
	for bundle, n := range owned {
		if n != shards {
			s.failf("%d of %d shards of bundle %q have an owner", n, shards, bundle)
		}
	}
	for _, l := range up {
		for k := range keys {
			var got string
			s.ask(l, keyed.For(fmt.Sprint("k", k), note{Op: "ask", Key: fmt.Sprint("k", k), Of: l.bundle}), &got)
		}
	}
}

// ask has Go code ask a region; nil: it expects no answer.
func (s *sim) ask(l *life, v any, into any) {
	if s.failure != "" {
		return
	}
	if into == nil {
		_ = l.system.Tell(l.region, v)
		s.pass(10 * time.Millisecond)
		return
	}
	p, err := l.system.Request(l.region, v)
	if err != nil {
		s.failf("%v", err)
		return
	}
	s.pass(500 * time.Millisecond)
	select {
	case m := <-p.Answer():
		if err := m.Err(); err != nil {
			s.failf("%s asks: %v", l.name, err)
		} else if err := m.Decode(into); err != nil {
			s.failf("%s asks: %v", l.name, err)
		}
	default:
		s.failf("%s asks %v: no answer", l.name, v)
	}
}

// The invariants hold whatever goes wrong. `make shard-sim SEEDS=100000 FIRST=1` runs as many as one likes; a failure names
// its seed.
func TestSimulation(t *testing.T) {
	n := *seeds
	if n == 0 {
		if n = thorough.SlowOf(100, 500); race.Enabled || testing.Short() { // one goroutine
			n = 60
		}
	}
	stats, bad := map[string]int{}, 0
	for i := range uint64(n) {
		if why := simulate(t, *first+i, stats, broken{}); why != "" {
			t.Error(why)
			if bad++; bad == 5 {
				break
			}
		}
	}
	t.Log(stats)
	for _, want := range []string{"told", "ask reply", "ask reply_error", "moved", "taken over", "given up or back", "region fails"} {
		if stats[want] == 0 && n >= 50 {
			t.Errorf("%q has not happened", want)
		}
	}
}

// mistakes are rules that are left out, and seeds of simulations that notice it. The one about tokens is for TestMadeUpTokens.
var mistakes = []struct {
	name   string
	broken broken
	seed   uint64
}{
	{"nothing waits for the seals of feeders", broken{guard: guardSeals}, 28},
	{"nothing waits for the ends of actors", broken{guard: guardEnds}, 2},
	{"the next owner does not wait for the owner", broken{guard: guardBegin}, 2},
	{"what waits is not handed over", broken{guard: guardHand}, 403},
	{"orders count in every epoch", broken{guard: guardEpoch}, 2207},
	{"what moves is moved again", broken{guard: guardMoving | guardStolen}, 169},
	{"a shard whose next owner is gone does not go back", broken{guard: guardReturn | guardStolen}, 487},
	{"buffers have no bound", broken{guard: guardBuffer}, 86},
	{"a lease is not waited out", broken{lease: true}, 14},
}

// Each rule that is left out is noticed. Changes of the protocol change what seeds do: then the test says from which seed on it
// has to be searched for, and which one has found it.
func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			n := uint64(max(*seeds, 1))
			for seed := m.seed; seed < m.seed+n; seed++ {
				if why := simulate(t, seed, map[string]int{}, m.broken); why != "" {
					t.Log(why)
					return
				}
			}
			t.Errorf("not noticed in %d simulations from seed %d on: run it with -seeds 2000, and note the seed that is shown", n, m.seed)
		})
	}
}

// Who has asked the directory to give a move up does not hand the shard over, even if it could by now, until it knows that this
// has failed.
func TestGivingUpLate(t *testing.T) {
	late := func(b broken) string {
		for seed := range uint64(80) {
			s := newSim(seed*4+4, map[string]int{}, b)
			s.calm = true
			for range 3 {
				s.start()
			}
			s.pass(5 * time.Second)
			o := s.owner("k1")
			next := s.up()[0]
			if next == o {
				next = s.up()[1]
			}
			s.ask(o, keyed.For("k1", note{Op: "busy", Key: "k1", For: patience + 500*time.Millisecond}), nil)
			s.ask(o, o.order("move", wish{Key: "k1", Node: next.number}), nil)
			s.pass(time.Second)
			s.Faults = clustertest.Faults{Late: 1000, Most: 3 * time.Second}
			for range 40 {
				_ = s.up()[0].system.Tell(s.up()[0].senders[0], note{Op: "tell", Key: "k1"})
				s.pass(100 * time.Millisecond)
			}
			s.Heal()
			s.pass(lease)
			s.close()
			if s.failure != "" {
				return s.failure
			}
		}
		return ""
	}
	if why := late(broken{}); why != "" {
		t.Error(why)
	}
	if why := late(broken{guard: guardGiveUp}); why == "" {
		t.Error("it is not noticed")
	} else {
		t.Log(why)
	}
}
