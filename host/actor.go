package host

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/gate"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/likeness"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/onlook"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// actor is an actor as the host sees it: a task of the dispatcher, a mailbox, a queue of
// system messages, a behaviour, and the parts that each have a state of their own
// (host/internal). Fields without another note are used only within Run.
type actor struct {
	// The fields that a look at all actors reads share a few cache lines: see AppendInfo.

	// Fixed when it is made.
	place  workplace.Place
	sys    *System
	parent *actor // nil for the guardians
	identity

	// For any goroutine.
	account      account.Account // to read
	life         life.Machine    // read only
	life.Present                 // to read
	killing      atomic.Bool     // an alarm is set that kills the turn
	asleep       atomic.Bool     // a guest that has given its instance back; to read
	tally        look.Tally
	failed       account.Failed
	box          box.Box
	sysq         sysmail.Queue
	gate         gate.Gate // its Policy
	alarms       alarm.Board
	replies      atomic.Int32 // handles that were not used yet
	throughput   int32        // fixed: messages before others get their turn; below 0: with a deadline
	counted      look.Counted // in a census
	due          atomic.Int64 // when the delay ends, ns since 1970; 0: there is none
	tapped       look.Taps
	last         atomic.Pointer[life.LastTurns] // below it; nil: it does not wait for its children's end
	renewals     int32                          // that its supervisor has not dealt with; within Run
	timedNext    uint32                         // the turn that is timed next, in the low bits of turns: see timedTurn

	// Fixed when it is made, except for args and rules, which a renewal changes between two incarnations, and a start. Args are only
	// read within Run.
	alike  *likeness.Last[rules] // of the children; in the family's lock
	args   []byte
	tree   *tree
	pool   *account.Pool         // of it and all below it, or of an ancestor
	member family.Member[*actor] // of the parent's family

	behaviour Behaviour
	inst      *instance.Holder // a guest's, whose turns can be ended from outside; nil: it is none
	ctx       Context
	super     supervisor.Supervisor[*actor]
	work      work.Work
	restart   *restarting
	turns     uint64
	orders    uint64       // of the supervisor, carried out
	cause     *abi.Failure // it waits for a decision about
	reason    string       // why it stops
	crash     *CrashedMail
	taken     *asks.Taken // bound questions; nil: none
	keeping   *keeping    // nil: it has handed nothing on
	kept      *life.Kept  // nil: the parent is no keeper
	ended     life.Ending // how it came to wait, or to stop
	surplus   bool        // a guest that has an instance beyond the bound
	crowded   bool        // the start was refused because there is no room
	withdrawn bool        // the turn that spawned it has failed
	durable   bool        // a recorder is told of it
	looks     uint8       // as System.looks, of this actor alone
	endings   bool        // runs end with something to do: kept, or surplus
	dice      secret.Dice
	sealed    *sealed // nil: none of its turns was recorded yet, and its mailbox is not
}

// identity is what an actor is called and what it was made as. It is fixed when the actor is made, except for rules.
type identity struct {
	uid      abi.Ref
	above    abi.Ref // its parent; 0: it is a guardian
	path     string  // with scheme and system
	props    *Props  // that it was made with, args apart
	rules    atomic.Pointer[rules]
	elements []string // of the path, without the system
}

// Name is the last element of the path.
func (i *identity) Name() string { return i.path[strings.LastIndexByte(i.path, '/')+1:] }

// Type is the type that the actor's props state.
func (i *identity) Type() string { return i.props.typ }

// Lifetime says after which kinds of end the actor is restarted.
func (i *identity) Lifetime() supervision.Lifetime { return i.rules.Load().life }

// Significant reports whether its end counts for its supervisor's.
func (i *identity) Significant() bool { return i.rules.Load().significant }

func (i *identity) ref() Ref { return newRef(i.uid, i.path) }

var nullPayload = message.Null

func uidOf(a *actor) abi.Ref { return a.uid }

// kids is the children in their order, including those that are stopping.
func (a *actor) kids() []*actor {
	if a == a.sys.user && away(a.sys).ReturnAll() {
		dormant.InOrder(away(a.sys), &a.super.Family, uidOf)
	}
	return a.super.Family.Children()
}

// Clock implements timers.Owner. Functions that it runs must not block.
func (a *actor) Clock() clock.Clock {
	if w := a.sys.wheels[uint64(a.uid)%uint64(len(a.sys.wheels))]; w != nil {
		return w
	}
	return a.sys.cfg.Clock
}

// Alarms implements timers.Owner.
func (a *actor) Alarms() *alarm.Board { return &a.alarms }

// Account implements work.Owner.
func (a *actor) Account() *account.Account { return &a.account }

// Limits implements work.Owner.
func (a *actor) Limits() *Limits { return &a.rules.Load().limits }

// Now is the system's clock.
func (a *actor) Now() time.Time { return a.sys.cfg.Clock.Now() }

// TurnTime implements timers.Owner: the time in the header of a guest's turn, so that what the turn asks for is due
// at times that follow from the turn. An actor in Go has no header: there it is the present.
func (a *actor) TurnTime() time.Time {
	if g, ok := a.behaviour.(*guest); ok {
		return time.Unix(0, int64(g.turnAt))
	}
	return a.Now()
}

// enter is the context of a call of the behaviour; leave ends it.
func (a *actor) enter(scr *scratch, e *mailbox.Envelope) *Context {
	a.ctx.scr, a.ctx.env = scr, e
	return &a.ctx
}

func (a *actor) leave() { a.ctx.scr, a.ctx.env, a.ctx.cause = nil, nil, nil }

// scratch is memory that a worker keeps between turns, so that turns allocate nothing.
type scratch struct {
	w       *dispatch.Worker
	cache   mailbox.Cache
	cmds    []abi.Command
	ends    []int  // of the turns in cmds
	now     int64  // the last look at the clock
	same    int    // turns that may still share it
	read    int64  // now, if that is of the machine's clock; else 0
	skip    uint64 // turns until the next sample of the flow
	blocks  uint32 // of the worker, then
	batch   []*mailbox.Envelope
	start   []byte // the payload of a start envelope
	entry   sandbox.Entry
	anchor  sandbox.Anchor // the entry's
	res     sandbox.Result
	effects []effect             // of the native turn that runs
	changes []change             // of the actor itself, among the effects
	waits   bool                 // what follows the turn waits for its recorder on the worker
	patient bool                 // a recorded turn is repeated: it has no deadline
	seen    turn.Turn            // for observers, where there is no recorder
	onlook  onlook.Entry         // for onlookers of a guest
	one     [1]*mailbox.Envelope // its mail
	parent  parentIn             // the running actor as its children's supervisor
	report  supervisor.Report
	trace   trail.Trail

	codec    message.Stock
	attached *mailbox.Attached // to the messages of the guest's turn that is carried out
	from     abi.Ref           // the sender of its message
	after    uint64            // of the turns of a durable actor, see turn.Turn; 0: nothing waits
	afterAt  int64             // the time of that turn
	handled  record.Handled    // see commitOne
	crowded  crowded           // who was told so last
	heads    []byte            // see stated
	lane     *recorder.Lane    // see laneOf
	origin   recorder.Origin   // of the command that is carried out; 0: it is not recorded
}

func scratchOf(w *dispatch.Worker) *scratch {
	if s, ok := w.Local.(*scratch); ok {
		return s
	}
	s := &scratch{w: w}
	s.entry.Anchor = &s.anchor
	w.Local = s
	return s
}

// worker is nil outside workers.
func (s *scratch) worker() *dispatch.Worker {
	if s == nil {
		return nil
	}
	return s.w
}

// codecs is nil outside workers.
func (s *scratch) codecs() *message.Stock {
	if s == nil {
		return nil
	}
	return &s.codec
}

// newEnvelope comes from the worker's stock if there is one.
func (s *scratch) newEnvelope() *mailbox.Envelope {
	if s == nil {
		return mailbox.New()
	}
	return s.cache.New()
}

// keepsEvents reports whether the actor's turns may store events.
func keepsEvents(a *actor) bool { return a.props.events }
