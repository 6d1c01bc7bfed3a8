package host

import "github.com/wasmactors/wasmactors/runtime/mailbox"

// Pending is an ask that was sent and may be answered.
type Pending struct {
	sys *System
	uid Ref
	p   *promise
}

// Request sends a message like Ask but does not wait. An error says that the
// message was not accepted. The caller either takes the answer or calls Cancel.
func (s *System) Request(to Ref, v any) (*Pending, error) {
	payload, err := Encode(v)
	if err != nil {
		return nil, err
	}
	uid, p := s.asks.add()
	e := mailbox.New()
	e.Sender, e.Correlation = uid, 1
	e.SetPayload(payload)
	if err := s.deliver(nil, to.uid, e); err != nil {
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
