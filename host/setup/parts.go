package setup

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/queue"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/supervision"
)

// Parts are what a Config says, for package host.
type Parts[O, X any] struct {
	Name         string
	Clock        clock.Clock
	Sweeps       clock.Clock    // of the sweep for idle guests, while clock tells the time of records; nil: clock
	Secret       *secret.Secret // nil: from the operating system
	Saved        bool           // it may be that of an earlier life
	Node         uint16         // 0: alone
	Epoch        *uint64        // nil: see EpochNow
	Workers      int
	LongTurns    int // under way at most; 0: the dispatcher's default
	Manual       bool
	Shuffle      *uint64                               // of a manual system: the seed of the order of turns
	Order        func(n int, at func(int) ref.Ref) int // the same, chosen by somebody else
	Throughput   int
	Dead         int
	DeadBytes    int64
	Guardian     supervision.Strategy
	Grace        time.Duration
	Options      func([]byte) (O, error)
	IdleAfter    time.Duration
	MostAwake    int
	AskTimeout   time.Duration
	Memory       int64 // most bytes held for all actors; 0: no bound
	TreeMemory   int64 // the same for each tree below /user
	Actors       int64
	Log          *slog.Logger
	Letters      int             // dead letters that the log gets
	LettersAtEnd bool            // and those that are made when the system ends
	Commit       turn.Commit     // nil: nobody records what actors do
	Partial      bool            // the recorder is told of durable actors alone
	Recorder     record.Recorder // the same with its notes; nil also in tests that only commit
	Gate         record.Gate     // recorder, if it is one
	Direct       record.Direct   // recorder, if it is one
	Box          *blackbox.Recorder
	Tape         *recorder.Recorder
	Tracer       span.Tracer      // nil: nothing is traced
	Pools        []workplace.Pool // for actors that block
	Pinned       int              // actors with a thread of their own, at most
	Values       []any            // keys of contexts that asks carry
	Extensions   []X              // that New makes
	Nested       bool             // of a manual system: what a turn wakes runs right after it
	Faults       Faults
	Allowance    func(r ref.Ref, fuel, memory *uint64)
	Mailboxes    func(ref.Ref, func(queue.Limits) queue.Mailbox) func(queue.Limits) queue.Mailbox
}

// PartsOf are those of a Config. It is for package host.
func PartsOf[O, X any](c *Config[O, X]) *Parts[O, X] { return &c.parts }

// SweepClock is the clock of the sweep for idle guests.
func (c *Parts[O, X]) SweepClock() clock.Clock {
	if c.Sweeps != nil {
		return c.Sweeps
	}
	return c.Clock
}

// EpochNow is the epoch that a system begins in.
func (c *Parts[O, X]) EpochNow() uint64 {
	switch {
	case c.Epoch != nil:
		return *c.Epoch
	case c.Saved:
		return uint64(c.Clock.Now().UnixNano())
	}
	return 0
}

// CheckNode reports a number that no node may have.
func (c *Parts[O, X]) CheckNode() error {
	if c.Node > abi.MaxNode {
		return fmt.Errorf("host: node %d: at most %d", c.Node, abi.MaxNode)
	}
	return nil
}
