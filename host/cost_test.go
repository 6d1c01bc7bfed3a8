package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
)

// What hostile guests cost the host: each case runs in a process of its own, which measures
// its resident memory against the accounts, the time until a stop has taken effect, and the
// worst answer of a neighbour meanwhile.

// attack is a case: what is done to the host, below one actor.
type attack struct {
	name  string
	when  when // zero: only in the thorough tests
	bound int64
	run   func(c *costs)
}

// when is which runs have a case: all, those of `make slow`, or the thorough ones.
type when uint8

const (
	inThorough when = iota
	inSlow
	inAll
)

// runs reports whether this run has the case.
func (w when) runs() bool {
	return w == inAll || w == inSlow && thorough.Slow || thorough.Enabled
}

// figures are what is measured.
type figures struct {
	Added    int64 // resident bytes that the case has added, after a collection
	Peak     int64 // the most at any time, garbage included
	Held     int64 // what the accounts say
	Bound    int64
	Actors   int64
	Stop     time.Duration // until all of it had ended
	Answer   time.Duration // the neighbour's worst
	Answers  int64
	Left     int64 // on the accounts after the stop
	Failures uint64
}

// costs is what a case works with.
type costs struct {
	*System
	t      *testing.T
	engine *sandbox.Engine
	brute  *sandbox.Image
	limits Limits
	roots  []Ref
}

const (
	verbWrite, verbGrow, verbSpin, verbDeep, verbTable, verbLog, verbFlush = 0, 1, 2, 3, 4, 5, 6
	leeway                                                                 = 12 << 20 // resident bytes that are no case's
)

func order(verb byte, arg uint32, rest []byte) Raw {
	b := []byte{0x5a}
	b = binary.BigEndian.AppendUint32(b, uint32(5+len(rest)))
	b = binary.LittleEndian.AppendUint32(append(b, verb), arg)
	return append(b, rest...)
}

// write makes a brute emit commands so many times.
func write(times int, commands ...[]byte) Raw {
	return order(verbWrite, uint32(times), bytes.Join(commands, nil))
}

func (c *costs) spawn(p Props) Ref {
	c.t.Helper()
	ref := must(c.Spawn("", p.WithLimits(c.limits)))(c.t)
	c.roots = append(c.roots, ref)
	return ref
}

func (c *costs) brutes(n int) (refs []Ref) {
	for range n {
		p := Guest(c.brute, "brute").WithCapabilities(Capabilities{Spawn: []string{"*"}}).WithSupervision(otherwise(supervision.Restart))
		refs = append(refs, c.spawn(p))
	}
	return refs
}

func (c *costs) small(n int, records ...[]byte) (refs []Ref) {
	for range n {
		refs = append(refs, c.spawn(puppet(c.t, records...)))
	}
	return refs
}

// tell sends, and waits while the mailbox is full.
func (c *costs) tell(to Ref, v any) {
	for range 30 {
		if err := c.TryTell(to, v); err == nil || !strings.Contains(err.Error(), "full") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *costs) quiet() {
	last, same := uint64(0), 0
	for range thorough.Of(100, 400) { // some are never
		time.Sleep(10 * time.Millisecond)
		s := c.View().Stats()
		if now := s.Turns - s.Types["echo"].Turns; now == last {
			if same++; same == 5 {
				return
			}
		} else {
			last, same = now, 0
		}
	}
}

func pageful(n int) []byte { return encoded(bytes.Repeat([]byte{7}, n)) }

const hour = 3_600_000_000_000

var attacks = []attack{
	{name: "1000 timers of 4 MB", when: inSlow, run: func(c *costs) {
		a := c.brutes(1)[0]
		for k := range 1000 {
			_ = c.TryTell(a, write(1, abi.AppendTimer(nil, uint64(k), hour, 0, pageful(4<<20-100))))
			if k < 100 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		c.quiet()
	}},
	{name: "10,000 stashed of 1 MB", run: func(c *costs) {
		c.limits.Stash = 10_000
		a := c.brutes(1)[0]
		for range 200 {
			c.tell(a, write(1, abi.AppendStash(nil), abi.AppendSend(nil, 0, "./nobody", 0, 0, nil, pageful(1<<20))))
		}
	}},
	{name: "asks with payloads", run: func(c *costs) {
		as := c.brutes(2)
		for k := range 1000 {
			c.tell(as[0], write(1, abi.AppendAsk(nil, as[1].UID(), "", uint64(k+1), hour, nil, pageful(64<<10))))
		}
	}},
	{name: "10,000 watches", when: inSlow, run: func(c *costs) {
		a := c.brutes(1)[0]
		targets := c.small(2000)
		var cmds [][]byte
		for _, r := range targets {
			cmds = append(cmds, abi.AppendWatch(nil, r.UID(), ""), abi.AppendUnwatch(nil, r.UID(), ""), abi.AppendWatch(nil, r.UID(), ""))
		}
		for range 20 {
			c.tell(a, write(1, cmds...))
		}
	}},
	{name: "tables in 20 actors", run: func(c *costs) {
		for _, a := range c.brutes(20) {
			c.tell(a, order(verbTable, 60_000, nil))
		}
	}},
	{name: "deep calls in 20 actors", when: inSlow, run: func(c *costs) {
		for _, a := range c.brutes(20) {
			c.tell(a, order(verbDeep, 8_000, nil))
		}
	}},
	{name: "a fork bomb", run: func(c *costs) { c.bomb(Limits{}) }},
	{name: "a fork bomb in a tree", when: inAll, run: func(c *costs) { c.bomb(Limits{Tree: TreeLimits{Actors: 500, Memory: 64 << 20}}) }},
	{name: "100 actors that touch 64 MiB", bound: 256 << 20, run: func(c *costs) {
		for _, a := range c.brutes(100) {
			c.tell(a, order(verbGrow, 700, nil))
		}
		time.Sleep(stretch())
	}},
	{name: "1100 spinners", run: func(c *costs) { c.spinners(1100) }},
	{name: "5000 spinners", run: func(c *costs) { c.spinners(5000) }},
	{name: "quick, then first touches", when: inSlow, run: func(c *costs) {
		c.sly(nil, order(slySpin, 0, nil), order(slyTouch|slyTrap, 9000, nil))
	}},
	{name: "quick, then slow loads", run: func(c *costs) {
		c.sly(order(slyTable, 0, nil), order(slySpin, 0, nil), order(slyChase, 100_000, nil))
	}},
	{name: "output of 100 turns that do not end", when: inSlow, run: func(c *costs) {
		c.limits.Deadline = 20 * time.Second
		c.limits.Fuel = 1 << 60
		for _, a := range c.brutes(100) {
			c.tell(a, order(verbFlush, 15, abi.AppendSend(nil, a.UID(), "", 0, 0, nil, pageful(250<<10))))
		}
		time.Sleep(stretch())
	}},
	{name: "200 initialisations", when: inSlow, run: func(c *costs) {
		image := must(c.engine.Load(context.Background(), must(os.ReadFile("testdata/hoarder.wasm"))(c.t), sandbox.ImageConfig{Name: "hoarder", NoFreeze: true}))(c.t)
		c.limits.Fuel = 1 << 60
		for range 200 {
			c.spawn(Guest(image, "hoarder"))
		}
		time.Sleep(stretch())
	}},
	{name: "empty messages", when: inSlow, run: func(c *costs) {
		c.limits.Mailbox = 1_000_000
		as := c.brutes(20)
		for i := range as {
			c.tell(as[i], order(verbSpin, 0, nil))
		}
		b := c.brutes(1)[0]
		for _, a := range as {
			c.tell(b, write(50_000, abi.AppendSend(nil, a.UID(), "", 0, 0, nil, nullPayload)))
		}
		time.Sleep(stretch())
	}},
	{name: "large messages", run: func(c *costs) {
		as := c.brutes(10)
		for i := range as {
			c.tell(as[i], order(verbSpin, 0, nil))
		}
		for _, a := range as {
			for range 8 {
				_ = c.TryTell(a, Raw(pageful(4<<20)))
			}
		}
		time.Sleep(time.Second)
	}},
	{name: "65,536 forwards of 4 MB", when: inAll, run: func(c *costs) {
		as := c.brutes(2)
		b := order(verbWrite, 65_500, abi.AppendForward(nil, as[1].UID(), ""))
		c.tell(as[0], append(binary.BigEndian.AppendUint32([]byte{0x5a}, uint32(len(b)-5)), b[5:]...))
		time.Sleep(time.Second)
	}},
	{name: "patterns over 5000 actors", when: inSlow, run: func(c *costs) {
		c.small(5000)
		a := c.spawn(Guest(c.brute, "brute"))
		b := c.spawn(Guest(c.brute, "brute").WithCapabilities(Capabilities{Send: []string{"/user/**"}}))
		c.quiet()
		for range 10 {
			c.tell(a, write(60_000, abi.AppendSend(nil, 0, "/user/*x", 0, 0, nil, nullPayload)))
			c.tell(b, write(60_000, abi.AppendSend(nil, 0, "/user/*x*y*", 0, 0, nil, nullPayload)))
		}
	}},
	{name: "a flood of logs", run: func(c *costs) {
		c.Subscribe(1<<14, nil) // nobody reads
		for _, a := range c.brutes(4) {
			for range 200 {
				c.tell(a, order(verbLog, 100, bytes.Repeat([]byte{'x'}, 8000)))
			}
		}
		c.quiet()
	}},
	{name: "a flood of dead letters", run: func(c *costs) {
		c.Subscribe(1<<14, nil)
		a := c.brutes(1)[0]
		for range 5 {
			c.tell(a, write(800, abi.AppendSend(nil, 0, "/user/"+strings.Repeat("x", 255), 0, 0, nil, pageful(4000))))
		}
		c.quiet()
	}},
	{name: "asks to nobody", run: func(c *costs) {
		a := c.brutes(1)[0]
		for k := range 60_000 / 100 {
			var cmds [][]byte
			for i := range 100 {
				cmds = append(cmds, abi.AppendAsk(nil, abi.Ref(uint64(k*100+i+77)<<10), "", uint64(k*100+i+1), hour, nil, nullPayload))
			}
			c.tell(a, write(1, cmds...))
		}
		c.quiet()
	}},
	{name: "stale timers in the mailbox", run: func(c *costs) {
		a := c.brutes(1)[0]
		big := abi.AppendTimer(nil, 1, 1, 0, pageful(1<<20))
		for range 400 {
			c.tell(a, write(1, abi.AppendSend(nil, a.UID(), "", 0, 0, nil, nullPayload), big))
		}
	}},
	{name: "snapshots for resume", run: func(c *costs) {
		p := Guest(c.brute, "brute")
		var kids []Child
		for i := range 10 {
			kids = append(kids, Child{strconv.Itoa(i), p})
		}
		c.spawn(parentOf(otherwise(supervision.Resume), kids...))
		c.quiet()
		for _, k := range c.Select(c.roots[0].Path() + "/*") {
			for range 30 {
				c.tell(k, order(verbGrow, 2, nil))
			}
		}
		c.quiet()
	}},
	{name: "10,000 asleep", run: func(c *costs) {
		c.small(10_000, on(abi.KindTimer))
		c.quiet()
		waitFor(c.t, "sleep", func() bool { return c.View().Stats().Asleep >= 9_900 })
	}},
	{name: "1000 names of 255 bytes", when: inAll, run: func(c *costs) {
		a := c.spawn(parentOf(supervision.Default()))
		_ = a
		for i := range 1000 {
			name := fmt.Sprintf("%0255d", i)
			c.roots = append(c.roots, must(c.System.Spawn(name, puppet(c.t)))(c.t))
		}
		c.quiet()
	}},
	{name: "restarts for ever", when: inSlow, run: func(c *costs) {
		for _, a := range c.small(20, on(abi.KindTimer), onTrap(abi.KindStart)) {
			_ = a
		}
		time.Sleep(time.Second)
	}},
}

// stretch is how long what goes on for ever is looked at.
func stretch() time.Duration {
	return thorough.Of(thorough.SlowOf(300*time.Millisecond, time.Second), 3*time.Second)
}

// bomb has every actor spawn ten more, for a stretch.
func (c *costs) bomb(l Limits) {
	c.limits = l
	root := c.small(1)[0]
	until := time.Now().Add(stretch())
	at := []*actor{c.table.Get(root.UID())}
	for time.Now().Before(until) && len(at) > 0 {
		var next []*actor
		for _, a := range at {
			g := guestOf(a)
			var cmds [][]byte
			for k := range uint64(10) {
				cmds = append(cmds, abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(g), 0, k), "puppet", "", nil, nil))
			}
			_ = c.Tell(a.ref(), script(now(cmds...)))
			if time.Now().After(until) {
				break
			}
		}
		c.quiet()
		for _, a := range at {
			next = append(next, a.kids()...)
		}
		at = next
	}
}

func (c *costs) spinners(n int) {
	spin := must(c.engine.Load(context.Background(), must(os.ReadFile("testdata/hostile/loop.wasm"))(c.t), sandbox.ImageConfig{Name: "loop"}))(c.t)
	c.limits.Deadline = 20 * time.Second
	c.limits.Fuel = 1 << 60
	for range n {
		_ = c.Tell(c.spawn(Guest(spin, "hostile")), 1)
	}
	time.Sleep(stretch())
}

// What the sly guest does; see testdata/sly.wat.
const slySpin, slyTouch, slyTable, slyChase, slyTrap = 2, 4, 8, 16, 32

// sly has two guests that are quick between slow turns, for a stretch.
func (c *costs) sly(first Raw, rounds ...Raw) {
	image := load(c.t, c.engine, "testdata/sly.wasm")
	c.limits.Memory = 64 << 20
	c.limits.Fuel = 1 << 60
	var guests []Ref
	for range 2 {
		g := c.spawn(Guest(image, "sly"))
		if first != nil {
			c.tell(g, first)
		}
		guests = append(guests, g)
	}
	for until := time.Now().Add(stretch()); time.Now().Before(until); time.Sleep(time.Millisecond) {
		for _, g := range guests {
			for _, r := range rounds {
				c.tell(g, r)
			}
		}
	}
}

func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// settled is what is resident after a collection: the least of some, since actors that run
// on have made new garbage before the first can be read.
func settled() int64 {
	least := int64(math.MaxInt64)
	for range 8 {
		goruntime.GC()
		debug.FreeOSMemory()
		least = min(least, resident())
	}
	return least
}

// measure runs a case in this process.
func measure(t *testing.T, at attack) (f figures) {
	engine := must(sandbox.New(context.Background(), sandbox.NewConfig().WithPoolBytes(1<<20)))(t) // pooled instances are nobody's
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	f.Bound = at.bound
	if f.Bound == 0 {
		f.Bound = 2 << 30
	}
	sys := must(New(NewConfig("cost").WithMemory(f.Bound).WithGuardian(otherwise(supervision.Restart)).WithIdleAfter(time.Second)))(t)
	c := &costs{System: sys, t: t, engine: engine}
	c.brute = load(t, engine, "testdata/brute.wasm")
	puppetImages["testdata/puppet.wasm"] = load(t, engine, "testdata/puppet.wasm")
	neighbour := must(sys.Spawn("neighbour", echo(t, engine)))(t)
	for _, a := range slices.Concat(c.brutes(2), c.small(2)) { // everything has been used once
		sys.Stop(a)
	}
	c.quiet()
	c.roots = nil
	before, held := settled(), sys.pool.Held()
	var worst, answers atomic.Int64
	done, over := make(chan struct{}), make(chan struct{})
	var peak atomic.Int64
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			if _, err := sys.Ask(ctx, neighbour, 1); err == nil {
				answers.Add(1)
			}
			cancel()
			worst.Store(max(worst.Load(), int64(time.Since(began))))
			peak.Store(max(peak.Load(), resident()))
			time.Sleep(time.Millisecond)
		}
	}()
	at.run(c)
	c.quiet()
	f.Held, f.Actors = sys.pool.Held()-held, sys.pool.Actors()-1
	f.Added = settled() - before
	f.Held = max(f.Held, sys.pool.Held()-held) // it goes on, and what is resident was looked at later
	f.Peak = peak.Load() - before
	stopped := time.Now()
	var ends []<-chan struct{}
	for _, r := range c.roots {
		if end, err := sys.Ended(r); err == nil {
			ends = append(ends, end)
		}
		sys.Stop(r)
	}
	for _, end := range ends {
		select {
		case <-end:
		case <-time.After(60 * time.Second):
			t.Fatal("it does not stop")
		}
	}
	f.Stop = time.Since(stopped)
	close(done)
	<-over
	c.quiet()
	f.Left, f.Failures = sys.pool.Held()-held, sys.View().Stats().Crashes
	f.Answer, f.Answers = time.Duration(worst.Load()), answers.Load()
	if err := sys.Close(context.Background()); err != nil || sys.pool.Held() != 0 {
		t.Errorf("%v, %d bytes are left on the accounts", err, sys.pool.Held())
	}
	return f
}

const costCase = "WASMACTORS_COST_CASE"

// TestCostOfAttacks: the accounts know of three quarters of what an attack adds to the
// process, they stay below their bound, a stop takes effect and leaves nothing behind,
// and a neighbour answers all the while. The thorough tests have twice as many attacks.
func TestCostOfAttacks(t *testing.T) {
	if name := os.Getenv(costCase); name != "" {
		i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
		text, err := json.Marshal(measure(t, attacks[i]))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nfigures: %s\n", text)
		return
	}
	if race.Enabled {
		t.Skip("the race detector's memory is not the host's")
	}
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("there is no /proc")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-30s %8s %8s %8s %6s %8s %9s %9s %7s\n", "attack", "RSS MB", "peak MB", "held MB", "ratio", "actors", "stop", "answer", "crashes")
	for _, at := range attacks {
		if !at.when.runs() {
			continue
		}
		t.Run(at.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCostOfAttacks$", "-test.v")
			cmd.Env = append(os.Environ(), costCase+"="+at.name)
			out, err := cmd.CombinedOutput()
			_, text, ok := strings.Cut(string(out), "figures: ")
			if err != nil || !ok {
				t.Fatalf("%v\n%s", err, out[max(0, len(out)-3000):])
			}
			text, _, _ = strings.Cut(text, "\n")
			var f figures
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				t.Fatal(err)
			}
			ratio := float64(f.Added) / float64(max(f.Held, 1))
			fmt.Fprintf(&table, "%-30s %8.1f %8.1f %8.1f %6.2f %8d %9s %9s %7d\n", at.name, mb(f.Added), mb(f.Peak), mb(f.Held), ratio, f.Actors,
				f.Stop.Round(time.Millisecond), f.Answer.Round(time.Millisecond), f.Failures)
			if float64(f.Added-leeway) > 1.3*float64(f.Held) {
				t.Errorf("%.1f MB are resident, the accounts say %.1f", mb(f.Added), mb(f.Held))
			}
			if f.Held > f.Bound {
				t.Errorf("the accounts say %.1f MB, the bound is %.1f", mb(f.Held), mb(f.Bound))
			}
			if f.Left > 256<<10 {
				t.Errorf("%d bytes are left on the accounts", f.Left)
			}
			if f.Stop > 20*time.Second {
				t.Errorf("a stop has taken %v", f.Stop)
			}
			if f.Answers == 0 || f.Answer > 20*time.Second {
				t.Errorf("the neighbour has answered %d times, at worst after %v", f.Answers, f.Answer)
			}
		})
	}
	t.Log(table.String())
}

func mb(n int64) float64 { return float64(n) / 1e6 }
