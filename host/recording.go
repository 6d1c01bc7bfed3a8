package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/recordbox"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What a recorder is told besides turns: the messages that mailboxes accept, the signals and orders that actors
// deal with, and the lives that begin and end.

// tellRecorder notes r, unless the record is one that is being repeated.
func tellRecorder(s *System, r *record.Record) {
	if p := s.repeats.Load(); p == nil || p.over.Load() {
		s.cfg.Recorder.Note(r)
	}
}

// noteLife tells the recorder of a change of an actor's life.
func noteLife(a *actor, k record.Kind) {
	if !a.durable || a.parent == nil {
		return
	}
	l := &record.Life{Path: a.path, Type: a.props.typ, Args: a.args, Parent: a.above, Incarnation: a.Incarnation()}
	if k == record.Began && a.props.module != nil {
		l.Code = born(a.behaviour.(*guest))
	}
	if k == record.Began || k == record.Changed {
		rules := ruledBy(a, true)
		l.Limits, l.Rules = &a.rules.Load().limits, &rules
	}
	tellRecorder(a.sys, &record.Record{Kind: k, Actor: a.uid, Time: a.sys.time.Now(), Life: l})
}

// uidOfAny is the ref of a child in a system message.
func uidOfAny(child any) abi.Ref { return child.(*actor).uid }

// noteSignal tells the recorder of a system message that the actor is about to handle.
func noteSignal(a *actor, m *sysmail.Msg) {
	switch {
	case m.How.Has(sysmail.Noted), a.parent == nil && m.Kind == sysmail.Start:
		return
	case a.parent == nil && a.sys.durable != nil && !concernsDurable(a, m):
		return
	}
	if s, ok := sysmail.Recorded(m, uidOfAny); ok {
		if n, renews := m.Detail.(*renewal); renews {
			s.How |= uint16(sysmail.Renews)
			noteRenewal(a, m, n)
		}
		tellRecorder(a.sys, &record.Record{Kind: record.Took, Actor: a.uid, Time: a.Now().UnixNano(), Signal: &s})
	}
}

// noteRenewal tells the recorder what a restart is about to change of the actor: arguments and limits of the next incarnation.
func noteRenewal(a *actor, m *sysmail.Msg, n *renewal) {
	if m.Kind != sysmail.Restart || n.props == nil {
		return
	}
	l, rules := limitsAfter(a, n.props), rulesAfter(a, n.props)
	tellRecorder(a.sys, &record.Record{Kind: record.Changed, Actor: a.uid, Time: a.sys.time.Now(), Life: &record.Life{
		Path: a.path, Type: a.props.typ, Args: argsOf(n.props), Parent: a.above, Incarnation: a.Incarnation() + 1, Limits: &l, Rules: &rules,
	}})
}

// noteControl tells the recorder of a message that the host handles instead of the actor.
func noteControl(a *actor, e *mailbox.Envelope) {
	tellRecorder(a.sys, &record.Record{Kind: record.Took, Actor: a.uid, Time: a.Now().UnixNano(), Signal: &record.Signal{What: "message", Position: e.Position}})
}

// popControl takes the message out of the mailbox.
func popControl(a *actor, e *mailbox.Envelope) {
	if a.box.Pop(); a.durable && (a.parent != nil || a.sys.durable == nil) {
		noteControl(a, e)
	}
}

// noteBox notes the recorded mailbox of an actor.
func noteBox(a *actor, b *recordbox.Box) *recordbox.Box {
	if a.sealed == nil {
		a.sealed = newSealed(a)
	}
	a.sealed.box = b
	return b
}

// recordUsual has all that comes into the usual mailbox of an actor recorded.
func recordUsual(a *actor) { noteBox(a, recordbox.Before(mailOf{a}, a.uid, &a.sys.told, &a.box)) }

// recordedMailbox stands before another mailbox of an actor, or before a usual one that others stand before.
func recordedMailbox(a *actor, make func(MailboxLimits) Mailbox) func(MailboxLimits) Mailbox {
	return func(l MailboxLimits) Mailbox {
		inner := Mailbox(nil)
		if make != nil {
			inner = make(l)
		} else {
			inner = box.NewPlain(l)
		}
		return noteBox(a, recordbox.New(mailOf{a}, a.uid, &a.sys.told, &a.box, inner))
	}
}

// systemMessage is a recorded signal as it comes from outside: an operator, an alarm, an actor that is not
// rebuilt. It is nil for what cannot come from there.
func systemMessage(a *actor, s *record.Signal) *sysmail.Msg {
	m := sysmail.FromOutside(s)
	switch {
	case m == nil:
	case m.Kind == sysmail.RestartDue:
		if a.restart != nil {
			a.restart.alarm.Stop()
		}
		m.Due = a.restart
	case m.Kind == sysmail.GraceOver:
		m.Due = a.gate.Grace()
	}
	return m
}
