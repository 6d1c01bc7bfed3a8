// Package resend keeps messages for a child until it confirms them, and sends again what was possibly lost with an
// incarnation of it. It is the rules of host.Resender; what they need of the actor is [Actor].
package resend

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Rules say how a resender works. None is 0 but Crashes, which is no limit then.
type Rules struct {
	Keep     int           // unconfirmed messages; beyond it the oldest becomes a dead letter
	Attempts int           // failed turns of a message, before it becomes a dead letter
	Crashes  int           // ends of the child before all that was unconfirmed is confirmed
	Patience time.Duration // with a message that is sent alone
}

// Actor is what a resender needs of its actor. Its turns are the only callers.
type Actor interface {
	// Begin starts a child.
	Begin() (abi.Ref, error)
	// Send gives the child a copy of a message, with its number, at once. The reason is 0 if the child has it, or has ended.
	Send(child abi.Ref, e *mailbox.Envelope, number uint64) event.DeadReason
	// Drop makes a dead letter of a message, and frees it.
	Drop(e *mailbox.Envelope, reason event.DeadReason)
	// Wait calls Again after the wait before the child of a number, from 0, is started.
	Wait(crashes int) error
	// Alone calls Impatient after a time; 0: never.
	Alone(d time.Duration)
}

// Keeper is the state of a resender. Not for concurrent use.
type Keeper struct {
	rules Rules

	child       abi.Ref // 0 while it waits
	unconfirmed []tracked
	unsent      int    // how many of the last unconfirmed ones this child was not sent yet
	last        uint64 // number given
	mark        uint64 // to be confirmed before the count of crashes starts again
	alone       bool   // messages go one by one
	crashes     int
}

// tracked is a message that is not confirmed.
type tracked struct {
	id       uint64
	env      *mailbox.Envelope
	attempts int
}

// New has no child yet.
func New(r Rules) *Keeper { return &Keeper{rules: r} }

// Child is the present child, 0 while there is none.
func (k *Keeper) Child() abi.Ref { return k.child }

// State is what a resender has to do, for tests.
type State struct {
	Unconfirmed []*mailbox.Envelope // the oldest first
	Unsent      int                 // how many of the last of them the child was not sent
	Crashes     int                 // since all that was unconfirmed at a crash was confirmed
}

// State looks at the resender.
func (k *Keeper) State() (s State) {
	for _, t := range k.unconfirmed {
		s.Unconfirmed = append(s.Unconfirmed, t.env)
	}
	s.Unsent, s.Crashes = k.unsent, k.crashes
	return s
}

// Begin starts a child. It gets what is not confirmed.
func (k *Keeper) Begin(a Actor) error {
	child, err := a.Begin()
	if err != nil {
		return err
	}
	k.child, k.unsent = child, len(k.unconfirmed)
	k.pump(a)
	return nil
}

// Stop drops what is not confirmed.
func (k *Keeper) Stop(a Actor) {
	for len(k.unconfirmed) > 0 {
		k.drop(a, 0, event.DeadStopped)
	}
}

// Hold takes over a message, numbers it, and sends it if it is its turn.
func (k *Keeper) Hold(a Actor, e *mailbox.Envelope) {
	if len(k.unconfirmed) >= k.rules.Keep {
		k.drop(a, 0, event.DeadEvicted)
	}
	k.last++
	k.unconfirmed = append(k.unconfirmed, tracked{id: k.last, env: e})
	k.unsent++
	k.pump(a)
}

// Impatient has the others go on although the message that was sent alone is not confirmed.
func (k *Keeper) Impatient(a Actor) {
	k.alone = false
	k.pump(a)
}

// pump sends what is due: everything, or one message alone.
func (k *Keeper) pump(a Actor) {
	for k.child != 0 && k.unsent > 0 && !(k.alone && k.unsent < len(k.unconfirmed)) {
		at := len(k.unconfirmed) - k.unsent
		t := &k.unconfirmed[at]
		reason := a.Send(k.child, t.env, t.id)
		if reason == event.DeadMailboxFull {
			return // at the next confirmation
		}
		if reason != 0 {
			k.drop(a, at, reason)
			continue
		}
		k.unsent--
		if k.alone {
			a.Alone(k.rules.Patience)
		}
	}
}

// find is the index of the message with a number.
func (k *Keeper) find(id uint64) (at int, ok bool) {
	return slices.BinarySearchFunc(k.unconfirmed, id, func(t tracked, id uint64) int { return cmp.Compare(t.id, id) })
}

// Confirmed forgets a message, and sends what has waited for that.
func (k *Keeper) Confirmed(a Actor, id uint64) {
	if at, ok := k.find(id); ok {
		k.unconfirmed[at].env.Free()
		k.remove(at)
		a.Alone(0)
		if len(k.unconfirmed) == 0 || k.unconfirmed[0].id > k.mark {
			k.crashes, k.alone = 0, false // everything unconfirmed at the last crash is confirmed
		}
	}
	k.pump(a)
}

func (k *Keeper) remove(at int) {
	if at >= len(k.unconfirmed)-k.unsent {
		k.unsent--
	}
	k.unconfirmed = slices.Delete(k.unconfirmed, at, at+1)
}

// drop makes a dead letter of a message.
func (k *Keeper) drop(a Actor, at int, reason event.DeadReason) {
	e := k.unconfirmed[at].env
	k.remove(at)
	a.Drop(e, reason)
}

// ErrTooManyCrashes is that the child has ended more often than allowed.
var ErrTooManyCrashes = errors.New("the child has ended too often without confirming its messages")

// Failed counts a failed turn of a message.
func (k *Keeper) Failed(a Actor, id uint64) {
	at, ok := k.find(id)
	if !ok {
		return
	}
	if k.unconfirmed[at].attempts++; k.unconfirmed[at].attempts >= k.rules.Attempts {
		k.drop(a, at, event.DeadCrashed)
	}
}

// Ended counts the end of a child, and waits before the next one.
func (k *Keeper) Ended(a Actor) error {
	k.child = 0
	k.crashes++
	if k.rules.Crashes > 0 && k.crashes > k.rules.Crashes {
		return ErrTooManyCrashes
	}
	k.mark, k.alone, k.unsent = k.last, true, len(k.unconfirmed)
	a.Alone(0)
	return a.Wait(k.crashes - 1)
}
