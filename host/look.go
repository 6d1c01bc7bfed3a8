package host

import (
	"context"
	"sync"
	"sync/atomic"
)

// look reads state that belongs to an actor's own run: between two runs if the actor is idle, else as a
// system message. Only the caller waits for it. read must send no system message.
type look struct {
	mu    sync.Mutex
	read  func()
	over  atomic.Bool // it was read, or nobody waits any more; set under mu
	seen  bool
	ready chan struct{}
}

// lookAt calls read where the actor's own run would, now or later.
func (a *actor) lookAt(read func()) *look {
	l := &look{read: read, ready: make(chan struct{})}
	if a.disp.Visit(&a.task, func() { l.at(a) }) {
		return l
	}
	if !a.post(nil, sysMsg{kind: sysLook, own: own{look: l}}) {
		l.gone()
	}
	return l
}

// at is called within the actor's run.
func (l *look) at(*actor) {
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

// gone says that it will not be read: the actor has stopped, or too many looks wait already.
func (l *look) gone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over.Swap(true) {
		close(l.ready)
	}
}

// wait waits until it was read, or ctx ends.
func (l *look) wait(ctx context.Context) {
	if l == nil {
		return
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
	}
}

// done reports whether it was read; if not, it never will be.
func (l *look) done() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over.Store(true)
	return l.seen
}
