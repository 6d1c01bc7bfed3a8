package host

import (
	"cmp"
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
	"github.com/wasmactors/wasmactors/host/internal/price"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/spawning"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// action is a command of a guest that is carried out, other than a message to a ref: what it names is found, and what the
// guest may not do is refused.
type action struct {
	*guest
	scr     *scratch
	cmd     *abi.Command
	current *mailbox.Envelope // of the turn
}

// leave carries out a command that leaves the actor.
func (o action) leave() {
	a, cmd := o.actor, o.cmd
	o.carried(len(cmd.Payload) + len(cmd.Options)*price.CarriedOption)
	switch cmd.Op {
	case abi.OpSend:
		o.each(action.sendTo)
	case abi.OpForward:
		if cmd.ToPath != nil {
			o.each(action.forwardTo)
		} else if uid, ok := o.target(nil); ok {
			o.forwardTo(uid, "")
		}
	case abi.OpAsk:
		o.ask()
	case abi.OpSpawn:
		o.spawn()
	case abi.OpStop:
		o.stop()
	case abi.OpWatch:
		if paths.IsMany(cmd.ToPath) {
			o.watchMany()
		} else if uid, ok := o.target(a.rules.Load().compiled.send); ok {
			if err := (watching{a, o.scr}).addRef(uid, ""); err != nil {
				o.overLimit(errs.KeyOf(err, "limits.watches"), uid, "watch", mailbox.Envelope{Flags: mark.Control})
			}
		}
	case abi.OpUnwatch:
		if paths.IsMany(cmd.ToPath) {
			o.carried(a.work.Watch.Len() * price.CarriedBytes)
			o.watchMany()
		} else if uid, ok := o.target(a.rules.Load().compiled.send); ok {
			watching{a, o.scr}.dropRef(uid)
		}
	case abi.OpResetBackoff:
		a.resetBackoff(o.scr)
	case abi.OpCancelAsk:
		a.sys.abandoned(o.scr, a.work.DropAsk(a, cmd.Correlation)...)
	}
}

// local carries out a command that only concerns the actor itself.
func (o action) local() {
	a, cmd := o.actor, o.cmd
	switch cmd.Op {
	case abi.OpTimer:
		if err := a.work.SetTimer(a, cmd.Key, time.Duration(cmd.Delay), time.Duration(cmd.Period), cmd.Payload, o.scr.keep()); err != nil {
			o.overLimit(errs.KeyOf(err, "limits.timers"), a.uid, "timer", mailbox.Envelope{Kind: abi.KindTimer, Payload: cmd.Payload})
		}
	case abi.OpCancel:
		a.work.CancelTimer(a, cmd.Key)
	case abi.OpReceiveTimeout:
		a.work.SetReceiveTimeout(a, time.Duration(cmd.Delay))
	case abi.OpStash:
		if cameByMail(o.current) {
			_, _ = a.putAside("", o.current) // refused: a dead letter says so
		}
	case abi.OpUnstash:
		a.work.Unstash(a, &a.box)
	case abi.OpDecide:
		if o.verdict.asked {
			o.verdict.directive = supervision.Directive(cmd.Directive)
		}
	case abi.OpUnhandled:
		if o.current.Kind == abi.KindTerminated {
			a.fail(o.scr, deathPact(a.turns), life.ByItself)
		} else {
			a.sys.seen.Unhandled(a, o.current)
		}
	}
}

// carried lets others run from time to time.
func (o action) carried(bytes int) { o.pace.Carry(o.scr.w, bytes) }

// sendTo sends to an actor, or (with a name) to the child that it keeps.
func (o action) sendTo(uid abi.Ref, name string) {
	one := *o.cmd
	one.ToPath, one.ToRef = nil, uid
	if name == "" {
		o.send(o.scr, &one)
		return
	}
	attached := o.scr.attached
	o.scr.attached = message.Below(attached, name)
	o.send(o.scr, &one)
	o.scr.attached = attached
}

// forwardTo sends the current message on.
func (o action) forwardTo(uid abi.Ref, name string) {
	o.carried(o.current.Size())
	o.forwards++ // of a question only so many may be answered by others
	_ = o.actor.forward(o.scr, uid, name, o.current, o.forwards <= asks.MaxAnswerers)
}

// each calls send for those that the path of the command names: with patterns for all that the actor may send to.
func (o action) each(send func(o action, uid abi.Ref, name string)) {
	if !glob.HasMeta(string(o.cmd.ToPath)) {
		if uid, name, ok := o.address(); ok {
			send(o, uid, name)
		}
		return
	}
	a := o.actor
	at, path, ok := o.pattern()
	if !ok {
		return
	}
	found, _ := a.sys.nodes.Reachable(at, a.rules.Load().compiled.send, o.pace.Walks(o.scr.w))
	for _, t := range found {
		to, name := t, ""
		if at.UID == 0 {
			to, name = t.door()
		}
		o.lastTo = to // found by its path: no guess
		o.carried(len(o.cmd.Payload))
		send(o, to.uid, name)
	}
	switch {
	case len(found) > 0:
	case at.Child || len(paths.Overlapping(a.rules.Load().compiled.send, at.Elements)) > 0:
		o.refused(DeadUnknown, 0, path)
	default:
		o.refused(DeadDenied, 0, path)
	}
}

// pattern is where the path of a command leads that has patterns, if the actor may send anywhere.
func (o action) pattern() (at place, path string, ok bool) {
	path = string(o.cmd.ToPath)
	if at, ok = o.actor.parsePath(path); !ok {
		o.refused(DeadUnknown, 0, path)
		return at, path, false
	}
	if path = at.Absolute(path); !at.Child && len(o.actor.rules.Load().compiled.send) == 0 {
		o.refused(DeadDenied, 0, path)
		return at, path, false
	}
	return at, path, true
}

// target is the actor that a command names. A path without an actor, or that the actor may not use,
// becomes a dead letter, and so does a ref that it may have guessed.
func (o action) target(allowed []glob.Path) (abi.Ref, bool) {
	a := o.actor
	if o.cmd.ToPath == nil {
		if a.barred(o.scr, o.cmd.ToRef, o.scr.from) {
			o.refused(DeadDenied, o.cmd.ToRef, "")
			return 0, false
		}
		return o.cmd.ToRef, true
	}
	t, _, ok := o.place(allowed, false)
	if !ok {
		return 0, false
	}
	return t.uid, true
}

// address is the target of a message to a path. The path of a kept actor leads to its keeper, and name says which
// actor is meant.
func (o action) address() (uid abi.Ref, name string, ok bool) {
	if uid, name, ok = o.far(); ok {
		return uid, name, true
	}
	t, name, ok := o.place(o.actor.rules.Load().compiled.send, true)
	if !ok {
		return 0, "", false
	}
	o.lastTo = t // found by its path: no guess
	return t.uid, name, true
}

// far is where a command for a path on another node goes, if the actor may send to such a path; see elsewhere.
func (o action) far() (abi.Ref, string, bool) {
	a := o.actor
	if !a.sys.far.Joined() { // before a text is made of the path
		return 0, "", false
	}
	to, below, ok := a.sys.far.Elsewhere(string(o.cmd.ToPath))
	return to, below, ok && (below == "" || glob.MatchAnyPath(a.rules.Load().compiled.send, strings.Split(below, "/")))
}

// place is the actor at the path of a command, if the guest may use it. With kept it may be the keeper of the one that is
// meant, which has the name.
func (o action) place(allowed []glob.Path, kept bool) (t *actor, name string, ok bool) {
	s, path := o.actor.sys, string(o.cmd.ToPath)
	at, ok := o.actor.parsePath(path)
	switch {
	case !ok:
		o.refused(DeadUnknown, 0, path)
		return nil, "", false
	case !at.Child && !glob.MatchAnyPath(allowed, at.Elements):
		o.refused(DeadDenied, 0, at.Absolute(path))
		return nil, "", false
	case at.UID == 0 && kept:
		t, name = s.findDoor(at.Elements)
	default:
		if t = s.nodes.Find(at.Elements); t != nil && at.UID != 0 && t.uid != at.UID {
			t = nil
		}
	}
	if t == nil {
		o.refused(DeadUnknown, at.UID, at.Absolute(path))
	}
	return t, name, t != nil
}

// errNowhere is all that the asker is told when its question was handed on in vain. It does not say whether
// there is an actor at the path.
var errNowhere = errors.New("host: the question was forwarded to a path without an actor, or to one that the actor may not send to")

// refused makes a dead letter of what a command wanted to send. The letter of a message that was to be handed on
// names its first sender; if the message is a question, that sender is told.
func (o action) refused(reason DeadReason, to abi.Ref, path string) {
	a, cmd := o.actor, o.cmd
	if cmd.Op == abi.OpForward {
		o.carried(o.current.Size())
		e := message.HandedOn(o.current, a.uid, a.path)
		a.sys.deadLetter(reason, to, path, &e)
		a.sys.unanswered(o.scr, &e, a.uid, errNowhere) // it was the actor who was to answer
		return
	}
	e := mailbox.Envelope{Sender: a.uid, Payload: cmd.Payload, Headers: cmd.Headers} // a letter copies what it keeps
	if cmd.Payload == nil {
		e.Flags = mark.Control // it wanted to watch, to stop, to know who is there: no message
	}
	a.sys.deadLetter(reason, to, path, &e)
}

// overLimit is refused for what would exceed a bound of the sender. key is the setting that raises the bound.
func (o action) overLimit(key string, to abi.Ref, path string, e mailbox.Envelope) {
	e.Sender = o.actor.uid
	o.actor.sys.deadLetterAt(key, DeadLimit, to, path, &e)
}

// cmdDue marks the send of an ask that has a deadline: guest.due. It is no flag of the ABI.
const cmdDue uint64 = 1 << 63

func (o action) ask() {
	a, cmd := o.actor, o.cmd
	ask, err := a.work.AddAsk(a, cmd.Correlation, cmd.ToRef, time.Duration(cmd.Delay), o.scr.keep())
	if err != nil {
		path := string(cmd.ToPath)
		if at, ok := a.parsePath(path); ok {
			path = at.Absolute(path)
		}
		o.overLimit(errs.KeyOf(err, "limits.asks"), cmd.ToRef, path, mailbox.Envelope{Payload: cmd.Payload, Headers: cmd.Headers})
		e := hostReply(o.scr, 0, 0, "ask refused: the correlation is in use or too many asks are pending")
		if cmd.Correlation != 0 && a.work.Asks.Get(cmd.Correlation) == nil { // else it would end the ask that uses it
			e.Correlation, e.Value = cmd.Correlation, stash.Stashed{Incarnation: a.Incarnation()}
		}
		o.tellRefusal(e)
		return
	}
	if v, ok := abi.FindHeader(cmd.Headers, abi.HeaderDeadline); !ok || string(v) != abi.DeadlineNone {
		cmd.Flags |= cmdDue
		o.due = ask.Due.UnixNano()
	}
	if cmd.ToPath == nil {
		if !a.durable || sendKeyed(o, cmd.ToRef) {
			o.send(o.scr, cmd)
		}
		return
	}
	if paths.IsIdentify(cmd.ToPath) {
		o.identify(ask)
		return
	}
	if uid, name, ok := o.address(); ok { // patterns are only sent to
		ask.Add(uid)
		if !a.durable || name != "" || sendKeyed(o, uid) {
			o.sendTo(uid, name)
		}
		return
	}
	o.tellRefusal(hostReply(o.scr, 0, cmd.Correlation, "the question was not delivered: "+string(cmd.ToPath)+" names nobody, or may not be asked"))
}

func (o action) spawn() {
	a, cmd := o.actor, o.cmd
	o.spawned++
	opts, wrong := readOptions(a.sys, cmd.Options)
	err := cmp.Or(o.maySpawn(&opts), wrong)
	past := a.sys.repeats.Load().of(a)
	var p Props
	if err == nil || past != nil && wrong == nil {
		var unfit error
		p, unfit = o.propsOfSpawn(&opts)
		err = cmp.Or(err, unfit)
	}
	switch {
	case past != nil:
		err = past.spawn(a, o.scr, cmd, &p, err)
	case err == nil:
		_, err = a.spawn(o.scr, string(cmd.Name), &p, cmd.Ref)
	}
	if err == nil {
		return
	}
	o.spawnRefused(err)
	e := o.scr.cache.New()
	e.Kind, e.Sender = abi.KindSpawnFailed, cmd.Ref
	e.Payload = message.AppendText(e.Payload, err.Error())
	o.tellRefusal(e)
}

// maySpawn says why the guest may not spawn what it wants; nil: it may.
func (o action) maySpawn(opts *SpawnOptions) error {
	a, cmd := o.actor, o.cmd
	switch {
	case cmd.Name != nil && !abi.ValidName(cmd.Name):
		return errs.BadName(string(cmd.Name))
	case !spawning.May(opts, a.rules.Load().caps.Spawn, string(cmd.Type)):
		// Before the name is looked at: who may not spawn must not learn whether it is a secret.
		return ErrDenied
	case a.sys.seen.Hides(string(cmd.Name)):
		return errTellingName
	}
	return nil
}

// propsOfSpawn are those of the child that the guest spawns, or of what stands for it.
func (o action) propsOfSpawn(opts *SpawnOptions) (p Props, err error) {
	if opts.Elsewhere != nil {
		p, err = standIn(o.guest, o.cmd, opts)
		p.spawned = true
		return p, err
	}
	if p, err = propsOfChild(o.guest, string(o.cmd.Type), o.cmd.Options, opts); len(o.cmd.Payload) > 0 {
		p.args = Raw(append([]byte{}, o.cmd.Payload...))
	}
	return p, err
}

// spawnRefused publishes an event; the actor itself gets a message.
func (o action) spawnRefused(err error) {
	a, cmd := o.actor, o.cmd
	if a.sys.seen.Quiet() {
		return
	}
	r := &Refusal{
		What: "spawn", Type: strings.Clone(string(cmd.Type)), Name: strings.Clone(string(cmd.Name)),
		Reason: strings.TrimPrefix(err.Error(), "host: "), Denied: errors.Is(err, ErrDenied), Key: errs.KeyOf(err, ""),
	}
	r.Limit = r.Key != ""
	a.sys.seen.Refused(a, r)
}

// tellRefusal tells the actor itself that a command was refused, even if its mailbox is full. When the mailbox holds
// twice what it may, the actor fails: nothing else bounds how often it is told.
func (o action) tellRefusal(e *mailbox.Envelope) {
	a := o.actor
	if err := a.box.Crowded(e.Size()); err != nil {
		o.scr.cache.Free(e)
		o.crowdedOut(&abi.Failure{Kind: abi.FailureMemoryLimit, Reason: crowdedOut + errs.KeyOf(err, "limits.mailbox"), Turn: a.turns})
		return
	}
	o.scr.trace.Stamp(e)
	a.insist(o.scr, e)
}

// crowdedOut fails the actor because of what is in its mailbox. That is not the same when a recorded turn is repeated, so a durable
// actor fails by a signal, which is recorded: one for all that is refused in a turn.
func (o action) crowdedOut(f *abi.Failure) {
	a, last := o.actor, &o.scr.crowded
	switch now := (crowded{a.uid, a.turns}); {
	case !a.durable:
		a.fail(o.scr, f, life.ByItself)
	case *last != now && a.sys.repeats.Load().of(a) == nil:
		*last = now
		a.post(o.scr, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: f}})
	}
}

// stop stops the actor itself, a child, or an actor that a capability names.
func (o action) stop() {
	a := o.actor
	uid, ok := o.target(a.rules.Load().compiled.stop)
	if !ok {
		return
	}
	if uid == a.uid {
		a.post(o.scr, sysmail.Msg{Kind: sysmail.Quit, Kin: sysmail.Kin{Reason: "stopped"}})
		return
	}
	t := a.sys.here(uid)
	if t == nil {
		a.strayed(o.scr, uid)
		return
	}
	if t.parent != a && !glob.MatchAnyPath(a.rules.Load().compiled.stop, t.elements) {
		o.refused(DeadDenied, uid, t.path)
		return
	}
	t.stop(o.scr, "")
}

// identify carries out an Identify. Only the host may answer it: ask has no answerer.
func (o action) identify(ask *asks.Ask) {
	a := o.actor
	o.cmd = &abi.Command{Op: o.cmd.Op, ToPath: o.cmd.ToPath[1:], Correlation: o.cmd.Correlation}
	if glob.HasMeta(string(o.cmd.ToPath)) {
		o.identifyMany()
		return
	}
	if uid, below, ok := o.far(); ok {
		e := message.Identify(a.uid, o.cmd.Correlation, below)
		e.SetHeaders(ask.Trace)
		_ = a.deliver(o.scr, uid, e)
	} else if t, _, ok := o.place(a.rules.Load().compiled.send, false); ok {
		e := message.Identify(a.uid, o.cmd.Correlation, "")
		e.SetHeaders(ask.Trace)
		_ = a.sys.deliverTo(o.scr, t, e) // refused, it is answered, too
	} else {
		o.tellRefusal(hostReply(o.scr, 0, o.cmd.Correlation, abi.NoSuchActor))
	}
}

// identifyMany answers at once who is at a path with patterns.
func (o action) identifyMany() {
	a, scr, cmd := o.actor, o.scr, o.cmd
	var found []*actor
	if at, _, ok := o.pattern(); ok {
		found, _ = a.sys.nodes.Reachable(at, a.rules.Load().compiled.send, o.pace.Walks(scr.w))
	}
	e := scr.newEnvelope()
	e.Kind, e.Flags, e.Correlation = abi.KindReply, mark.Ours, cmd.Correlation
	scr.trace.Stamp(e)
	room := mostIdentities
	if most := int(a.rules.Load().limits.Message); most > 0 {
		room = min(room, most-e.Size())
	}
	e.Payload = abi.AppendIdentities(e.Payload, len(found), a.sys.identities(found, room))
	o.carried(len(e.Payload))
	if reason, err := a.accept(scr, e, 0); err != nil {
		scr.cache.Free(e)
		o.tellRefusal(hostReply(scr, 0, cmd.Correlation, "the answer was not delivered: "+reason.String()))
	}
}

// watchMany carries out a watch, or its end, of a guest whose path has patterns or covers future actors.
func (o action) watchMany() {
	a := o.actor
	path, future := strings.CutPrefix(string(o.cmd.ToPath), paths.Future)
	p, ok := a.parsePath(path)
	switch {
	case !ok || p.UID != 0 && future:
		o.refused(DeadUnknown, 0, path)
		return
	case !p.Child && len(a.rules.Load().compiled.send) == 0:
		o.refused(DeadDenied, 0, p.Absolute(path))
		return
	case o.cmd.Op == abi.OpUnwatch:
		watching{a, o.scr}.dropPath(p, path)
		return
	}
	scope := Present
	if future {
		scope = PresentAndFuture
	}
	switch _, err := (watching{a, o.scr}).addPath(p, path, scope); {
	case errors.Is(err, ErrLimit):
		o.overLimit(errs.KeyOf(err, "limits.watches"), 0, p.Absolute(path), mailbox.Envelope{Flags: mark.Control})
	case err != nil:
		o.refused(DeadUnknown, 0, p.Absolute(path))
	}
}
