package remote

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/supervision"
)

var (
	seeds     = flag.Int("seeds", 0, "how many simulations; 0: as many as fit into CI")
	firstSeed = flag.Uint64("first", 1, "the seed of the first one")
)

const lease = 4 * time.Second

// slack is for how long after the lease a child may outlive its parent's node: an eighth of the lease for clocks, and what the
// directory and the links take.
const slack = 3 * time.Second

// sim is some nodes, whose actors spawn children on others.
type sim struct {
	*clustertest.World
	seed    uint64
	dice    *rand.Rand
	lives   []*life
	failure string
	spawns  map[int]*spawn
	count   int
	stats   map[string]int

	strategy supervision.Strategy // of all parents
}

// life is one start of a node.
type life struct {
	sim     *sim
	name    string
	machine *clustertest.Machine
	node    *cluster.Node
	number  uint16
	system  *host.System
	parent  host.Ref
	count   Count
	over    bool
	died    time.Time
}

// spawn is one child as its parent knows it, and as it is.
type spawn struct {
	by      *life
	ref     host.Ref
	sent    int
	gone    string // why its parent was told that it has ended
	goneAt  time.Time
	missed  string
	living  []*worker
	begun   int
	last    int // message
	asks    int
	answers int
}

// worker is a child.
type worker struct {
	on   *life
	ref  host.Ref
	n    int
	self *spawn
}

type note struct {
	Op string `cbor:"1,keyasint"`
	N  int    `cbor:"2,keyasint,omitempty"`
	ID int    `cbor:"3,keyasint,omitempty"`
}

func newSim(seed uint64) *sim {
	return &sim{World: clustertest.New(seed), seed: seed, dice: rand.New(rand.NewPCG(seed, 240)), spawns: map[int]*spawn{}, stats: map[string]int{}, strategy: supervision.Default().WithMaxRestarts(3, 0)}
}

func (s *sim) failf(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
	}
}

// start starts a node with a role. change may change what it accepts; nil: it accepts "worker".
func (s *sim) start(role string, change func(*Accept)) *life {
	l := &life{sim: s}
	l.machine = s.Machine(func() uint16 { return l.number })
	s.lives = append(s.lives, l)
	l.name = fmt.Sprint("n", len(s.lives))
	id := s.dice.Uint64() | 1
	n, err := cluster.New(cluster.Config{
		Name: l.name, Roles: []string{role}, Lease: lease, ID: id, Directory: l.machine, Links: l.machine, Clock: l.machine, Since: l.machine.Since,
		Lost: func(error) { l.lose() },
	})
	if err != nil {
		panic(err)
	}
	l.node = n
	n.Join(func(m cluster.Member, err error) {
		if err != nil {
			l.lose()
			l.machine.Crash()
			return
		}
		l.number = m.Number
		if l.system, err = host.New(host.NewConfig("sim").WithNode(m.Number).WithManual().WithClock(l.machine).WithSeed(id)); err == nil {
			err = n.Attach(l.system)
		}
		if err != nil {
			panic(err)
		}
		a := Accept{Node: n, Count: &l.count, Find: l.find}
		if change != nil {
			change(&a)
		}
		if a.Find != nil {
			if _, err := l.system.SpawnService(Door, a.Props()); err != nil {
				panic(err)
			}
		}
		if l.parent, err = l.system.Spawn("parent", host.Func(l.spawner)); err != nil {
			panic(err)
		}
	})
	return l
}

func (l *life) lose() { l.over, l.died = true, l.sim.Clock.Now() }

func (l *life) find(_ []byte, _, typ string) (host.Props, []string, error) {
	if typ != "worker" {
		return host.Props{}, nil, fmt.Errorf("%w: the type %s", host.ErrDenied, typ)
	}
	return host.Native(func() host.Actor { return &worker{on: l} }), nil, nil
}

// spawner spawns a child for each number that it gets, and sends to it at once.
func (l *life) spawner(ctx *host.Context, m host.Message) error {
	s := l.sim
	switch m.Kind {
	case abi.KindTerminated, abi.KindSpawnFailed:
		for _, x := range s.spawns {
			if x.ref.Equal(m.Sender) {
				var why string
				_ = m.Decode(&why)
				if m.Kind == abi.KindSpawnFailed {
					x.missed = why
				} else {
					if x.gone != "" {
						s.failf("the end of a child was told twice: %s, %s", x.gone, why)
					}
					x.gone, x.goneAt = why, s.Clock.Now()
				}
			}
		}
		return nil
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		x := s.spawns[int(m.Correlation>>32)]
		x.answers++
		s.stats[m.Kind.String()]++
		return nil
	case abi.KindMessage:
	default:
		return nil
	}
	var o note
	if m.Decode(&o) != nil || o.ID == 0 {
		return nil
	}
	x := s.spawns[o.ID]
	switch o.Op {
	case "spawn":
		args, err := host.Encode(o.ID)
		if err != nil {
			return err
		}
		p, err := Props(l.node, Place{Role: "back"}, Child{Type: "worker", Args: args, Parent: ctx.Self(), Supervision: s.strategy})
		if err == nil {
			x.ref, err = ctx.Spawn(fmt.Sprint("c", o.ID), p)
		}
		if err != nil {
			return err
		}
		if err := ctx.Watch(x.ref); err != nil {
			return err
		}
		for range 3 {
			x.tell(ctx)
		}
	case "tell":
		x.tell(ctx)
	case "ask":
		x.asks++
		if ctx.Ask(x.ref, note{Op: "ask"}, uint64(o.ID)<<32|uint64(x.asks), 5*time.Second) != nil {
			x.asks--
		}
	case "stop":
		ctx.Stop(x.ref)
	case "end":
		ctx.Stop(ctx.Self())
	default:
		_ = ctx.Tell(x.ref, o)
	}
	return nil
}

func (x *spawn) tell(ctx *host.Context) {
	x.sent++
	_ = ctx.Tell(x.ref, note{Op: "tell", N: x.sent})
}

func (w *worker) Started(ctx *host.Context) error {
	s := w.on.sim
	if err := ctx.Args(&w.n); err != nil {
		return err
	}
	w.self, w.ref = s.spawns[w.n], ctx.Self()
	if w.self == nil {
		s.failf("a child of nobody was started")
		return nil
	}
	if ctx.Head().Incarnation() == 0 {
		w.self.begun++
		if w.self.begun > 1 && w.n > 0 {
			s.failf("spawn %d has two children", w.n)
		}
	}
	w.self.living = append(w.self.living, w)
	return nil
}

func (w *worker) Stopped(*host.Context) {
	w.self.living = slices.DeleteFunc(w.self.living, func(o *worker) bool { return o == w })
}

func (w *worker) Receive(ctx *host.Context, m host.Message) error {
	var o note
	if m.Kind != abi.KindMessage || m.Decode(&o) != nil || w.on.over {
		return nil
	}
	s := w.on.sim
	switch o.Op {
	case "tell":
		if o.N <= w.self.last {
			s.failf("message %d of spawn %d after %d", o.N, w.n, w.self.last)
		}
		if o.N != w.self.last+1 {
			s.stats["gap"]++
			if w.self.gone == "" && s.calm() {
				s.failf("message %d of spawn %d after %d: one is lost", o.N, w.n, w.self.last)
			}
		}
		w.self.last = o.N
		s.stats["told"]++
	case "ask":
		return ctx.Reply("yes")
	case "crash":
		return errors.New("crashed")
	case "quit":
		ctx.Stop(ctx.Self())
	case "up":
		return ctx.Tell(ctx.Parent(), note{Op: "up", N: 1})
	}
	return nil
}

// calm reports whether nothing has failed yet.
func (s *sim) calm() bool { return s.Faults == (clustertest.Faults{}) && s.stats["faults"] == 0 }

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

func (s *sim) up() (up []*life) {
	for _, l := range s.lives {
		if !l.machine.Dead() && !l.over && l.system != nil {
			up = append(up, l)
		}
	}
	return up
}

// do has the parent of a node do something; 0 spawns.
func (s *sim) do(l *life, op string, id int) *spawn {
	if op == "spawn" {
		s.count++
		id = s.count
		s.spawns[id] = &spawn{by: l}
	}
	_ = l.system.Tell(l.parent, note{Op: op, ID: id})
	return s.spawns[id]
}

// living are the children of a spawn that run on nodes that may act.
func (x *spawn) alive() (all []*worker) {
	for _, w := range x.living {
		if !w.on.over && !w.on.machine.Dead() {
			all = append(all, w)
		}
	}
	return all
}

// lost reports since when a node does not act any more.
func (l *life) lost() bool { return l.over || l.machine.Dead() }

// run is one simulation: spawns and faults in any mixture, then none, and all must be as it should be.
func (s *sim) run() {
	for range 2 {
		s.start("front", nil)
	}
	for range 3 {
		s.start("back", nil)
	}
	s.pass(5 * time.Second)
	for range 60 {
		s.act()
		s.pass(time.Duration(s.dice.IntN(800)) * time.Millisecond)
		s.check()
		if s.failure != "" {
			return
		}
	}
	s.Heal()
	s.pass(2*lease + 20*time.Second)
	s.check()
	for id, x := range s.spawns {
		switch living := len(x.alive()); {
		case x.by.lost() && living > 0:
			s.failf("spawn %d: its parent's node is lost, and the child lives", id)
		case !x.by.lost() && x.gone == "" && living != 1:
			s.failf("spawn %d: its parent was not told of its end, and %d children live", id, living)
		case !x.by.lost() && x.gone != "" && living != 0:
			s.failf("spawn %d: it has ended (%s), and lives", id, x.gone)
		case !x.by.lost() && x.answers != x.asks:
			s.failf("spawn %d: %d asks have %d ends", id, x.asks, x.answers)
		}
		if x.missed != "" {
			s.stats["missed"]++
			if x.last > 0 {
				s.failf("spawn %d: the parent was told %q, and %d messages were handled", id, x.missed, x.last)
			}
		}
	}
	for _, l := range s.up() {
		if n := l.count.Here.Load(); n != int64(s.hereOn(l)) {
			s.failf("node %s counts %d children, there are %d", l.name, n, s.hereOn(l))
		}
	}
}

func (s *sim) hereOn(l *life) (n int) {
	for _, x := range s.spawns {
		for _, w := range x.alive() {
			if w.on == l {
				n++
			}
		}
	}
	return n
}

// check is what holds at any time: no child outlives its parent's node for long.
func (s *sim) check() {
	for id, x := range s.spawns {
		if x.by.lost() && !x.by.died.IsZero() && s.Clock.Now().Sub(x.by.died) > 2*lease+slack && s.Faults == (clustertest.Faults{}) && s.stats["cuts"] == 0 {
			for _, w := range x.alive() {
				if w.on.machine.Runs() {
					s.failf("spawn %d: its parent's node was lost %v ago, and the child lives", id, s.Clock.Now().Sub(x.by.died))
				}
			}
		}
	}
}

func (s *sim) act() {
	up := slices.DeleteFunc(s.up(), func(l *life) bool { return !l.machine.Runs() })
	if len(up) == 0 {
		return
	}
	l := up[s.dice.IntN(len(up))]
	switch k := s.dice.IntN(20); {
	case k < 8:
		s.do(l, "spawn", 0)
	case k < 16:
		var mine []int
		for id := 1; id <= s.count; id++ {
			if x := s.spawns[id]; x.by == l && x.gone == "" {
				mine = append(mine, id)
			}
		}
		if len(mine) > 0 {
			s.do(l, []string{"tell", "tell", "ask", "ask", "stop", "crash", "quit", "up"}[s.dice.IntN(8)], mine[s.dice.IntN(len(mine))])
		}
	case s.seed%4 == 0: // nothing fails
	case k == 16:
		s.stats["faults"]++
		s.Faults = clustertest.Faults{Lose: 50, Double: 50, Delay: 100, Late: 50, Twice: 20, Fail: 20, Behind: 50, Most: 800 * time.Millisecond}
	case k == 17:
		s.stats["faults"]++
		s.stats["cuts"]++
		s.Cut(l.machine, up[s.dice.IntN(len(up))].machine, true)
	case k == 18 && len(up) > 2:
		s.stats["faults"]++
		if s.dice.IntN(2) == 0 {
			l.machine.Crash()
			l.lose()
		} else {
			l.machine.Pause()
		}
	case k == 19:
		s.Heal()
		s.stats["cuts"] = 0
	}
}

func TestSimulation(t *testing.T) {
	n := *seeds
	if n == 0 {
		if n = 150; race.Enabled || testing.Short() {
			n = 25
		}
	}
	stats := map[string]int{}
	for i := range n {
		s := newSim(*firstSeed + uint64(i))
		s.run()
		for k, v := range s.stats {
			stats[k] += v
		}
		if s.failure != "" {
			t.Fatal(s.failure)
		}
		stats["spawns"] += s.count
	}
	t.Log(stats)
	if stats["spawns"] < n || stats["told"] < n || stats["faults"] < n/2 || stats["missed"] == 0 {
		t.Errorf("it has tried little: %v", stats)
	}
}
