// Package simnet has what nodes of a cluster stand on, under a virtual clock and a seed: a directory that answers late,
// twice or not, links that lose, delay, double and cut, a log, values that services share, and machines that stop and go on, with
// clocks that differ. It is for scenarios of bundles, and for tests of what is built on package cluster.
package simnet

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// World is the network, the directory and the time. It is for one goroutine, and for tasks that run while that one waits for them.
type World struct {
	Clock  *host.VirtualClock
	Random *rand.Rand
	Faults Faults

	directory directory
	log       history
	shared    map[string]*values
	machines  []*Machine
	cut       map[[2]*Machine]bool
}

// Faults is how often things go wrong, in thousandths, and how late they are. They may be changed at any time.
type Faults struct {
	Lose, Double, Delay int // packets
	Late, Twice, Fail   int // answers of the directory; of those that fail, half have had their effect
	Behind              int // what nodes are told of changes: all that comes after is late, too
	Most                time.Duration
}

// New is a world without machines, whose clock is its own.
func New(seed uint64) *World { return On(host.NewVirtualClock(time.Unix(1_700_000_000, 0)), seed) }

// On is a world without machines in the time of a clock.
func On(clock *host.VirtualClock, seed uint64) *World {
	w := &World{Clock: clock, Random: rand.New(&source{pcg: rand.NewPCG(seed, 24)}), cut: map[[2]*Machine]bool{}, shared: map[string]*values{}}
	w.directory.entries = map[string]cluster.Entry{}
	return w
}

// source is a source of randomness that several goroutines may use, one after the other if the history is to be one.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

func (w *World) chance(thousandths int) bool { return w.Random.IntN(1000) < thousandths }

// later has f run on a machine a little later, or with the chance given much later.
func (w *World) later(m *Machine, late int, f func()) {
	d := time.Duration(1+w.Random.IntN(1000)) * time.Microsecond
	w.Clock.AfterFunc(d+w.late(late), func() { m.run(f) })
}

// late is by how much something is late, with a chance.
func (w *World) late(thousandths int) time.Duration {
	if w.chance(thousandths) && w.Faults.Most > 0 {
		return time.Duration(w.Random.Int64N(int64(w.Faults.Most)))
	}
	return 0
}

// Machine is where one node runs. What it does while it is paused it does when it goes on.
type Machine struct {
	world   *World
	start   time.Time
	rate    float64 // of its clock
	paused  bool
	told    time.Time // until then it has been told of what has changed
	dead    bool
	buried  bool // what it is asked for has no effect
	alone   bool
	apart   bool     // from the directory
	untold  []func() // what it is told when it is not alone any more
	backlog []func()
	number  func() uint16
	receive func(uint16, []byte)
	watches []func(cluster.Entry)
}

// Machine starts one whose clock is up to 4 % too fast or slow. number is the number of its node, 0 if it has none.
func (w *World) Machine(number func() uint16) *Machine {
	return w.machine(number, 0.96+0.08*w.Random.Float64())
}

// ExactMachine starts one whose clock is that of the world.
func (w *World) ExactMachine(number func() uint16) *Machine { return w.machine(number, 1) }

func (w *World) machine(number func() uint16, rate float64) *Machine {
	m := &Machine{world: w, start: w.Clock.Now(), rate: rate, number: number}
	w.machines = append(w.machines, m)
	return m
}

func (m *Machine) run(f func()) {
	switch {
	case m.dead:
	case m.paused:
		m.backlog = append(m.backlog, f)
	default:
		f()
	}
}

// Pause stops the machine, as SIGSTOP does: its clock goes on.
func (m *Machine) Pause() { m.paused = true }

// Resume has it go on.
func (m *Machine) Resume() {
	m.paused = false
	for len(m.backlog) > 0 && !m.paused && !m.dead {
		f := m.backlog[0]
		m.backlog = m.backlog[1:]
		f()
	}
}

// Crash ends it: nothing of it runs any more.
func (m *Machine) Crash() { m.dead = true }

// Bury ends it as Crash does, and forgets it: what its software still tries, while it is torn down, has no effect.
func (m *Machine) Bury() {
	m.dead, m.buried, m.backlog, m.untold, m.watches = true, true, nil, nil, nil
	w := m.world
	w.machines = slices.DeleteFunc(w.machines, func(x *Machine) bool { return x == m })
	maps.DeleteFunc(w.cut, func(pair [2]*Machine, _ bool) bool { return pair[0] == m || pair[1] == m })
	for _, v := range w.shared {
		v.watches = slices.DeleteFunc(v.watches, func(x *watch) bool { return x.by == m })
	}
}

// Dead reports whether it has crashed.
func (m *Machine) Dead() bool { return m.dead }

// Runs reports whether it does something now.
func (m *Machine) Runs() bool { return !m.dead && !m.paused }

// Since is the machine's clock.
func (m *Machine) Since() time.Duration {
	passed := m.world.Clock.Now().Sub(m.start)
	if m.rate == 1 {
		return passed
	}
	return time.Duration(float64(passed) * m.rate)
}

// Now and AfterFunc make it a clock.
func (m *Machine) Now() time.Time { return m.start.Add(m.Since()) }

// AfterFunc implements host.Clock.
func (m *Machine) AfterFunc(d time.Duration, f func()) clock.Timer {
	if m.buried {
		return never{}
	}
	if m.rate != 1 {
		d = 1 + time.Duration(float64(max(d, 0))/m.rate)
	}
	return m.world.Clock.AfterFunc(d, func() { m.run(f) })
}

// never is a timer of a machine that is no more.
type never struct{}

// Stop implements clock.Timer.
func (never) Stop() bool { return false }

// Cut loses packets from one machine to another, or with false no longer.
func (w *World) Cut(from, to *Machine, cut bool) { w.cut[[2]*Machine{from, to}] = cut }

// Isolate cuts a machine off from all others, the directory and the log, or with false no longer. What it asks those for has no effect, and fails
// after two seconds. No dice are drawn for it.
func (m *Machine) Isolate(alone bool) {
	m.alone = alone
	m.tellUntold()
}

// Detach cuts a machine off from the directory, the log and what services share, or with false no longer. It still reaches other
// machines. No dice are drawn for it.
func (m *Machine) Detach(apart bool) {
	m.apart = apart
	m.tellUntold()
}

// tellUntold tells a machine that is not cut off any more what it has missed.
func (m *Machine) tellUntold() {
	if m.cutOff() {
		return
	}
	untold := m.untold
	m.untold = nil
	for _, f := range untold {
		m.order(f)
	}
}

// cutOff reports whether the machine does not reach the directory.
func (m *Machine) cutOff() bool { return m.alone || m.apart }

// unreached fails what a machine that is cut off asks for.
func (m *Machine) unreached(f func()) bool {
	switch {
	case m.buried:
		return true
	case m.cutOff():
		m.world.Clock.AfterFunc(2*time.Second, func() { m.run(f) })
		return true
	}
	return false
}

// Heal ends all faults but crashes.
func (w *World) Heal() {
	w.Faults = Faults{}
	clear(w.cut)
	for _, m := range w.machines {
		if m.cutOff() {
			m.alone, m.apart = false, false
			m.tellUntold()
		}
		if m.paused {
			m.Resume()
		}
	}
}

// Send implements cluster.Links.
func (m *Machine) Send(to uint16, packet []byte) {
	if m.buried {
		return
	}
	w, from := m.world, m.number()
	if !m.Runs() {
		panic("simnet: a machine that does not run sends")
	}
	for _, x := range w.machines {
		if x.dead || x.number() != to || m.alone || x.alone || w.cut[[2]*Machine{m, x}] || w.chance(w.Faults.Lose) {
			continue
		}
		copies := 1
		if w.chance(w.Faults.Double) {
			copies = 2
		}
		for range copies {
			b := slices.Clone(packet)
			d := 500 * time.Microsecond
			if w.chance(w.Faults.Delay) && w.Faults.Most > 0 {
				d += time.Duration(w.Random.Int64N(int64(w.Faults.Most)))
			}
			w.Clock.AfterFunc(d, func() { x.run(func() { x.receive(from, b) }) })
		}
	}
}

// Receive implements cluster.Links.
func (m *Machine) Receive(f func(uint16, []byte)) { m.receive = f }

// MaxPacket implements cluster.Links.
func (m *Machine) MaxPacket() int { return cluster.MinPacket }

// directory is the one directory of a world.
type directory struct {
	entries  map[string]cluster.Entry
	keys     []string
	revision uint64
	changed  func(by *Machine, before, now cluster.Entry)
}

// Changed sets who is told, at once, of each change of the directory.
func (w *World) Changed(f func(by *Machine, before, now cluster.Entry)) { w.directory.changed = f }

// ErrDirectory is what the directory answers when it is not known what it has done.
var ErrDirectory = errors.New("simnet: the directory does not answer")

// Put implements cluster.Directory.
func (m *Machine) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	w := m.world
	if m.unreached(func() { done(0, ErrDirectory) }) {
		return
	}
	fails := w.chance(w.Faults.Fail)
	lost := fails && w.chance(500)
	put := func() {
		d := &w.directory
		before, at, err := d.entries[key], uint64(0), error(nil)
		switch {
		case lost:
		case before.Revision != revision:
			err = cluster.ErrConflict
		default:
			d.revision++
			at = d.revision
			now := cluster.Entry{Key: key, Value: slices.Clone(value), Revision: at}
			if before.Revision == 0 {
				d.keys = append(d.keys, key)
			}
			d.entries[key] = now
			if d.changed != nil {
				d.changed(m, before, now)
			}
			for _, x := range w.machines {
				for _, f := range x.watches {
					x.order(func() { f(now) })
				}
			}
		}
		if fails {
			at, err = 0, ErrDirectory
		}
		answer := func() { done(at, err) }
		w.later(m, w.Faults.Late, answer)
		if w.chance(w.Faults.Twice) {
			w.later(m, w.Faults.Late, answer)
		}
	}
	w.delayed(put)
}

// delayed has f done on the way: it is with the directory then, or the log, whatever becomes of the machine.
func (w *World) delayed(f func()) {
	d := time.Duration(1+w.Random.IntN(1000)) * time.Microsecond
	w.Clock.AfterFunc(d+w.late(w.Faults.Late), f)
}

// order has f run on the machine a little later, after what it was told before.
func (m *Machine) order(f func()) {
	w := m.world
	if m.cutOff() {
		m.untold = append(m.untold, f)
		return
	}
	at := w.Clock.Now().Add(time.Millisecond)
	if w.chance(w.Faults.Behind) && w.Faults.Most > 0 {
		at = at.Add(time.Duration(w.Random.Int64N(int64(w.Faults.Most))))
	}
	if at.Before(m.told) {
		at = m.told
	}
	m.told = at
	w.Clock.AfterFunc(at.Sub(w.Clock.Now()), func() { m.run(f) })
}

// Watch implements cluster.Directory.
func (m *Machine) Watch(each func(cluster.Entry)) (stop func()) {
	if m.buried {
		return func() {}
	}
	over := false
	f := func(e cluster.Entry) {
		if !over {
			each(e)
		}
	}
	for _, k := range m.world.directory.keys {
		e := m.world.directory.entries[k]
		m.order(func() { f(e) })
	}
	m.watches = append(m.watches, f)
	return func() { over = true }
}
