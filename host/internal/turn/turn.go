// Package turn has the value that a turn of an actor is: what it has taken in, and what it has
// led to. Whoever records turns, or repeats them, reads it.
package turn

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Turn is an entry of a guest, which has a turn for each message, or one turn of an actor in Go. Its
// fields are to read, until Answer is called.
type Turn struct {
	// What it has taken in.
	Actor       abi.Ref
	Path        string
	Incarnation uint64
	First       uint64 // number of the first turn in the actor's life
	Time        int64  // in the header, ns since 1970; of an actor in Go: when it has ended
	Seed        [abi.SeedSize]byte
	Mail        []*mailbox.Envelope // what was pushed together; nil: a call of an actor in Go without a message
	Waits       bool                // its worker waits for the answer: it is the end of an incarnation, or a decision

	// What it has led to.
	Done    int    // turns that ended well, those of Mail[:Done]; in Go 1 or 0
	Ended   Ending // why there are not more
	Outbox  []byte // commands of a guest's turns that ended well, as it has written them
	Marked  bool   // the commands of each turn in Outbox end with a marker
	Effects []Effect
	Failure *abi.Failure // of turn Done
	Cut     *sandbox.Cut // where something from outside has ended that turn; nil: it has failed by itself

	// What a guest's turn could spend, where it was not what its actor's limits say; 0: it was.
	Fuel, Memory uint64

	// Worth is about how long a guest's turns have computed, ns.
	Worth int64

	// After is set by the recorder before it answers: what leaves the process because of the turn waits until the recorder
	// says so, see record.Outputs. 0: it does not wait.
	After uint64

	mu    sync.Mutex
	state atomic.Uint32
	err   error
	wake  func()
}

// Ending says who has ended an entry.
type Ending uint8

const (
	All       Ending = iota // nobody: all that was pushed is handled
	ByGuest                 // the guest has not asked for the next message
	ByHost                  // the host has not handed it out: system messages have come
	ByFailure               // a turn has failed, or was cut
)

// Effect is what an actor in Go does at the end of its turn. Which fields count depends on the kind.
type Effect struct {
	Kind EffectKind
	To   abi.Ref
	Env  *mailbox.Envelope
}

// EffectKind is the kind of an effect.
type EffectKind uint8

const (
	Send    EffectKind = iota
	Forward            // the message of the turn, or a copy
	Stop               // another actor
	Quit               // itself
	Pipe               // begin a function whose result comes as an answer
	Own                // a change of the actor's own; To is its number
)

// IsMessage reports whether the effect is a message that leaves.
func (e *Effect) IsMessage() bool { return e.Env != nil && e.Kind <= Forward }

// ID names an effect: the same when the turn is repeated.
type ID struct {
	Actor       abi.Ref
	Incarnation uint64
	Turn        uint64
	Index       int // among the commands, or effects, of the turn
}

// String is the four numbers.
func (id ID) String() string {
	return fmt.Sprintf("%016x.%d.%d.%d", uint64(id.Actor), id.Incarnation, id.Turn, id.Index)
}

// ID is that of an effect of one of the turns, counted from 0.
func (t *Turn) ID(turn, index int) ID {
	return ID{t.Actor, t.Incarnation, t.First + uint64(turn), index}
}

// Commands calls f with the commands of a guest's turns that ended well, in order. What c refers to is part
// of Outbox.
func (t *Turn) Commands(f func(turn int, c *abi.Command)) error {
	var c abi.Command
	turn := 0
	for at := 0; at < len(t.Outbox); {
		n, err := abi.DecodeCommand(&c, t.Outbox[at:])
		if err != nil {
			return err
		}
		if at += n; c.Op == abi.OpEnd {
			turn++
			continue
		}
		f(turn, &c)
	}
	return nil
}

// Commit is told of every turn, also of one that has failed, before anything of it takes effect. It calls
// Answer, at once or later. It is called by workers, also at the same time.
type Commit func(*Turn)

// The states of an answer.
const (
	unanswered uint32 = iota
	awaited           // whoever waits has been told to
	answered
)

// Answer lets the turn take effect or, with an error, fails it. It must be called once; t must not
// be used afterwards. Any goroutine may call it. Until then the actor does nothing else, not even stop; its
// worker goes on.
func (t *Turn) Answer(err error) {
	t.err = err
	if t.state.CompareAndSwap(unanswered, answered) { // Ask has not returned: nobody waits
		return
	}
	t.mu.Lock() // against Await
	defer t.mu.Unlock()
	wake := t.wake
	t.state.Store(answered)
	wake()
}

// Ask hands the turn to the recorder, and returns the answer if it is there. Otherwise wake will be called.
func (t *Turn) Ask(c Commit, wake func()) (err error, there bool) {
	t.wake = wake
	t.state.Store(unanswered)
	c(t)
	if t.state.CompareAndSwap(unanswered, awaited) {
		return nil, false
	}
	return t.err, true
}

// Await calls wake instead, at once if the answer is there.
func (t *Turn) Await(wake func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Load() == answered {
		wake()
		return
	}
	t.wake = wake
}

// Answered returns the answer, if it is there.
func (t *Turn) Answered() (err error, there bool) {
	if t.state.Load() != answered {
		return nil, false
	}
	return t.err, true
}
