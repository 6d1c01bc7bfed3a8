package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/simulate"
)

// world is a running scenario: its system, and the probes, stand-ins and fakes that play with it.
type world struct {
	ctx             context.Context // ends when it has taken too long
	scenario        *Scenario
	sys             *host.System
	clock           *host.VirtualClock
	exec            *executor.Sim // runs services, and the clients
	events          *host.Subscription
	history         history
	probes          map[string]*probe // by name; stand-ins by path
	faultyMailboxes map[string]*faultyMailbox
	web             *web
	dir             string                // for services that store files; "": not needed yet
	failed          atomic.Pointer[error] // an error that ends the scenario, whatever its steps say
	held            atomic.Int64          // bytes that actors have made the runner keep
	cursor          map[string]uint64     // numbers of the events expected last, by kind of expectation
	calm            func()                // stops killing turns when ctx has ended
	gateway         *gateway.Gateway      // nil: the scenario makes no requests
	clients         map[string]*client    // WebSockets, by name
	messages        uint64                // that steps have made
	simulated       *simulated            // nil: by wasmactors test
	stage           *Stage
	bundle          *bundle.Bundle
	faulty          bool // steps put another mailbox before a durable actor
	turns           int  // of a simulation, at the present moment of virtual time
	quiet           bool // what is asked is asked again: it is not noted
}

// errTimeout ends a scenario that takes too long.
var errTimeout = errors.New("it takes too long in real time")

// begin starts the bundle's actors.
func (st *Stage) begin(ctx context.Context, b *bundle.Bundle, s *Scenario, by *simulated) (*world, error) {
	w := &world{
		ctx: ctx, scenario: s, clock: host.NewVirtualClock(s.start), probes: map[string]*probe{}, faultyMailboxes: map[string]*faultyMailbox{},
		cursor: map[string]uint64{}, clients: map[string]*client{}, simulated: by, stage: st, bundle: b,
	}
	by.meet(w)
	w.web = newWeb(w)
	st.now = w
	err := w.begin()
	if err != nil {
		st.end(w)
		return nil, err
	}
	w.calm = w.killAfter(ctx)
	err = w.runUntilIdle()
	w.history.begun = true
	return w, err
}

// boot starts a system: the first one, or the next one after a death.
func (w *world) boot() error {
	b, s, by := w.bundle, w.scenario, w.simulated
	w.exec = executor.NewSim(w.clock)
	all := b.Manifest.HTTP
	if b.Manifest.HTTP = nil; s.outside() {
		b.Manifest.HTTP = routes(all, w)
	}
	_, err := b.Start(func(cfg host.Config) host.Config {
		return by.configure(cfg.WithManual().WithClock(w.clock).WithSeed(s.seed))
	}, func(sys *host.System) {
		w.sys = sys
		by.begin(sys)
		w.events = sys.Subscribe(mostEvents, nil)
	})
	b.Manifest.HTTP = all
	if err != nil {
		return err
	}
	w.gateway = b.Gateway()
	for _, path := range s.standIns {
		if w.probes[path] == nil { // the manifest has no such actor
			p := w.standIn(path)
			if _, err := w.sys.Spawn(strings.TrimPrefix(path, "/user/"), p.props()); err != nil {
				return fmt.Errorf("the stand-in %s: %w", path, err)
			}
		}
	}
	return nil
}

// closeTime bounds the end of a system, in real time.
const closeTime = 5 * time.Second

// end ends the system, whatever its actors do.
func (st *Stage) end(w *world) {
	st.now = nil
	for _, c := range w.clients {
		c.cancel()
	}
	if w.calm != nil {
		w.calm()
	}
	if w.sys != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		calm := w.killAfter(ctx)
		w.ctx = ctx
		w.failed.Store(nil)
		for _, top := range w.sys.View().Tree().Children {
			w.sys.Stop(top.Ref)
		}
		_ = w.runUntilIdle()
		w.exec.Release()
		for _, c := range w.clients {
			c.end() // waits for its reader, which waits for its turn until the release
		}
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

// kill ends the turns that run. Any goroutine may call it.
func (w *world) kill() {
	for _, i := range w.sys.View().AppendInfo(nil) {
		if strings.HasPrefix(i.Ref.Path(), "/user/") {
			w.sys.StopNow(i.Ref)
		}
	}
}

// note adds a line of the runner's own to what has happened.
func (w *world) note(format string, args ...any) {
	if w.quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	w.history.note(w.clock.Now(), text)
	if w.simulated != nil {
		w.simulated.run.Note("%s", text)
	}
}

// runUntilIdle runs everything that needs no time to pass.
func (w *world) runUntilIdle() error {
	for {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		more, err := w.turn()
		if err != nil {
			return err
		}
		w.drain()
		if err := w.exec.Rest(w.ctx); err != nil {
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

// mostTurns is how often actors may have turns at a moment of virtual time, in a simulation: more are no end.
const mostTurns = 300_000

// turn runs one actor; false: none has work.
func (w *world) turn() (more bool, err error) {
	by := w.simulated
	switch {
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
	if how, yes := by.run.Upgrades(); yes {
		return true, w.upgrade(how)
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
	for _, c := range w.clients {
		c.cancel()
	}
	w.exec.Release()
	for _, c := range w.clients {
		c.end()
	}
	clear(w.clients)
	if err := d.Die(w.sys); err != nil {
		return fmt.Errorf("the end of a process: %w", err)
	}
	w.stage.plain(w.bundle) // what the manifest names
	return w.begin()
}

// begin is boot that tries again while the disk fails.
func (w *world) begin() error {
	if w.simulated == nil || w.simulated.disk == nil {
		return w.boot()
	}
	for {
		for key, p := range w.probes {
			w.release(p.bytes())
			delete(w.probes, key)
		}
		w.simulated.disk.Opening()
		err := w.boot()
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
	for {
		select {
		case e, ok := <-w.events.C():
			if !ok {
				return
			}
			w.history.add(e)
			if m := w.faultyMailboxes[e.Ref.Path()]; m != nil && e.Kind == host.EventFailed {
				m.failed()
			}
		default:
			w.history.lost = w.events.Dropped()
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
	ref, err := w.sys.Lookup(path)
	if err != nil {
		return ref, &stepError{what: fmt.Sprintf("there is no actor %s at this time", path), hint: w.why(path)}
	}
	return ref, nil
}

// why says why an actor does not exist.
func (w *world) why(path string) string {
	if e := w.history.last(func(e *host.Event) bool { return e.Kind == host.EventStopped && e.Ref.Path() == path }); e != nil {
		return fmt.Sprintf("it has stopped %v after the beginning: %s", w.since(e.Time), e.Note)
	}
	return "it has not been started"
}

// number is the number that !ref stands for.
func (w *world) number(name string) (uint64, error) {
	if p := w.probes[w.probeKey(name)]; p != nil {
		return uint64(p.ref().UID()), nil
	}
	if slices.Contains(w.scenario.probes(), name) {
		if ref, err := w.sys.Lookup(pathOf(name)); err == nil {
			return uint64(ref.UID()), nil
		}
		return uint64(w.probe(name).ref().UID()), nil
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
