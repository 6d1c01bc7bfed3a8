package host

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// overhead is what an envelope may take in an inbox besides headers and payload.
const overhead = 64

// deliver sends an envelope to whoever has the ref: an actor, or an ask that
// waits for an answer. The envelope is not the caller's any more, whatever comes
// back. scr is nil outside workers.
func (s *System) deliver(scr *scratch, to abi.Ref, e *mailbox.Envelope) error {
	if c := s.table.get(to); c != nil {
		return s.push(scr, c, e)
	}
	if found, err := s.asks.resolve(s, to, e); found {
		if err != nil {
			s.deadLetter(DeadMailboxFull, to, "", e)
		}
		e.Free()
		return err
	}
	reason := DeadUnknown
	switch {
	case to == 0:
		reason = DeadNobody
	case e.Kind == abi.KindReply || e.Kind == abi.KindReplyError:
		reason = DeadLate
	}
	s.deadLetter(reason, to, "", e)
	e.Free()
	return ErrUnknown
}

// push puts an envelope into an actor's mailbox; one that is refused becomes a dead
// letter.
func (s *System) push(scr *scratch, c *cell, e *mailbox.Envelope) error {
	reason, err := s.accept(scr, c, e)
	if err != nil {
		s.deadLetter(reason, c.uid, c.path, e)
		e.Free()
	}
	return err
}

// accept puts an envelope into an actor's mailbox, or says why not; then it is
// still the caller's.
func (s *System) accept(scr *scratch, c *cell, e *mailbox.Envelope) (DeadReason, error) {
	if c.gate.Load() != 0 {
		if refused, answered := c.refusedByGate(scr, e); answered {
			e.Free()
			return 0, nil
		} else if refused {
			return DeadRestarting, ErrRestarting
		}
	}
	if c.props.image != nil && e.Size()+overhead > sandbox.InboxCap(c.props.image) {
		return DeadTooLarge, ErrTooLarge
	}
	if err := c.mbox.Push(e); err != nil {
		if errors.Is(err, mailbox.ErrClosed) {
			return DeadStopped, ErrStopped
		}
		return DeadMailboxFull, ErrMailboxFull
	}
	c.wake(scr)
	return 0, nil
}

// deadLetter counts, keeps and publishes a message that was not delivered. The
// envelope stays the caller's.
func (s *System) deadLetter(reason DeadReason, to abi.Ref, path string, e *mailbox.Envelope) {
	if e.Flags&flagIdentify != 0 {
		s.unidentified(nil, to, e)
		return
	}
	l := letter(reason, to, path, e)
	l.From = s.refOf(e.Sender).Path()
	kind := EventDeadLetter
	if e.Flags&flagSuppressed != 0 {
		kind = EventSuppressed
	} else {
		s.dead.add(l)
	}
	if s.bus.quiet() {
		return
	}
	s.bus.publish(Event{Kind: kind, Time: s.cfg.clock.Now(), Ref: s.refOf(to), Dead: &l})
}

func letter(reason DeadReason, to abi.Ref, path string, e *mailbox.Envelope) DeadLetter {
	return DeadLetter{
		Reason: reason, Kind: e.Kind, Sender: e.Sender, Recipient: to, Path: path,
		Payload: kept(e.Payload), Size: len(e.Payload),
	}
}

// kept is what a report keeps of a payload.
func kept(payload []byte) []byte {
	return append([]byte(nil), payload[:min(len(payload), MaxDeadPayload)]...)
}
