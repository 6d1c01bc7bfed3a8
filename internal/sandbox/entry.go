package sandbox

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Bounds of what a guest may log in one turn; the rest is dropped, and one line
// says how much.
const (
	MaxLogLines = 256
	MaxLogBytes = 64 << 10
	MaxLogLine  = 8 << 10
)

// Yielder lets others run. It is called about every 0.1 ms during a long turn, on the
// goroutine that called Run. False means that the turn should end, because there are too
// many long turns.
type Yielder interface{ Yield() bool }

// Account is asked before a guest's memory grows from one size to another, in bytes,
// within the actor's own limit; false means that the system has no room for it, and
// ends the turn. It is asked for a call stack that has grown, too, before others run, and told when that
// has gone. It is called during Run, on the same goroutine.
type Account interface {
	Grow(from, to uint64) bool
}

// LogSink takes what guests log: the log import with its own level, stdout as
// abi.LogInfo and stderr as abi.LogWarn, line by line without the line's end. It is
// called during Run, on the same goroutine. The text is valid UTF-8, at most
// MaxLogLine bytes, and only valid until GuestLog returns.
type LogSink interface{ GuestLog(level int, text []byte) }

// Entry is what the turns of one [Instance.Run] see and may spend. One goroutine at a
// time may use it; it may be used again and again, which is cheaper than a new one.
type Entry struct {
	// Now is the clock that the guest sees, nanoseconds since 1970, UTC.
	Now int64
	// Began is when the caller has read the engine's clock last, nanoseconds since 1970, some microseconds ago
	// at most; 0 if it has not. It serves to notice Runs that take long without a check.
	Began int64
	// Anchor serves to tell computing from waiting; nil: Runs that take long by the engine's clock may have waited.
	Anchor *Anchor
	// TurnFuel is what each turn may spend; 0 means no limit.
	TurnFuel uint64
	// Deadline is how long each turn may take by the engine's clock; 0 means no
	// limit. It is checked about every 0.1 ms. So is a kill.
	Deadline time.Duration
	// MemoryLimit is how large the instance's memory may grow, in bytes. 0 and
	// whatever exceeds the image's limit mean the image's limit.
	MemoryLimit uint64
	// OutboxLimit is how much the turns of this entry may write in commands
	// altogether, in bytes, flushed parts included. 0 means DefaultOutboxLimit.
	OutboxLimit uint64
	// FirstTurn is the number, in the actor's life, of the first turn: it goes
	// into failures and selects the random stream.
	FirstTurn uint64
	// Seed selects the random stream that WASI's random_get reads.
	Seed [16]byte
	// Yield may be nil: then the Go scheduler is asked to run others.
	Yield Yielder
	// Account may be nil: then memory grows as far as the actor's limit allows.
	Account Account
	// Cut is that of an earlier Run of the same envelopes, to be repeated; nil if nothing
	// from outside has ended it.
	Cut *Cut
	// Most is how many turns are begun at most; 0: one for each envelope. With it an entry that has ended early
	// is repeated as it was: all its envelopes are pushed, and no turn is begun that was not begun then.
	Most int
	// Log may be nil: then what the guest logs is dropped.
	Log LogSink
	// Killable says that a kill counts that came after [Instance.ForgetKill], also before Run.
	Killable bool

	last    lastCaller
	stacked uint64 // bytes of the call stack under way that are on the account
}

// DefaultOutboxLimit bounds the commands of an entry that says nothing: 4 MiB.
const DefaultOutboxLimit = 4 << 20

// Result is the outcome of a Run: which of the envelopes were handled.
type Result struct {
	// Turns is the number of turns that ended well: the first Turns envelopes
	// are handled, and the commands of their turns stand.
	Turns int
	// Fuel is what the completed turns have spent together.
	Fuel uint64
	// Failure is why the next turn, of index Turns, did not end; nil if none
	// failed. That turn has done nothing.
	Failure *abi.Failure
	// Unread is the number of envelopes whose turns were not begun; they go back to the
	// front of the mailbox.
	Unread int
	// Worth estimates how long the completed turns and the failed one have computed,
	// in nanoseconds. It is for schedulers; nothing that a guest can see depends on it.
	Worth int64
}

// Begun is the number of turns that were begun, the failed one included.
func (r *Result) Begun() int {
	if r.Failure != nil {
		return r.Turns + 1
	}
	return r.Turns
}

// LastTurn reports whether no turn was begun after the one of this index. A turn
// that stops its own actor, fails, stashes or unstashes must be the last of
// its entry (see [ErrBatchContinued]).
func (r *Result) LastTurn(turn int) bool { return turn+1 == r.Begun() }
