package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/keyed"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Start implements Behaviour: the start envelope, for the instance that admit has got.
func (g *guest) Start(ctx *Context, cause *abi.Failure) *abi.Failure {
	a, x := g.actor, g.inst.Load()
	if state := a.rules.Load().rare.Get().State; state != nil {
		if err := g.restore(ctx, *state); err != nil {
			g.inst.Release()
			return errs.AsFailure(abi.FailureInit, err)
		}
		changeRules(a, func(p *Props) { p.rare = p.rare.With(func(r *seldom.Props) { r.State = nil }) }) // the incarnations after it start over
		g.inst.KeepIf(resumable(a), ctx.scr.w)
		return nil
	}
	g.keys.Draw(secretFor(g.actor), g.actor.uid, a.Incarnation())
	g.inst.Use() // the incarnation before may have left it out of the list: it could not be put away
	if !g.inst.Image.Frozen() {
		in := *g.limits(ctx.scr, g.turnAt.next(ctx.scr, &g.actor.sys.time))
		in.Seed = secretFor(a).Seed(secret.ForUnfrozen, a.uid, a.Incarnation())
		if f := x.Prepare(&in); f != nil {
			return f
		}
	}
	beginBox(g, ctx.scr)
	beginTape(g, ctx.scr)
	start := startOf(a, g)
	if cause != nil {
		start.Reason = printable.Clip(cause.Error(), message.MaxRestartReason)
	}
	scr := ctx.scr
	scr.start = abi.AppendStart(scr.start[:0], &start)
	f := g.hook(scr, x, abi.KindStart, 0, scr.start)
	if cap(scr.start) > maxScratchStart {
		scr.start = nil
	}
	if f != nil || a.sealed.isHeld() {
		return f
	}
	g.inst.KeepIf(resumable(a), ctx.scr.w)
	return nil
}

// startOf is what a start envelope of the present incarnation says.
func startOf(a *actor, g *guest) abi.Start {
	s := abi.Start{
		Type: a.props.typ, Path: a.ref().String(), Self: a.uid, Parent: a.above, Seed: g.keys.Seed, RefKey: g.keys.Child(secretFor(g.actor), g.actor.uid), Spawned: g.spawned,
		Incarnation: a.Incarnation(), Args: a.args, Services: a.services(),
	}
	if a.kept != nil {
		s.Key, _ = keyed.Key(a.Name())
	}
	return s
}

// maxScratchStart bounds what a worker keeps for start payloads, in bytes: large arguments are
// rare.
const maxScratchStart = 64 << 10

// hook runs one turn that is not caused by a message.
func (g *guest) hook(scr *scratch, x *sandbox.Instance, kind abi.Kind, sender abi.Ref, payload []byte) *abi.Failure {
	e := scr.cache.New()
	e.Kind, e.Sender = kind, sender
	e.SetPayload(payload)
	scr.same = 0
	now := g.turnAt.next(scr, &g.actor.sys.time)
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
	x, err := g.inst.Get(scr.w)
	if err != nil {
		return g.inst.Lacks(err)
	}
	if x.ForgetKill(); a.sysq.Waiting() { // with what the kill was about; one that comes from now on ends the turn
		return nil
	}
	scr.entry.Killable = true
	g.inst.Use()
	if !sandbox.Batching(g.inst.Image) {
		budget = 1
	}
	now := g.turnAt.next(scr, &g.actor.sys.time)
	traced := a.sys.cfg.Tracer != nil
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
		if e = a.box.Front(); e == nil {
			if e = a.peek(scr); e == nil {
				break
			}
		}
		if e.Flags&mark.Special != 0 && (e.Flags&mark.Control != 0 || a.sys.outside.GaveUp(e, a.Incarnation())) {
			break // handleMessages sees to it
		}
	}
	if !traced {
		done, f := g.execute(scr, x, now)
		ctx.taken = max(done, 1)
		return f
	}
	if len(scr.batch) == 1 {
		a.sys.tracing.BeginTurn(&scr.trace, a, scr.batch[0])
	}
	done, f := g.execute(scr, x, now)
	a.sys.tracing.EndCall(&scr.trace, a, f, scr.res.Fuel)
	ctx.taken = max(done, 1)
	return f
}

// Decide implements Behaviour: a turn with a child_failed envelope, which the guest
// answers with the command decide.
func (g *guest) Decide(ctx *Context, child Ref, f *abi.Failure) (supervision.Directive, *abi.Failure) {
	x, err := g.inst.Get(ctx.scr.w)
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
	if end.Last {
		defer sandbox.Unuse(g.inst.Image)
		disown(g)
	}
	g.inst.ForgetStates()
	dropBox(g)
	endTape(g, ctx.scr, "")
	dropTrial(g, "it has been restarted, or has ended")
	g.actor.life.LetGo(life.Swapping)
	g.inst.ForgetSleep()
	g.start = nil
	g.inst.StopWaiting()
	x := g.inst.Load()
	if x == nil {
		return
	}
	if x.MemoryBytes() >= instance.LargeReset {
		ctx.scr.w.Yield()
	}
	if x.MemoryBytes() >= instance.LargeCopy {
		defer g.inst.Copied(ctx.scr.w, g.actor.Now())
	}
	if end.Last || end.Delayed || x.Reset() != nil {
		g.inst.Release()
	} else if !g.inst.Slimmed() {
		g.actor.account.Note(account.Memory, sandbox.Weight(g.inst.Image))
		g.inst.Widened()
	}
}

func (g *guest) lastTurn(scr *scratch, end End) {
	a := g.actor
	if p := a.sys.repeats.Load().of(a); p != nil && !p.expects(a) {
		return // its instance could not run any more
	}
	what, kind, payload := "stopping", abi.KindStop, nullPayload
	if !end.Last {
		what, kind, payload = "before the restart", abi.KindPreRestart, nil
	}
	top := a.doomed()
	if top != nil && top.last.Load().Late(a.Now()) {
		top.last.Load().Miss()
		return
	}
	x, err := g.inst.Get(scr.w)
	if err != nil {
		if top != nil {
			top.last.Load().Miss()
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
			reason = printable.Clip(end.Cause.Error(), message.MaxRestartReason)
		}
		payload = message.AppendText(payload, reason)
	}
	if f := g.hook(scr, x, kind, 0, payload); f != nil {
		a.sys.logf(a, abi.LogError, "%s: %v", what, f)
	}
}

// GuestLog implements sandbox.LogSink.
func (g *guest) GuestLog(level int, text []byte) {
	if a := g.actor; !a.sys.seen.Quiet() {
		a.sys.seen.Said(a, level, string(text), a.ctx.scr.placed())
	}
}

// freeBatch empties the worker's batch.
func (s *scratch) freeBatch() {
	for i := len(s.batch) - 1; i >= 0; i-- { // few as a rule: clear takes longer, and so does a loop that the compiler takes for one
		s.batch[i] = nil
	}
	s.batch = s.batch[:0]
}
