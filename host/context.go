package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Context is what an actor in Go can do during a call of its methods. It must not be
// used outside them, nor by other goroutines; [Context.Later] is for what takes longer.
//
// What leaves the actor (sends, answers, asks, forwards, stops) leaves at the end of the
// turn, in order, and not at all if the turn fails; a stop of the actor itself counts
// all the same. Children, watches, timers and the stash are the actor's own and change
// at once.
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

	unrecorded *abi.Failure // failure of the turn that Next has ended
}

// effect is what leaves an actor at the end of its turn.
type effect struct {
	kind effectKind
	to   abi.Ref
	env  *mailbox.Envelope
}

type effectKind uint8

const (
	effectSend effectKind = iota
	effectForward
	effectStop
	effectQuit
	effectPipe
)

// leaveTurn sends what a turn in Go has left to send; a failed turn's effects are dropped.
func (a *actor) leaveTurn(scr *scratch, failed bool) {
	if scr.trace.on {
		scr.trace.markEffects(scr.effects)
	}
	for i := range scr.effects {
		e := &scr.effects[i]
		switch {
		case e.kind == effectSend && !failed:
			_ = a.sys.deliver(scr, e.to, e.env)
		case e.kind == effectQuit:
			a.post(scr, sysMsg{kind: sysQuit, reason: "stopped"})
		case failed:
			if e.env != nil && e.env != a.ctx.env {
				e.env.Free()
			}
		case e.kind == effectStop:
			if t := a.sys.table.Get(e.to); t != nil {
				t.stop(scr, "")
			}
		case e.kind == effectForward:
			if e.env == a.ctx.env { // the message itself goes on
				a.ctx.env = nil
				e.env.Flags &= flagsKept
				e.env.Sequence, e.env.Position = 0, 0
				if a.ctx.passTo != "" {
					e.env.Attached = below(e.env.Attached, a.ctx.passTo)
				}
			}
			a.sys.delegate(scr, e.env, a.uid, e.to)
			if a.props.keeps && a.handed(scr, e.to, e.env) {
				break
			}
			_ = a.sys.deliver(scr, e.to, e.env)
		case e.kind == effectPipe:
			begin := e.env.Value.(func())
			e.env.Free()
			begin()
		}
		e.env = nil
	}
	scr.effects = scr.effects[:0]
}

// Self is the actor itself.
func (c *Context) Self() Ref { return c.actor.ref() }

// Parent is the actor's supervisor.
func (c *Context) Parent() Ref { return c.actor.parent.ref() }

// System is the system that the actor lives in.
func (c *Context) System() *System { return c.actor.sys }

// Incarnation is 0 at first and one more after every restart.
func (c *Context) Incarnation() uint64 { return c.actor.incarnation() }

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
func (c *Context) Args(v any) error { return decoder.Unmarshal(c.actor.args, v) }

// Now is the system's clock.
func (c *Context) Now() time.Time { return c.actor.Now() }

// Next takes the next message, within [Behaviour.Handle]; false if there is none, or n
// have been taken. It ends the turn of the message before. The message is valid
// until the next call, and until Handle returns.
func (c *Context) Next() (Message, bool) {
	e := c.next()
	if e == nil {
		return Message{}, false
	}
	return c.message(e), true
}

// next ends the turn of the message before and begins that of the next one, nil if there
// is none.
func (c *Context) next() *mailbox.Envelope {
	a, scr := c.actor, c.scr
	if c.unrecorded != nil {
		return nil
	}
	if c.env != nil {
		if _, guarded := a.behaviour.(*behaved); guarded {
			if c.unrecorded = a.endTurn(c); c.unrecorded != nil {
				return nil // the turn fails, when Handle returns
			}
		}
		if len(scr.effects) > 0 {
			a.leaveTurn(scr, false)
		}
		if c.env != nil { // it was not passed on itself
			if c.env.Value != nil {
				a.noteTaken(c.env)
			}
			scr.cache.Free(c.env)
			c.env = nil
		}
	}
	if c.taken >= c.most || a.box.nothing() {
		return nil
	}
	e := a.front()
	if e == nil {
		if e = a.peek(scr); e == nil {
			return nil
		}
	}
	if a.sysq.waiting() {
		return nil // e may have been sent after what waits there
	}
	if e.Flags&flagSpecial != 0 && (e.Flags&flagControl != 0 || a.unwanted(e)) {
		return nil // handleMessages deals with it
	}
	return c.take(e)
}

// take begins the turn of the message that is the next one.
func (c *Context) take(e *mailbox.Envelope) *mailbox.Envelope {
	a, scr := c.actor, c.scr
	a.box.drop(e)
	a.begins(scr, e)
	a.turns++
	c.env, c.stashed, c.passed = e, false, false
	c.taken++
	if a.sys.cfg.tracer != nil {
		a.beginTurn(scr, e)
	}
	return e
}

// message is an envelope as an actor sees it.
func (c *Context) message(e *mailbox.Envelope) Message {
	m := Message{Kind: e.Kind, Sender: Ref{e.Sender, e.SenderPath}, Correlation: e.Correlation, Payload: e.Payload}
	if e.SenderPath == "" {
		m.Sender = c.actor.sys.refOf(e.Sender)
	}
	if len(e.Headers) > 0 {
		m.Headers = e.Headers
	}
	return m
}

// Tell sends a message from the actor. An error says that v cannot be a message,
// or (ErrNobody) that to is nobody; what is not accepted is a dead letter.
func (c *Context) Tell(to Ref, v any) error { return c.send(to, v, abi.KindMessage, 0) }

// Ask sends a message whose answer comes as a Message of KindReply, KindReplyError
// or KindAskTimeout with this correlation, which must not be 0. See [System.Ask] for
// how an ask can end.
func (c *Context) Ask(to Ref, v any, correlation uint64, timeout time.Duration) error {
	ask, err := c.actor.addAsk(c.scr, correlation, to.uid, timeout)
	if err != nil {
		return err
	}
	err = c.send(to, v, abi.KindMessage, correlation)
	if err != nil {
		c.actor.dropAsk(c.scr, correlation)
	} else if c.scr != nil {
		due(c.scr.effects[len(c.scr.effects)-1].env, ask.Due.UnixNano())
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
		all[i].env.Free()
		all[i] = effect{}
	}
	c.scr.effects = all[:len(all)-n]
}

// CancelAsk gives up an ask: its answer, or timeout, will not come, and the actor that works on it
// is told. It does nothing if the ask is over.
func (c *Context) CancelAsk(correlation uint64) { c.actor.dropAsk(c.scr, correlation) }

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

func (c *Context) send(to Ref, v any, kind abi.Kind, correlation uint64) error {
	if to.uid == 0 {
		return ErrNobody
	}
	return c.emit(to.uid, v, kind, correlation)
}

func (c *Context) emit(to abi.Ref, v any, kind abi.Kind, correlation uint64) error {
	e := c.scr.newEnvelope()
	if err := fill(e, v); err != nil {
		e.Free()
		return err
	}
	a := c.actor
	e.Kind, e.Sender, e.SenderPath, e.Correlation = kind, a.uid, a.path, correlation
	e.Attached = stillBelow(a.attachedIn(c.env), e.Attached)
	if e.Value != nil {
		a.sys.chosen(e)
	}
	if c.scr == nil {
		return a.sys.deliver(nil, to, e)
	}
	c.scr.effects = append(c.scr.effects, effect{effectSend, to, e})
	return nil
}

// Forward sends the current message on with its original sender: the receiver may then
// answer it. What the host itself has told the actor, such as a timer's message, has the
// actor itself as its sender.
func (c *Context) Forward(to Ref) error { return c.forward(to, "", "", false) }

// ForwardWithout is Forward without one of the message's headers.
func (c *Context) ForwardWithout(to Ref, header string) error {
	return c.forward(to, "", header, false)
}

// Pass is Forward without a copy, if it is the first one of the turn: the receiver gets the
// message itself, so its payload must not be changed.
func (c *Context) Pass(to Ref) error { return c.forward(to, "", "", true) }

// forward sends the message on to an actor, or (with a name) to the child that it keeps.
func (c *Context) forward(to Ref, name, without string, whole bool) error {
	switch {
	case c.env == nil:
		return ErrNoQuestion
	case to.uid == 0:
		return ErrNobody
	}
	e := c.env
	if !whole || c.passed || !isMail(e) || e.Value != nil || c.actor.sys.cfg.tracer != nil {
		e = cloneEnvelope(e)
		if !isMail(e) {
			e.Kind = abi.KindMessage
			if e.Sender == 0 {
				e.Sender, e.SenderPath, e.Correlation = c.actor.uid, c.actor.path, 0
			}
		}
		if without != "" {
			e.Headers = withoutHeader(e.Headers, without)
		}
		if name != "" {
			e.Attached = below(e.Attached, name)
		}
	} else {
		c.passed, c.passTo = true, name
	}
	c.scr.effects = append(c.scr.effects, effect{effectForward, to.uid, e})
	return nil
}

// ResetBackoff makes the supervisor count this actor's failures from the beginning.
func (c *Context) ResetBackoff() { c.actor.resetBackoff(c.scr) }

// Spawn makes a child; an empty name lets the host choose.
func (c *Context) Spawn(name string, p Props) (Ref, error) {
	child, err := c.actor.spawn(c.scr, name, &p, c.actor.nextHostRef())
	if err != nil {
		return Ref{}, err
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
// An actor that stops itself ends by itself, see [Props.WithLifetime].
func (c *Context) Stop(ref Ref) {
	e := effect{kind: effectStop, to: ref.uid}
	if ref.uid == c.actor.uid {
		e.kind = effectQuit
	}
	c.scr.effects = append(c.scr.effects, e)
}

// Watch makes the end of an actor known by a Message of KindTerminated
// whose Sender is that actor. It may have ended already.
func (c *Context) Watch(ref Ref) error { return c.actor.watchRef(c.scr, ref.uid, ref.path) }

// Unwatch ends a watch, even if its message is in the mailbox already.
func (c *Context) Unwatch(ref Ref) { c.actor.unwatchRef(c.scr, ref.uid) }

// After sends the actor a Message of KindTimer with key as its correlation after a delay, and
// then every period if that is not 0. It replaces a timer with the same key.
func (c *Context) After(key uint64, delay, period time.Duration, v any) error {
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	return c.actor.setTimer(c.scr, key, delay, period, payload)
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
		return c.actor.setTimer(c.scr, key, delay, 0, payload)
	}
	return c.actor.setTimerAt(c.scr, key, delay, period, timers.FixedRate, payload)
}

// Cancel cancels a timer.
func (c *Context) Cancel(key uint64) { c.actor.cancelTimer(key) }

// SetReceiveTimeout asks for a Message of KindReceiveTimeout whenever nothing
// was received for d; 0 turns it off.
func (c *Context) SetReceiveTimeout(d time.Duration) { c.actor.setReceiveTimeout(d) }

// Stash puts the current message aside until Unstash. It fails with ErrStashed the
// second time in a turn, and with ErrLimit if the stash is full; the message is a dead
// letter then.
func (c *Context) Stash() error {
	if c.stashed {
		return ErrStashed
	}
	if err := c.actor.stashCurrent(c.env); err != nil {
		return err
	}
	c.stashed = true
	return nil
}

// Unstash puts everything stashed back to the front of the mailbox, in order.
func (c *Context) Unstash() { c.actor.unstash() }

// Block says that the call is about to wait for something outside, such as a file or a
// lock: others get another worker meanwhile. It does not wait itself.
func (c *Context) Block() {
	if c.scr != nil {
		c.scr.w.Block()
	}
}
