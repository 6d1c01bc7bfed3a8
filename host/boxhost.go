package host

import (
	"context"
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Mailboxes that do more than take in and hand out: they drop messages, pay for what they hold
// while they take it in, let senders from Go wait, or are notified of failed turns.

// boxHost is an actor as its mailbox sees it.
type boxHost struct{ a *actor }

// Self is the ref and the path of the actor, for mailboxes of package host/persist.
func (h boxHost) Self() (abi.Ref, string) { return h.a.uid, h.a.path }

// Dropped implements MailboxHost.
func (h boxHost) Dropped(e *Envelope, why DeadReason) {
	err := ErrDropped
	switch why {
	case DeadDuplicate:
		err = ErrDuplicate
	case DeadEvicted:
		err = ErrRestarting
	}
	h.a.dead(nil, why, err, e)
}

// Reserve implements MailboxHost.
func (h boxHost) Reserve(bytes int64, must bool) error {
	if bytes <= 0 || must {
		h.a.account.ShrinkMailbox(-bytes)
		return nil
	}
	return h.a.account.GrowMailbox(bytes)
}

// evict makes a dead letter of one of the oldest messages when too many wait for a restart.
func (h boxHost) evict(e *Envelope) { h.Dropped(e, DeadEvicted) }

// introduce introduces the mailbox of an actor to the actor, and what stands before a recorded one.
func introduce(a *actor) {
	m := a.box.Other
	if b := recordedOf(a); b != nil {
		if x, ok := m.(interface{ Before(MailboxHost) }); ok {
			x.Before(boxHost{a})
		}
		m = b.Inner()
	}
	if m, ok := m.(HostedMailbox); ok {
		a.box.Host(m, boxHost{a})
	}
}

// Offer is Tell that waits while the receiver's mailbox is full, if it is one in which senders
// may wait (host/mailbox.Block): until there is room, the mailbox's own wait time is over, or ctx
// ends. Then the error wraps ErrMailboxFull. Other mailboxes answer at once. It is for
// goroutines outside of actors; a turn that calls it blocks its worker.
func (s *System) Offer(ctx context.Context, to Ref, v any) (err error) {
	e, err := message.Envelope(v)
	if err != nil {
		return err
	}
	if s.cfg.Tracer != nil || e.Value != nil {
		span := s.fromOutside(ctx, SendSpan, to, e)
		defer func() { s.tracing.Sent(span, err) }()
	}
	return s.deliverPatiently(ctx, to.UID(), e)
}

// deliverPatiently is deliver for senders from outside that may wait.
func (s *System) deliverPatiently(ctx context.Context, to abi.Ref, e *mailbox.Envelope) error {
	if a := s.here(to); a != nil {
		return s.offerTo(ctx, a, e)
	}
	return s.deliver(nil, to, e)
}

// offerTo is deliverPatiently to a known actor.
func (s *System) offerTo(ctx context.Context, a *actor, e *mailbox.Envelope) error {
	if a.box.Other == nil {
		return s.deliverTo(nil, a, e)
	}
	w, ok := a.box.Other.(WaitingMailbox)
	if !ok {
		return s.deliverTo(nil, a, e)
	}
	reason, err := a.accept(nil, e, 0)
	if reason == DeadMailboxFull {
		if err = a.box.Wait(ctx, a.Clock(), w, e); err == nil {
			a.place.Wake(nil)
		} else if errors.Is(err, ErrStopped) {
			reason = DeadStopped
		}
	}
	if err != nil {
		s.refuse(nil, reason, err, a.uid, a.path, e)
		e.Free()
	}
	return err
}
