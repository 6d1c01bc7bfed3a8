package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// leaveTurn sends what a turn in Go has left to send; a failed turn's effects are dropped.
func (a *actor) leaveTurn(scr *scratch, failed bool) {
	if scr.trace.On {
		scr.trace.MarkEffects(scr.effects)
	}
	if len(scr.changes) > 0 {
		leaveChanges(a, scr, failed)
	}
	for i := range scr.effects {
		e := &scr.effects[i]
		if e.Kind == turn.Send && !failed {
			if err := a.sys.deliver(scr, e.To, e.Env); err != nil && err == ErrUnknown {
				a.strayed(scr, e.To)
			}
		} else {
			a.carry(scr, e, failed)
		}
		e.Env = nil
	}
	scr.effects = scr.effects[:0]
	if len(scr.changes) > 0 {
		for i := len(scr.changes) - 1; i >= 0; i-- { // few as a rule: clear takes longer
			scr.changes[i] = change{}
		}
		scr.changes = scr.changes[:0]
	}
}

// leaveChanges is what comes before anything else that the turn has led to: children start, or everything is undone.
// An actor that starts one child for each that it stops would otherwise run on with its newest child, and the stopped ones
// would pile up until its slice ends.
func leaveChanges(a *actor, scr *scratch, failed bool) {
	for i := len(scr.changes) - 1; i >= 0 && failed; i-- {
		scr.changes[i].revoke(a, scr)
	}
	for i := range scr.changes {
		if x := &scr.changes[i]; x.kind == childReserved && !failed {
			a.launch(scr, x.child)
		}
	}
}

// carry carries out anything but a message that is sent, or takes it back.
func (a *actor) carry(scr *scratch, e *effect, failed bool) {
	switch {
	case failed:
		if e.Env != nil && e.Env != a.ctx.env {
			e.Env.Free()
		}
	case e.Kind == turn.Own:
		scr.changes[e.To].confirm(a, scr)
	case e.Kind == turn.Quit:
		a.post(scr, sysmail.Msg{Kind: sysmail.Quit, Kin: sysmail.Kin{Reason: "stopped"}})
	case e.Kind == turn.Stop:
		a.sys.signal(scr, e.To, signal.Signal{Kind: signal.Stop})
	case e.Kind == turn.Forward:
		if e.Env == a.ctx.env { // the message itself goes on
			a.ctx.env = nil
			e.Env.Flags &= mark.Kept
			e.Env.Position = 0
			if a.ctx.passTo != "" {
				e.Env.Attached = message.Below(e.Env.Attached, a.ctx.passTo)
			}
		}
		a.sys.delegate(scr, e.Env, a.uid, e.To)
		if a.props.keeps && a.handed(scr, e.To, e.Env) {
			break
		}
		_ = a.deliver(scr, e.To, e.Env)
	case e.Kind == turn.Pipe:
		begin := e.Env.Value.(func())
		e.Env.Free()
		begin()
	}
}

// Self is the actor itself.
func (c *Context) Self() Ref { return c.actor.ref() }

// Parent is the actor's supervisor.
func (c *Context) Parent() Ref {
	if p := c.actor.parent; p != nil {
		return p.ref()
	}
	return Ref{}
}

// System is the system that the actor lives in.
func (c *Context) System() *System { return c.actor.sys }

// Incarnation is 0 at first and one more after every restart.
func (h Head) Incarnation() uint64 { return h.ctx.actor.Incarnation() }

// Cause is why the incarnation before this one has ended, within Started; elsewhere, and
// in the first incarnation, nil. It must not be changed.
func (c *Context) Cause() *abi.Failure { return c.cause }

// Children are the actor's children in the order in which they were started, including those
// that are stopping.
func (c *Context) Children() []Ref {
	kids := c.actor.kids()
	refs := make([]Ref, len(kids))
	for i, k := range kids {
		refs[i] = k.ref()
	}
	return refs
}

// Args decodes the value given to Props.WithArgs into v.
func (c *Context) Args(v any) error { return message.Decoder.Unmarshal(c.actor.args, v) }

// Now is the system's clock.
func (c *Context) Now() time.Time { return c.actor.Now() }

// Next takes the next message, within [Behaviour.Handle]; false if there is none, or n
// have been taken. It ends the turn of the message before. The message is valid
// until the next call, and until Handle returns.
func (h Head) Next() (Message, bool) {
	e := h.ctx.next()
	if e == nil {
		return Message{}, false
	}
	return h.ctx.message(e), true
}

// next ends the turn of the message before and begins that of the next one, nil if there
// is none.
func (c *Context) next() *mailbox.Envelope {
	a, scr := c.actor, c.scr
	if c.env != nil {
		if b, guarded := a.behaviour.(*behaved); guarded && (b.unrecorded != nil || a.sys.looks.Load()|uint32(a.looks) != 0) {
			if b.unrecorded == nil {
				b.unrecorded = a.endTurn(c, nil)
			}
			if b.unrecorded != nil || a.sealed.isHeld() {
				return nil // the turn fails, when Handle returns
			}
		}
		if len(scr.effects) > 0 {
			a.leaveTurn(scr, false)
		}
		if c.env != nil { // it was not passed on itself
			if c.env.Value != nil {
				a.taken = a.sys.bound.Take(a.taken, c.env)
			}
			scr.cache.Free(c.env)
			c.env = nil
		}
	}
	if c.taken >= c.most || a.box.Nothing() {
		return nil
	}
	e := a.box.Front()
	if e == nil {
		if e = a.peek(scr); e == nil {
			return nil
		}
	}
	if a.sysq.Waiting() {
		return nil // e may have been sent after what waits there
	}
	if e.Flags&mark.Special != 0 && (e.Flags&mark.Control != 0 || a.sys.outside.GaveUp(e, a.Incarnation())) {
		return nil // handleMessages deals with it
	}
	return c.take(e)
}

// take begins the turn of the message that is the next one.
func (c *Context) take(e *mailbox.Envelope) *mailbox.Envelope {
	a, scr := c.actor, c.scr
	a.box.Drop(e)
	if a.work.Minds(e) {
		a.sys.abandoned(scr, a.work.Begun(a, e)...)
	}
	a.turns++
	c.env, c.stashed, c.passed = e, false, false
	c.taken++
	if a.sys.cfg.Tracer != nil {
		a.sys.tracing.BeginTurn(&scr.trace, a, e)
	}
	return e
}

// message is an envelope as an actor sees it.
func (c *Context) message(e *mailbox.Envelope) (m Message) {
	m.Kind, m.Correlation, m.Payload = e.Kind, e.Correlation, e.Payload
	if e.SenderPath != "" {
		m.Sender = newRef(e.Sender, e.SenderPath)
	} else {
		m.Sender = c.actor.sys.refOf(e.Sender)
	}
	if len(e.Headers) > 0 {
		m.Headers = e.Headers
	}
	return m
}

// Tell sends a message from the actor. An error says that v cannot be a message, or (ErrNobody)
// that to is zero. A message that is not accepted is a dead letter.
func (c *Context) Tell(to Ref, v any) error { return c.emit(to.UID(), v, abi.KindMessage, 0) }

// Ask sends a message whose answer comes as a Message of KindReply, KindReplyError
// or KindAskTimeout with this correlation, which must not be 0. See [System.Ask] for
// how an ask can end. An answer to the incarnation before may still be on its way: a correlation that it used
// for the same actor is better not used again.
func (c *Context) Ask(to Ref, v any, correlation uint64, timeout time.Duration) error {
	ask, err := c.enterAsk(correlation, to.UID(), timeout)
	if err != nil {
		return err
	}
	err = c.emit(to.UID(), v, abi.KindMessage, correlation)
	if err != nil {
		c.actor.sys.abandoned(c.scr, c.actor.work.DropAsk(c.actor, correlation)...)
	} else if c.scr != nil {
		mark.Until(c.scr.effects[len(c.scr.effects)-1].Env, ask.Due.UnixNano())
	}
	return err
}

// unsend removes the last n messages from what the turn sends.
func (c *Context) unsend(n int) {
	if c.scr == nil {
		return
	}
	all := c.scr.effects
	for i := len(all) - n; i < len(all); i++ {
		all[i].Env.Free()
		all[i] = effect{}
	}
	c.scr.effects = all[:len(all)-n]
}

// CancelAsk gives up an ask: its answer, or timeout, will not come, and the actor that works on it
// is told. It does nothing if the ask is over.
func (c *Context) CancelAsk(correlation uint64) {
	if ask := c.actor.work.TakeAsk(c.actor, correlation); ask != nil {
		c.stage(change{kind: askTaken, key: correlation, ask: ask})
	}
}

// Reply answers the current message; the answer to a message without a sender is a dead
// letter.
func (c *Context) Reply(v any) error { return c.reply(v, abi.KindReply) }

// ReplyError answers the current message with an error.
func (c *Context) ReplyError(reason string) error { return c.reply(reason, abi.KindReplyError) }

func (c *Context) reply(v any, kind abi.Kind) error {
	if c.env == nil {
		return ErrNoQuestion
	}
	return c.emit(c.env.Sender, v, kind, c.env.Correlation)
}

// emit stages a message. Only an answer may be to nobody: it is a dead letter then.
func (c *Context) emit(to abi.Ref, v any, kind abi.Kind, correlation uint64) error {
	if to == 0 && kind == abi.KindMessage {
		return ErrNobody
	}
	e := c.scr.newEnvelope()
	if p, ok := v.(message.Raw); ok { // as Fill has it, without a call
		e.SetPayload(p)
	} else if err := message.Fill(c.scr.codecs(), e, v); err != nil {
		e.Free()
		return err
	}
	a := c.actor
	e.Kind, e.Sender, e.SenderPath, e.Correlation = kind, a.uid, a.path, correlation
	e.Attached = message.StillBelow(a.rules.Load().attachedIn(c.env), e.Attached)
	if e.Value != nil {
		a.sys.tracing.Chosen(e)
	}
	if c.scr == nil {
		return a.sys.deliver(nil, to, e)
	}
	c.scr.effects = append(c.scr.effects, effect{Kind: turn.Send, To: to, Env: e})
	return nil
}

// Forward sends the current message on with its original sender: the receiver may then
// answer it. What the host itself has told the actor, such as a timer's message, has the
// actor itself as its sender.
func (c *Context) Forward(to Ref) error { return c.forward(to, "", "", false) }

// ForwardWithout is Forward without one of the message's headers.
func (h Head) ForwardWithout(to Ref, header string) error {
	return h.ctx.forward(to, "", header, false)
}

// Pass is Forward without a copy, if it is the first one of the turn: the receiver gets the
// message itself, so its payload must not be changed.
func (h Head) Pass(to Ref) error { return h.ctx.forward(to, "", "", true) }

// forward sends the message on to an actor, or (with a name) to the child that it keeps.
func (c *Context) forward(to Ref, name, without string, whole bool) error {
	switch {
	case c.env == nil:
		return ErrNoQuestion
	case to.UID() == 0:
		return ErrNobody
	}
	e := c.env
	if !whole || c.passed || !mark.IsMail(e) || e.Value != nil || c.actor.sys.cfg.Tracer != nil {
		e = message.CloneEnvelope(e)
		if !mark.IsMail(e) {
			e.Kind = abi.KindMessage
			if e.Sender == 0 {
				e.Sender, e.SenderPath, e.Correlation = c.actor.uid, c.actor.path, 0
			}
		}
		if without != "" {
			e.Headers = header.Without(e.Headers, without)
		}
		if name != "" {
			e.Attached = message.Below(e.Attached, name)
		}
	} else {
		c.passed, c.passTo = true, name
	}
	c.scr.effects = append(c.scr.effects, effect{Kind: turn.Forward, To: to.UID(), Env: e})
	return nil
}

// ResetBackoff makes the supervisor count this actor's failures from the beginning.
func (h Head) ResetBackoff() { h.ctx.stage(change{kind: backoffReset}) }

// Spawn makes a child; an empty name lets the host choose. Its name and its ref are reserved at once, and the
// error says if that is not possible. It starts when the turn has ended, and not at all if the turn fails.
func (c *Context) Spawn(name string, p Props) (Ref, error) {
	child, err := c.actor.reserve(c.scr, name, &p, c.actor.nextHostRef())
	if err != nil {
		return Ref{}, err
	}
	if c.scr == nil {
		c.actor.launch(nil, child)
	} else {
		x := c.scr.change()
		x.kind, x.child = childReserved, child
	}
	return child.ref(), nil
}

// GetOrSpawn finds the child of a name or makes it. A child that is about to stop keeps
// its name until it has gone: ErrNameTaken.
func (c *Context) GetOrSpawn(name string, p Props) (Ref, error) {
	if k := c.actor.child(name); k != nil && !k.life.State().Ending() {
		return k.ref(), nil
	}
	return c.Spawn(name, p)
}

// Stop stops an actor.
//
// For an actor that stops itself see [Props.WithLifetime]. A failed turn stops no other actor. If it has stopped the actor
// itself, its supervisor is notified only of the failure.
func (c *Context) Stop(ref Ref) {
	e := effect{Kind: turn.Stop, To: ref.UID()}
	if ref.UID() == c.actor.uid {
		e.Kind = turn.Quit
	}
	c.scr.effects = append(c.scr.effects, e)
}

// Watch makes the end of an actor known by a Message of KindTerminated
// whose Sender is that actor. It may have ended already.
func (c *Context) Watch(ref Ref) error {
	if ref.UID() == c.actor.uid {
		return nil
	}
	entered, err := c.actor.work.AddWatch(c.actor, ref.UID(), ref.URI())
	if entered {
		c.stage(change{kind: watchEntered, ref: ref.UID()})
	}
	return err
}

// Unwatch ends a watch, even if its message is in the mailbox already.
func (c *Context) Unwatch(ref Ref) {
	a := c.actor
	path := a.work.Watch.Path(ref.UID())
	if a.work.DropWatch(a, ref.UID()) {
		c.stage(change{kind: watchTaken, ref: ref.UID(), name: path})
	}
}

// After sends the actor a Message of KindTimer with key as its correlation after a delay, and
// then every period if that is not 0. It replaces a timer with the same key.
func (c *Context) After(key uint64, delay, period time.Duration, v any) error {
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	return c.setTimer(key, delay, period, timers.FixedDelay, payload)
}

// AtRate is After with a period above 0 that keeps to a grid: the message is due delay, delay+period,
// delay+2*period and so on after now. What comes due while it waits, or its turn runs, is left out:
// there is never more than one, and no burst. After counts each period from the beginning of
// the turn of the message before.
func (c *Context) AtRate(key uint64, delay, period time.Duration, v any) error {
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	if period <= 0 {
		return c.setTimer(key, delay, 0, timers.FixedDelay, payload)
	}
	return c.setTimer(key, delay, period, timers.FixedRate, payload)
}

// Cancel cancels a timer.
func (c *Context) Cancel(key uint64) {
	more := 0
	if _, has := c.timersAhead(key); has {
		more = -1
	}
	c.stage(change{kind: timerCancelled, key: key, more: more})
}

// SetReceiveTimeout asks for a Message of KindReceiveTimeout whenever nothing
// was received for d; 0 turns it off.
func (c *Context) SetReceiveTimeout(d time.Duration) {
	c.stage(change{kind: receiveTimeoutSet, delay: d})
}

// Stash puts the current message aside until Unstash. It fails with ErrStashed the
// second time in a turn, and with ErrLimit if the stash is full; the message is a dead
// letter then.
func (c *Context) Stash() error { return c.stashUnder("") }

// Unstash puts everything stashed back to the front of the mailbox, in order.
func (c *Context) Unstash() { c.stage(change{kind: stashEmptied}) }

// Block says that the call is about to wait for something outside, such as a file or a lock: other
// actors get another worker until then. Block itself does not wait.
func (c *Context) Block() {
	if c.scr != nil {
		c.scr.w.Block()
	}
}

// Hand is Pass to a child of a keeper. If the message comes too late, because the child has ended
// meanwhile, it is stashed under the child's name, see [Head.StashFor].
func (h Head) Hand(child Ref) error {
	a := h.ctx.actor
	if a.keeping == nil {
		a.keeping = &keeping{}
	}
	a.keeping.to, a.keeping.toName = child.UID(), child.Name()
	return h.Pass(child)
}
