package host

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/keyed"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// guest is the behaviour of an actor that runs in an instance of an image.
type guest struct {
	actor  *actor
	module *Module
	image  *sandbox.Image // of the present incarnation

	// Only the actor's own run uses the instance. Killing takes the lock, and so does giving it back:
	// so no kill reaches an instance that belongs to another actor by then.
	mu   sync.Mutex
	inst atomic.Pointer[sandbox.Instance]

	node   residency.Node
	asleep *sandbox.Snapshot // instead of an instance
	failed bool              // the sleeping state is the one after a failed turn

	refkey    abi.RefKey
	seed      [abi.SeedSize]byte
	spawned   uint64 // children that it has asked for
	ahead     uint64 // the same with those of turns that were read
	fuelSpent uint64 // of all its turns
	turnAt    int64  // time of the last turn
	lastTo    *actor // the receiver of its last send
	verdict   verdict
	costly    bool    // the turn being read has commands that cost more than their bytes
	searches  int     // of the turn being read, see costSearch
	forwards  int     // of the turn being carried out
	due       int64   // of the ask being carried out
	carried   int     // work since others were let run, see carry
	states    *states // for resume; nil: they are not kept
	waited    uint8   // how often it has got no instance since it had one, see tryAgain
	retry     alarm.Alarm
	start     *starting // the start that waits for an instance; nil: none does
	slim      bool      // it counts for what it has touched: see Slim
	ran       uint64    // turns, when it was last asked to be slim
	sleeps    bool      // instances of the image can be given back
	told      bool      // it is told the deadlines of questions
	silent    bool      // it has no use for a last turn
	judged    bool      // the failing turn could not pay for what depends on other actors
	box       *blackbox.Box
	crashFile string // of the last failure; empty: none
}

func newGuest(a *actor, m *Module) *guest {
	g := &guest{actor: a, module: m}
	g.node.Init(g, uint64(a.uid), &a.tree.awake)
	return g
}

// Start implements Behaviour: the start envelope, for the instance that admit has got.
func (g *guest) Start(ctx *Context, cause *abi.Failure) *abi.Failure {
	a, x := g.actor, g.inst.Load()
	if state := a.props.state; state != nil {
		if err := g.restore(ctx, state); err != nil {
			g.release()
			return asFailure(abi.FailureInit, err)
		}
		a.props.state = nil // the incarnations after it start over
		g.keepStates(ctx.scr)
		return nil
	}
	g.draw(a.Incarnation())
	g.use() // the incarnation before may have left it out of the list: it could not be put away
	if !g.image.Frozen() {
		in := *g.limits(ctx.scr, g.turnTime(ctx.scr))
		in.Seed = secretFor(a).Seed(secret.ForUnfrozen, a.uid, a.Incarnation())
		if f := x.Prepare(&in); f != nil {
			return f
		}
	}
	g.openBox(ctx.scr)
	start := abi.Start{
		Type: a.props.typ, Path: a.ref().String(), Self: a.uid, Parent: a.parentUID(), Seed: g.seed,
		RefKey: g.childKey(), Spawned: g.spawned, Incarnation: a.Incarnation(), Args: a.args,
		Services: a.services(),
	}
	if a.isKept() {
		start.Key, _ = keyed.Key(a.Name())
	}
	if cause != nil {
		start.Reason = printable.Clip(cause.Error(), maxRestartReason)
	}
	scr := ctx.scr
	scr.start = abi.AppendStart(scr.start[:0], &start)
	f := g.hook(scr, x, abi.KindStart, 0, scr.start)
	if cap(scr.start) > maxScratchStart {
		scr.start = nil
	}
	if f != nil || a.isHeld() {
		return f
	}
	g.keepStates(ctx.scr)
	return nil
}

// asFailure is err itself if it is a failure, else one of a kind.
func asFailure(kind abi.FailureKind, err error) *abi.Failure {
	var f *abi.Failure
	if errors.As(err, &f) {
		return f
	}
	return &abi.Failure{Kind: kind, Reason: err.Error()}
}

// childKey is the key of the refs of children that the guest spawns.
func (g *guest) childKey() abi.RefKey {
	if g.refkey == (abi.RefKey{}) {
		_, g.refkey = secretFor(g.actor).Guest(g.actor.uid, 0)
	}
	return g.refkey
}

// draw makes the seed of an incarnation, and with the first one also the key.
func (g *guest) draw(incarnation uint64) {
	seed, key := secretFor(g.actor).Guest(g.actor.uid, incarnation)
	if g.seed = seed; incarnation == 0 {
		g.refkey = key
	}
}

// maxScratchStart bounds what a worker keeps for start payloads, in bytes: large arguments are
// rare.
const maxScratchStart = 64 << 10

// maxRestartReason bounds what a start envelope says about the failure before it,
// in bytes, so that it fits any inbox.
const maxRestartReason = 256

// hook runs one turn that is not caused by a message.
func (g *guest) hook(scr *scratch, x *sandbox.Instance, kind abi.Kind, sender abi.Ref, payload []byte) *abi.Failure {
	e := scr.cache.New()
	e.Kind, e.Sender = kind, sender
	e.SetPayload(payload)
	scr.same = 0
	now := g.turnTime(scr)
	env := abi.Envelope{Kind: kind, Time: now, Sender: sender, Payload: e.Payload}
	if !x.Push(&env) {
		scr.cache.Free(e)
		return &abi.Failure{Kind: abi.FailureInit, Reason: "the start envelope, with the arguments, is larger than the inbox"}
	}
	scr.batch = append(scr.batch[:0], e)
	scr.entry.Killable = false
	scr.waits = kind != abi.KindStart
	_, f := g.execute(scr, x, now)
	scr.waits = false
	return f
}

// Handle implements Behaviour: it runs a batch of messages.
func (g *guest) Handle(ctx *Context, budget int) *abi.Failure {
	a, scr := g.actor, ctx.scr
	x, err := g.instance(scr)
	if err != nil {
		return g.noInstance(err)
	}
	if x.ForgetKill(); a.sysq.Waiting() { // with what the kill was about; one that comes from now on ends the turn
		return nil
	}
	scr.entry.Killable = true
	g.use()
	if !sandbox.Batching(g.image) {
		budget = 1
	}
	now := g.turnTime(scr)
	traced := a.sys.cfg.tracer != nil
	scr.batch = scr.batch[:0]
	for e := ctx.ahead; ; {
		// Cancelling what is next must still work, and a span is that of one turn.
		alone := e.Kind != abi.KindMessage || traced && trail.IsSampled(e.Headers)
		if alone && len(scr.batch) > 0 {
			break
		}
		if !g.push(scr, x, e, now) {
			if len(scr.batch) == 0 {
				a.box.Pop()
				a.dead(scr, DeadTooLarge, ErrTooLarge, e)
				ctx.taken = 1
				return nil
			}
			break
		}
		a.box.Drop(e)
		scr.batch = append(scr.batch, e)
		if alone || len(scr.batch) >= budget || a.box.Nothing() {
			break
		}
		if e = a.front(); e == nil {
			if e = a.peek(scr); e == nil {
				break
			}
		}
		if e.Flags&mark.Special != 0 && (e.Flags&mark.Control != 0 || a.unwanted(e)) {
			break // handleMessages sees to it
		}
	}
	if !traced {
		done, f := g.execute(scr, x, now)
		ctx.taken = max(done, 1)
		return f
	}
	if len(scr.batch) == 1 {
		a.beginTurn(scr, scr.batch[0])
	}
	done, f := g.execute(scr, x, now)
	a.endCall(scr, f, scr.res.Fuel)
	ctx.taken = max(done, 1)
	return f
}

// push writes an envelope into the guest's inbox.
func (g *guest) push(scr *scratch, x *sandbox.Instance, e *mailbox.Envelope, now int64) bool {
	if len(e.Headers) == 0 && e.Flags&mark.Due == 0 {
		return x.PushPlain(e.Kind, now, e.Sender, e.Correlation, e.Payload)
	}
	env := abi.Envelope{Kind: e.Kind, Time: now, Sender: e.Sender, Correlation: e.Correlation, Headers: e.Headers, Payload: e.Payload}
	if g.told {
		env.Headers = scr.stated(e)
	}
	return x.Push(&env)
}

// verdict is what a guest decides about a child.
type verdict struct {
	asked     bool // within the turn that is asked to decide
	directive supervision.Directive
}

// Decide implements Behaviour: a turn with a child_failed envelope, which the guest
// answers with the command decide.
func (g *guest) Decide(ctx *Context, child Ref, f *abi.Failure) (supervision.Directive, *abi.Failure) {
	x, err := g.instance(ctx.scr)
	if err != nil || x == nil {
		return 0, nil // the default decides
	}
	g.verdict = verdict{asked: true}
	failure := g.hook(ctx.scr, x, abi.KindChildFailed, child.UID(), abi.AppendFailure(nil, f))
	d := g.verdict.directive
	g.verdict = verdict{}
	return d, failure
}

// End implements Behaviour: the last turn of an instance that can still run, and
// the end of the instance.
func (g *guest) End(ctx *Context, end End) {
	if end.Begun && !g.silent {
		g.lastTurn(ctx.scr, end)
	}
	g.forgetStates()
	g.dropBox()
	g.forgetSleep()
	g.stopWaiting()
	x := g.inst.Load()
	if x == nil {
		return
	}
	if x.MemoryBytes() >= largeReset {
		ctx.scr.w.Yield()
	}
	if x.MemoryBytes() >= largeCopy {
		defer g.actor.copied(ctx.scr.w, g.actor.Now())
	}
	if end.Last || end.Delayed || x.Reset() != nil {
		g.release()
	} else if !g.slim {
		g.actor.account.Note(account.Memory, sandbox.Weight(g.image))
		g.widened()
	}
}

func (g *guest) lastTurn(scr *scratch, end End) {
	a := g.actor
	what, kind, payload := "stopping", abi.KindStop, nullPayload
	if !end.Last {
		what, kind, payload = "before the restart", abi.KindPreRestart, nil
	}
	top := a.doomed()
	if top != nil && top.late(a.Now()) {
		top.unheard.Add(1)
		return
	}
	x, err := g.instance(scr)
	if err != nil {
		if top != nil {
			top.unheard.Add(1)
			return
		}
		a.sys.logf(a, abi.LogError, "%s: %v", what, err)
		return
	}
	if x == nil || x.Poisoned() {
		return
	}
	if !end.Last {
		reason := ""
		if end.Cause != nil {
			reason = printable.Clip(end.Cause.Error(), maxRestartReason)
		}
		payload = message.AppendText(payload, reason)
	}
	if f := g.hook(scr, x, kind, 0, payload); f != nil {
		a.sys.logf(a, abi.LogError, "%s: %v", what, f)
	}
}

// release gives the instance back.
func (g *guest) release() {
	g.mu.Lock()
	x := g.inst.Swap(nil)
	g.mu.Unlock()
	if x != nil {
		g.actor.sys.awake.Remove(&g.node)
		g.actor.sys.awake.Narrow(&g.node)
		g.slim = false
		x.Put()
	}
	g.actor.account.Note(account.Memory, 0)
}

// awake implements interruptible.
func (g *guest) awake() bool { return g.inst.Load() != nil }

// kill implements interruptible.
func (g *guest) kill(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.inst.Load(); x != nil && g.actor.running() {
		x.Kill(reason)
		g.actor.disp.Hurry(&g.actor.task)
	}
}

// endBatch implements interruptible.
func (g *guest) endBatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.inst.Load(); x != nil {
		x.EndBatch()
	}
}

// goOn implements interruptible.
func (g *guest) goOn() {
	if x := g.inst.Load(); x != nil {
		x.Resume()
	}
}

// memoryBytes implements weighty.
func (g *guest) memoryBytes() uint64 {
	if x := g.inst.Load(); x != nil {
		return x.MemoryBytes()
	}
	return 0
}

// GuestLog implements sandbox.LogSink.
func (g *guest) GuestLog(level int, text []byte) {
	a := g.actor
	if a.sys.bus.Quiet() {
		return
	}
	e := a.event(EventLog)
	e.Level, e.Text, e.Trace = level, string(text), a.trace()
	a.sys.bus.Publish(e)
}

// freeBatch empties the worker's batch.
func (s *scratch) freeBatch() {
	for i := range s.batch { // few as a rule: clear takes longer
		s.batch[i] = nil
	}
	s.batch = s.batch[:0]
}
