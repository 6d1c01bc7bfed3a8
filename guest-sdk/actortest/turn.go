//go:build !wasip1

package actortest

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Turn is what one message has caused. If it has failed, it has done nothing: only
// Failure and Logs are set.
type Turn struct {
	// Failure is why the turn has failed, nil if it has not: a panic with its text
	// and Go's trace, a returned error, an unhandled end of a watched actor. The
	// actor takes nothing more until its Restart.
	Failure *abi.Failure
	Logs    []Log

	Sent           []Sent
	Spawned        []Spawned
	Stopped        []Target // the actor itself, if it ends
	Watched        []Target
	Unwatched      []Target
	Timers         []Timer
	Cancelled      []uint64
	CancelledAsks  []uint64       // by their correlations
	ReceiveTimeout *time.Duration // as set, 0 for off; nil if it was not set
	Unhandled      bool
	Stashed        bool
	Decided        actor.Directive // about the child of Decide
	BackoffReset   bool

	// Unstashed are the turns of the messages that this one has taken back from
	// the stash; they have run already.
	Unstashed []*Turn
	// Persisted are the events that an actor of package persist has stored.
	Persisted []persist.Event
	// Recovered is the turn in which such an actor was fed what it has stored, after the turn of its start; nil for others.
	Recovered *Turn
	// Last is the turn of the actor's Stopped, if it has stopped itself.
	Last *Turn

	t        testing.TB
	question abi.Envelope
	entries  []persist.Entry
	recovery *persist.Recovery
}

// Target is the actor that a turn has named: by ref, or by path if To is 0.
type Target struct {
	To   actor.Ref
	Path string
}

// SentKind says how something was sent.
type SentKind uint8

// How something was sent.
const (
	Tell SentKind = iota
	Ask
	Reply
	ReplyError
	Forward
	Terminated // to a [Probe]: the actor From, which it watches, has ended
	Timeout    // to a [Probe]: a question was not answered in time
	Identify   // the question of who is at the path, answered by [Actor.Identified] or [Actor.IdentifiedAll]
)

// Sent is one message that a turn has sent.
type Sent struct {
	Target
	Kind        SentKind
	From        actor.Ref // the actor, or for Forward the first sender
	Correlation uint64
	Timeout     time.Duration // of an Ask
	Payload     []byte        // CBOR
	headers     []byte
}

// Header is the value of a header, "" if there is none.
func (s Sent) Header(key string) string {
	rest := s.headers
	for {
		k, v, more, ok := abi.NextHeader(rest)
		if !ok {
			return ""
		}
		if string(k) == key {
			return string(v)
		}
		rest = more
	}
}

// Text is the payload if it is a text, else "".
func (s Sent) Text() (v string) {
	r := abi.NewReader(s.Payload)
	if v = r.Text(); r.Done() != nil {
		return ""
	}
	return v
}

// Int is the payload if it is an integer, else 0.
func (s Sent) Int() (v int64) {
	r := abi.NewReader(s.Payload)
	if v = r.Int(); r.Done() != nil {
		return 0
	}
	return v
}

// Decode reads the whole payload into d.
func (s Sent) Decode(d actor.Decoder) error {
	r := abi.NewReader(s.Payload)
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Spawned is a child that a turn has asked for; see [Actor.Child].
type Spawned struct {
	Ref  actor.Ref
	Type string
	Name string // "": the host chooses
	Args []byte // CBOR

	Options []byte // CBOR, nil if there are none
}

// Timer is one that a turn has set; [Actor.Advance] lets it fire.
type Timer struct {
	Key           uint64
	Delay, Period time.Duration // Period 0: once
	Payload       []byte        // CBOR
}

// Log is a line of the log.
type Log struct {
	Level int // abi.LogDebug to abi.LogError
	Text  string
}

// Reply is the answer to the message that has caused the turn, also if it is an
// error. Without one the test fails.
func (u *Turn) Reply() Sent {
	u.t.Helper()
	for _, s := range u.Sent {
		if (s.Kind == Reply || s.Kind == ReplyError) && s.To == u.question.Sender && s.Correlation == u.question.Correlation {
			return s
		}
	}
	if u.Failure != nil {
		u.t.Fatalf("actortest: no reply, the turn has failed: %v\n%s", u.Failure, u.Failure.GuestStack)
	}
	u.t.Fatalf("actortest: no reply among the %d messages that the turn has sent", len(u.Sent))
	return Sent{}
}

// Ask is the only question that the turn has sent. Without one, or with several,
// the test fails.
func (u *Turn) Ask() Sent {
	u.t.Helper()
	var found []Sent
	for _, s := range u.Sent {
		if s.Kind == Ask {
			found = append(found, s)
		}
	}
	if u.Failure != nil {
		u.t.Fatalf("actortest: no question, the turn has failed: %v\n%s", u.Failure, u.Failure.GuestStack)
	}
	if len(found) != 1 {
		u.t.Fatalf("actortest: the turn has sent %d questions, not one", len(found))
	}
	return found[0]
}
