package host

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// apply carries out the commands of one turn, in order. What is refused becomes a dead
// letter or an envelope to the actor; it does not fail the turn. In the last turn of an
// incarnation only sends and forwards are carried out.
func (g *guest) apply(scr *scratch, cmds []abi.Command, current *mailbox.Envelope) {
	last := current.Kind == abi.KindStop || current.Kind == abi.KindPreRestart
	scr.from = current.Sender
	if scr.attached = g.actor.attached; current.Attached != nil {
		scr.attached = g.actor.attachedIn(current)
	}
	for i := range cmds {
		cmd := &cmds[i]
		if cmd.Op == abi.OpSend && cmd.ToPath == nil {
			g.send(scr, cmd)
		} else if leaves(cmd.Op) {
			g.letOut(scr, cmd, current, last)
		} else if !last {
			g.applyLocal(scr, cmd, current)
		}
	}
}

// leaves reports whether a command has an effect outside of its actor. The effects of all
// other commands come about again when the turns are repeated.
func leaves(op abi.Op) bool {
	switch op {
	case abi.OpSend, abi.OpForward, abi.OpAsk, abi.OpSpawn, abi.OpStop, abi.OpWatch, abi.OpUnwatch, abi.OpResetBackoff, abi.OpCancelAsk:
		return true
	}
	return false
}

// letOut carries out a command that leaves the actor.
func (g *guest) letOut(scr *scratch, cmd *abi.Command, current *mailbox.Envelope, last bool) {
	a := g.actor
	if last && cmd.Op != abi.OpSend && cmd.Op != abi.OpForward {
		return
	}
	g.carry(scr, len(cmd.Payload)+len(cmd.Options)*carriedOption)
	switch cmd.Op {
	case abi.OpSend:
		if cmd.ToPath != nil && glob.HasMeta(string(cmd.ToPath)) {
			g.toAll(scr, cmd, current, func(one *abi.Command, name string) { g.sendBelow(scr, one, name) })
			return
		}
		if uid, name, ok := g.address(scr, cmd, current); ok {
			one := *cmd
			one.ToPath, one.ToRef = nil, uid
			g.sendBelow(scr, &one, name)
		}
	case abi.OpForward:
		if cmd.ToPath == nil {
			if uid, ok := g.target(scr, cmd, nil, current); ok {
				g.forward(scr, uid, "", current)
			}
			return
		}
		if glob.HasMeta(string(cmd.ToPath)) {
			g.toAll(scr, cmd, current, func(one *abi.Command, name string) { g.forward(scr, one.ToRef, name, current) })
			return
		}
		if uid, name, ok := g.address(scr, cmd, current); ok {
			g.forward(scr, uid, name, current)
		}
	case abi.OpAsk:
		g.ask(scr, cmd)
	case abi.OpSpawn:
		g.spawn(scr, cmd)
	case abi.OpStop:
		g.stop(scr, cmd)
	case abi.OpWatch:
		if isMany(cmd) {
			g.watchMany(scr, cmd)
			return
		}
		if uid, ok := g.target(scr, cmd, a.caps.send, nil); ok {
			if err := a.watchRef(scr, uid, ""); err != nil {
				g.overLimit(errs.KeyOf(err, "limits.watches"), uid, "watch", mailbox.Envelope{Flags: mark.Control})
			}
		}
	case abi.OpUnwatch:
		if isMany(cmd) {
			g.carry(scr, a.work.Watch.Len()*carriedBytes)
			g.watchMany(scr, cmd)
			return
		}
		if uid, ok := g.target(scr, cmd, a.caps.send, nil); ok {
			a.unwatchRef(scr, uid)
		}
	case abi.OpResetBackoff:
		a.resetBackoff(scr)
	case abi.OpCancelAsk:
		a.dropAsk(scr, cmd.Correlation)
	}
}

// applyLocal carries out a command that only concerns the actor itself.
func (g *guest) applyLocal(scr *scratch, cmd *abi.Command, current *mailbox.Envelope) {
	a := g.actor
	switch cmd.Op {
	case abi.OpTimer:
		if err := a.work.SetTimer(a, cmd.Key, time.Duration(cmd.Delay), time.Duration(cmd.Period), cmd.Payload, scr.keep()); err != nil {
			g.overLimit(errs.KeyOf(err, "limits.timers"), a.uid, "timer", mailbox.Envelope{Kind: abi.KindTimer, Payload: cmd.Payload})
		}
	case abi.OpCancel:
		a.work.CancelTimer(a, cmd.Key)
	case abi.OpReceiveTimeout:
		a.work.SetReceiveTimeout(a, time.Duration(cmd.Delay))
	case abi.OpStash:
		_, _ = a.putAside("", current) // refused: a dead letter says so
	case abi.OpUnstash:
		a.work.Unstash(a, &a.box)
	case abi.OpDecide:
		if g.verdict.asked {
			g.verdict.directive = supervision.Directive(cmd.Directive)
		}
	case abi.OpUnhandled:
		if current.Kind == abi.KindTerminated {
			a.fail(scr, a.deathPact(), life.ByItself)
		} else {
			a.unhandled(current)
		}
	}
}

// send is the hot path: a ref that was seen last time costs no look-up.
func (g *guest) send(scr *scratch, cmd *abi.Command) {
	a := g.actor
	e := scr.cache.New()
	e.Kind, e.Sender, e.SenderPath, e.Correlation, e.Origin = abi.KindMessage, a.uid, a.path, cmd.Correlation, scr.origin
	if scr.attached != nil {
		e.Attached = scr.attached
	}
	if cmd.Flags != 0 {
		switch {
		case cmd.Flags&abi.FlagReply != 0:
			e.Kind = abi.KindReply
		case cmd.Flags&abi.FlagReplyError != 0:
			e.Kind = abi.KindReplyError
		}
		if cmd.Flags&abi.FlagNoInfluence != 0 {
			e.Flags |= mark.NoInfluence
		}
		if cmd.Flags&cmdDue != 0 {
			mark.Until(e, g.due)
		}
	}
	e.SetPayload(cmd.Payload)
	if cmd.Headers != nil {
		if a.sys.cfg.tracer == nil {
			e.SetHeaders(cmd.Headers)
		} else {
			a.sys.mark(scr, e, cmd.Headers)
		}
	}
	if last := g.lastTo; last != nil && last.uid == cmd.ToRef {
		_ = a.sys.deliverTo(scr, last, e)
		return
	}
	if a.tree.guesses.None() && a.barred(scr, cmd.ToRef, scr.from) {
		a.sys.refuse(scr, DeadDenied, errGuessed, cmd.ToRef, "", e)
		e.Free()
		return
	}
	if to := a.sys.here(cmd.ToRef); to != nil {
		g.lastTo = to
		_ = a.sys.deliverTo(scr, to, e)
		return
	}
	_ = a.deliver(scr, cmd.ToRef, e) // somebody outside, or a dead letter
}

// sendBelow is send to an actor, or (with a name) to the child that it keeps.
func (g *guest) sendBelow(scr *scratch, cmd *abi.Command, name string) {
	if name == "" {
		g.send(scr, cmd)
		return
	}
	attached := scr.attached
	scr.attached = message.Below(attached, name)
	g.send(scr, cmd)
	scr.attached = attached
}

// target is the actor that a command names. A path without an actor, or that the actor may not use,
// becomes a dead letter, and so does a ref that it may have guessed.
func (g *guest) target(scr *scratch, cmd *abi.Command, allowed []glob.Path, current *mailbox.Envelope) (abi.Ref, bool) {
	a := g.actor
	if cmd.ToPath == nil {
		if a.barred(scr, cmd.ToRef, scr.from) {
			g.refused(scr, DeadDenied, cmd.ToRef, "", cmd, current)
			return 0, false
		}
		return cmd.ToRef, true
	}
	at, ok := g.place(scr, cmd, allowed, nil)
	if !ok {
		return 0, false
	}
	t := a.sys.nodes.Find(at.Elements)
	if t == nil || at.UID != 0 && t.uid != at.UID {
		g.refused(scr, DeadUnknown, at.UID, at.Absolute(string(cmd.ToPath)), cmd, nil)
		return 0, false
	}
	return t.uid, true
}

// address is the target of a message to a path. The path of a kept actor leads to its keeper, and name says which
// actor is meant.
func (g *guest) address(scr *scratch, cmd *abi.Command, current *mailbox.Envelope) (uid abi.Ref, name string, ok bool) {
	if uid, name, ok = far(g.actor, cmd); ok {
		return uid, name, true
	}
	at, ok := g.place(scr, cmd, g.actor.caps.send, current)
	if !ok {
		return 0, "", false
	}
	var t *actor
	if at.UID == 0 {
		t, name = g.actor.sys.findDoor(at.Elements)
	} else if t = g.actor.sys.nodes.Find(at.Elements); t != nil && t.uid != at.UID {
		t = nil
	}
	if t == nil {
		g.refused(scr, DeadUnknown, at.UID, at.Absolute(string(cmd.ToPath)), cmd, current)
		return 0, "", false
	}
	g.lastTo = t // found by its path: no guess
	return t.uid, name, true
}

// far is where a command for a path on another node goes, if the actor may send to such a path; see elsewhere.
func far(a *actor, cmd *abi.Command) (abi.Ref, string, bool) {
	if a.sys.carrier.Load() == nil { // before a text is made of the path
		return 0, "", false
	}
	to, below, ok := a.sys.elsewhere(string(cmd.ToPath))
	return to, below, ok && (below == "" || glob.MatchAnyPath(a.caps.send, strings.Split(below, "/")))
}

// place is where the path of a command leads, if the actor may use it.
func (g *guest) place(scr *scratch, cmd *abi.Command, allowed []glob.Path, current *mailbox.Envelope) (place, bool) {
	path := string(cmd.ToPath)
	at, ok := g.actor.parsePath(path)
	switch {
	case !ok:
		g.refused(scr, DeadUnknown, 0, path, cmd, current)
	case !at.Child && !glob.MatchAnyPath(allowed, at.Elements):
		g.refused(scr, DeadDenied, 0, at.Absolute(path), cmd, current)
		ok = false
	}
	return at, ok
}

// errNowhere is all that the asker is told when its question was handed on in vain. It does not say whether
// there is an actor at the path.
var errNowhere = errors.New("host: the question was forwarded to a path without an actor, or to one that the actor may not send to")

// refused makes a dead letter of what a command wanted to send. The letter of a message that was to be handed on
// names its first sender; if the message is a question, that sender is told.
func (g *guest) refused(scr *scratch, reason DeadReason, to abi.Ref, path string, cmd *abi.Command, current *mailbox.Envelope) {
	if cmd.Op == abi.OpForward {
		g.carry(scr, current.Size())
		e := g.actor.handedOn(current)
		g.actor.sys.deadLetter(reason, to, path, &e)
		g.actor.sys.unanswered(scr, &e, g.actor.uid, errNowhere) // it was the actor who was to answer
		return
	}
	e := mailbox.Envelope{Sender: g.actor.uid, Payload: cmd.Payload, Headers: cmd.Headers} // a letter copies what it keeps
	if cmd.Payload == nil {
		e.Flags = mark.Control // it wanted to watch, to stop, to know who is there: no message
	}
	g.actor.sys.deadLetter(reason, to, path, &e)
}

// overLimit is refused for what would exceed a bound of the sender. key is the setting that raises the bound.
func (g *guest) overLimit(key string, to abi.Ref, path string, e mailbox.Envelope) {
	e.Sender = g.actor.uid
	g.actor.sys.deadLetterAt(key, DeadLimit, to, path, &e)
}

// cmdDue marks the send of an ask that has a deadline: guest.due. It is no flag of the ABI.
const cmdDue uint64 = 1 << 63

func (g *guest) ask(scr *scratch, cmd *abi.Command) {
	a := g.actor
	ask, err := a.work.AddAsk(a, cmd.Correlation, cmd.ToRef, time.Duration(cmd.Delay), scr.keep())
	if err != nil {
		path := string(cmd.ToPath)
		if at, ok := a.parsePath(path); ok {
			path = at.Absolute(path)
		}
		g.overLimit(errs.KeyOf(err, "limits.asks"), cmd.ToRef, path, mailbox.Envelope{Payload: cmd.Payload, Headers: cmd.Headers})
		e := hostReply(scr, 0, 0, "ask refused: the correlation is in use or too many asks are pending")
		if cmd.Correlation != 0 && a.work.Asks.Get(cmd.Correlation) == nil { // else it would end the ask that uses it
			e.Correlation, e.Value = cmd.Correlation, stash.Stashed{Incarnation: a.Incarnation()}
		}
		g.tellRefusal(scr, e)
		return
	}
	if v, ok := abi.FindHeader(cmd.Headers, abi.HeaderDeadline); !ok || string(v) != abi.DeadlineNone {
		cmd.Flags |= cmdDue
		g.due = ask.Due.UnixNano()
	}
	if cmd.ToPath == nil {
		g.send(scr, cmd)
		return
	}
	g.askPath(scr, cmd, ask)
}

// askPath asks the actor at a path. Patterns are only sent to.
func (g *guest) askPath(scr *scratch, cmd *abi.Command, ask *asks.Ask) {
	if isIdentify(cmd) {
		g.identify(scr, cmd, ask)
		return
	}
	if uid, name, ok := g.address(scr, cmd, nil); ok {
		ask.Add(uid)
		one := *cmd
		one.ToPath, one.ToRef = nil, uid
		g.sendBelow(scr, &one, name)
		return
	}
	e := hostReply(scr, 0, cmd.Correlation, "the question was not delivered: "+string(cmd.ToPath)+" names nobody, or may not be asked")
	g.tellRefusal(scr, e)
}

// forward sends the current message on.
func (g *guest) forward(scr *scratch, to abi.Ref, name string, current *mailbox.Envelope) {
	g.carry(scr, current.Size())
	g.forwards++ // of a question only so many may be answered by others
	_ = g.actor.forward(scr, to, name, current, g.forwards <= asks.MaxAnswerers)
}

// forward sends a copy of an envelope on with its original sender; the receiver may then
// answer that sender if delegated says so. If there is no room for it nothing is
// copied. What the host itself has told the actor has no sender: it is forwarded with the actor as
// sender, because a message without a sender is one from outside.
func (a *actor) forward(scr *scratch, to abi.Ref, name string, current *mailbox.Envelope, delegated bool) error {
	kind, sender, senderPath, correlation := a.origin(current)
	delegated = delegated && sender == current.Sender
	if t := a.sys.here(to); t != nil && t.gate.Policy() == supervision.MeanwhileKeep && t.box.Full(current.Size()) {
		e, err := a.handedOn(current), t.box.WhyFull()
		a.sys.refuse(scr, DeadMailboxFull, err, t.uid, t.path, &e)
		return err
	}
	e := message.CloneEnvelope(current)
	e.Kind, e.Sender, e.SenderPath, e.Correlation, e.Attached = kind, sender, senderPath, correlation, withoutGrants(e.Attached)
	if kind == current.Kind {
		e.Origin = current.Origin
	}
	if name != "" {
		e.Attached = message.Below(e.Attached, name)
	}
	scr.trace.Stamp(e)
	if delegated {
		a.sys.delegate(scr, e, a.uid, to)
	}
	return a.deliver(scr, to, e)
}

// origin is as what, and in whose name, the current message is sent on. What the host has told the actor is
// no question then: the key of a timer is the correlation of nothing.
func (a *actor) origin(current *mailbox.Envelope) (kind abi.Kind, sender abi.Ref, path string, correlation uint64) {
	kind, sender, path, correlation = current.Kind, current.Sender, current.SenderPath, current.Correlation
	if kind != abi.KindReply && kind != abi.KindReplyError && kind != abi.KindMessage {
		kind = abi.KindMessage
		if sender == 0 {
			sender, path, correlation = a.uid, a.path, 0
		}
	}
	return kind, sender, path, correlation
}

// handedOn is what a letter has of a message that was to be sent on.
func (a *actor) handedOn(current *mailbox.Envelope) mailbox.Envelope {
	kind, sender, path, correlation := a.origin(current)
	return mailbox.Envelope{
		Kind: kind, Flags: current.Flags & (mark.NoInfluence | mark.Suppressed), Sender: sender, SenderPath: path,
		Correlation: correlation, Headers: current.Headers, Payload: current.Payload,
	}
}

// toAll sends to all that a path with patterns names and that the actor may send to.
func (g *guest) toAll(scr *scratch, cmd *abi.Command, current *mailbox.Envelope, send func(one *abi.Command, name string)) {
	a, path := g.actor, string(cmd.ToPath)
	at, ok := a.parsePath(path)
	if !ok {
		g.refused(scr, DeadUnknown, 0, path, cmd, current)
		return
	}
	path = at.Absolute(path)
	if !at.Child && len(a.caps.send) == 0 {
		g.refused(scr, DeadDenied, 0, path, cmd, current)
		return
	}
	found, _ := a.sys.nodes.Reachable(at, a.caps.send, g.walks(scr))
	for _, t := range found {
		one := *cmd
		to, name := t, ""
		if at.UID == 0 {
			to, name = t.door()
		}
		one.ToPath, one.ToRef = nil, to.uid
		g.lastTo = to // found by its path: no guess
		g.carry(scr, len(cmd.Payload))
		send(&one, name)
	}
	switch {
	case len(found) > 0:
	case at.Child || len(paths.Overlapping(a.caps.send, at.Elements)) > 0:
		g.refused(scr, DeadUnknown, 0, path, cmd, current)
	default:
		g.refused(scr, DeadDenied, 0, path, cmd, current)
	}
}

func (g *guest) spawn(scr *scratch, cmd *abi.Command) {
	a := g.actor
	g.spawned++
	var p Props
	var err error
	switch {
	case cmd.Name != nil && !abi.ValidName(cmd.Name):
		err = badName(string(cmd.Name))
	case !glob.MatchAny(a.props.caps.Spawn, string(cmd.Type)):
		// Before the name is looked at: who may not spawn must not learn whether it is a secret.
		err = ErrDenied
	case g.actor.sys.bus.Secrets.Finds(string(cmd.Name)):
		err = errTellingName
	default:
		if p, err = g.childProps(string(cmd.Type), cmd.Options); len(cmd.Payload) > 0 {
			p.args = Raw(append([]byte{}, cmd.Payload...))
		}
	}
	if err == nil {
		_, err = a.spawn(scr, string(cmd.Name), &p, cmd.Ref)
	}
	if err == nil {
		return
	}
	g.spawnRefused(cmd, err)
	e := scr.cache.New()
	e.Kind, e.Sender = abi.KindSpawnFailed, cmd.Ref
	e.Payload = message.AppendText(e.Payload, err.Error())
	g.tellRefusal(scr, e)
}

// tellRefusal tells the actor itself that a command was refused, even if its mailbox is full. When the mailbox holds
// twice what it may, the actor fails: nothing else bounds how often it is told.
func (g *guest) tellRefusal(scr *scratch, e *mailbox.Envelope) {
	a := g.actor
	if err := a.box.Crowded(e.Size()); err != nil {
		scr.cache.Free(e)
		a.fail(scr, &abi.Failure{Kind: abi.FailureMemoryLimit, Reason: "its mailbox is full of what was refused to it, see " + errs.KeyOf(err, "limits.mailbox"), Turn: a.turns}, life.ByItself)
		return
	}
	scr.trace.Stamp(e)
	a.insist(scr, e)
}

// stop stops the actor itself, a child, or an actor that a capability names.
func (g *guest) stop(scr *scratch, cmd *abi.Command) {
	a := g.actor
	uid, ok := g.target(scr, cmd, a.caps.stop, nil)
	if !ok {
		return
	}
	if uid == a.uid {
		a.post(scr, sysmail.Msg{Kind: sysmail.Quit, Kin: sysmail.Kin{Reason: "stopped"}})
		return
	}
	t := a.sys.here(uid)
	if t == nil {
		a.strayed(scr, uid)
		return
	}
	if t.parent != a && !glob.MatchAnyPath(a.caps.stop, t.elements) {
		g.refused(scr, DeadDenied, uid, t.path, cmd, nil)
		return
	}
	t.stop(scr, "")
}

// identify carries out an Identify. Only the host may answer it: ask has no answerer.
func (g *guest) identify(scr *scratch, cmd *abi.Command, ask *asks.Ask) {
	one := abi.Command{Op: cmd.Op, ToPath: cmd.ToPath[1:], Correlation: cmd.Correlation}
	if glob.HasMeta(string(one.ToPath)) {
		g.identifyMany(scr, &one)
		return
	}
	if uid, below, ok := far(g.actor, &one); ok {
		e := newIdentify(g.actor.uid, cmd.Correlation, below)
		e.SetHeaders(ask.Trace)
		_ = g.actor.deliver(scr, uid, e)
		return
	}
	at, ok := g.place(scr, &one, g.actor.caps.send, nil)
	if ok {
		if t := g.actor.sys.nodes.Find(at.Elements); t != nil && (at.UID == 0 || t.uid == at.UID) {
			e := newIdentify(g.actor.uid, cmd.Correlation, "")
			e.SetHeaders(ask.Trace)
			_ = g.actor.sys.deliverTo(scr, t, e) // refused, it is answered, too
			return
		}
	}
	g.tellRefusal(scr, hostReply(scr, 0, cmd.Correlation, abi.NoSuchActor))
}

// identifyMany answers at once who is at a path with patterns.
func (g *guest) identifyMany(scr *scratch, cmd *abi.Command) {
	a, path := g.actor, string(cmd.ToPath)
	at, ok := a.parsePath(path)
	switch {
	case !ok:
		g.refused(scr, DeadUnknown, 0, path, cmd, nil)
	case !at.Child && len(a.caps.send) == 0:
		g.refused(scr, DeadDenied, 0, at.Absolute(path), cmd, nil)
	}
	var found []*actor
	if ok {
		found, _ = a.sys.nodes.Reachable(at, a.caps.send, g.walks(scr))
	}
	e := scr.newEnvelope()
	e.Kind, e.Flags, e.Correlation = abi.KindReply, mark.Ours, cmd.Correlation
	scr.trace.Stamp(e)
	room := mostIdentities
	if most := int(a.props.limits.Message); most > 0 {
		room = min(room, most-e.Size())
	}
	e.Payload = abi.AppendIdentities(e.Payload, len(found), a.sys.identities(found, room))
	g.carry(scr, len(e.Payload))
	if reason, err := a.accept(scr, e); err != nil {
		scr.cache.Free(e)
		g.tellRefusal(scr, hostReply(scr, 0, cmd.Correlation, "the answer was not delivered: "+reason.String()))
	}
}

// watchMany carries out a watch, or its end, of a guest whose path has patterns or covers future actors.
func (g *guest) watchMany(scr *scratch, cmd *abi.Command) {
	a := g.actor
	path, future := strings.CutPrefix(string(cmd.ToPath), futureSign)
	p, ok := a.parsePath(path)
	switch {
	case !ok || p.UID != 0 && future:
		g.refused(scr, DeadUnknown, 0, path, cmd, nil)
		return
	case !p.Child && len(a.caps.send) == 0:
		g.refused(scr, DeadDenied, 0, p.Absolute(path), cmd, nil)
		return
	case cmd.Op == abi.OpUnwatch:
		a.unwatchPath(scr, p, path)
		return
	}
	scope := Present
	if future {
		scope = PresentAndFuture
	}
	switch _, err := a.watchPath(scr, p, path, scope); {
	case errors.Is(err, ErrLimit):
		g.overLimit(errs.KeyOf(err, "limits.watches"), 0, p.Absolute(path), mailbox.Envelope{Flags: mark.Control})
	case err != nil:
		g.refused(scr, DeadUnknown, 0, p.Absolute(path), cmd, nil)
	}
}
