package look

import (
	"context"
	"sync"
	"sync/atomic"
)

// Visit reads state that belongs to an actor's own run: between two runs if the actor is idle, else as a
// system message. Only the caller waits for it. read must send no system message.
type Visit struct {
	mu    sync.Mutex
	read  func()
	over  atomic.Bool // it was read, or nobody waits any more; set under mu
	seen  bool
	ready chan struct{}
}

// IsOver reports whether it was read, or nobody waits any more.
func (l *Visit) IsOver() bool { return l.over.Load() }

// Answered is closed when it was read, or never will be.
func (l *Visit) Answered() <-chan struct{} { return l.ready }

// At is called within the actor's run.
func (l *Visit) At() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() {
		return
	}
	l.read()
	l.seen = true
	l.over.Store(true)
	close(l.ready)
}

// Gone says that it will not be read: the actor has stopped, or too many looks wait already.
func (l *Visit) Gone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over.Swap(true) {
		close(l.ready)
	}
}

// Wait waits until it was read, or ctx ends.
func (l *Visit) Wait(ctx context.Context) {
	if l == nil {
		return
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
	}
}

// Done reports whether it was read; if not, it never will be.
func (l *Visit) Done() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over.Store(true)
	return l.seen
}
