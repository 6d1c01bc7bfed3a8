// Package fair is the mailbox of actors with many senders that do not trust each other.
package fair

import (
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host"
)

// Mailbox limits the messages of one top-level subtree to a quarter of it. A guest that floods it loses only its own
// messages.
type Mailbox struct {
	mu     sync.Mutex
	limits host.MailboxLimits
	queue  []*host.Envelope // from first on
	first  int
	bytes  int64
	trees  map[string]load // what waits of each
	closed bool
}

// load is what waits, in messages and bytes.
type load struct {
	messages int
	bytes    int64
}

// share: a subtree may fill at most this part of the mailbox (1/4).
const share = 4

// New makes one, for host.Props.WithMailbox. All methods are for any goroutine.
func New(l host.MailboxLimits) host.Mailbox {
	return &Mailbox{limits: l, trees: map[string]load{}}
}

// treeOf is the top-level actor that an envelope's sender is below.
func treeOf(e *host.Envelope) string {
	_, rest, _ := strings.Cut(e.SenderPath, "://")
	parts := 0
	for i := range len(rest) {
		if rest[i] == '/' {
			if parts++; parts == 3 { // system, user, name
				return rest[:i]
			}
		}
	}
	return rest
}

// Push implements host.Mailbox.
func (f *Mailbox) Push(e *host.Envelope) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	tree, size := treeOf(e), int64(e.Size())
	its := f.trees[tree]
	switch {
	case f.closed:
		return host.ErrStopped
	case len(f.queue)-f.first >= f.limits.Messages || f.bytes+size > f.limits.Bytes,
		its.messages >= max(f.limits.Messages/share, 1) || its.bytes+size > f.limits.Bytes/share:
		return host.ErrMailboxFull
	}
	f.queue = append(f.queue, e)
	f.count(tree, 1, size)
	return nil
}

// count notes what comes and goes. mu is held.
func (f *Mailbox) count(tree string, messages int, bytes int64) {
	f.bytes += bytes
	its := load{f.trees[tree].messages + messages, f.trees[tree].bytes + bytes}
	if its.messages == 0 {
		delete(f.trees, tree)
		return
	}
	f.trees[tree] = its
}

// Force implements host.Mailbox.
func (f *Mailbox) Force(e *host.Envelope) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.queue = append(f.queue, e)
	f.count(treeOf(e), 1, int64(e.Size()))
	return true
}

// Pop implements host.Mailbox.
func (f *Mailbox) Pop() *host.Envelope {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == len(f.queue) {
		return nil
	}
	e := f.queue[f.first]
	f.queue[f.first] = nil
	if f.first++; f.first == len(f.queue) {
		f.queue, f.first = f.queue[:0], 0
	} else if f.first > 1024 && f.first > len(f.queue)/2 {
		n := copy(f.queue, f.queue[f.first:])
		clear(f.queue[n:])
		f.queue, f.first = f.queue[:n], 0
	}
	f.count(treeOf(e), -1, -int64(e.Size()))
	return e
}

// Peek implements host.Mailbox.
func (f *Mailbox) Peek() *host.Envelope {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == len(f.queue) {
		return nil
	}
	return f.queue[f.first]
}

// PushFront implements host.Mailbox.
func (f *Mailbox) PushFront(es ...*host.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := append([]*host.Envelope(nil), f.queue[f.first:]...)
	f.queue, f.first = append(append(f.queue[:0:0], es...), rest...), 0
	for _, e := range es {
		f.count(treeOf(e), 1, int64(e.Size()))
	}
}

// Close implements host.Mailbox.
func (f *Mailbox) Close(drain func(*host.Envelope)) {
	f.mu.Lock()
	left := f.queue[f.first:]
	f.queue, f.first, f.bytes, f.trees, f.closed = nil, 0, 0, map[string]load{}, true
	f.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements host.Mailbox.
func (f *Mailbox) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) - f.first
}

// Bytes implements host.Mailbox.
func (f *Mailbox) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// Empty implements host.Mailbox.
func (f *Mailbox) Empty() bool { return f.Len() == 0 }
