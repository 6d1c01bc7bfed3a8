package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// waiter is a sender from Go that waits for room.
type waiter struct {
	e    *host.Envelope
	done chan error // of one
}

// letIn admits waiting messages that fit now. mu is held.
func (b *box) letIn(gone *dropped) {
	for len(b.waiters) > 0 {
		w := b.waiters[0]
		err := b.admit(w.e, gone)
		if errors.Is(err, host.ErrMailboxFull) {
			return
		}
		b.waiters[0] = nil
		b.waiters = b.waiters[1:]
		w.done <- err
	}
}

// waitingBox is a box in which a sender from Go may wait.
type waitingBox struct{ *box }

var _ host.WaitingMailbox = waitingBox{}

// Wait implements host.WaitingMailbox.
func (b waitingBox) Wait() time.Duration { return cmp.Or(max(b.wait, 0), DefaultWait) }

// PushWait implements host.WaitingMailbox. Senders that wait get room in the order in which they have
// come, before those that do not wait, as soon as a message is taken out. At most MaxWaiters wait at a
// time; any other sender is refused at once, and so is a message that can never fit.
func (b waitingBox) PushWait(ctx context.Context, e *host.Envelope) error {
	var gone dropped
	b.mu.Lock()
	err := error(host.ErrMailboxFull)
	if len(b.waiters) == 0 || b.closed {
		err = b.admit(e, &gone)
	}
	if !errors.Is(err, host.ErrMailboxFull) || int64(e.Size()) > b.limits.Bytes || len(b.waiters) >= MaxWaiters {
		b.mu.Unlock()
		b.give(&gone)
		return err
	}
	w := &waiter{e, make(chan error, 1)}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	i := slices.Index(b.waiters, w)
	if i >= 0 {
		b.waiters = slices.Delete(b.waiters, i, i+1)
		b.letIn(&gone) // the next one may need less room
	}
	b.mu.Unlock()
	b.give(&gone)
	if i < 0 { // it was let in meanwhile
		return <-w.done
	}
	return fmt.Errorf("%w: nothing was taken out of it in time", host.ErrMailboxFull)
}

// Waiting is how many senders wait.
func (b waitingBox) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiters)
}
