package host

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// One way in: deliver finds the receiver of a ref, an actor or a waiter from outside, and accept is where the actor
// takes the message. A refused message becomes a dead letter, and a waiting asker is notified.

// deliver sends an envelope to the receiver with the ref. The caller gives up the envelope in any case. scr is nil outside
// workers.
func (s *System) deliver(scr *scratch, to abi.Ref, e *mailbox.Envelope) error {
	if a := s.table.Get(to); a != nil {
		return s.deliverTo(scr, a, e)
	}
	if scr != nil && scr.after != 0 && s.outside.Has(to) {
		deliverLater(s, scr, to, e)
		return nil
	}
	found, reason, err := s.outside.Resolve(to, e)
	if !found {
		reason, err = DeadUnknown, s.far.Send(to, e)
		switch {
		case err == nil:
		case err == ErrTooLarge:
			reason = DeadTooLarge
		case errors.Is(err, ErrMailboxFull):
			reason = DeadMailboxFull
		case to == 0:
			reason = DeadNobody
		case e.Kind == abi.KindReply || e.Kind == abi.KindReplyError:
			reason = DeadLate
		}
	}
	if err != nil {
		s.refuse(scr, reason, err, to, "", e)
	}
	e.Free()
	return err
}

// deliverTo is deliver to an actor that is known.
func (s *System) deliverTo(scr *scratch, a *actor, e *mailbox.Envelope) error {
	at := int64(0)
	if scr != nil && scr.after != 0 {
		if !a.durable {
			deliverLater(s, scr, a.uid, e)
			return nil
		}
		at = scr.afterAt
	}
	reason, err := a.accept(scr, e, at)
	if err == nil {
		return nil
	}
	noteRefusal(scr, a, e)
	if !(reason == DeadMailboxFull && e.Flags&mark.Try != 0) {
		s.refuse(scr, reason, err, a.uid, a.path, e)
	}
	e.Free()
	return err
}

// accept puts an envelope into the mailbox, or answers it, or says why not; in that case it still belongs to the caller. at is when a
// recorded turn has sent it; 0: now, or nobody records it.
func (a *actor) accept(scr *scratch, e *mailbox.Envelope, at int64) (DeadReason, error) {
	if p := a.gate.Policy(); p != supervision.MeanwhileKeep && mark.IsMail(e) {
		if p == supervision.MeanwhileReply && a.answerForGate(scr, e) {
			e.Free()
			return 0, nil
		}
		return DeadRestarting, ErrRestarting
	}
	if most := a.rules.Load().limits.Message; most > 0 && int64(e.Size()) > most && !a.sys.tracing.Fits(e, most) {
		return DeadTooLarge, ErrTooLarge
	}
	err := error(nil)
	if at == 0 {
		err = a.box.Push(e)
	} else {
		err = pushAt(a, e, at)
	}
	if err != nil {
		if errors.Is(err, ErrStopped) {
			return DeadStopped, ErrStopped
		}
		return DeadMailboxFull, err
	}
	a.place.Wake(scr.worker())
	return 0, nil
}

// noteRefusal tells the recorder of a message that a recorded actor has refused, if it was sent in the turn of one.
func noteRefusal(scr *scratch, a *actor, e *Envelope) {
	s := a.sys
	if !a.durable || a.parent == nil || !mark.IsMail(e) || s.durable != nil && (scr == nil || scr.after == 0) || s.repeats.Load() != nil {
		return
	}
	m := record.Refusal(e)
	s.cfg.Recorder.Note(&record.Record{Kind: record.Refused, Actor: a.uid, Time: s.time.Now(), Message: &m})
}

// overhead is the space that an envelope may take in an inbox in addition to headers and payload.
const overhead = 64

// answerForGate answers a message that comes during a delay. Messages that are not questions, or have no sender, cannot be
// answered.
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
	r.Kind, r.Flags, r.Sender, r.Correlation = abi.KindReplyError, mark.Ours, of, correlation
	r.Payload = message.AppendText(r.Payload, reason)
	return r
}

// Insist puts an envelope of the host's own into the mailbox, however full that is. Any
// goroutine may call it.
func (a *actor) Insist(e *mailbox.Envelope) { a.insist(nil, e) }

func (a *actor) insist(scr *scratch, e *mailbox.Envelope) {
	if !a.box.Force(e) {
		e.Free()
		return
	}
	a.place.Wake(scr.worker())
}

// refuse ends the delivery of a message: it becomes a dead letter, and a waiting asker is notified. The caller keeps the
// envelope.
func (s *System) refuse(scr *scratch, reason DeadReason, err error, to abi.Ref, path string, e *mailbox.Envelope) {
	if s.repeats.Load() != nil {
		return // what follows is in the records
	}
	if e.Flags&mark.Identify != 0 {
		s.unidentified(scr, to, e)
		return
	}
	if !mark.IsMail(e) || e.Flags&mark.Resent != 0 {
		return
	}
	s.deadLetterAt(errs.KeyOf(err, ""), reason, to, path, e)
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
		path, _ = s.recent.Find(to)
	}
	s.seen.Undelivered(reason, key, to, path, e)
}

// dead makes a dead letter of an envelope that had been accepted, and frees it. The
// host's own envelopes make none; the asker of an Identify
// gets its answer.
func (a *actor) dead(scr *scratch, reason DeadReason, err error, e *mailbox.Envelope) {
	a.sys.refuse(scr, reason, err, a.uid, a.path, e)
	e.Free()
}

// unidentified answers that no actor is there, or not any more.
func (s *System) unidentified(scr *scratch, uid abi.Ref, asked *mailbox.Envelope) {
	r := hostReply(scr, uid, asked.Correlation, abi.NoSuchActor)
	r.SetHeaders(asked.Headers)
	_ = s.deliver(scr, asked.Sender, r)
}

// backoff returns the supervisor's backoff if there is one.
func (a *actor) backoff() (supervision.Backoff, bool) {
	if a.parent == nil {
		return supervision.Backoff{}, false
	}
	return a.parent.props.strategy.Backoff()
}

// tellResender tells the actor's parent that the turn of a message has failed which the parent has sent.
func (a *actor) tellResender(scr *scratch, failed *mailbox.Envelope) {
	id, ok := header.Number(failed.Headers, abi.HeaderID)
	if !ok || a.parent == nil {
		return
	}
	e := scr.newEnvelope()
	e.Kind, e.Sender, e.Correlation, e.Value = abi.KindMessage, a.uid, id, blame{}
	a.parent.insist(scr, e)
}

// deliverLater is deliver to a receiver that is not durable, when the turn that sends is.
func deliverLater(s *System, scr *scratch, to abi.Ref, e *Envelope) {
	leaveLater(s, scr, e.Size()+overhead, func(err error) {
		if err != nil {
			if e.Kind == abi.KindReply || e.Kind == abi.KindReplyError {
				s.willNotAnswer(nil, to, e.Correlation, e.Sender, err)
			}
			e.Free()
			return
		}
		_ = s.deliver(nil, to, e)
	})
}
