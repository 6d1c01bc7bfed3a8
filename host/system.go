// Package host is the actor system: a tree of supervised actors, some of them
// guests in WebAssembly instances, some of them Go. It is what an application
// embeds.
//
// A system is made by [New]; [Guest] and [Native] describe actors, [System.Spawn]
// starts them, [System.Tell] and [System.Ask] talk to them. What happens in the
// tree comes out of [System.Subscribe]. Messages are CBOR: any Go value that
// fxamacker/cbor can encode.
//
// docs/architecture/actors.md lists the guarantees.
package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// System is a tree of actors. All methods but Step and RunUntilIdle are for any
// goroutine.
type System struct {
	cfg    Config
	secret *Secret
	time   turnClock
	disp   *dispatch.Dispatcher
	table  uidTable
	bus    bus
	dead   deadLetters
	asks   promises
	awake  awake

	user, services *cell // the guardians /user and /system

	asleep    atomic.Int64 // guests without an instance
	crashes   atomic.Uint64
	fuelSpent atomic.Uint64 // of actors that have stopped

	mu    sync.Mutex
	cause error // why it terminated, if it was not asked to
	done  chan struct{}
}

// New starts a system. [System.Shutdown] ends it.
func New(cfg Config) (*System, error) {
	if cfg.clock == nil {
		return nil, fmt.Errorf("host: begin with NewConfig")
	}
	if !abi.ValidName([]byte(cfg.name)) {
		return nil, fmt.Errorf("host: the system's name %q: %w", cfg.name, ErrBadName)
	}
	s := &System{cfg: cfg, secret: cfg.secret, done: make(chan struct{})}
	if s.secret == nil {
		s.secret = newSecret()
	}
	s.dead.size = cfg.dead
	s.time.init(cfg.clock)
	s.awake.after, s.awake.most, s.awake.clock = cfg.idleAfter, int64(cfg.mostAwake), cfg.clock
	s.asks.key = s.secret.refKey(forAsks, 0)
	if cfg.manual {
		s.disp = dispatch.NewManual()
	} else {
		s.disp = dispatch.New(dispatch.Config{Workers: cfg.workers})
	}
	var err error
	if s.user, err = s.guardian("user", 0); err != nil {
		return nil, err
	}
	if s.services, err = s.guardian("system", 1); err != nil {
		return nil, err
	}
	return s, nil
}

// maxTopLevel bounds the children of a guardian.
const maxTopLevel = 1 << 24

func (s *System) guardian(name string, k uint64) (*cell, error) {
	p := Func(func(*Context, Message) error { return ErrUnhandled }).WithSupervision(s.cfg.guardian).WithLimits(Limits{Children: maxTopLevel})
	c, err := newCell(s, nil, name, abi.ChildRef(s.secret.refKey(forGuardians, 0), 0, k), p)
	if err != nil {
		return nil, err
	}
	s.table.put(c.uid, c)
	c.post(nil, sysMsg{kind: sysStart})
	return c, nil
}

// Name is the name of the system.
func (s *System) Name() string { return s.cfg.name }

// Clock is the system's clock.
func (s *System) Clock() Clock { return s.cfg.clock }

// Spawn starts an actor below /user; an empty name lets the system choose.
// Messages may be sent at once.
func (s *System) Spawn(name string, p Props) (Ref, error) {
	c, err := s.user.spawn(nil, name, p, s.user.nextHostRef())
	if err != nil {
		if errors.Is(err, ErrStopped) {
			err = ErrClosed
		}
		return Ref{}, err
	}
	return c.ref(), nil
}

// Tell sends a message from nobody. An error says that it was not accepted; it
// is a dead letter then, too.
func (s *System) Tell(to Ref, v any) error { return s.TellFrom(Ref{}, to, v) }

// TellFrom sends a message in the name of an actor, which will get the answer.
func (s *System) TellFrom(from, to Ref, v any) error {
	e, err := envelope(v)
	if err != nil {
		return err
	}
	e.Sender = from.uid
	return s.deliver(nil, to.uid, e)
}

// Ask sends a message and waits for the answer. It returns the context's error
// wrapped in ErrTimeout, a *ReplyError if the actor has answered with an error,
// or what Tell would return.
func (s *System) Ask(ctx context.Context, to Ref, v any) (Message, error) {
	e, err := envelope(v)
	if err != nil {
		return Message{}, err
	}
	return s.ask(ctx, to, e)
}

func (s *System) ask(ctx context.Context, to Ref, e *mailbox.Envelope) (Message, error) {
	uid, p := s.asks.add()
	defer s.asks.remove(uid)
	e.Sender, e.Correlation = uid, 1
	if err := s.deliver(nil, to.uid, e); err != nil {
		return Message{}, err
	}
	select {
	case m := <-p.c:
		if m.Kind == abi.KindReplyError {
			return m, &ReplyError{reasonOf(m.Payload)}
		}
		return m, nil
	case <-ctx.Done():
		return Message{}, fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	}
}

func reasonOf(payload []byte) string {
	r := abi.NewReader(payload)
	text := r.Text()
	if r.Done() != nil {
		return "(not a text)"
	}
	return text
}

// Stop stops an actor after its current turn: its children first, then itself.
// What waits in its mailbox becomes dead letters.
func (s *System) Stop(ref Ref) {
	if c := s.table.get(ref.uid); c != nil {
		c.stop(nil)
	}
}

// PoisonPill stops an actor when it has handled what is in its mailbox now.
func (s *System) PoisonPill(ref Ref) error { return s.control(ref, flagPoison) }

// Kill makes an actor fail when it has handled what is in its mailbox now; its
// supervisor decides.
func (s *System) Kill(ref Ref) error { return s.control(ref, flagKill) }

func (s *System) control(ref Ref, flag uint8) error {
	e := mailbox.New()
	e.Flags = flag
	return s.deliver(nil, ref.uid, e)
}

// StopGracefully sends a PoisonPill and waits until the actor has stopped, or
// stops it at once when ctx ends, and returns the context's error then.
func (s *System) StopGracefully(ctx context.Context, ref Ref) error {
	ended, err := s.Ended(ref)
	if err != nil {
		return nil // it has gone already
	}
	if err := s.PoisonPill(ref); err != nil {
		s.Stop(ref)
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.Stop(ref)
		return ctx.Err()
	}
}

// Ended returns a channel that is closed when the actor has stopped. It fails
// with ErrUnknown if it has stopped already, or never was.
func (s *System) Ended(ref Ref) (<-chan struct{}, error) {
	uid, p := s.asks.add()
	c := s.table.get(ref.uid)
	if c == nil || !c.post(nil, sysMsg{kind: sysWatch, ref: uid}) {
		s.asks.remove(uid)
		return nil, ErrUnknown
	}
	return p.closed, nil
}

// Lookup finds an actor by its path, such as /user/a/b, or by the text of its
// ref; with a uid in it, it must be that incarnation.
func (s *System) Lookup(path string) (Ref, error) {
	elements, uid, ok := splitRef(s.cfg.name, path)
	if !ok {
		return Ref{}, fmt.Errorf("%w: %q is not a path", ErrUnknown, path)
	}
	c := s.find(elements)
	if c == nil || uid != 0 && c.uid != uid {
		return Ref{}, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return c.ref(), nil
}

// find walks the tree.
func (s *System) find(elements []string) *cell {
	if len(elements) == 0 {
		return nil
	}
	var c *cell
	switch elements[0] {
	case "user":
		c = s.user
	case "system":
		c = s.services
	}
	for _, e := range elements[1:] {
		if c == nil {
			return nil
		}
		c = c.child(e)
	}
	return c
}

// refOf is the full ref of a living actor, or one without a path.
func (s *System) refOf(uid abi.Ref) Ref {
	if uid == 0 {
		return Ref{}
	}
	if c := s.table.get(uid); c != nil {
		return c.ref()
	}
	return Ref{uid: uid, path: scheme + s.cfg.name + "/temp"}
}

// Subscribe delivers the events that filter lets pass (all if it is nil), as many
// as the buffer holds; see [Subscription]. The filter is called by workers: it
// must be quick and safe for concurrent use.
func (s *System) Subscribe(buffer int, filter func(*Event) bool) *Subscription {
	return s.bus.add(buffer, filter)
}

// DeadLetters returns the last dead letters, oldest first, and how many there
// were in all.
func (s *System) DeadLetters() ([]DeadLetter, uint64) { return s.dead.snapshot() }

// Shutdown stops all actors, orderly, and waits. When ctx ends first, running
// turns are killed and its error is returned after the system has ended.
func (s *System) Shutdown(ctx context.Context) error {
	s.stopGuardian(s.user)
	err := s.await(ctx, s.done)
	if err != nil {
		s.killAll()
		<-s.done
	}
	if closing := s.disp.Close(ctx); closing != nil {
		s.killAll()
		_ = s.disp.Close(context.Background())
	}
	s.awake.end()
	s.bus.close()
	return err
}

func (s *System) stopGuardian(c *cell) {
	if c.post(nil, sysMsg{kind: sysStop, reason: "shutdown"}) && s.cfg.manual {
		s.disp.RunUntilIdle(1 << 30)
	}
}

func (s *System) await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killAll kills the turns that run.
func (s *System) killAll() {
	s.each(func(c *cell) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if x := c.inst.Load(); x != nil && c.running() {
			x.Kill("shutdown")
		}
	})
}

// Terminated is closed when all actors have stopped.
func (s *System) Terminated() <-chan struct{} { return s.done }

// Cause is the failure that has ended the system, nil if it was asked to end.
func (s *System) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// escalated ends the system: a failure has reached the top.
func (s *System) escalated(scr *scratch, guardian *cell, f *abi.Failure) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = f
	}
	s.mu.Unlock()
	guardian.post(scr, sysMsg{kind: sysStop, reason: "failed: " + f.Error()})
}

// guardianStopped goes on from /user to /system to the end.
func (s *System) guardianStopped(c *cell) {
	if c == s.user {
		s.services.post(nil, sysMsg{kind: sysStop, reason: "shutdown"})
		return
	}
	s.bus.publish(Event{Kind: EventTerminated, Time: s.cfg.clock.Now()})
	close(s.done)
}

// Step runs one actor of a manual system; false means that none has work.
func (s *System) Step() bool { return s.disp.Step() }

// RunUntilIdle runs actors of a manual system until none has work, max spells at
// the most, and returns how many it ran.
func (s *System) RunUntilIdle(max int) int { return s.disp.RunUntilIdle(max) }

// Stats are totals since the start.
type Stats struct {
	Actors      int
	Asleep      int    // idle guests that have given their instances back
	Turns       uint64 // of living actors
	Crashes     uint64
	Restarts    uint64 // of living actors
	DeadLetters uint64
	Fuel        uint64 // spent by completed turns of guests
}

// Stats takes a snapshot.
func (s *System) Stats() Stats {
	st := Stats{Actors: s.table.len(), Asleep: int(s.asleep.Load()), Crashes: s.crashes.Load(), Fuel: s.fuelSpent.Load()}
	_, st.DeadLetters = s.dead.snapshot()
	s.each(func(c *cell) { st.Turns += c.turnCount(); st.Fuel += c.fuel.Load() })
	return st
}

// each calls f for every living actor.
func (s *System) each(f func(*cell)) {
	p := s.table.slots.Load()
	if p == nil {
		return
	}
	for i := range *p {
		if c := (*p)[i].val.Load(); c != nil {
			f(c)
		}
	}
}

// logf reports something of the host's own about an actor.
func (s *System) logf(c *cell, level int, format string, args ...any) {
	if s.bus.quiet() {
		return
	}
	e := c.event(EventLog)
	e.Level, e.Text = level, fmt.Sprintf(format, args...)
	s.bus.publish(e)
}

// Node is one actor in a snapshot of the tree.
type Node struct {
	Ref         Ref
	Type        string
	State       string
	Incarnation uint64
	Asleep      bool // it has given its instance back
	Mailbox     int
	Turns       uint64
	Children    []Node
}

// Tree is a snapshot of /user and what is below it. Actors go on meanwhile.
func (s *System) Tree() Node { return s.user.node() }

func (c *cell) node() Node {
	n := Node{Ref: c.ref(), Type: c.props.typ, State: state(c.shown.Load()).String(), Incarnation: c.life.Load(), Asleep: c.props.image != nil && c.inst.Load() == nil, Mailbox: c.mbox.Len(), Turns: c.turnCount()}
	for _, k := range c.kids() {
		n.Children = append(n.Children, k.node())
	}
	return n
}

// String prints the tree, an actor a line.
func (n Node) String() string {
	var b strings.Builder
	n.print(&b, "")
	return b.String()
}

func (n Node) print(b *strings.Builder, indent string) {
	b.WriteString(indent + n.Ref.Name() + " (" + n.Type + ") " + n.State + ", " + strconv.FormatUint(n.Turns, 10) + " turns\n")
	for _, k := range n.Children {
		k.print(b, indent+"  ")
	}
}
