package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/cluster/simnet"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Scenarios over several nodes: the nodes as they run. Each is a machine of a simulated network with a copy of the bundle.

const (
	// Lease is that of the nodes of scenarios.
	Lease = cluster.DefaultLease
	// joinTime is how long the nodes have to find each other, before a scenario begins.
	joinTime = 10 * time.Second
	// joinAgain is after which time a node that could not join tries again.
	joinAgain = time.Second
)

// nodes are those of a scenario.
type nodes struct {
	net   *simnet.World
	names map[uint16]string // of all numbers that nodes have ever had
	all   []*member
	parts []partition
	next  int // whose turn is next

	faults map[string]*faultList // of actors that are spread over the nodes, wherever messages to them are sent, by path

	drawn   time.Time // when a simulation has last asked what happens to nodes
	numbers uint64    // of its parts and troubles
	trouble uint64    // the number of the last trouble of what nodes keep together
}

// member is a node, whether it runs or not.
type member struct {
	nodeOf
	nodes *nodes
	lives int    // so far
	life  *life  // nil: it has ended
	why   string // it has ended
	due   bool   // it is to begin again
}

// life is one start of a node.
type life struct {
	member  *member
	machine *simnet.Machine
	node    *cluster.Node
	self    cluster.Member // zero: it has not joined
	place   *place
	ready   bool  // it has joined, and its system is to be started
	failed  error // why it could not join
	over    error // it must not act any more
	paused  time.Time
	resume  uint64 // numbers the pauses
}

// join starts all nodes, and waits until they have found each other.
func (w *world) join() error {
	n := &nodes{net: simnet.On(w.clock, w.scenario.seed), names: map[uint16]string{}, faults: map[string]*faultList{}}
	w.cluster = n
	base := w.place.bundle
	for _, o := range w.scenario.nodes {
		n.all = append(n.all, &member{nodeOf: o, nodes: n})
	}
	for _, m := range n.all {
		w.begun(m, base.Replica())
	}
	w.quiet, w.history.hidden = true, true
	err := w.pass(w.scenario.start, func() bool { return false })
	w.quiet, w.history.hidden = false, false
	if err != nil {
		return err
	}
	for _, m := range n.all {
		if m.life == nil || m.life.place.sys == nil {
			return fmt.Errorf("the node %s has not joined within %v", m.name, joinTime)
		}
	}
	w.place = n.all[0].life.place
	return nil
}

// begun starts a life of a node, with a bundle of its own.
func (w *world) begun(m *member, b *bundle.Bundle) {
	m.lives++
	m.why = ""
	l := &life{member: m, place: newPlace(m.name, b)}
	l.place.life = l
	l.machine = m.nodes.net.ExactMachine(func() uint16 { return l.self.Number })
	m.life = l
	m.nodes.cut()
	w.tryJoin(l)
}

// tryJoin has a node ask for a number.
func (w *world) tryJoin(l *life) {
	m, of := l.member, l.place.bundle.Manifest.Cluster
	roles := m.roles
	if roles == nil {
		roles = of.Roles
	}
	l.failed = nil
	node, err := cluster.New(cluster.Config{
		Name: m.name, Roles: roles, Zone: of.Zone, Lease: Lease, Brief: Lease / 2, ID: draw(w.scenario.seed, uint64(m.place()), uint64(m.lives)) | 1,
		Directory: l.machine, Links: l.machine, Clock: l.machine, Since: l.machine.Since,
		Control: func(cluster.Member) bool { return of.Control },
		Lost:    func(err error) { l.over = err },
		Events:  func(e cluster.Event) { w.clusterEvent(l, e) },
	})
	if err != nil {
		l.failed = err
		return
	}
	l.node = node
	node.Join(func(self cluster.Member, err error) {
		switch {
		case err == nil:
			l.self, l.ready = self, true
			m.nodes.names[self.Number] = m.name
		case l.ready: // it has acted, and was lost
		case errors.Is(err, cluster.ErrLost), errors.Is(err, cluster.ErrName):
			l.machine.AfterFunc(joinAgain, func() { w.tryJoin(l) })
		default:
			l.failed = err
		}
	})
}

// place is the member's place in the list, from 1.
func (m *member) place() int { return 1 + slices.Index(m.nodes.all, m) }

// clusterEvent notes what a node sees of the others.
func (w *world) clusterEvent(l *life, e cluster.Event) {
	name := l.member.nodes.names[e.Node]
	switch e.Kind {
	case cluster.EventLost:
		w.noteOf(l.member.name, "cluster: %s", e.Text)
	case cluster.EventGone, cluster.EventEvicted, cluster.EventBroken, cluster.EventPassed:
		if l.ready && name != "" {
			w.noteOf(l.member.name, "cluster: %s %s", e.Kind, name)
		}
	}
}

// tend starts the systems of nodes that have joined, and ends those of nodes that were lost, which join again. It may be called on nil.
func (n *nodes) tend(w *world) error {
	if n == nil {
		return nil
	}
	for _, m := range n.all {
		if m.due {
			m.due = false
			w.startNode(m)
		}
		l := m.life
		switch {
		case l == nil || !l.machine.Runs():
		case l.failed != nil:
			return fmt.Errorf("the node %s cannot join: %w", m.name, l.failed)
		case l.over != nil:
			w.noteOf(m.name, "it ends its actors, and joins again")
			l.place.stopAll()
			w.drainOf(l.place)
			b := w.ended(m, "it was lost")
			w.begun(m, b)
		case l.ready && l.place.sys == nil:
			if err := w.bootNode(l); err != nil {
				return fmt.Errorf("the node %s: %w", m.name, err)
			}
		}
	}
	return nil
}

// bootNode starts the system of a node.
func (w *world) bootNode(l *life) error {
	b := l.place.bundle
	b.Join(l.node)
	b.Share(nil) // services are given what is shared by the stage
	b.Keep(bundle.Logs{Open: func(context.Context) (cluster.Log, error) { return l.machine.Log(), nil }, Clock: l.machine, Manual: true})
	seed := draw(w.scenario.seed, uint64(l.member.place()), 1<<32+uint64(l.member.lives))
	return w.boot(l.place, l.machine, func(cfg host.Config) host.Config {
		return cfg.WithNode(l.self.Number).WithSeed(seed)
	}, l.node.Attach)
}

// sharing is how services reach what the nodes share; it may be called on nil.
func (l *life) sharing() service.Sharing {
	if l == nil {
		return nil
	}
	return func(_ context.Context, name string) (service.Shared, error) {
		return l.machine.Shared(name, Lease, l.node.Acting), nil
	}
}

// booted are the places of nodes that have a system.
func (n *nodes) booted() (all []*place) {
	for _, m := range n.all {
		if m.life != nil && m.life.place.sys != nil {
			all = append(all, m.life.place)
		}
	}
	return all
}

// running are those of them that do not stand still.
func (n *nodes) running() []*place {
	return slices.DeleteFunc(n.booted(), func(p *place) bool { return !p.life.machine.Runs() })
}

// step runs one actor of one node, one node after the other; false: none has work.
func (n *nodes) step() bool {
	all := n.running()
	for i := range all {
		if p := all[(n.next+i)%len(all)]; p.sys.Step() {
			n.next = (n.next + i + 1) % len(all)
			return true
		}
	}
	return false
}

// rest lets the services of all nodes go on until they wait.
func (n *nodes) rest(ctx context.Context) error {
	for _, p := range n.running() {
		if err := p.exec.Rest(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// ended ends a node as a loss of power does, and returns its bundle.
func (w *world) ended(m *member, why string) *bundle.Bundle {
	l := m.life
	l.machine.Bury()
	w.tearDown(l.place)
	for _, name := range sortedKeys(w.probes) {
		w.probes[name].left(l.place)
	}
	w.simulated.left(l.place)
	m.life, m.why = nil, why
	l.place.bundle.Join(nil)
	return l.place.bundle
}

// end ends all nodes with the scenario.
func (n *nodes) end(w *world) {
	for _, m := range n.all {
		if m.life == nil {
			continue
		}
		b := w.ended(m, "the scenario is over")
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		_ = b.Close(ctx)
		cancel()
	}
}

// cut sets who reaches whom.
func (n *nodes) cut() {
	var parts []simnet.Part
	for _, p := range n.parts {
		parts = append(parts, p.Part)
	}
	var machines []simnet.Named
	for _, m := range n.all {
		if m.life != nil {
			machines = append(machines, simnet.Named{Name: m.name, Machine: m.life.machine})
		}
	}
	n.net.CutBy(parts, len(n.all), machines)
}

// faultsOf are the faults of messages to an actor that is spread over the nodes.
func (n *nodes) faultsOf(path string) *faultList {
	l := n.faults[path]
	if l == nil {
		l = &faultList{}
		n.faults[path] = l
	}
	return l
}

func (n *nodes) of(name string) *member {
	return n.all[slices.IndexFunc(n.all, func(m *member) bool { return m.name == name })]
}

// nodeStep carries out a step about nodes.
func (w *world) nodeStep(s *step) error {
	n := w.cluster
	switch s.verb.name {
	case "heal":
		w.noteOf("", "heal")
		w.healNodes()
	case "part":
		p, err := parsePart(textOf(grammar.At(s.n, "part")))
		if err != nil {
			return err
		}
		w.noteOf("", "part %s", p.Text)
		n.parts = append(n.parts, p)
		n.cut()
	case "kill":
		w.noteOf(s.object(), "kill")
		w.killNode(n.of(s.object()))
	case "start":
		w.noteOf(s.object(), "start")
		w.startNode(n.of(s.object()))
	case "pause":
		w.noteOf(s.object(), "pause for %v", s.span("for", 0))
		w.pauseNode(n.of(s.object()), s.span("for", 0))
	case "leave":
		return w.leave(s, n.of(s.object()))
	}
	return w.runUntilIdle()
}

func (w *world) healNodes() {
	w.cluster.parts = nil
	w.cluster.cut()
}

// killNode ends a node that runs.
func (w *world) killNode(m *member) {
	if m.life != nil {
		b := w.ended(m, fmt.Sprintf("it was killed %v after the beginning", w.since(w.clock.Now())))
		_ = b.Close(context.Background())
	}
}

// startNode begins a life of a node that has ended.
func (w *world) startNode(m *member) {
	if m.life == nil {
		w.begun(m, w.base.Replica())
	}
}

// pauseNode has a node stand still for a time.
func (w *world) pauseNode(m *member, d time.Duration) {
	l := m.life
	if l == nil {
		return
	}
	l.machine.Pause()
	l.resume++
	number := l.resume
	l.paused = w.clock.Now().Add(d)
	w.clock.AfterFunc(d, func() {
		if m.life == l && l.resume == number {
			w.resumeNode(m)
		}
	})
}

// resumeNode has a node that stands still go on.
func (w *world) resumeNode(m *member) {
	if m.life != nil && !m.life.machine.Runs() {
		w.noteOf(m.name, "it goes on")
		m.life.resume++
		m.life.machine.Resume()
	}
}

// leave has a node hand over what it has, and leave.
func (w *world) leave(s *step, m *member) error {
	within := s.span("within", time.Minute)
	l := m.life
	if err := w.usable(m); err != nil {
		return err
	}
	w.noteOf(m.name, "leave")
	w.place = l.place
	kinds := l.place.bundle.Spread()
	for _, kind := range kinds {
		if _, err := w.region(l.place, kind, func(ctx context.Context, ref host.Ref) (shard.State, error) {
			return shard.Drain(ctx, l.place.sys, ref, true)
		}); err != nil {
			return err
		}
	}
	for end := w.clock.Now().Add(within); ; {
		if m.life != l {
			return nil // it was lost meanwhile
		}
		owned := 0
		for _, kind := range kinds {
			x, err := w.region(l.place, kind, func(ctx context.Context, ref host.Ref) (shard.State, error) {
				return shard.Look(ctx, l.place.sys, ref)
			})
			if err != nil {
				return err
			}
			owned += x.Owned
		}
		if owned == 0 {
			break
		}
		if !w.clock.Now().Before(end) {
			return &stepError{what: fmt.Sprintf("the node %s still has %d shards after %v", m.name, owned, within), hint: "a node without which there is no other keeps them, and so does one that does not reach the others"}
		}
		if err := w.advance(min(drainPoll, end.Sub(w.clock.Now()))); err != nil {
			return err
		}
	}
	left := false
	l.place.stopAll()
	if err := w.runUntilIdle(); err != nil {
		return err
	}
	l.node.Leave(func(error) { left = true })
	if _, err := w.until(within, func() bool { return left }); err != nil {
		return err
	}
	b := w.ended(m, fmt.Sprintf("it has left %v after the beginning", w.since(w.clock.Now())))
	_ = b.Close(context.Background())
	return nil
}

// drainPoll is how often a node that leaves is asked whether it has anything left.
const drainPoll = 50 * time.Millisecond

// region asks the region of a kind, which answers at once.
func (w *world) region(p *place, kind string, ask func(context.Context, host.Ref) (shard.State, error)) (x shard.State, err error) {
	ref, err := p.sys.Lookup("/user/" + kind)
	if err != nil {
		return x, err
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		x, err = ask(w.ctx, ref)
	}()
	for {
		p.sys.RunUntilIdle(mostTurns)
		select {
		case <-answered:
			return x, err
		case <-w.ctx.Done():
			<-answered
			return x, context.Cause(w.ctx)
		case <-time.After(10 * time.Microsecond): // of real time: the question has not been sent yet
		}
	}
}

// usable says why nothing can be done on a node now, nil if something can.
func (w *world) usable(m *member) error {
	switch {
	case m.life == nil:
		return &stepError{what: fmt.Sprintf("the node %s does not run: %s", m.name, m.why)}
	case m.life.place.sys == nil:
		return &stepError{what: fmt.Sprintf("the node %s has not joined yet", m.name), hint: "after start, or when its lease was over, a node needs some time: let it pass by advance"}
	case !m.life.machine.Runs():
		return &stepError{what: fmt.Sprintf("the node %s stands still until %v after the beginning", m.name, w.since(m.life.paused))}
	}
	return nil
}

// stand goes to the place that a step is about.
func (w *world) stand(s *step) error {
	if w.cluster == nil || s.verb.node() {
		return nil
	}
	name := s.text("on")
	if w.pinned = name != ""; w.pinned {
		if s.verb.looksBack() {
			return nil
		}
		m := w.cluster.of(name)
		if err := w.usable(m); err != nil {
			return err
		}
		w.place = m.life.place
		return nil
	}
	all := w.cluster.running()
	if len(all) == 0 {
		if s.verb.looksBack() || s.verb.name == "advance" || s.verb.name == "expect-request" {
			return nil
		}
		return &stepError{what: "no node runs", hint: "let time pass by advance, or start one"}
	}
	w.place = all[0]
	switch s.verb.name {
	case "crash", "stop", "restart", "pause", "unpause", "expect-state":
		path := pathOf(s.object())
		if i := slices.IndexFunc(all, func(p *place) bool { _, err := p.sys.Lookup(path); return err == nil }); i >= 0 {
			w.place = all[i]
		}
	}
	return nil
}

// stillStands is stand for the next message of a step: its node may have ended since the first one.
func (w *world) stillStands(s *step) error {
	if w.cluster == nil {
		return nil
	}
	return w.stand(s)
}

// lookup finds an actor: here, or on another node.
func (w *world) lookup(path string) (host.Ref, error) {
	ref, err := w.sys.Lookup(path)
	if err != nil && w.cluster != nil && !w.pinned {
		for _, p := range w.cluster.running() {
			if there, wrong := p.sys.Lookup(path); wrong == nil {
				return there, nil
			}
		}
	}
	return ref, err
}

// of is the place of an actor.
func (w *world) of(ref host.Ref) *place {
	if w.cluster != nil {
		for _, p := range w.cluster.booted() {
			if p.life.self.Number == ref.UID().Node() {
				return p
			}
		}
	}
	return w.place
}

// noteAt is note about a place.
func (w *world) noteAt(p *place, format string, args ...any) { w.noteOf(p.name, format, args...) }

// noteOf is note about a node; empty: all of them.
func (w *world) noteOf(node, format string, args ...any) {
	if w.quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if w.cluster != nil {
		if node == "" {
			node = "all"
		}
		text = of(node, text)
	}
	w.history.note(w.clock.Now(), text)
	if w.simulated != nil {
		w.simulated.run.Note("%s", text)
	}
}

// note adds a line of the runner's own to what has happened.
func (w *world) note(format string, args ...any) { w.noteAt(w.place, format, args...) }
