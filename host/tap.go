package host

import (
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Tapped is a message of an actor that is tapped: one whose turn has ended, or failed, or one
// that such a turn sends. Messages that a failed turn would have sent are not reported.
type Tapped struct {
	Actor       Ref
	Incarnation uint64
	Turn        uint64 // number of the turn in the actor's life
	Time        time.Time
	Out         bool
	Kind        abi.Kind
	Forward     bool   // out: the message of the turn, sent on
	Peer        Ref    // in: the sender, out: the receiver; nobody if that is not known
	Path        string // out: as the actor has given it, if it has
	Correlation uint64
	Payload     []byte       // a part of it
	Size        int          // of all of it, in bytes
	Failure     *abi.Failure // in: why its turn has failed
}

// taps are the taps of a system.
type taps struct {
	mu sync.Mutex
	n  int
}

// tap is one of them.
type tap struct {
	payload int
	f       func(*Tapped)
	ended   func() // once
}

// Tap calls f for the messages of an actor until stop is called or the actor has stopped, with at most payload bytes of
// each payload. f is called by the worker that runs the actor, in the order of its turns: it must be quick, and a Tapped
// is valid until it returns. ended, which may be nil, is called once when the actor has stopped, unless stop was called
// before; it may call stop. Tap fails with ErrUnknown. While any actor is tapped every turn of the system costs some
// nanoseconds more.
func (s *System) Tap(ref Ref, payload int, f func(*Tapped), ended func()) (stop func(), err error) {
	a := s.here(ref.UID())
	if a == nil {
		return nil, ErrUnknown
	}
	if ended == nil {
		ended = func() {}
	}
	t := &tap{payload, f, sync.OnceFunc(ended)}
	s.taps.mu.Lock()
	defer s.taps.mu.Unlock()
	a.setTaps(append(a.tapsNow(), t))
	if s.taps.n++; s.taps.n == 1 {
		s.looks.Or(lookTap)
	}
	if a.life.State() == life.Stopped { // it may not have seen the tap
		go t.ended()
	}
	return sync.OnceFunc(func() {
		s.taps.mu.Lock()
		defer s.taps.mu.Unlock()
		a.setTaps(slices.DeleteFunc(a.tapsNow(), func(x *tap) bool { return x == t }))
		if s.taps.n--; s.taps.n == 0 {
			s.looks.And(^lookTap)
		}
	}), nil
}

// tapsNow is a copy of the actor's taps.
func (a *actor) tapsNow() []*tap {
	if p := a.tapped.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

func (a *actor) setTaps(taps []*tap) {
	if len(taps) == 0 {
		a.tapped.Store(nil)
		return
	}
	a.tapped.Store(&taps)
}

// tap reports turns that ended well to the taps of the actor.
func (a *actor) tap(taps []*tap, c *observed) {
	one := Tapped{Actor: c.actor, Incarnation: c.incarnation, Time: time.Unix(0, c.now)}
	for i := range max(len(c.mail), 1) {
		one.Turn = c.firstTurn + uint64(i)
		var current *mailbox.Envelope
		if i < len(c.mail) {
			current = c.mail[i]
			a.tapIn(taps, one, current, nil)
		}
		if c.commands != nil {
			for _, cmd := range c.commands(i) {
				a.tapCommand(taps, one, &cmd, current)
			}
		}
	}
	for i := range c.effects {
		if e := &c.effects[i]; e.IsMessage() {
			one.Out, one.Forward = true, e.Kind == turn.Forward
			one.Kind, one.Correlation, one.Peer = e.Env.Kind, e.Env.Correlation, a.sys.refOf(e.To)
			a.hand(taps, one, e.Env.Payload)
		}
	}
}

// tapIn reports a message that the actor has taken.
func (a *actor) tapIn(taps []*tap, one Tapped, e *mailbox.Envelope, f *abi.Failure) {
	one.Kind, one.Peer, one.Correlation, one.Failure = e.Kind, a.sys.sender(e), e.Correlation, f
	a.hand(taps, one, shown(e))
}

// tapCommand reports a message that a guest sends.
func (a *actor) tapCommand(taps []*tap, one Tapped, cmd *abi.Command, current *mailbox.Envelope) {
	payload := cmd.Payload
	one.Out, one.Kind, one.Correlation = true, abi.KindMessage, cmd.Correlation
	switch {
	case cmd.Op == abi.OpForward && current != nil:
		one.Forward, one.Kind, one.Correlation, payload = true, current.Kind, current.Correlation, shown(current)
	case cmd.Op == abi.OpAsk:
	case cmd.Op == abi.OpSend:
		one.Kind = kindOf(cmd)
	default:
		return
	}
	if cmd.ToPath != nil {
		one.Path = string(cmd.ToPath)
	} else {
		one.Peer = a.sys.refOf(cmd.ToRef)
	}
	a.hand(taps, one, payload)
}

func (a *actor) hand(taps []*tap, one Tapped, payload []byte) {
	one.Size = len(payload)
	set := a.sys.bus.secrets.Load()
	if set != nil {
		one.Path, one.Failure = set.MaskText(one.Path), redactedFailure(set, one.Failure)
	}
	for _, t := range taps {
		own := one // f may change it
		own.Payload = set.Cut(payload, min(len(payload), t.payload))
		t.f(&own)
	}
}

// tapsEnded tells the taps of the actor that it has stopped.
func (a *actor) tapsEnded() {
	if taps := a.tapped.Load(); taps != nil {
		for _, t := range *taps {
			t.ended()
		}
	}
}

// tapFailed reports the message of a failed turn.
func (a *actor) tapFailed(e *mailbox.Envelope, f *abi.Failure) {
	if taps := a.tapped.Load(); taps != nil {
		a.tapIn(*taps, Tapped{Actor: a.ref(), Incarnation: a.incarnation(), Turn: f.Turn, Time: a.Now()}, e, f)
	}
}
