package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Pending is an ask that was sent and may be answered.
type Pending struct {
	sys *System
	uid Ref
	p   *promise
}

// Request sends a message like Ask but does not wait. An error says that the
// message was not accepted. The caller either takes the answer or calls Cancel.
func (s *System) Request(to Ref, v any) (*Pending, error) {
	return s.request(to, v, s.deliver)
}

// TryRequest is Request for callers that try again: a message that finds the
// mailbox full is theirs, and no dead letter.
func (s *System) TryRequest(to Ref, v any) (*Pending, error) {
	return s.request(to, v, s.offer)
}

// TryTell is Tell for callers that try again: a message that finds the mailbox full
// is theirs, and no dead letter.
func (s *System) TryTell(to Ref, v any) error {
	e, err := envelope(v)
	if err != nil {
		return err
	}
	return s.offer(nil, to.uid, e)
}

// offer is deliver, unless the mailbox is full.
func (s *System) offer(scr *scratch, to abi.Ref, e *mailbox.Envelope) error {
	c := s.table.get(to)
	if c == nil {
		return s.deliver(scr, to, e)
	}
	reason, err := s.accept(scr, c, e)
	if err == nil {
		return nil
	}
	if reason != DeadMailboxFull {
		s.deadLetter(reason, c.uid, c.path, e)
	}
	e.Free()
	return err
}

func (s *System) request(to Ref, v any, deliver func(*scratch, abi.Ref, *mailbox.Envelope) error) (*Pending, error) {
	e, err := envelope(v)
	if err != nil {
		return nil, err
	}
	uid, p := s.asks.add()
	e.Sender, e.Correlation = uid, 1
	if err := deliver(nil, to.uid, e); err != nil {
		s.asks.remove(uid)
		return nil, err
	}
	return &Pending{s, Ref{uid: uid}, p}, nil
}

// Answer delivers the answer, once. Its kind tells an answer from an error; see
// [Message.Err].
func (p *Pending) Answer() <-chan Message { return p.p.c }

// Cancel gives up waiting: an answer will be a dead letter.
func (p *Pending) Cancel() { p.sys.asks.remove(p.uid.uid) }

// Abandon is Cancel, and closes the channel of Answer unless an answer is there.
func (p *Pending) Abandon() {
	if p.sys.asks.remove(p.uid.uid) != nil {
		close(p.p.c)
	}
}
