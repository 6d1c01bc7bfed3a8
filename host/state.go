package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/directory"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/extensions"
	"github.com/wasmactors/wasmactors/host/internal/gate"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/lives"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/host/internal/price"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/recordbox"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/host/internal/rest"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// What a system, its actors and their guests consist of. These types refer to each other, so they stand together, below what
// works on them. Above them the files are in layers: what delivers messages and signals (deliver, signal, outside), what an
// actor does about them, what guests do, and the methods of System and Context. Calls go down; what has to go up is called
// through an interface, as the behaviour is, or from a worker.

// System is a tree of actors. All methods except Step and RunUntilIdle are for any
// goroutine.
type System struct {
	cfg        settings
	looks      look.Word               // who wants to hear of turns; see looks.go
	repeats    atomic.Pointer[repeats] // nil: the system is not being rebuilt
	secret     *Secret
	durable    *durability // nil: there is no store
	told       recordbox.Told
	time       clock.Nanos
	turnTimes  look.TurnTimesOf
	disp       *dispatch.Dispatcher
	table      directory.Table[actor] // looked into by deliver, signal and here only
	nodes      paths.Tree[*actor]
	outside    outside.Table
	far        network.Outlet // to other nodes
	recent     stray.Recents
	strangers  stray.Guesses // of actors without a name of their own
	lookouts   lookouts.Table[*actor]
	wheels     [4]*clock.Wheel // of the actors' timers, by their refs; nil: the clock is a virtual one
	seen       look.Observer   // audience: what the engine knows of it
	audience   look.Audience
	tracing    trail.Tracing
	bound      asks.Binding
	awake      *residency.List
	room       instance.Room               // awake, for guests
	tenant     func(*actor) instance.Owner // a guest's actor as the holder of its instance sees it
	totals     look.Totals
	pool       *account.Pool
	places     workplace.Pools // where actors run: disp, pools and threads
	asleep     atomic.Int64    // guests without an instance
	logging    sync.WaitGroup
	ending     atomic.Bool // it was asked to, or must
	root       string      // what all paths begin with
	temp       string      // path of receivers that are no actors
	extensions extensions.Set

	user, services *actor // the guardians /user and /system

	mu      sync.Mutex
	cause   error // why it terminated, unless it was asked to
	closing []func(context.Context)
	done    chan struct{}
}

// durability is what a system with a store has besides its recorder.
type durability struct {
	fresh   *Secret            // of actors that begin anew in each process
	rest    *rest.Rest[*actor] // of durable actors, and of guardians
	leaving atomic.Int64       // messages and signals that wait for their turn to be durable

	checkpoints sync.Mutex
	unsaved     map[abi.Ref]bool // actors that have failed because their state could not be saved
	spawning    sync.RWMutex     // read: a durable actor is being made from outside

	lives *lives.Table                   // of actors below a guardian
	away  atomic.Pointer[dormant.Actors] // that have not returned
}

// away are the durable actors that have not returned; nil: there are none.
func away(s *System) *dormant.Actors {
	if s.durable == nil {
		return nil
	}
	return s.durable.away.Load()
}

// putOff is an actor whose last signal is left for the system, its record, and what comes after that.
type putOff struct {
	a     *actor
	r     *record.Record
	x     decided
	ahead rebuild.Ahead
}

// decided is what a repetition knows of the decision about the signal that its actor deals with.
type decided struct {
	d     *record.Decision // nil: it is in no record
	asked bool             // the actor has decided itself, in a turn
	last  bool             // nothing that came after the signal is known to the actor
}

// repeats is a system that is being rebuilt.
type repeats struct {
	sys   *System
	props func(*record.Life) (any, error)
	at    *rebuild.PastClock // of the system
	turns *rebuild.PastClock // of turns

	actor  atomic.Pointer[actor] // that repeats something
	do     func(scr *scratch)
	done   chan struct{}
	expect []*record.Record // turns that come
	err    error

	held  map[abi.Ref][]sysmail.Msg // posted, and not yet dealt with
	early map[abi.Ref][]*record.Record
	put   []putOff

	states   map[abi.Ref]swap.Partial // snapshots of which some records are still to come
	renewals map[abi.Ref]*record.Life // what the next restart of an actor changes of it
	left     map[abi.Ref]bool         // actors that are not rebuilt
	late     []*actor                 // whose last turn is in no record
	trials   saved.Trials             // of actors that can go back to their old code

	decided decided          // about the signal that is repeated
	owed    []*record.Record // decisions of the repetition itself
	resumes map[abi.Ref]bool // actors that go on after a failure

	fuel, memory uint64                    // what the turn that is repeated could spend; 0: what the actor's limits say
	known        map[abi.Ref]bool          // actors whose limits are in the records
	then         map[abi.Ref]*record.Rules // of actors whose rules are, too: they inherit nothing

	ahead    rebuild.Ahead      // of the record that is repeated
	hostRefs map[abi.Ref]uint64 // how many refs of children an actor has given that are in records
	renewed  map[abi.Ref]int    // how many renewals of an actor are repeated
	older    rebuild.Older      // of lives without recorded rules
	removed  map[abi.Ref]*actor // children that the props of their parent do not name now: their parents
	unborn   map[abi.Ref]bool   // children whose beginning is in a later record
	unbegun  []unbegun          // children that are in no record
	unnoted  []*actor           // children whose beginning is in no record, and which were started

	// bornOf is propsOfChild, of a child that has begun.
	bornOf func(parent *actor, name, typ string, ref abi.Ref, code []byte) (Props, error)

	over atomic.Bool // all is repeated, and what is spawned is new

	limits   sync.Mutex // of known and then, while actors return
	released bool

	flights rebuild.Flights[*actor]
}

// unbegun is a child that is in no record, and begins when all is repeated: what was decided meanwhile was not about it.
type unbegun struct {
	of   *actor
	name string
	make *Props
	ref  abi.Ref
}

// tree is what the actors below one child of /user have in common.
type tree struct {
	pool    account.Pool   // of the bytes that are held for them, unless no bound is set
	turns   dispatch.Group // who has had how much of the processors
	awake   residency.Tree // its guests
	stops   atomic.Int32   // actors that wait for their children to end
	guesses *stray.Guesses // shared by all trees whose names the host has made up: else each question of AskOnce had a burst of its own
}

// Context is what an actor in Go can do during a call of its methods. It must not be used outside them, nor by other
// goroutines; use [Context.Later] for longer work.
//
// Sends, answers, asks, forwards and stops, the actor's own included, take effect at the end of the turn, in order. If the
// turn fails, none do. The same holds for children, which start first, and for watches, timers and the stash.
type Context struct {
	actor *actor
	env   *mailbox.Envelope // of the current message
	ahead *mailbox.Envelope // the message that Handle is called for; still in the mailbox
	scr   *scratch          // of the worker that makes the call; nil when it is over

	cause   *abi.Failure // of the restart, within Started
	taken   int          // messages, by Handle
	most    int          // that it may take
	stashed bool         // the current one
	passed  bool         // the current message itself is among the effects
	passTo  string       // for this child of its receiver; empty: for the receiver
}

// effect is what leaves an actor in Go at the end of its turn.
type effect = turn.Effect

// change is one of these.
type change struct {
	kind   changeKind
	ref    abi.Ref
	name   string // or a path
	key    uint64
	delay  time.Duration
	period time.Duration
	pace   timers.Pace
	more   int       // timers: 1 if the key had none, -1 if it has none any more
	at     time.Time // of the call
	data   []byte
	child  *actor
	ask    *asks.Ask
	env    *mailbox.Envelope
}

type changeKind uint8

// restarting is a restart under way. The next incarnation begins when nothing of this
// is left to wait for.
type restarting struct {
	cause *abi.Failure
	alarm alarm.Alarm
	delay bool // there was a delay
	due   bool // the delay has passed
	keep  bool // the children stay
	hold  bool // the supervisor will say when
	told  bool // it was told that the incarnation has ended

	leave map[*actor]bool // of a renewal: the children that stop; the others stay, whatever keep says
}

// after ends the delay in time.
func (r *restarting) after(o gate.Owner, d time.Duration) {
	r.alarm = o.Alarms().After(o.Clock(), d, func() { o.Post(sysmail.Msg{Kind: sysmail.RestartDue, Own: sysmail.Own{Due: r}}) })
}

// starting is a start: what begin was called with.
type starting struct {
	cause *abi.Failure
	held  bool
}

// keeping is state that only keepers have.
type keeping struct {
	to     abi.Ref // the child that the current message is handed to, and its name
	toName string
}

// isHeld reports whether the turn waits for its recorder. Only the actor's own run may ask; s may be nil.
func (s *sealed) isHeld() bool { return s != nil && s.held }

// guest is the behaviour of an actor that runs in an instance of an image.
type guest struct {
	actor  *actor
	module *Module
	inst   instance.Holder

	keys      secret.Keys
	spawned   uint64 // children that it has asked for
	ahead     uint64 // the same with those of turns that were read
	fuelSpent uint64 // of all its turns
	turnAt    turnTime
	lastTo    *actor // the receiver of its last send
	verdict   verdict
	costly    bool  // the turn being read has commands that cost more than their bytes
	forwards  int   // of the turn being carried out
	due       int64 // of the ask being carried out
	pace      price.Pace
	start     *starting // the start that waits for an instance; nil: none does
	told      bool      // it is told the deadlines of questions
	silent    bool      // it has no use for a last turn
	judged    bool      // the failing turn could not pay for what depends on other actors
	box       blackbox.Keeper
	track     *recorder.Track // nil: it is not recorded
	trial     *swap.Trial     // of code that is new to it; nil: none is under way
	pin       pin
	own       *sandbox.Image // of a durable actor: what its next incarnation begins with; nil: what its module has
	ownUsed   bool           // it is in use besides the one that runs
}

// pin is the image of an actor that differs from its module's. It counts until the module has another one.
type pin struct{ of, image *sandbox.Image }

// verdict is what a guest decides about a child.
type verdict struct {
	asked     bool // within the turn that is asked to decide
	directive supervision.Directive
}

// sealed is a turn with all that is needed to carry it out.
type sealed struct {
	turn turn.Turn
	wake func()         // schedules the actor
	held bool           // the recorder has not answered when it was asked
	box  *recordbox.Box // nil: its mailbox is not recorded
	sealedEntry

	batch   []*mailbox.Envelope
	cmds    []abi.Command
	ends    []int
	effects []effect
	changes []change
	one     [1]*mailbox.Envelope
	res     sandbox.Result
	trace   trail.Trail
	env     *mailbox.Envelope // of an actor in Go, as in Context
	passed  bool
	passTo  string

	start *starting // it is the turn of a start; nil: of a message
}

// sealedEntry is what a turn, or a guest's entry, has come to.
type sealedEntry struct {
	now   int64
	done  int  // turns that count
	parts bool // the commands are read again
	f     *abi.Failure
}

// recorded is an actor of a system with a recorder, as the dispatcher runs it. What was held is carried out in a
// run of its own.
type recorded struct{ *actor }

// blame marks the message that tells a resender that the turn of a message has failed; its
// correlation is that message's number.
type blame struct{}

// How long turns take is sampled: one turn of an actor in timedEvery is timed, the first one at a number that
// depends on its ref, so that actors with few turns are sampled as often. Nothing is counted for it but turns.
const timedEvery = 127

// lift says whether nothing is refused for want of room, until what it returns is called: there was room for what is in the records.
func (p *repeats) lift(on bool) (over func()) {
	before := p.sys.pool.Lifted()
	p.sys.pool.Lift(on)
	return func() { p.sys.pool.Lift(before) }
}

// oldRules reports whether it is not recorded by which rules an actor goes in what is repeated; p may be nil.
func (p *repeats) oldRules(a *actor) bool { return p != nil && p.then[a.uid] == nil }

// of is p if the actor repeats something.
func (p *repeats) of(a *actor) *repeats {
	if p == nil || p.actor.Load() != a {
		return nil
	}
	return p
}

// expects reports whether the next record that is to come about is of a turn of the actor's present incarnation.
func (p *repeats) expects(a *actor) bool {
	return len(p.expect) > 0 && p.expect[0].Actor == a.uid && p.expect[0].Entry.Incarnation == a.Incarnation()
}
