package scenario

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// fault is what happens to messages on their way to an actor.
type fault struct {
	verb   string // drop, delay, duplicate, reorder, crash
	of     string // the name of the key that it is about; empty: all of the actor's messages
	left   int    // messages that it still applies to; crash: the number of the message that it applies to
	by     time.Duration
	kind   abi.FailureKind
	reason string
}

// faultList are the faults that messages to an actor are still to meet. Any goroutine may use it.
type faultList struct {
	mu   sync.Mutex
	list []*fault
}

func (l *faultList) add(f *fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, f)
}

// next is the fault that a message to a key meets; nil for none.
func (l *faultList) next(key func() string) *fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.list {
		if f.of != "" && f.of != key() {
			continue
		}
		f.left--
		if f.verb == "crash" && f.left > 0 {
			continue
		}
		if f.left <= 0 {
			l.list = slices.Delete(l.list, i, i+1)
		}
		return f
	}
	return nil
}

// faultyMailbox is the mailbox of an actor whose messages meet faults of a scenario: it sees each message
// before the mailbox that the manifest has chosen. It counts messages that somebody has sent, but no
// envelopes of the host.
type faultyMailbox struct {
	host.HostedMailbox
	path  string
	world *world
	at    *place
	keys  keyed.Config // of a keyed actor
	only  string       // the one key of a singleton
	all   *faultList   // of messages that are sent on any node; nil: the actor's messages stay on theirs
	here  faultList    // of those that are sent on this node
	host  host.MailboxHost

	mu       sync.Mutex
	passed   []*overtaken // overtaken by the next message
	failing  bool
	crashing map[*host.Envelope]*fault // the actor fails instead of handling them
}

// overtaken is a message that waits for the next one. The envelope alone does not identify the message:
// once it is delivered, the envelope is reused.
type overtaken struct{ *host.Envelope }

// hasFaults reports whether steps have faults for messages to an actor, or to the actor of one of its keys: those
// messages come through the keeper.
func (s *Scenario) hasFaults(path string, a *bundle.Actor) bool {
	return slices.ContainsFunc(s.steps, func(x step) bool {
		switch x.verb.name {
		case "drop", "delay", "duplicate", "reorder":
			of, _ := keeperOf(pathOf(x.object()))
			return pathOf(x.object()) == path || a.Keyed != nil && of == path
		case "crash":
			return pathOf(x.object()) == path && x.has("on-message")
		}
		return false
	})
}

// keeperOf splits a path into the one above, and the name.
func keeperOf(p string) (above, name string) {
	i := strings.LastIndexByte(p, '/')
	return p[:i], p[i+1:]
}

// faultyMailbox makes the mailbox of an actor.
func (w *world) faultyMailbox(path string, a *bundle.Actor) func(host.MailboxLimits) host.Mailbox {
	box, p := a.Mailbox, w.place
	return func(l host.MailboxLimits) host.Mailbox {
		m := &faultyMailbox{HostedMailbox: box.Make(l).(host.HostedMailbox), path: path, world: w, at: p, crashing: map[*host.Envelope]*fault{}}
		if k := a.Keyed; k != nil {
			m.keys = keyed.New(host.Props{}).WithField(k.Field)
			if k.Header != "" {
				m.keys = m.keys.WithHeader(k.Header)
			}
			if k.Single {
				m.only = a.Name
			}
			if w.cluster != nil && k.Scope == bundle.ScopeCluster {
				m.all = w.cluster.faultsOf(path)
			}
		}
		p.faultyMailboxes[path] = m
		return m
	}
}

// Hosted implements host.HostedMailbox.
func (m *faultyMailbox) Hosted(h host.MailboxHost) {
	m.host = h
	m.HostedMailbox.Hosted(droppedBy{h, m})
}

// droppedBy is the actor as the mailbox behind the faulty one sees it.
type droppedBy struct {
	host.MailboxHost
	faultyMailbox *faultyMailbox
}

// Dropped implements host.MailboxHost.
func (d droppedBy) Dropped(e *host.Envelope, why host.DeadReason) {
	d.faultyMailbox.spare(e)
	d.MailboxHost.Dropped(e, why)
}

// spare forgets that the actor is to fail instead of a message that leaves the mailbox another way: its
// envelope will be another message's.
func (m *faultyMailbox) spare(e *host.Envelope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.crashing, e)
}

// Pop implements host.Mailbox.
func (m *faultyMailbox) Pop() *host.Envelope {
	e := m.HostedMailbox.Pop()
	m.spare(e)
	return e
}

// Close implements host.Mailbox.
func (m *faultyMailbox) Close(drain func(*host.Envelope)) {
	m.HostedMailbox.Close(func(e *host.Envelope) {
		m.spare(e)
		drain(e)
	})
}

// next is the fault that a message meets; nil for none. Messages to a key of the cluster are seen where they are sent: what one region passes
// on to another, and what regions tell each other, meets none.
func (m *faultyMailbox) next(e *host.Envelope) *fault {
	if !host.IsMail(e) || m.all != nil && shard.BetweenRegions(e.Headers, below(e)) {
		return nil
	}
	key := func() string { return m.keyOf(e) }
	if f := m.here.next(key); f != nil || m.all == nil {
		return f
	}
	return m.all.next(key)
}

// below is the name below the actor that a message is for.
func below(e *host.Envelope) string {
	if e.Attached == nil {
		return ""
	}
	return e.Attached.Below
}

// keyOf is the name of the key that a message is for; "" if there is none.
func (m *faultyMailbox) keyOf(e *host.Envelope) string {
	if name := below(e); name != "" {
		return name
	}
	if m.only != "" {
		return m.only
	}
	name, _ := m.keys.NameOf(host.Message{Kind: e.Kind, Headers: e.Headers, Payload: e.Payload})
	return name
}

// Push implements host.Mailbox.
func (m *faultyMailbox) Push(e *host.Envelope) error {
	f := m.next(e)
	if f == nil {
		mail := host.IsMail(e) // the mailbox that takes e may free it
		err := m.HostedMailbox.Push(e)
		if err == nil && mail {
			m.letPassed()
		}
		return err
	}
	m.world.noteAt(m.at, "%s: a message to %s: %s", f.verb, m.path, shownPayload(e.Payload))
	switch f.verb {
	case "drop":
		e.Free()
		return nil
	case "delay":
		m.world.hold(e.Size())
		m.at.after(f.by, func() { m.late(e) })
		return nil
	case "reorder":
		m.world.hold(e.Size())
		o := &overtaken{e}
		m.mu.Lock()
		m.passed = append(m.passed, o)
		m.mu.Unlock()
		m.at.after(0, func() { m.notPassed(o) })
		return nil
	case "duplicate":
		second := &host.Envelope{
			Kind: e.Kind, Flags: e.Flags, Due: e.Due, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation,
			Headers: slices.Clone(e.Headers), Payload: slices.Clone(e.Payload), Value: e.Value, Attached: e.Attached,
		}
		if err := m.HostedMailbox.Push(e); err != nil {
			return err
		}
		m.keep(second)
		m.letPassed()
		return nil
	}
	m.mu.Lock()
	m.crashing[e] = f
	m.mu.Unlock()
	if err := m.HostedMailbox.Push(e); err != nil {
		m.spare(e)
		return err
	}
	m.letPassed()
	return nil
}

// letPassed delivers what the message that was pushed has overtaken.
func (m *faultyMailbox) letPassed() {
	m.mu.Lock()
	passed := m.passed
	m.passed = nil
	m.mu.Unlock()
	for _, o := range passed {
		m.world.release(o.Size())
		m.keep(o.Envelope)
	}
}

// notPassed delivers a message that no other has overtaken before time passes.
func (m *faultyMailbox) notPassed(o *overtaken) {
	m.mu.Lock()
	i := slices.Index(m.passed, o)
	if i >= 0 {
		m.passed = slices.Delete(m.passed, i, i+1)
	}
	m.mu.Unlock()
	if i >= 0 {
		m.late(o.Envelope)
	}
}

// keep pushes an envelope that belongs to the faulty mailbox.
func (m *faultyMailbox) keep(e *host.Envelope) {
	if m.HostedMailbox.Push(e) != nil {
		m.host.Dropped(e, host.DeadMailboxFull)
	}
}

// late delivers what was delayed.
func (m *faultyMailbox) late(e *host.Envelope) {
	m.world.release(e.Size())
	m.keep(e)
	if ref, err := m.at.sys.Lookup(m.path); err == nil {
		m.at.sys.Wake(ref)
	}
}

// Peek implements host.Mailbox. If the next message is one at which the actor must fail, it returns
// nil until the actor has failed.
func (m *faultyMailbox) Peek() *host.Envelope {
	m.mu.Lock()
	failing := m.failing
	m.mu.Unlock()
	if failing {
		return nil
	}
	e := m.HostedMailbox.Peek()
	m.mu.Lock()
	f := m.crashing[e]
	if f != nil {
		delete(m.crashing, e)
		m.failing = true
	}
	m.mu.Unlock()
	if f == nil {
		return e
	}
	m.HostedMailbox.Pop()
	if ref, err := m.at.sys.Lookup(m.path); err == nil {
		_ = m.at.sys.Operate().Crash(ref, f.kind, f.reason)
	}
	m.host.Dropped(e, host.DeadCrashed)
	return nil
}

// Empty implements host.Mailbox.
func (m *faultyMailbox) Empty() bool { return m.Peek() == nil }

// failed goes on after the actor has failed.
func (m *faultyMailbox) failed() {
	m.mu.Lock()
	was := m.failing
	m.failing = false
	m.mu.Unlock()
	if ref, err := m.at.sys.Lookup(m.path); was && err == nil {
		m.at.sys.Wake(ref)
	}
}
