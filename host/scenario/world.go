package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/simulate"
)

// world is a running scenario: its system, and the probes, stand-ins and fakes that play with it.
type world struct {
	*place                    // where the step that is carried out is: the only place, or that of a node
	ctx       context.Context // ends when it has taken too long
	scenario  *Scenario
	clock     *host.VirtualClock
	history   history
	probes    map[string]*probe // by name; stand-ins by path
	web       *web
	dir       string                // for services that store files; "": not needed yet
	failed    atomic.Pointer[error] // an error that ends the scenario, whatever its steps say
	held      atomic.Int64          // bytes that actors have made the runner keep
	cursor    map[string]uint64     // numbers of the events expected last, by kind of expectation
	calm      func()                // stops killing turns when ctx has ended
	messages  uint64                // that steps have made
	simulated *simulated            // nil: by wasmactors test
	stage     *Stage
	base      *bundle.Bundle
	cluster   *nodes // nil: there is one system, and no cluster
	pinned    bool   // the step names its node
	faulty    bool   // steps put another mailbox before a durable actor
	turns     int    // of a simulation, at the present moment of virtual time
	quiet     bool   // what is asked is asked again: it is not noted

	mu      sync.Mutex
	systems []*host.System
}

// errTimeout ends a scenario that takes too long.
var errTimeout = errors.New("it takes too long in real time")

// begin starts the bundle's actors.
func (st *Stage) begin(ctx context.Context, b *bundle.Bundle, s *Scenario, by *simulated) (*world, error) {
	w := &world{
		place: newPlace("", b), ctx: ctx, scenario: s, clock: host.NewVirtualClock(s.start), probes: map[string]*probe{},
		cursor: map[string]uint64{}, simulated: by, stage: st, base: b,
	}
	if len(s.nodes) > 0 {
		w.clock = host.NewVirtualClock(s.start.Add(-joinTime))
	}
	by.meet(w)
	w.web = newWeb(w)
	st.now = w
	w.calm = w.killAfter(ctx)
	err := w.begin()
	if err == nil {
		err = w.runUntilIdle()
	}
	if err != nil && w.sys == nil {
		st.end(w)
		return nil, err
	}
	w.history.begun = true
	return w, err
}

// closeTime bounds the end of a system, in real time.
const closeTime = 5 * time.Second

// end ends the system, whatever its actors do.
func (st *Stage) end(w *world) {
	st.now = nil
	if w.calm != nil {
		w.calm()
	}
	switch {
	case w.cluster != nil:
		w.cluster.end(w)
	case w.sys != nil:
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		calm := w.killAfter(ctx)
		w.ctx = ctx
		w.failed.Store(nil)
		for _, top := range w.sys.View().Tree().Children {
			w.sys.Stop(top.Ref)
		}
		for _, c := range w.clients {
			c.cancel()
		}
		_ = w.runUntilIdle()
		w.disconnect(w.exec.Release) // waits for readers, which wait for their turn until the release
		_ = w.sys.Close(ctx)
		calm()
	}
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

// killAfter kills every turn that runs after ctx has ended, until calm is called.
func (w *world) killAfter(ctx context.Context) (calm func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		for {
			w.kill()
			select {
			case <-over:
				return
			case <-time.After(killEvery):
			}
		}
	}()
	return func() { close(over); <-ended }
}

// killEvery is how long one of many turns that do not end may take, once it is too late.
const killEvery = 20 * time.Millisecond

// runUntilIdle runs everything that needs no time to pass.
func (w *world) runUntilIdle() error {
	for {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if err := w.cluster.tend(w); err != nil {
			return err
		}
		more, err := w.turn()
		if err != nil {
			return err
		}
		w.drain()
		if err := w.rest(); err != nil {
			return err
		}
		w.drain()
		if err := w.failed.Load(); err != nil {
			return *err
		}
		if !more {
			if more, err := w.turn(); more || err != nil { // a service has answered meanwhile
				if err != nil {
					return err
				}
				continue
			}
			return nil
		}
	}
}

// rest lets services go on until all wait.
func (w *world) rest() error {
	if w.cluster == nil {
		return w.exec.Rest(w.ctx)
	}
	return w.cluster.rest(w.ctx)
}

// mostTurns is how often actors may have turns at a moment of virtual time, in a simulation: more are no end.
const mostTurns = 300_000

// turn runs one actor; false: none has work.
func (w *world) turn() (more bool, err error) {
	by := w.simulated
	switch {
	case by == nil && w.cluster != nil:
		return w.cluster.step(), nil
	case by == nil:
		return w.sys.Step(), nil
	case by.run.Err() != nil:
		return false, by.run.Err()
	}
	if w.turns++; w.turns > mostTurns {
		return false, simulate.ErrSteps
	}
	switch {
	case by.disk != nil && by.disk.Turn():
		return true, w.die()
	}
	if w.cluster == nil || !w.clock.Now().Before(w.scenario.start) {
		if how, yes := by.run.Upgrades(); yes {
			return true, w.upgrade(how)
		}
	}
	if by.disk == nil {
		return by.run.Step(), nil
	}
	w.collect(nil)
	more = by.run.Step()
	w.collect(func(p *probe, m *received) {
		if by.disk.Keeps(m.Sender) {
			by.run.Violate("what leaves is durable", "%s has got a message of %s before the turn was durable", p.name, m.Sender.Path())
		}
	})
	return more || by.disk.Work() || by.disk.Doomed(), nil
}

// collect takes over what has come to probes, and calls f with it unless f is nil.
func (w *world) collect(f func(*probe, *received)) {
	for _, p := range w.probes {
		n := len(p.queue)
		p.collect()
		for i := n; f != nil && i < len(p.queue); i++ {
			f(p, &p.queue[i])
		}
	}
}

// die ends the process, and begins another one with what the disk has left.
func (w *world) die() error {
	d := w.simulated.disk
	w.disconnect(w.exec.Release)
	old := w.sys
	defer w.runs(old, false)
	if err := d.Die(w.sys); err != nil {
		return fmt.Errorf("the end of a process: %w", err)
	}
	w.stage.plain(w.bundle) // what the manifest names
	return w.begin()
}

// begin is boot that tries again while the disk fails.
func (w *world) begin() error {
	switch {
	case len(w.scenario.nodes) > 0:
		return w.join()
	case w.simulated == nil || w.simulated.disk == nil:
		return w.boot(w.place, w.clock, nil, nil)
	}
	for {
		for key, p := range w.probes {
			w.release(p.bytes())
			delete(w.probes, key)
		}
		w.simulated.disk.Opening()
		err := w.boot(w.place, w.clock, nil, nil)
		if again := w.simulated.disk.Began(err); !again {
			return err
		}
	}
}

// mostHeld bounds what actors make the runner keep: messages of probes, delayed ones, bodies of
// requests. In bytes.
const mostHeld = 64 << 20

// hold counts bytes that are kept for actors, until release; beyond the bound the scenario has failed.
func (w *world) hold(bytes int) {
	if w.held.Add(int64(bytes)) <= mostHeld || w.failed.Load() != nil {
		return
	}
	err := error(&stepError{
		what: fmt.Sprintf("actors have sent more than %d MiB that were not expected: messages to probes, delayed ones, bodies of requests", mostHeld>>20),
		hint: "expect takes the messages of a probe",
	})
	w.failed.Store(&err)
}

func (w *world) release(bytes int) { w.held.Add(-int64(bytes)) }

// drain reads the events that have come.
func (w *world) drain() {
	for _, p := range w.probes {
		p.collect()
	}
	lost := uint64(0)
	for _, p := range w.places() {
		w.drainOf(p)
		lost += p.events.Dropped()
	}
	w.history.lost = lost
}

// places are those that there are: the only one, or those of nodes with a system.
func (w *world) places() []*place {
	if w.cluster == nil {
		return []*place{w.place}
	}
	return w.cluster.booted()
}

func (w *world) drainOf(p *place) {
	for p.events != nil {
		select {
		case e, ok := <-p.events.C():
			if !ok {
				return
			}
			w.history.add(e, p.name)
			w.cluster.seen(w, p, &e)
			if m := p.faultyMailboxes[e.Ref.Path()]; m != nil && e.Kind == host.EventFailed {
				m.failed()
			}
		default:
			return
		}
	}
}

// advance lets time pass: from one moment at which something is due to the next.
func (w *world) advance(d time.Duration) error {
	return w.pass(w.clock.Now().Add(d), func() bool { return false })
}

// until lets time pass until a condition holds, for d at most, and reports whether it does.
func (w *world) until(d time.Duration, holds func() bool) (bool, error) {
	if holds() {
		return true, nil
	}
	found := false
	err := w.pass(w.clock.Now().Add(d), func() bool { found = holds(); return found })
	return found, err
}

func (w *world) pass(end time.Time, over func() bool) error {
	for {
		next, ok := w.clock.Next()
		if !ok || next.After(end) {
			next = end
		}
		if next.After(w.clock.Now()) {
			w.turns = 0
		}
		w.clock.Advance(next.Sub(w.clock.Now()))
		w.simulated.tick()
		if err := w.tickNodes(); err != nil {
			return err
		}
		if err := w.runUntilIdle(); err != nil {
			return err
		}
		if over() || !w.clock.Now().Before(end) {
			return nil
		}
	}
}

// since is how much time has passed in the scenario.
func (w *world) since(t time.Time) time.Duration { return t.Sub(w.scenario.start) }

// address is where a message to an actor is sent: to itself, or to the keeper that starts it.
func (w *world) address(name string) (host.Address, error) {
	path := pathOf(name)
	to, err := w.sys.AddressOf(path)
	if err != nil {
		return to, &stepError{what: fmt.Sprintf("there is no actor %s at this time", path), hint: w.why(path)}
	}
	return to, nil
}

// ref finds an existing actor.
func (w *world) ref(name string) (host.Ref, error) {
	path := pathOf(name)
	ref, err := w.lookup(path)
	if err != nil {
		return ref, &stepError{what: fmt.Sprintf("there is no actor %s at this time", path), hint: w.why(path)}
	}
	return ref, nil
}

// why says why an actor does not exist.
func (w *world) why(path string) string {
	if e := w.history.last(func(e *host.Event) bool { return e.Kind == host.EventStopped && e.Ref.Path() == path }); e != nil {
		if w.cluster != nil && e.node != "" {
			return fmt.Sprintf("that of %s has stopped %v after the beginning: %s", e.node, w.since(e.Time), e.Note)
		}
		return fmt.Sprintf("it has stopped %v after the beginning: %s", w.since(e.Time), e.Note)
	}
	return "it has not been started"
}

// number is the number that !ref stands for.
func (w *world) number(name string) (uint64, error) {
	if p := w.probes[w.probeKey(name)]; p != nil {
		return uint64(p.ref(w.place).UID()), nil
	}
	if slices.Contains(w.scenario.probes(), name) {
		if ref, err := w.lookup(pathOf(name)); err == nil {
			return uint64(ref.UID()), nil
		}
		return uint64(w.probe(name).ref(w.place).UID()), nil
	}
	ref, err := w.ref(name)
	return uint64(ref.UID()), err
}

// folder is where services may store what they cannot keep in memory, until the scenario ends.
func (w *world) folder() (string, error) {
	if w.dir == "" {
		dir, err := os.MkdirTemp("", "wasmactors-test-")
		if err != nil {
			return "", err
		}
		w.dir = dir
	}
	return w.dir, nil
}

// randomness is the randomness of services: from the seed, for any goroutine.
func (w *world) randomness() func([]byte) {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], w.scenario.seed)
	source := rand.NewChaCha8(seed)
	var mu sync.Mutex
	return func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = source.Read(b) // never fails
	}
}
