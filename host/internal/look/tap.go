package look

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Tapped is a message of an actor that is tapped: one whose turn has ended, or failed, or one
// that such a turn sends. Messages that a failed turn would have sent are not reported.
type Tapped struct {
	Actor       ref.Ref
	Incarnation uint64
	Turn        uint64 // number of the turn in the actor's life
	Time        time.Time
	Out         bool
	Kind        abi.Kind
	Forward     bool    // out: the message of the turn, sent on
	Peer        ref.Ref // in: the sender, out: the receiver; nobody if that is not known
	Path        string  // out: as the actor has given it, if it has
	Correlation uint64
	Payload     []byte       // a part of it
	Size        int          // of all of it, in bytes
	Failure     *abi.Failure // in: why its turn has failed
}

// Tap is whoever gets the messages of an actor.
type Tap struct {
	payload int
	f       func(*Tapped)
	ended   func() // once
}

// NewTap makes a tap that gets at most payload bytes of each message. ended, which may be nil, is called once.
func NewTap(payload int, f func(*Tapped), ended func()) *Tap {
	if ended == nil {
		ended = func() {}
	}
	return &Tap{payload, f, sync.OnceFunc(ended)}
}

// Ended tells the tap that its actor has stopped.
func (t *Tap) Ended() { t.ended() }

// Taps are the taps of an actor. Any goroutine may look; who adds and removes taps holds a lock of its own.
type Taps struct{ now atomic.Pointer[[]*Tap] }

// None reports whether there are none.
func (t *Taps) None() bool { return t.now.Load() == nil }

// Add adds a tap.
func (t *Taps) Add(x *Tap) { t.set(append(t.copied(), x)) }

// Remove removes a tap.
func (t *Taps) Remove(x *Tap) {
	t.set(slices.DeleteFunc(t.copied(), func(y *Tap) bool { return x == y }))
}

// End tells the taps that their actor has stopped.
func (t *Taps) End() {
	if taps := t.now.Load(); taps != nil {
		for _, x := range *taps {
			x.ended()
		}
	}
}

func (t *Taps) copied() []*Tap {
	if p := t.now.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

func (t *Taps) set(taps []*Tap) {
	if len(taps) == 0 {
		t.now.Store(nil)
		return
	}
	t.now.Store(&taps)
}

// report is one report to the taps of an actor.
type report struct {
	taps    []*Tap
	dir     Directory
	secrets *Secrets
}

// Report reports turns that ended well.
func (t *Taps) Report(d Directory, secrets *Secrets, c *Turns) {
	taps := t.now.Load()
	if taps == nil {
		return
	}
	r := report{*taps, d, secrets}
	one := Tapped{Actor: c.Actor, Incarnation: c.Incarnation, Time: time.Unix(0, c.Now)}
	for i := range max(len(c.Mail), 1) {
		one.Turn = c.First + uint64(i)
		var current *mailbox.Envelope
		if i < len(c.Mail) {
			current = c.Mail[i]
			r.in(one, current, nil)
		}
		if c.Commands != nil {
			for _, cmd := range c.Commands(i) {
				r.command(one, &cmd, current)
			}
		}
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; e.IsMessage() {
			one.Out, one.Forward = true, e.Kind == turn.Forward
			one.Kind, one.Correlation, one.Peer = e.Env.Kind, e.Env.Correlation, d.RefOf(e.To)
			r.hand(one, e.Env.Payload)
		}
	}
}

// Failed reports the message of a failed turn; one says of which actor and turn.
func (t *Taps) Failed(d Directory, secrets *Secrets, one Tapped, e *mailbox.Envelope, f *abi.Failure) {
	if taps := t.now.Load(); taps != nil {
		one.Turn = f.Turn
		report{*taps, d, secrets}.in(one, e, f)
	}
}

// in reports a message that the actor has taken.
func (r report) in(one Tapped, e *mailbox.Envelope, f *abi.Failure) {
	one.Kind, one.Peer, one.Correlation, one.Failure = e.Kind, sender(r.dir, e), e.Correlation, f
	r.hand(one, mark.Shown(e))
}

// command reports a message that a guest sends.
func (r report) command(one Tapped, cmd *abi.Command, current *mailbox.Envelope) {
	payload := cmd.Payload
	one.Out, one.Kind, one.Correlation = true, abi.KindMessage, cmd.Correlation
	switch {
	case cmd.Op == abi.OpForward && current != nil:
		one.Forward, one.Kind, one.Correlation, payload = true, current.Kind, current.Correlation, mark.Shown(current)
	case cmd.Op == abi.OpAsk:
	case cmd.Op == abi.OpSend:
		one.Kind = kindOf(cmd)
	default:
		return
	}
	if cmd.ToPath != nil {
		one.Path = string(cmd.ToPath)
	} else {
		one.Peer = r.dir.RefOf(cmd.ToRef)
	}
	r.hand(one, payload)
}

func (r report) hand(one Tapped, payload []byte) {
	one.Size = len(payload)
	set := r.secrets.set.Load()
	if set != nil {
		one.Path, one.Failure = set.MaskText(one.Path), redactedFailure(set, one.Failure)
	}
	for _, t := range r.taps {
		own := one // f may change it
		own.Payload = set.Cut(payload, min(len(payload), t.payload))
		t.f(&own)
	}
}
