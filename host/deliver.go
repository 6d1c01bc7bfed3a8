package host

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// One way in: deliver finds the receiver of a ref, an actor or a waiter from outside, and
// accept is where the actor takes the message. What is refused there ends as a dead letter; whoever
// waits for an answer to it is told.

// deliver sends an envelope to whoever has the ref. The caller gives the envelope
// up, whatever is returned. scr is nil outside workers.
func (s *System) deliver(scr *scratch, to abi.Ref, e *mailbox.Envelope) error {
	if a := s.table.Get(to); a != nil {
		return s.deliverTo(scr, a, e)
	}
	found, reason, err := s.outside.resolve(s, to, e)
	if !found {
		reason, err = DeadUnknown, ErrUnknown
		switch {
		case to == 0:
			reason = DeadNobody
		case e.Kind == abi.KindReply || e.Kind == abi.KindReplyError:
			reason = DeadLate
		}
		s.stray(scr, to, e.Sender)
	}
	if err != nil {
		s.refuse(scr, reason, err, to, "", e)
	}
	e.Free()
	return err
}

// deliverTo is deliver to an actor that is known.
func (s *System) deliverTo(scr *scratch, a *actor, e *mailbox.Envelope) error {
	reason, err := a.accept(scr, e)
	if err == nil {
		return nil
	}
	if !(reason == DeadMailboxFull && e.Flags&flagTry != 0) {
		s.refuse(scr, reason, err, a.uid, a.path, e)
	}
	e.Free()
	return err
}

// accept puts an envelope into the mailbox, or answers it, or says why not; in that case it
// still belongs to the caller.
func (a *actor) accept(scr *scratch, e *mailbox.Envelope) (DeadReason, error) {
	if p := a.gate.Policy(); p != supervision.MeanwhileKeep && isMail(e) {
		if p == supervision.MeanwhileReply && a.answerForGate(scr, e) {
			e.Free()
			return 0, nil
		}
		return DeadRestarting, ErrRestarting
	}
	if a.props.largest > 0 && e.Size()+overhead > a.props.largest && !a.dropTrace(e) {
		return DeadTooLarge, ErrTooLarge
	}
	if err := a.box.Push(e); err != nil {
		if errors.Is(err, ErrStopped) {
			return DeadStopped, ErrStopped
		}
		return DeadMailboxFull, err
	}
	a.wake(scr)
	return 0, nil
}

// overhead is what an envelope may take in an inbox besides headers and payload.
const overhead = 64

// answerForGate answers a message that comes during a delay. Messages that are no questions, or
// from nobody, cannot be answered.
func (a *actor) answerForGate(scr *scratch, e *mailbox.Envelope) bool {
	if e.Kind != abi.KindMessage || e.Sender == 0 {
		return false
	}
	b, _ := a.backoff()
	reason := b.Reply
	if reason == "" {
		reason = "the actor is about to be restarted"
	}
	_ = a.sys.deliver(scr, e.Sender, hostReply(scr, a.uid, e.Correlation, reason))
	return true
}

// hostReply is an error answer that the host gives on behalf of an actor.
func hostReply(scr *scratch, of abi.Ref, correlation uint64, reason string) *mailbox.Envelope {
	r := scr.newEnvelope()
	r.Kind, r.Sender, r.Correlation, r.Value = abi.KindReplyError, of, correlation, hostAnswer{}
	r.Payload = appendText(r.Payload, reason)
	return r
}

// hostAnswer marks an answer that the host itself gives: it needs no permission.
type hostAnswer struct{}

// Insist puts an envelope of the host's own into the mailbox, however full that is. Any
// goroutine may call it.
func (a *actor) Insist(e *mailbox.Envelope) { a.insist(nil, e) }

func (a *actor) insist(scr *scratch, e *mailbox.Envelope) {
	if !a.box.Force(e) {
		e.Free()
		return
	}
	a.wake(scr)
}

// refuse ends the delivery of a message: it is a dead letter, and whoever waits for an answer to
// it is told. The envelope stays the caller's.
func (s *System) refuse(scr *scratch, reason DeadReason, err error, to abi.Ref, path string, e *mailbox.Envelope) {
	if e.Flags&flagIdentify != 0 {
		s.unidentified(scr, to, e)
		return
	}
	if !isMail(e) || e.Flags&flagResent != 0 {
		return
	}
	s.deadLetterAt(keyOf(err, ""), reason, to, path, e)
	if err == nil {
		err = errors.New("host: " + reason.String())
	}
	s.unanswered(scr, e, to, err)
}

// deadLetter counts, keeps and publishes a message that was not delivered. The envelope
// stays the caller's. Nothing more is sent because of it.
func (s *System) deadLetter(reason DeadReason, to abi.Ref, path string, e *mailbox.Envelope) {
	s.deadLetterAt("", reason, to, path, e)
}

// deadLetterAt is deadLetter with the key of the bound that was met.
func (s *System) deadLetterAt(key string, reason DeadReason, to abi.Ref, path string, e *mailbox.Envelope) {
	if path == "" {
		path, _ = s.recent.find(to)
	}
	l := s.letter(reason, to, path, e)
	l.Key, l.Time = key, s.cfg.clock.Now()
	l.From = s.sender(e).Path()
	kind := EventDeadLetter
	if suppressed(e, reason) {
		kind = EventSuppressed
	} else {
		s.dead.add(&l, e)
	}
	if s.bus.quiet() {
		return
	}
	ev := Event{Kind: kind, Time: l.Time, Ref: s.refOf(to), Dead: &l}
	if t := traceOf(e.Headers); s.cfg.tracer != nil && t.IsValid() {
		ev.Trace = &t
	}
	s.bus.publish(ev)
}

// awaitsReply reports whether somebody waits for an answer to a message.
func awaitsReply(e *mailbox.Envelope) bool {
	return e.Kind == abi.KindMessage && e.Correlation != 0 && e.Sender != 0
}

// unanswered tells the asker that there will be no answer to a message.
func (s *System) unanswered(scr *scratch, e *mailbox.Envelope, to abi.Ref, err error) {
	if !awaitsReply(e) {
		return
	}
	if asker := s.table.Get(e.Sender); asker != nil {
		asker.post(scr, sysMsg{kind: sysUnanswered, ref: to, correlation: e.Correlation, reason: err.Error()})
		return
	}
	s.outside.fail(s, e.Sender, e.Correlation, to, err)
}

// delegate adds to as an answerer of what from was asked.
func (s *System) delegate(scr *scratch, e *mailbox.Envelope, from, to abi.Ref) {
	if !awaitsReply(e) {
		return
	}
	if asker := s.table.Get(e.Sender); asker != nil {
		asker.post(scr, sysMsg{kind: sysDelegate, ref: from, other: to, correlation: e.Correlation})
		return
	}
	s.outside.delegate(e.Sender, e.Correlation, from, to)
}

// isMail reports whether an envelope is a message that somebody has sent, and not the
// host's own.
func isMail(e *mailbox.Envelope) bool {
	switch e.Kind {
	case abi.KindMessage, abi.KindReply, abi.KindReplyError:
		return e.Flags&flagControl == 0
	}
	return false
}

// dead makes a dead letter of an envelope that had been accepted, and frees it. The
// host's own envelopes make none; the asker of an Identify
// gets its answer.
func (a *actor) dead(scr *scratch, reason DeadReason, err error, e *mailbox.Envelope) {
	a.sys.refuse(scr, reason, err, a.uid, a.path, e)
	e.Free()
}

// evict makes dead letters of the oldest messages when too many wait for a restart.
func (a *actor) evict(e *mailbox.Envelope) { a.dead(nil, DeadEvicted, ErrRestarting, e) }
