package testkit

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Defaults.
const (
	DefaultExpect   = 3 * time.Second        // for something to come
	DefaultLeeway   = 3 * time.Second        // for events, when what causes them is done
	DefaultInterval = 100 * time.Millisecond // between two looks at a condition

	// TimeFactor is the environment variable with the factor by which real time is
	// stretched where a test waits for something; 1 if it is not set.
	TimeFactor = "WASMACTORS_TIMEFACTOR"
)

// maxSpells is how much work may follow from one thing that a test does.
const maxSpells = 1_000_000

// maxWait is how long a test waits for goroutines, in real time.
const maxWait = 10 * time.Second

// start is the time at which the virtual clock begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Option changes how a kit is made.
type Option func(*options)

type options struct {
	change   []func(host.Config) host.Config
	guardian supervision.Strategy
	seed     uint64
	factor   float64
	real     bool
	nested   bool
	expect   time.Duration
	leeway   time.Duration
	spells   int
	wait     time.Duration // for goroutines, in real time
	group    *Group
	clock    host.Clock // of a kit in a group
	runs     func() bool
}

// Configured changes the configuration of the system: limits, tracing, everything that does not
// concern time and the order of turns.
func Configured(change func(host.Config) host.Config) Option {
	return func(o *options) { o.change = append(o.change, change) }
}

// Guardian sets the strategy of /user, the parent of what [Kit.Spawn] starts.
func Guardian(s supervision.Strategy) Option { return func(o *options) { o.guardian = s } }

// Seed chooses other random numbers, for actors and for faults; the default is 1.
func Seed(seed uint64) Option { return func(o *options) { o.seed = seed } }

// RealTime makes a system with goroutines on the machine's clock. Then tests wait in real
// time, stretched by the factor of [TimeFactor] or [Dilation].
func RealTime() Option { return func(o *options) { o.real = true } }

// Dilation stretches the time that a test waits at most, by a factor above 0. It has an effect only in real time:
// virtual time is exact.
func Dilation(factor float64) Option { return func(o *options) { o.factor = factor } }

// CallingThread runs actors as if their senders had called them: what a turn has sent is handled
// right after it, and all that follows from it, before anything else goes on. An actor's
// messages to itself wait until then. Sends within a turn are not handled before its end,
// because they do not leave before.
func CallingThread() Option { return func(o *options) { o.nested = true } }

// ExpectFor sets how long an expectation waits that is given no time and is not in a
// [Probe.Within].
func ExpectFor(d time.Duration) Option { return func(o *options) { o.expect = d } }

// Leeway sets how long to wait for events after what causes them is done.
func Leeway(d time.Duration) Option { return func(o *options) { o.leeway = d } }

// Kit is a system under test.
type Kit struct {
	t       testing.TB
	o       options
	sys     *host.System
	clock   host.Clock
	virtual *host.VirtualClock // nil: real time
	events  *recorded
	faults  faults
	direct  direct
	work    work

	mu      sync.Mutex
	changed chan struct{} // closed whenever something may have changed; real time
	probes  []*Probe
	running bool
	broken  bool   // a turn has ended the goroutine of the test
	ended   string // why it was ended before the test
}

// New starts a system, which ends with the test.
func New(t testing.TB, opts ...Option) *Kit {
	t.Helper()
	o := options{seed: 1, factor: factorOf(t), expect: DefaultExpect, leeway: DefaultLeeway, spells: maxSpells, wait: maxWait, guardian: supervision.Default()}
	for _, f := range opts {
		f(&o)
	}
	switch {
	case o.factor <= 0 || math.IsInf(o.factor, 0) || math.IsNaN(o.factor):
		t.Fatalf("testkit: a time factor of %v: it must be above 0", o.factor)
	case o.real && o.nested:
		t.Fatal("testkit: CallingThread and RealTime exclude each other")
	case o.real && o.group != nil:
		t.Fatal("testkit: a kit in a group has virtual time, and RealTime none")
	}
	if !o.real && o.group == nil {
		In(NewGroup(), nil, nil)(&o)
	}
	k := &Kit{t: t, o: o, clock: host.RealClock(), changed: make(chan struct{})}
	k.faults.init(k)
	cfg := host.NewConfig("test").WithSeed(o.seed).WithGuardian(k.direct.guardian(o.guardian))
	for _, change := range o.change {
		cfg = change(cfg)
	}
	if o.group != nil {
		k.virtual, k.clock = o.group.clock, o.clock
		cfg = cfg.WithManual().WithClock(k.clock)
	}
	if o.nested {
		cfg = cfg.WithNested()
	}
	sys, err := host.New(cfg.WithFaults(k.faults.turn).WithMailboxes(k.faults.mailbox))
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	k.sys = sys
	k.events = record(k)
	if o.group != nil {
		o.group.kits = append(o.group.kits, k)
	}
	t.Cleanup(func() { k.End("the test is over") })
	k.Run()
	return k
}

// End ends the system now, as the end of the test does otherwise. The kit cannot be used any more: whatever needs it fails the test, and
// says why.
func (k *Kit) End(why string) {
	k.t.Helper()
	if k.broken || k.ended != "" { // broken: the test has ended within a turn, which will never end
		return
	}
	k.ended = why
	if k.o.group != nil {
		k.o.group.remove(k)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	if err := k.sys.Close(ctx); err != nil {
		k.t.Errorf("testkit: the system has not ended: %v", err)
	}
	k.events.wait()
}

// factorOf is the factor that the environment sets.
func factorOf(t testing.TB) float64 {
	t.Helper()
	text := os.Getenv(TimeFactor)
	if text == "" {
		return 1
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f <= 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		t.Fatalf("testkit: %s=%q: it must be a number above 0", TimeFactor, text)
	}
	return f
}

// System is the system, for everything that the kit has no methods for. What is done with
// it takes effect with the next call of the kit, or with [Kit.Run].
func (k *Kit) System() *host.System { return k.sys }

// Now is the time of the system's clock.
func (k *Kit) Now() time.Time { return k.clock.Now() }

// Dilated is the time that a test waits for d: stretched in real time, unchanged in virtual time.
func (k *Kit) Dilated(d time.Duration) time.Duration {
	if k.virtual != nil {
		return d
	}
	return time.Duration(float64(d) * k.o.factor)
}

// Spawn starts an actor below /user and lets it begin. An empty name lets the system choose.
func (k *Kit) Spawn(name string, p host.Props) host.Ref {
	k.t.Helper()
	ref, err := k.sys.Spawn(name, p)
	if err != nil {
		k.t.Fatalf("testkit: %q cannot be started: %v", name, err)
	}
	k.Run()
	return ref
}

// At is the actor at a path such as /user/a/b.
func (k *Kit) At(path string) host.Ref {
	k.t.Helper()
	ref, err := k.sys.Lookup(path)
	if err != nil {
		k.t.Fatalf("testkit: %s: %v%s", path, err, k.waits())
	}
	return ref
}

// Tell sends a message without a sender, and lets it take effect.
func (k *Kit) Tell(to host.Ref, v any) {
	k.t.Helper()
	if err := k.sys.Tell(to, v); err != nil {
		k.t.Fatalf("testkit: %v is not delivered to %v: %v%s", v, to, err, k.waits())
	}
	k.Run()
}

// Ask sends a question and returns the answer, which must come within the usual time; an
// error answer is an answer, too, see host.Message.Err.
func (k *Kit) Ask(to host.Ref, v any) host.Message {
	k.t.Helper()
	p, err := k.sys.Request(to, v)
	if err != nil {
		k.t.Fatalf("testkit: %v is not delivered to %v: %v%s", v, to, err, k.waits())
	}
	var m host.Message
	came := k.until(k.Dilated(k.o.expect), func() bool {
		select {
		case m = <-p.Answer():
			return true
		default:
			return false
		}
	})
	if !came {
		p.Cancel()
		k.t.Fatalf("testkit: %v has not answered %s within %v%s", to, show(v), k.o.expect, k.waits())
	}
	return m
}

// Stop stops an actor and those below it, and waits for their end.
func (k *Kit) Stop(ref host.Ref) {
	k.t.Helper()
	ended, err := k.sys.Ended(ref)
	if err != nil {
		return
	}
	k.sys.Stop(ref)
	if !k.until(k.Dilated(k.o.expect), func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}) {
		k.t.Fatalf("testkit: %v has not stopped within %v%s", ref, k.o.expect, k.waits())
	}
}

// Run lets the actors run until there is nothing left to do without time going on. All other
// methods that do something do so themselves; Run is for what was done with [Kit.System]. In real time it does nothing.
func (k *Kit) Run() {
	k.t.Helper()
	if k.virtual == nil {
		return
	}
	k.enter()
	defer k.leave()
	k.o.group.rest(k.t)
}

// Advance lets time pass. What becomes due is handled in the order of time, and everything that
// follows from it before time goes on. In real time it waits.
func (k *Kit) Advance(d time.Duration) {
	k.t.Helper()
	k.until(d, func() bool { return false })
}

// enter fails the test if an actor calls the kit.
func (k *Kit) enter() {
	k.t.Helper()
	if k.ended != "" {
		k.t.Fatalf("testkit: this system has ended: %s", k.ended)
	}
	if k.running {
		k.t.Fatal("testkit: an actor, or a pilot, waits for the system that it runs in; only the test may")
	}
	k.running = true
}

func (k *Kit) leave() { k.running = false }

// rest runs what there is to do in this system, without time going on. It reports whether there was anything.
func (k *Kit) rest() (any bool) {
	k.t.Helper()
	for {
		k.broken = true
		n := k.sys.RunUntilIdle(k.o.spells)
		k.broken = false
		any = any || n > 0
		if n == k.o.spells {
			k.t.Fatalf("testkit: the system does not come to rest: messages without an end?%s", k.waits())
		}
		switch k.work.wait(k.o.wait) {
		case waited:
			continue
		case tooLong:
			k.t.Fatalf("testkit: %s is not done within %v of real time%s", k.work.who(), k.o.wait, k.waits())
		}
		if !k.faults.release() {
			k.events.collect()
			return any
		}
		any = true
	}
}

// until lets time pass until a condition holds, for d at most, and reports whether it does.
func (k *Kit) until(d time.Duration, ready func() bool) bool {
	k.t.Helper()
	if k.virtual == nil {
		return k.untilReal(d, ready)
	}
	k.enter()
	defer k.leave()
	return k.o.group.until(k.t, d, ready, k.o.spells, k.waits)
}

func (k *Kit) untilReal(d time.Duration, ready func() bool) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		changed := k.change()
		if ready() {
			return true
		}
		select {
		case <-changed:
		case <-poll.C: // for changes that are not signalled
		case <-timer.C:
			return ready()
		}
	}
}

// change is closed when something may have changed.
func (k *Kit) change() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// tell wakes the test.
func (k *Kit) tell() {
	if k.virtual != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// show is a value in a report.
func show(v any) string {
	if m, ok := v.(Matcher); ok {
		return m.String()
	}
	return fmt.Sprintf("%#v", v)
}
