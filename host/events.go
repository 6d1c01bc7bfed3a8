package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/supervision"
)

// EventKind says what has happened.
type EventKind uint8

// The kinds of events.
const (
	EventStarted    EventKind = iota + 1 // an incarnation has started
	EventFailed                          // a turn has failed, and it was decided what follows
	EventRestarted                       // a fresh incarnation has taken over
	EventResumed                         // the actor goes on with the state from before the failure
	EventStopped                         // the actor has stopped for good
	EventDeadLetter                      // a message was not delivered
	EventLog                             // a guest has logged a line
	EventUnhandled                       // an actor did not handle a message
	EventTerminated                      // the system has terminated
	EventSuppressed                      // a message marked as Suppressed was not delivered
	EventEscalated                       // a failure of a child has reached the actor, and it was decided what follows
	EventRefused                         // what an actor has asked the host for was refused
	EventPaused                          // an operator has paused the actor
	EventUnpaused                        // an operator has let the actor go on
)

var eventNames = [...]string{"none", "started", "failed", "restarted", "resumed", "stopped", "dead_letter", "log", "unhandled", "terminated", "suppressed_dead_letter", "escalated", "refused", "paused", "unpaused"}

// String is the name that JSON output uses.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return eventNames[0]
}

// Event is something that has happened to an actor. Which of the later fields
// count depends on Kind.
type Event struct {
	Kind        EventKind
	Time        time.Time
	Ref         Ref
	Type        string // of the actor
	Incarnation uint64

	ID        string                // failed: of the report; who was waiting for an answer gets it, too
	Failure   *abi.Failure          // failed, escalated, restarted: why; stopped: what it had failed with, if so. Shared, not to be changed
	Directive supervision.Directive // failed, escalated; 0: nothing was decided, Note says why
	Delay     time.Duration         // failed, escalated: before the restart
	Failures  int                   // failed, escalated: of this child, since the count was reset
	Note      string                // failed, escalated: why the directive is not the strategy's; stopped: why
	Silent    bool                  // failed, escalated: the supervisor wants it kept out of logs

	Mail    *CrashedMail // failed: the message whose turn failed, nil if there was none
	Dead    *DeadLetter  // dead_letter, suppressed_dead_letter, unhandled
	Refused *Refusal     // refused
	Level   int          // log: abi.LogDebug to abi.LogError
	Text    string       // log

	// Trace is the place in a trace of the turn that the event is about, nil if there is none:
	// failed, log, dead_letter.
	Trace *TraceContext
}

// CrashedMail is the message whose turn has failed, and how large the actor was.
type CrashedMail struct {
	Kind        abi.Kind
	Sender      abi.Ref
	Correlation uint64
	Payload     []byte        // CBOR, at most MaxDeadPayload bytes of it
	Size        int           // of the payload, in bytes
	Memory      uint64        // of the guest, in bytes; 0 for actors in Go
	Waiting     int           // messages in the mailbox behind it
	Redelivered int           // how often it had been delivered before
	Trace       *TraceContext // of the turn, nil if it is in no trace
}

// Subscription is a bounded stream of events. A reader that is too slow loses events, and gets
// their number; no actor waits for it.
type Subscription struct {
	c       chan Event
	filter  func(*Event) bool
	hear    func(*Event) // nil: C is read; see System.Listen
	dropped atomic.Uint64
	bus     *bus
}

// C is the channel of the events, in order. It is closed by Close and by [System.Close]. The last event of a system, also of
// one that stops by itself, is EventTerminated, except for dead letters and events of its extensions until it is closed.
func (s *Subscription) C() <-chan Event { return s.c }

// Dropped is the number of events lost so far.
func (s *Subscription) Dropped() uint64 { return s.dropped.Load() }

// Close ends the subscription. It is idempotent.
func (s *Subscription) Close() { s.bus.remove(s) }

// bus distributes events.
type bus struct {
	secrets atomic.Pointer[redact.Set] // nil: none; see redact.go
	subs    atomic.Pointer[[]*Subscription]
	hearing atomic.Int32 // subscriptions that hear in Step
	mu      sync.RWMutex // writers close channels, readers send
	closed  bool
}

// quiet reports whether there is no listener, so that events need not be made.
func (b *bus) quiet() bool {
	p := b.subs.Load()
	return p == nil || len(*p) == 0
}

func (b *bus) add(buffer int, filter func(*Event) bool) *Subscription {
	return b.subscribe(buffer, filter, nil)
}

// subscribe is add for a subscription that hears in Step, unless hear is nil.
func (b *bus) subscribe(buffer int, filter func(*Event) bool, hear func(*Event)) *Subscription {
	s := &Subscription{c: make(chan Event, max(buffer, 1)), filter: filter, hear: hear, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(s.c)
		return s
	}
	var subs []*Subscription
	if p := b.subs.Load(); p != nil {
		subs = append(subs, *p...)
	}
	subs = append(subs, s)
	if hear != nil {
		b.hearing.Add(1)
	}
	b.subs.Store(&subs)
	return s
}

func (b *bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.subs.Load()
	if p == nil {
		return
	}
	var rest []*Subscription
	found := false
	for _, x := range *p {
		if x == s {
			found = true
			continue
		}
		rest = append(rest, x)
	}
	if found {
		if s.hear != nil {
			b.hearing.Add(-1)
		}
		b.subs.Store(&rest)
		close(s.c)
	}
}

func (b *bus) publish(e Event) {
	if b.quiet() {
		return
	}
	if set := b.secrets.Load(); set != nil {
		e.redact(set)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	p := b.subs.Load()
	if p == nil {
		return
	}
	for _, s := range *p {
		if s.filter != nil && !s.filter(&e) {
			continue
		}
		if len(s.c) >= heavyBacklog && e.weight() > heavyEvent { // a slow reader's buffer holds no more bytes than that
			s.dropped.Add(1)
			continue
		}
		select {
		case s.c <- e:
		default:
			s.dropped.Add(1)
		}
	}
}

// With so many events waiting, events of more bytes than heavyEvent are lost: the buffer of a reader
// that is too slow holds about 32 MiB at most.
const (
	heavyBacklog = 2048
	heavyEvent   = 512
)

// weight is about how many bytes written by guests an event holds.
func (e *Event) weight() int {
	n := len(e.Text) + len(e.Note)
	if e.Dead != nil {
		n += len(e.Dead.Payload) + len(e.Dead.Path)
	}
	if e.Mail != nil {
		n += len(e.Mail.Payload)
	}
	return n
}

func (b *bus) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if p := b.subs.Load(); p != nil {
		for _, s := range *p {
			close(s.c)
		}
	}
	b.subs.Store(nil)
}
