package stream

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// half is what sources and sinks have in common: the world's side, which waits, and the
// actor's, which does not.
type half struct {
	p        Params
	deadline deadline
	turn     chan struct{} // held by the one caller outside that may go on
	wake     chan struct{} // wakes the waiting side to look again
	done     chan struct{} // closed when the stream is over

	mu   sync.Mutex
	sys  *host.System // once the actor has started
	self host.Ref
	last time.Time // when the stream last waited for the guest, by the system's clock
	over bool
	why  error // it is over; nil: everything has come through
}

func (h *half) init(p Params) {
	h.p = p.withDefaults()
	h.turn, h.wake, h.done = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
}

// Done is closed when the stream is over: nothing more comes through.
func (h *half) Done() <-chan struct{} { return h.done }

// Err is why the stream is over: nil if everything has come through, and while it is not
// over.
func (h *half) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// enter waits until the caller is the only one on its side.
func (h *half) enter(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	switch executor.Put(h.p.Clock, h.turn, struct{}{}, ctx.Done(), h.deadline.reached()) {
	case 0:
		return nil
	case 1:
		return context.Cause(ctx)
	default:
		return os.ErrDeadlineExceeded
	}
}

func (h *half) leave() { <-h.turn }

// late is why the caller must not wait, nil if it may.
func (h *half) late(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.deadline.reached():
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// wait waits until there is something to look at.
func (h *half) wait(ctx context.Context) error {
	_, which := executor.Take(h.p.Clock, h.wake, h.done, ctx.Done(), h.deadline.reached())
	switch which {
	case 2:
		return context.Cause(ctx)
	case 3:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// rouse makes the waiting side look again.
func (h *half) rouse() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// finish ends the stream, and its actor. The caller holds the lock.
func (h *half) finish(why error) {
	if h.over {
		return
	}
	h.over, h.why = true, why
	close(h.done)
	if h.sys != nil {
		h.sys.Stop(h.self)
	}
	if h.p.OnEnd != nil {
		h.p.OnEnd(why)
	}
}

// touch notes that the guest is not idle. The caller holds the lock.
func (h *half) touch() {
	if h.sys != nil {
		h.last = h.sys.Clock().Now()
	}
}

// live is the handles whose answers somebody still waits for.
func live[T any](of []T, reply func(T) *host.Reply) []T {
	n := 0
	for _, x := range of {
		select {
		case <-reply(x).Gone():
		default:
			of[n] = x
			n++
		}
	}
	clear(of[n:])
	return of[:n]
}
