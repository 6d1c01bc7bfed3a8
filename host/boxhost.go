package host

import (
	"context"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Mailboxes that do more than take in and hand out: they drop messages, pay for what they hold
// while they take it in, let senders from Go wait, or are notified of failed turns.

// MailboxHost is what an actor does for its mailbox. Its methods are for any goroutine.
type MailboxHost interface {
	// Dropped takes over an envelope that the mailbox drops, one that it has had or one that is
	// being pushed. It becomes a dead letter, and a waiting asker is notified. The caller holds no
	// lock.
	Dropped(e *Envelope, why DeadReason)
	// Reserve changes the bytes that the actor's account holds for the mailbox. The error says which limit is reached; it is
	// nil if must is set or bytes is negative. Calls must not overlap: the mailbox's lock ensures that.
	Reserve(bytes int64, must bool) error
}

// HostedMailbox is a mailbox that works with its actor.
type HostedMailbox interface {
	Mailbox
	// Hosted is called once, before anything else.
	Hosted(h MailboxHost)
	// The consumer calls EndRun at the end of each run. The mailbox may release what it has reserved and does not need.
	EndRun()
	// Order returns how many envelopes arrived before the one that has waited longest (all of them, if none waits), and how
	// many arrived in total. Any goroutine may call it.
	Order() (before, came uint64)
	// Trim drops sent messages, as DeadEvicted, until at most `most` of them wait: the least urgent first, and of these the
	// oldest first. The consumer calls it.
	Trim(most int)
	// Failed says that the turn of a popped envelope has failed, before anyone else is notified. The caller keeps the
	// envelope and may put it back. The consumer calls it.
	Failed(e *Envelope)
}

// WaitingMailbox is a mailbox in which senders from Go may wait for room.
type WaitingMailbox interface {
	Mailbox
	// PushWait is Push that waits while the mailbox is full. If ctx ends first, the error wraps ErrMailboxFull.
	PushWait(ctx context.Context, e *Envelope) error
	// Wait is the longest time that a sender waits.
	Wait() time.Duration
}

// FromOutside reports whether the sender of an envelope is not an actor.
func FromOutside(e *Envelope) bool { return e.Sender == 0 || ref.IsTemp(e.SenderPath) }

// boxHost is an actor as its mailbox sees it.
type boxHost struct{ a *actor }

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

// trim drops what exceeds the bound of messages that wait for a restart.
func (a *actor) trim() {
	if a.box.hosted != nil {
		a.box.hosted.Trim(a.gate.Bound())
		return
	}
	a.gate.Trim(&a.box, isMail, a.evict)
}

// host introduces the mailbox to its actor and the actor to its mailbox.
func (b *box) host(a *actor) {
	if m, ok := behindRecorder(b.other).(HostedMailbox); ok {
		b.hosted = m
		m.Hosted(boxHost{a})
	}
}

// Offer is Tell that waits while the receiver's mailbox is full, if it is one in which senders
// may wait (host/mailbox.Block): until there is room, the mailbox's own wait time is over, or ctx
// ends. Then the error wraps ErrMailboxFull. Other mailboxes answer at once. It is for
// goroutines outside of actors; a turn that calls it blocks its worker.
func (s *System) Offer(ctx context.Context, to Ref, v any) (err error) {
	e, err := envelope(v)
	if err != nil {
		return err
	}
	if s.cfg.tracer != nil || e.Value != nil {
		span := s.fromOutside(ctx, SendSpan, to, e)
		defer func() { s.sent(span, err) }()
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
	if a.box.other == nil {
		return s.deliverTo(nil, a, e)
	}
	w, ok := a.box.other.(WaitingMailbox)
	if !ok {
		return s.deliverTo(nil, a, e)
	}
	reason, err := a.accept(nil, e)
	if reason == DeadMailboxFull {
		reason, err = a.acceptLater(ctx, w, e)
	}
	if err != nil {
		s.refuse(nil, reason, err, a.uid, a.path, e)
		e.Free()
	}
	return err
}

// acceptLater waits for room.
func (a *actor) acceptLater(ctx context.Context, w WaitingMailbox, e *mailbox.Envelope) (DeadReason, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := a.Clock().AfterFunc(w.Wait(), cancel)
	defer timer.Stop()
	err := w.PushWait(ctx, e)
	switch {
	case err == nil:
		a.wake(nil)
		return 0, nil
	case errors.Is(err, ErrStopped):
		return DeadStopped, ErrStopped
	}
	return DeadMailboxFull, a.box.which(err)
}

// pushOther is Push to a mailbox other than the usual one.
func (b *box) pushOther(e *Envelope) error {
	if err := b.other.Push(e); err != nil {
		return b.which(err)
	}
	return nil
}

// which adds the bound of a mailbox other than the usual one that was met, if the mailbox does not say so itself.
func (b *box) which(err error) error {
	switch {
	case !errors.Is(err, ErrMailboxFull) || keyOf(err, "") != "":
		return err
	case b.other.Len() >= b.limits.Messages:
		return fullOfMessages
	}
	return fullOfBytes
}
