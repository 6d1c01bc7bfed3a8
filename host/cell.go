package host

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// state is where an actor is in its life.
type state uint8

const (
	stateNew        state = iota // not started yet
	stateRunning                 // handles messages, unless suspended
	stateFailed                  // waits for its supervisor's decision
	stateRestarting              // waits for a delay, or for its children to stop
	stateStopping                // waits for its children to stop
	stateStopped
)

var stateNames = [...]string{"new", "running", "failed", "restarting", "stopping", "stopped"}

func (s state) String() string { return stateNames[s] }

// cell is an actor as the host sees it: one dispatcher task, a mailbox, a queue
// of system messages, and the state that only its own Run touches.
type cell struct {
	task     dispatch.Task
	sys      *System
	parent   *cell // nil for /user
	uid      abi.Ref
	path     string // with scheme and system
	elements []string
	props    Props
	args     []byte
	limits   Limits
	refkey   abi.RefKey         // see childKey
	seed     [abi.SeedSize]byte // of the present incarnation's randomness

	mbox mailbox.Mailbox
	sysq sysQueue

	// For any goroutine, under mu.
	mu       sync.Mutex
	children map[string]*cell // a name stays taken until its actor has stopped
	order    []*cell          // in the order in which they were started
	autoName uint64
	hostkey  abi.RefKey // see nextHostRef
	hostRefs uint64
	closed   bool // no more children

	// For any goroutine.
	work      atomic.Uint64 // turns so far, times two, plus one within Run
	fuel      atomic.Uint64 // spent by completed turns, until the last Run
	inst      atomic.Pointer[sandbox.Instance]
	pending   atomic.Int32  // one-shot timers, asks and delayed restarts: not idle
	used      atomic.Bool   // since somebody looked; see awake
	gate      atomic.Uint32 // supervision.Meanwhile, during a delay; else keep
	startedAt atomic.Int64
	shown     atomic.Uint32 // state, for snapshots
	life      atomic.Uint64 // incarnation, likewise

	// The owner's: whoever is within Run.
	state       state
	suspends    int // of ancestors that have failed
	incarnation uint64
	restarts    uint64
	spawned     uint64 // guest's counter of children
	turns       uint64
	burnt       uint64 // fuel
	actor       Actor
	begun       bool // the present incarnation has started
	lastTo      *cell
	watchers    map[abi.Ref]struct{}
	watching    map[abi.Ref]string // paths, as far as they are known
	timers      map[uint64]*timer
	asks        map[uint64]clock.Timer
	stash       []*mailbox.Envelope
	late        []*mailbox.Envelope // the host's own that found the mailbox full
	receive     *receiveTimer
	restart     *restarting
	culprit     *cell    // the child whose failure was escalated
	relayed     bool     // the failure is a child's
	undecided   []sysMsg // about children, until the actor goes on
	obeyed      uint64   // orders of the supervisor carried out
	cause       *abi.Failure
	stopReason  string
	caps        compiledCaps
	rnd         *rand.Rand
	group       supervision.Group // of the children
	verdict     verdict
	turnAt      int64  // time of the last turn
	keep        int    // messages kept during a delay, 0: all
	grace       *grace // after a delayed restart
	held        bool   // by the grace
	own         bool   // the end was nobody's order
	crash       *CrashedMail
	recovery    *recovery
	asleep      *sandbox.Snapshot // instead of an instance
	starved     bool              // there is no instance at the moment

	// The shard's of awake, under its lock.
	older, newer *cell
	listed       bool

	// The parent's: only its Run touches it.
	record    supervision.Child
	orders    uint64 // given to it
	suspended bool   // left so by a decision
}

type compiledCaps struct {
	send, stop []pathGlob
	spawn      []string
}

// newCell prepares an actor; it is not yet known to anybody.
func newCell(s *System, parent *cell, name string, uid abi.Ref, p Props) (*cell, error) {
	c := &cell{sys: s, parent: parent, uid: uid, props: p, limits: p.limits.withDefaults()}
	if parent == nil {
		c.path = scheme + s.cfg.name + "/" + name
		c.elements = []string{name}
	} else {
		c.path = parent.path + "/" + name
		c.elements = append(append(make([]string, 0, len(parent.elements)+1), parent.elements...), name)
	}
	if p.args != nil {
		args, err := Encode(p.args)
		if err != nil {
			return nil, err
		}
		c.args = args
	} else {
		c.args = []byte{0xf6}
	}
	c.caps = compiledCaps{send: compileGlobs(p.caps.Send), stop: compileGlobs(p.caps.Stop), spawn: p.caps.Spawn}
	c.mbox.Init(mailbox.Limits{Messages: c.limits.Mailbox, Bytes: c.limits.MailboxBytes})
	c.task.Init(c)
	return c, nil
}

// name is the last element of the path.
func (c *cell) name() string { return c.elements[len(c.elements)-1] }

func (c *cell) ref() Ref {
	if c == nil {
		return Ref{}
	}
	return Ref{c.uid, c.path}
}

// random is the source of the decisions about children.
func (c *cell) random() *rand.Rand {
	if c.rnd == nil {
		v := c.sys.secret.derive(forJitter, c.uid, 0)
		c.rnd = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(v[:8]), binary.LittleEndian.Uint64(v[8:16])))
	}
	return c.rnd
}

func (c *cell) setState(s state) {
	c.state = s
	c.shown.Store(uint32(s))
}

// Run does one spell of work: system messages first and in between, then up to
// the throughput of turns.
func (c *cell) Run(w *dispatch.Worker) (more bool) {
	scr := scratchOf(w)
	c.work.Store(c.turns<<1 | 1)
	c.handleSystem(scr)
	for budget := c.sys.cfg.throughput; budget > 0 && c.receptive(); {
		n := c.handleMessages(scr, budget)
		if n == 0 {
			break
		}
		budget -= n
		c.handleSystem(scr)
	}
	if c.keep > 0 {
		c.trim()
	}
	more = c.sysq.n.Load() > 0 || c.receptive() && (!c.mbox.Empty() || len(c.late) > 0)
	c.work.Store(c.turns << 1)
	return more
}

// running reports whether the cell is within Run. Any goroutine may ask.
func (c *cell) running() bool { return c.work.Load()&1 != 0 }

// turnCount is the number of turns until the last Run. Any goroutine may ask.
func (c *cell) turnCount() uint64 { return c.work.Load() >> 1 }

// receptive reports whether user messages may be handled now.
func (c *cell) receptive() bool {
	return c.state == stateRunning && c.suspends == 0 && !c.held && !c.starved
}

// handleMessages handles one message, or a batch, and returns how many were
// taken; 0 means that none is waiting.
func (c *cell) handleMessages(scr *scratch, budget int) int {
	for len(c.late) > 0 && c.mbox.Push(c.late[0]) == nil {
		c.late = c.late[1:]
	}
	e := c.peek(scr)
	if e == nil {
		return 0
	}
	if e.Flags&flagControl != 0 {
		c.mbox.Pop()
		c.control(scr, e)
		return 1
	}
	if c.receive != nil {
		c.receive.touch(c, e)
	}
	if c.props.image != nil {
		return c.guestTurns(scr, budget)
	}
	c.mbox.Pop()
	c.nativeTurn(scr, e)
	return 1
}

// control handles an envelope that is not for the actor itself.
func (c *cell) control(scr *scratch, e *mailbox.Envelope) {
	flags := e.Flags
	if flags&flagIdentify != 0 {
		c.sys.identified(scr, c.uid, e)
	}
	scr.cache.Free(e)
	switch {
	case flags&flagPoison != 0:
		c.quit(scr, "stopped")
	case flags&flagKill != 0:
		c.fail(scr, &abi.Failure{Kind: abi.FailureKilled, Reason: "killed", Turn: c.turns})
	}
}

// peek is the next message that still counts; those that were taken back
// meanwhile (unwatched, cancelled, answered too late) are dropped.
func (c *cell) peek(scr *scratch) *mailbox.Envelope {
	for {
		e := c.mbox.Peek()
		if e == nil {
			return nil
		}
		keep := true
		if v, ok := e.Value.(settled); ok {
			if v.lasting || v.incarnation == c.incarnation {
				return e
			}
			c.mbox.Pop()
			scr.cache.Free(e)
			continue
		}
		switch e.Kind {
		case abi.KindTerminated:
			_, keep = c.watching[e.Sender]
		case abi.KindTimer:
			t := c.timers[e.Correlation]
			keep = t != nil && e.Value == any(t)
		case abi.KindAskTimeout:
			_, keep = c.asks[e.Correlation]
		case abi.KindReply, abi.KindReplyError:
			if e.Correlation != 0 {
				if _, keep = c.asks[e.Correlation]; !keep {
					c.sys.deadLetter(DeadLate, c.uid, c.path, e)
				}
			}
		}
		if keep {
			return e
		}
		c.mbox.Pop()
		scr.cache.Free(e)
	}
}

// consume settles the book-keeping of a message that is being handled.
func (c *cell) consume(e *mailbox.Envelope) {
	if _, done := e.Value.(settled); done {
		return
	}
	switch e.Kind {
	case abi.KindTerminated:
		delete(c.watching, e.Sender)
	case abi.KindTimer:
		c.timerDelivered(e.Correlation)
	case abi.KindAskTimeout:
		c.dropAsk(e.Correlation)
	case abi.KindReply, abi.KindReplyError:
		c.dropAsk(e.Correlation)
	}
}

// freshName is a name for a child that was given none. mu is held.
func (c *cell) freshName() string {
	name := "$" + strconv.FormatUint(c.autoName, 36)
	c.autoName++
	return name
}

// spawn makes a child and starts it. Any goroutine may call it; scr is nil outside
// workers.
func (c *cell) spawn(scr *scratch, name string, p Props, uid abi.Ref) (*cell, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if name != "" && !abi.ValidName([]byte(name)) {
		return nil, ErrBadName
	}
	c.mu.Lock()
	if err := c.mayAdopt(name); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if name == "" {
		name = c.freshName()
	}
	child, err := newCell(c.sys, c, name, uid, p)
	if err == nil && scr != nil { // within the parent's own Run, which may be a start while ancestors are suspended
		child.suspends = c.weight()
	}
	if err == nil && !c.sys.table.put(uid, child) {
		err = ErrNameTaken
	}
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if c.children == nil {
		c.children = map[string]*cell{}
	}
	c.children[name] = child
	c.order = append(c.order, child)
	c.mu.Unlock()
	child.post(scr, sysMsg{kind: sysStart})
	return child, nil
}

// mayAdopt reports why a child of this name cannot be. mu is held.
func (c *cell) mayAdopt(name string) error {
	switch {
	case c.closed:
		return ErrStopped
	case len(c.children) >= c.limits.Children:
		return ErrTooManyChildren
	case name != "" && c.children[name] != nil:
		return ErrNameTaken
	}
	return nil
}

// child finds a child by its name.
func (c *cell) child(name string) *cell {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.children[name]
}

// kids is the children in their order, stopping ones included.
func (c *cell) kids() []*cell {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*cell(nil), c.order...)
}

// disown removes a child that has stopped and returns how many are left.
func (c *cell) disown(child *cell) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := child.name()
	if c.children[name] == child {
		delete(c.children, name)
		for i, x := range c.order {
			if x == child {
				c.order = append(c.order[:i], c.order[i+1:]...)
				break
			}
		}
	}
	return len(c.children)
}

func (c *cell) event(k EventKind) Event {
	return Event{Kind: k, Time: c.sys.cfg.clock.Now(), Ref: c.ref(), Type: c.props.typ, Incarnation: c.incarnation}
}

// scratch is what a worker keeps between turns, so that turns allocate nothing.
type scratch struct {
	w     *dispatch.Worker
	cache mailbox.Cache
	env   abi.Envelope
	cmds  []abi.Command
	now   int64  // the last look at the clock
	same  int    // turns that may still share it
	waits uint32 // of the worker, then
	batch []*mailbox.Envelope
	entry sandbox.Entry
	res   sandbox.Result
}

func scratchOf(w *dispatch.Worker) *scratch {
	if s, ok := w.Local.(*scratch); ok {
		return s
	}
	s := &scratch{w: w}
	w.Local = s
	return s
}
