package simulate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Bounds of what a run keeps.
const (
	mostFaults = 100_000
	mostLines  = 40
	mostEvents = 1 << 15 // between two steps
	mostHeld   = 64 << 20
)

// Violation is something that must hold and does not. Its text may have been written by guests.
type Violation struct {
	Rule string        `json:"rule"` // short, the same for all failures of one kind
	What string        `json:"what"`
	File string        `json:"file,omitempty"` // the crash file of the actor that has failed; empty: there is none
	At   time.Duration `json:"at"`             // virtual, since the beginning
}

// Places says what is special about actors, by path.
type Places struct {
	Spared func(c Class, path string) bool // the class does not apply to the actor; nil: all do
	Lossy  func(path string) bool          // messages to it may come twice, and overtake each other; nil: none is
}

// Run is one run of a plan. Faults and checks are called by the system's goroutine and by its services; all other methods are
// for the goroutine that steps.
type Run struct {
	plan    Plan
	places  Places
	start   time.Time
	virtual *host.VirtualClock
	sys     *host.System // the only one; nil: there are several
	seats   []*seat

	mu      sync.Mutex
	rnd     *rand.PCG
	aside   *rand.PCG        // in place of rnd for steps that do not count, of which there may be more or fewer
	fixed   map[Fault]uint64 // with Arg 0: the arguments
	count   map[Fault]uint64 // opportunities so far, with N 0
	faults  []Fault
	calm    bool
	victim  string
	offset  time.Duration // of the wall clock
	doors   map[abi.Ref]*door
	held    int
	chained [sha256.Size]byte
	scratch []byte
	records uint64
	lines   []string
	living  map[string]living
	turns   map[abi.Ref]uint64
	found   *Violation
	begun   map[abi.Ref]bool  // guests that have started once
	cut     map[abi.Ref]Class // what the last entry of a guest was not allowed
	unread  bool              // actors have run whose events were not read: an upgrade lets some
	seen    []func(*host.Event)
	disk    *Disk // nil: nothing is kept
	once    once
	phase   phase
	between func(host.Clock) host.Clock // the clock as the system sees it; nil: as it is
}

type living struct {
	ref         abi.Ref
	incarnation uint64
}

// NewRun begins a run at a time of the virtual clock, which whoever drives the run advances.
func NewRun(p Plan, clock *host.VirtualClock, places Places) *Run {
	r := &Run{
		plan: p, places: places, start: clock.Now(), virtual: clock, rnd: rand.NewPCG(p.Seed, 0x5eed), aside: rand.NewPCG(p.Seed, 0), count: map[Fault]uint64{},
		doors: map[abi.Ref]*door{}, living: map[string]living{}, turns: map[abi.Ref]uint64{}, cut: map[abi.Ref]Class{}, begun: map[abi.Ref]bool{},
	}
	if p.Fixed {
		r.fixed = make(map[Fault]uint64, len(p.Faults))
		for _, f := range p.Faults {
			arg := f.Arg
			f.Arg = 0
			r.fixed[f] = arg
		}
	}
	return r
}

// From says when what is shown of the run begins, if its clock has begun earlier.
func (r *Run) From(start time.Time) { r.start = start }

// Configure has a system be run by the plan. The system's clock becomes the run's.
func (r *Run) Configure(cfg host.Config) host.Config { return r.ConfigureOn(cfg, r.virtual) }

// ConfigureOn is Configure for a system in the time of another clock: that of its node.
func (r *Run) ConfigureOn(cfg host.Config, clock host.Clock) host.Config {
	cfg = cfg.WithSeed(r.plan.Seed).WithOrder(r.next).WithThroughput(max(r.plan.Spell, 1)).
		WithFaults(r.turn).WithAllowance(r.allowance).WithMailboxes(r.mailbox).WithClock(wall{clock, r})
	if r.between != nil {
		cfg = cfg.WithClock(r.between(wall{clock, r}))
	}
	if r.plan.Awake > 0 {
		cfg = cfg.WithMostAwake(r.plan.Awake)
	}
	return cfg
}

// Begin takes the system, before any actor of it has been started.
func (r *Run) Begin(sys *host.System) {
	r.sys = sys
	r.seats = []*seat{{sys: sys, events: sys.Subscribe(mostEvents, nil)}}
}

// Watch calls f with each event, in order, within Step.
func (r *Run) Watch(f func(*host.Event)) { r.seen = append(r.seen, f) }

// Plan is the plan.
func (r *Run) Plan() Plan { return r.plan }

// Since is the virtual time since the beginning.
func (r *Run) Since() time.Duration { return r.virtual.Now().Sub(r.start) }

// Violate notes that something does not hold. The first time counts.
func (r *Run) Violate(rule, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violate(rule, format, args...)
}

func (r *Run) violate(rule, format string, args ...any) {
	if r.found != nil {
		return
	}
	found := &Violation{Rule: rule, What: printable.Clip(fmt.Sprintf(format, args...), 1024), At: r.Since()}
	r.note("VIOLATED %s: %s", rule, found.What)
	r.found = found
}

// Violation is the first violation, nil if there is none.
func (r *Run) Violation() *Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// Note adds a line to what a failure shows of the history.
func (r *Run) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(format, args...)
}

func (r *Run) note(format string, args ...any) {
	if r.found != nil { // what comes after a violation only hides what has led to it
		return
	}
	if len(r.lines) == 2*mostLines {
		r.lines = append(r.lines[:0], r.lines[mostLines:]...)
	}
	r.lines = append(r.lines, fmt.Sprintf("+%-12v %s", r.Since(), printable.Line(fmt.Sprintf(format, args...), 300)))
}

// Tail are the last lines of the history.
func (r *Run) Tail() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines[max(0, len(r.lines)-mostLines):])
}

// Faults are the faults so far, in the order in which they have happened.
func (r *Run) Faults() []Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

// Chain is the last value of the hash chain over the history, in hexadecimal, and the number of its records.
func (r *Run) Chain() (string, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return hex.EncodeToString(r.chained[:]), r.records
}

// record adds a record to the chain. The caller holds the lock.
func (r *Run) record(what byte, texts [3]string, numbers [5]uint64, data []byte) {
	if r.still() {
		return
	}
	b := append(r.scratch[:0], r.chained[:]...)
	b = append(b, what)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.virtual.Now().UnixNano()))
	for _, t := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	b = append(binary.AppendUvarint(b, uint64(len(data))), data...)
	r.scratch = b[:0]
	r.chained = sha256.Sum256(b)
	r.records++
}

// Chance is a number from 0 to n-1 that whoever drives the run chooses by, at a place and for its n-th time.
func (r *Run) Chance(place string, at uint64, n int) int {
	return int(mix(r.plan.Seed, place, at, 3) % uint64(n))
}

// Sends reports whether the message from outside with a number is sent.
func (r *Run) Sends(number uint64) bool {
	_, not := slices.BinarySearch(r.plan.Skip, number)
	return !not
}

// meets counts an opportunity, and says whether it is a fault. The caller holds the lock.
func (r *Run) meets(c Class, place string) (arg uint64, yes bool) {
	if r.calm {
		return 0, false
	}
	rate := r.plan.Rates[c]
	if !r.plan.Fixed && rate == 0 {
		return 0, false
	}
	key := Fault{Class: c, Place: place}
	n := r.count[key]
	r.count[key] = n + 1
	key.N = n
	if r.plan.Fixed {
		if arg, yes = r.fixed[key]; !yes {
			return 0, false
		}
	} else {
		if share(mix(r.plan.Seed, place, n, 10+uint64(len(c))<<8+uint64(c[0])<<16+uint64(c[len(c)-1])<<24)) >= rate {
			return 0, false
		}
		arg = mix(r.plan.Seed, place, n, 11+uint64(c[0])) >> 16
	}
	if len(r.faults) >= mostFaults {
		return 0, false
	}
	key.Arg = arg
	r.faults = append(r.faults, key)
	r.note("FAULT %s at %s", c, place)
	return arg, true
}

// next is the order of turns.
func (r *Run) next(n int, at func(int) host.Ref) (chosen int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disk != nil && !r.still() {
		r.once.stepped(r.sys, r.doors) // of the step before: an upgrade lets several actors run
		defer func() { r.once.by = at(chosen).UID() }()
	}
	rnd := r.rnd
	if r.still() {
		rnd = r.aside
	}
	i := int(rnd.Uint64() % uint64(n))
	if r.calm || n == 1 {
		return i
	}
	switch r.plan.Prefer {
	case Newest:
		return n - 1
	case OneStarves, OneLast:
		if r.plan.Prefer == OneStarves && rnd.Uint64()%32 == 0 {
			return i
		}
		if path := at(i).Path(); path == r.victimOf(path) {
			return (i + 1) % n
		}
	}
	return i
}

// victimOf is the actor that the order is against: the first one below /user that has work, and a number of the seed
// chooses whether a later one takes its place.
func (r *Run) victimOf(path string) string {
	if len(path) > 6 && path[:6] == "/user/" && (r.victim == "" || mix(r.plan.Seed, path, 0, 4) < mix(r.plan.Seed, r.victim, 0, 4)) {
		r.victim = path
	}
	return r.victim
}

// Upgrades reports whether the code of guests is to be exchanged between two steps, and chooses how by a number. Whoever drives
// the run asks it before each step, and carries it out.
func (r *Run) Upgrades() (how uint64, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.still() {
		return 0, false
	}
	how, yes = r.meets(Upgrade, "")
	r.unread = r.unread || yes
	return how, yes
}

// Spares reports whether faults of a class do not apply to the actor at a path.
func (r *Run) Spares(c Class, path string) bool { return !r.exposed(c, path) }

// errInjected is the reason of failures that a run injects.
const errInjected = "a fault of the simulation"

// turn is Config.WithFaults.
func (r *Run) turn(t *host.Turn) *abi.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.still() {
		return nil
	}
	path := t.Actor.Path()
	r.record('t', [3]string{path}, [5]uint64{t.Incarnation, t.Number, uint64(t.Kind), uint64(t.Sender.UID()), t.Correlation}, t.Payload)
	switch t.Kind {
	case abi.KindStart, abi.KindStop, abi.KindPreRestart:
		r.begun[t.Actor.UID()] = true
		return nil
	}
	if _, yes := r.strikes(Crash, path, path); yes {
		return &abi.Failure{Kind: abi.FailureTrap, Reason: errInjected}
	}
	return nil
}

// allowance is Config.WithAllowance.
func (r *Run) allowance(ref host.Ref, fuel, memory *uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calm || r.still() || !r.plan.Fixed && r.plan.Rates[Fuel] == 0 && r.plan.Rates[Memory] == 0 {
		return
	}
	path := ref.Path()
	if !r.unread {
		delete(r.cut, ref.UID())
	}
	if !r.begun[ref.UID()] {
		return // an actor whose first start fails is stopped, and there would be little to see
	}
	if arg, yes := r.strikes(Fuel, path, path); yes {
		r.cut[ref.UID()] = Fuel
		*fuel = min(*fuel, 1+arg%20_000)
	}
	if _, yes := r.strikes(Memory, path, path); yes {
		r.cut[ref.UID()] = Memory
		*memory = 1
	}
}

// exposed reports whether faults of a class apply to an actor.
func (r *Run) exposed(c Class, path string) bool {
	return len(path) > 6 && path[:6] == "/user/" && (r.places.Spared == nil || !r.places.Spared(c, path))
}

// strikes is meets for an actor that may be spared. The caller holds the lock.
func (r *Run) strikes(c Class, path, place string) (arg uint64, yes bool) {
	if r.calm || !r.plan.Fixed && r.plan.Rates[c] == 0 || !r.exposed(c, path) {
		return 0, false
	}
	return r.meets(c, place)
}

// Step runs one actor, and reports false if none has work. Then it checks what can be checked at any time.
func (r *Run) Step() bool {
	more := r.step()
	if r.disk != nil {
		r.mu.Lock()
		r.once.stepped(r.sys, r.doors)
		r.mu.Unlock()
	}
	r.drain()
	r.mu.Lock()
	r.unread = false
	r.mu.Unlock()
	return more
}

// still reports whether what happens is no part of the history: the process has died, or what has happened is repeated. The
// caller holds the lock.
func (r *Run) still() bool { return r.disk != nil && (r.disk.dead || r.phase != runs) }

// drain reads the events that have come.
func (r *Run) drain() {
	for _, s := range r.seats {
		r.drainOf(s)
	}
}

func (r *Run) drainOf(s *seat) {
	for {
		select {
		case e, ok := <-s.events.C():
			if !ok {
				return
			}
			r.event(s, &e)
			for _, f := range r.seen {
				f(&e)
			}
		default:
			if n := s.events.Dropped(); n > 0 {
				r.Violate("history", "%d events came faster than they could be read", n)
			}
			return
		}
	}
}

// Calm ends the faults: what was held back is delivered, and none is injected any more.
func (r *Run) Calm() {
	r.mu.Lock()
	r.calm = true
	var of []*door
	for _, d := range r.doors {
		of = append(of, d)
	}
	slices.SortFunc(of, func(a, b *door) int { return cmp.Compare(a.ref.UID(), b.ref.UID()) })
	r.note("faults end")
	r.mu.Unlock()
	for _, d := range of {
		d.releaseAll()
	}
}

// ErrViolated ends a run in which something does not hold.
var ErrViolated = errors.New("something that must hold does not")

// Err is ErrViolated if there is a violation.
func (r *Run) Err() error {
	if r.Violation() != nil {
		return ErrViolated
	}
	return nil
}

// wall is the wall clock of a run, which steps.
type wall struct {
	host.Clock
	r *Run
}

// Now implements host.Clock.
func (w wall) Now() time.Time {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.Clock.Now().Add(w.r.offset)
}

// Tick is called whenever virtual time has passed: the wall clock may step.
func (r *Run) Tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if arg, yes := r.meets(Clock, ""); yes {
		r.offset = time.Duration(arg%uint64(2*MostStep)) - MostStep
	}
}
