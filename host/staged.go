package host

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What a turn in Go does to its own actor (children, watches, timers, asks, the stash) is staged like what it sends. What
// it can ask about at once (is the name free, is there room, is somebody watched) is entered in the actor's tables when
// it is called for, and taken out again if the turn fails; nobody else hears of it, and nothing begins, before the
// turn has ended well.

const (
	childReserved changeKind = iota
	watchEntered
	watchTaken
	timerSet
	timerCancelled
	receiveTimeoutSet
	askEntered
	askTaken
	messageStashed
	stashEmptied
	stashEmptiedFor
	backoffReset
	actorLeaves
	childMissing
)

// stage notes a change of the turn that runs; outside of one it happens at once.
func (c *Context) stage(x change) {
	if c.scr == nil {
		x.confirm(c.actor, nil)
	} else {
		*c.scr.change() = x
	}
}

// change is where the next change of the turn is noted: an empty one.
func (s *scratch) change() *change {
	n := len(s.changes)
	s.effects = append(s.effects, effect{Kind: turn.Own, To: abi.Ref(n)})
	s.changes = slices.Grow(s.changes, 1)[:n+1] // leaveTurn clears what it leaves behind
	return &s.changes[n]
}

// confirm makes a change effective.
func (x *change) confirm(a *actor, scr *scratch) {
	switch x.kind {
	case watchEntered:
		if !a.sys.signal(scr, x.ref, signal.Signal{Kind: signal.Watch, From: a.uid}) {
			a.strayed(scr, x.ref)
		}
	case watchTaken:
		a.sys.signal(scr, x.ref, signal.Signal{Kind: signal.Unwatch, From: a.uid})
	case timerSet:
		a.work.StartTimer(a, x.at, x.key, x.delay, x.period, x.pace, x.data, scr.keep())
	case timerCancelled:
		a.work.CancelTimer(a, x.key)
	case receiveTimeoutSet:
		a.work.SetReceiveTimeout(a, x.delay)
	case askTaken:
		a.sys.abandoned(scr, x.ask.End()...)
	case stashEmptied:
		a.work.Unstash(a, &a.box)
	case stashEmptiedFor:
		a.work.UnstashFor(a, &a.box, x.name)
	case backoffReset:
		a.resetBackoff(scr)
	case actorLeaves:
		a.post(scr, sysmail.Msg{Kind: sysmail.Quit, Kin: sysmail.Kin{Reason: x.name}})
	case childMissing:
		missing(a, scr, x.name)
	}
}

// revoke undoes a change; later ones are undone already.
func (x *change) revoke(a *actor, scr *scratch) {
	switch x.kind {
	case childReserved:
		x.child.withdrawn = true
		x.child.stop(scr, "the turn that spawned it has failed")
	case watchEntered:
		a.work.DropWatch(a, x.ref)
	case watchTaken:
		a.work.PutBackWatch(a, x.ref, x.name)
	case timerSet:
		a.work.NoteTimers(a)
	case askEntered:
		a.sys.abandoned(scr, a.work.DropAsk(a, x.key)...)
	case askTaken:
		a.work.PutBackAsk(a, x.key, x.ask)
	case messageStashed:
		if message.IsBound(x.env) && a.ctx.env != nil {
			a.ctx.env.Value = message.BoundMark{}
		}
		a.work.DropAside(a, x.name, x.env)
	}
}

// timersAhead is how many timers there are when the turn has ended, and whether one has the key.
func (c *Context) timersAhead(key uint64) (n int, has bool) {
	a := c.actor
	n, has = a.work.Timers.Len(), a.work.Timers.Has(key)
	if c.scr == nil {
		return n, has
	}
	for i := range c.scr.changes {
		x := &c.scr.changes[i]
		if n += x.more; x.key == key && (x.kind == timerSet || x.kind == timerCancelled) {
			has = x.kind == timerSet
		}
	}
	return n, has
}

// setTimer stages a timer, within the limit.
func (c *Context) setTimer(key uint64, delay, period time.Duration, pace timers.Pace, payload []byte) error {
	a := c.actor
	n, has := c.timersAhead(key)
	more := 0
	if !has {
		if more = 1; n >= a.rules.Load().limits.Timers {
			return ErrLimit
		}
	}
	if err := a.work.HoldTimer(a, payload); err != nil {
		return err
	}
	c.stage(change{kind: timerSet, at: a.Now(), key: key, more: more, delay: delay, period: period, pace: pace, data: payload})
	return nil
}

// enterAsk notes an ask of the turn that runs.
func (c *Context) enterAsk(correlation uint64, target abi.Ref, timeout time.Duration) (*asks.Ask, error) {
	ask, err := c.actor.work.AddAsk(c.actor, correlation, target, timeout, c.scr.keep())
	if err == nil && c.scr != nil {
		c.stage(change{kind: askEntered, key: correlation})
	}
	return ask, err
}

// stashUnder puts the current message aside.
func (c *Context) stashUnder(name string) error {
	if c.stashed {
		return ErrStashed
	}
	k, err := c.actor.putAside(name, c.env)
	if err != nil {
		return err
	}
	c.stashed = true
	c.stage(change{kind: messageStashed, name: name, env: k})
	return nil
}

// putAside stashes a message whose turn runs. A refused one is a dead letter.
func (a *actor) putAside(name string, e *mailbox.Envelope) (*mailbox.Envelope, error) {
	k, err := a.work.PutAside(a, name, e)
	if err != nil {
		a.sys.deadLetterAt(errs.KeyOf(err, "limits.stash"), DeadStashFull, a.uid, a.path, e)
	}
	return k, err
}

// cameByMail reports whether an envelope has waited in the mailbox: the others have no place there to which unstash could bring them back,
// and no record.
func cameByMail(e *mailbox.Envelope) bool {
	switch e.Kind {
	case abi.KindStart, abi.KindStop, abi.KindPreRestart, abi.KindChildFailed, abi.KindSave, abi.KindRecover:
		return false
	}
	return true
}

// launch starts a child that was enrolled.
func (a *actor) launch(scr *scratch, child *actor) {
	noteLife(child, record.Began)
	if !a.sys.lookouts.None() {
		for _, x := range a.sys.lookouts.Born(child, child.elements) {
			x.Watcher.post(scr, sysmail.Msg{Kind: sysmail.Born, Own: sysmail.Own{Born: &sysmail.Birth{To: x, Ref: child.uid, Path: child.path}}})
		}
	}
	child.post(scr, sysmail.Msg{Kind: sysmail.Start})
}

// missing tells the parent of a child that it has failed to become one. It does not count against the parent's mailbox, as its end does
// not; there is one for each child.
func missing(a *actor, scr *scratch, why string) {
	if a.parent == nil {
		return
	}
	e := scr.newEnvelope()
	e.Kind, e.Sender, e.SenderPath = abi.KindSpawnFailed, a.uid, a.path
	e.Payload = message.AppendText(e.Payload, why)
	a.parent.insist(scr, e)
}
