package host

import (
	"log/slog"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Clock is where a system gets the time from; see [RealClock] and [NewVirtualClock].
type Clock = clock.Clock

// VirtualClock stands still until it is advanced.
type VirtualClock = clock.Virtual

// RealClock is the machine's clock.
func RealClock() Clock { return clock.Real() }

// NewVirtualClock is a clock for tests and simulations.
func NewVirtualClock(start time.Time) *VirtualClock { return clock.NewVirtual(start) }

// Defaults of [Config].
const (
	DefaultThroughput  = 16
	DefaultDeadLetters = 256
	DefaultDeadBytes   = 4 << 20
	DefaultStopGrace   = 2 * time.Second
	DefaultIdleAfter   = 30 * time.Second

	DefaultLoggedDeadLetters = 10
)

// Config says how a [System] works. It is immutable: every With method returns a
// changed copy. Begin with [NewConfig].
type Config struct {
	name       string
	clock      clock.Clock
	sweeps     clock.Clock // of the sweep for idle guests, while clock tells the time of records; nil: clock
	secret     *Secret     // nil: from the operating system
	saved      bool        // it may be that of an earlier life
	node       uint16      // 0: alone
	epoch      *uint64     // nil: see epochOf
	workers    int
	longTurns  int // under way at most; 0: the dispatcher's default
	manual     bool
	shuffle    *uint64                           // of a manual system: the seed of the order of turns
	order      func(n int, at func(int) Ref) int // the same, chosen by somebody else
	throughput int
	dead       int
	deadBytes  int64
	guardian   supervision.Strategy
	grace      time.Duration
	options    func([]byte) (SpawnOptions, error)
	idleAfter  time.Duration
	mostAwake  int
	askTimeout time.Duration
	memory     int64 // most bytes held for all actors; 0: no bound
	treeMemory int64 // the same for each tree below /user
	actors     int64
	log        *slog.Logger
	letters    loggedLetters
	commit     turn.Commit     // nil: nobody records what actors do
	partial    bool            // the recorder is told of durable actors alone
	recorder   record.Recorder // the same with its notes; nil also in tests that only commit
	gate       record.Gate     // recorder, if it is one
	direct     record.Direct   // recorder, if it is one
	box        *blackbox.Recorder
	tape       *recorder.Recorder
	tracer     Tracer           // nil: nothing is traced
	pools      []workplace.Pool // for actors that block
	pinned     int              // actors with a thread of their own, at most
	values     []any            // keys of contexts that asks carry
	extensions []AnyExtension   // that New makes
	nested     bool             // of a manual system: what a turn wakes runs right after it
	faults     faults
	allowance  func(r Ref, fuel, memory *uint64)
	mailboxes  func(Ref, func(MailboxLimits) Mailbox) func(MailboxLimits) Mailbox
}

// NewConfig is the configuration of a system of this name: the machine's clock,
// a secret from the operating system, a worker a core. The name must be valid as an actor's name.
func NewConfig(name string) Config {
	return Config{
		name: name, clock: clock.Real(), throughput: DefaultThroughput, dead: DefaultDeadLetters, deadBytes: DefaultDeadBytes,
		pinned: DefaultPinned, guardian: supervision.Default(), grace: DefaultStopGrace, idleAfter: DefaultIdleAfter, askTimeout: DefaultAskTimeout,
		letters: loggedLetters{first: DefaultLoggedDeadLetters}, memory: sandbox.MachineMemory() / 4 * 3, treeMemory: sandbox.MachineMemory() / 8 * 3,
	}
}

func (c *Config) sweepClock() Clock {
	if c.sweeps != nil {
		return c.sweeps
	}
	return c.clock
}

// WithClock sets the clock of turns, timers, delays and deadlines of asks.
func (c Config) WithClock(cl Clock) Config { c.clock = cl; return c }

// WithSeed derives the secret from a number, so that a run can be repeated: refs, guests'
// randomness and jitter come out the same. Refs are then only as hard to guess as the seed,
// so it is for tests and simulations.
func (c Config) WithSeed(seed uint64) Config { c.secret, c.saved = secret.Of(seed), false; return c }

// WithSecret sets what refs, guests' randomness and jitter are derived from, as
// [System.Secret] of an earlier run has it.
func (c Config) WithSecret(s Secret) Config { c.secret, c.saved = &s, true; return c }

// WithWorkers sets the number of turns that run at a time; 0 is GOMAXPROCS.
func (c Config) WithWorkers(n int) Config { c.workers = n; return c }

// WithManual makes a system without goroutines of its own: turns run within
// [System.Step] and [System.RunUntilIdle]. With a virtual clock and a seed every
// run is the same. A store makes checkpoints only when it is told to: durable.Store.Checkpoint.
func (c Config) WithManual() Config { c.manual = true; return c }

// WithShuffle is WithManual with another order of turns: at each step the seed chooses one of all
// actors that have work. A simulation tries many seeds to find what
// depends on the order; one seed always gives the same run.
func (c Config) WithShuffle(seed uint64) Config {
	c.manual, c.shuffle = true, &seed
	return c
}

// WithThroughput sets how many messages an actor handles before others get their
// turn; at least 1.
func (c Config) WithThroughput(n int) Config { c.throughput = max(n, 1); return c }

// WithDeadLetters sets how many dead letters are kept for [System.DeadLetters].
func (c Config) WithDeadLetters(n int) Config { c.dead = max(n, 0); return c }

// WithDeadLetterBytes bounds the payloads and headers of kept dead letters, in bytes, so that they
// can be delivered again: those of more than MaxDeadPayload bytes count, one may take a quarter,
// and the oldest are dropped. They count for no actor.
func (c Config) WithDeadLetterBytes(n int64) Config { c.deadBytes = max(n, 0); return c }

// WithGuardian sets the strategy of /user, the parent of what [System.Spawn] makes.
func (c Config) WithGuardian(s supervision.Strategy) Config { c.guardian = s; return c }

// WithIdleAfter sets after how much time without a message a guest gives its instance
// back, and keeps only what differs from its image until the next message. It may
// take up to twice as long; 0 is never.
func (c Config) WithIdleAfter(d time.Duration) Config { c.idleAfter = max(d, 0); return c }

// WithMostAwake sets how many guests have an instance at most. Above it, a guest that starts or wakes first puts one to
// sleep that has not been used recently. Where all are busy those whose turns are under way come on top, and sleep when
// their turns have ended. A guest that cannot sleep (see docs/architecture/images.md) counts, and leaves so much less for
// others; it has its instance beyond the bound, too: for a limit on all see runtime.Config.WithMaxInstances. 0 is no bound.
func (c Config) WithMostAwake(n int) Config { c.mostAwake = max(n, 0); return c }

// WithSpawnOptions sets how the options of guests' spawns are read; see
// bundle.SpawnOptions. Without it a spawn with options fails.
func (c Config) WithSpawnOptions(read func(options []byte) (SpawnOptions, error)) Config {
	c.options = read
	return c
}

// WithStopGrace sets how long a turn may go on after its actor was asked to stop
// before it is killed.
func (c Config) WithStopGrace(d time.Duration) Config { c.grace = d; return c }

// WithAskTimeout sets how long an ask from Go waits if its context has no deadline, so
// that none waits for ever; it may take a quarter longer.
func (c Config) WithAskTimeout(d time.Duration) Config {
	if d > 0 {
		c.askTimeout = d
	}
	return c
}

// WithLog writes the system's events to a log: failures and dead letters as warnings, log lines of guests on their levels,
// starts and stops for debugging. Reading the events is cheaper and gives more details; see [System.Subscribe].
func (c Config) WithLog(l *slog.Logger) Config { c.log = l; return c }

// WithMemory bounds what the host holds for all actors together, in bytes: guests' memories, messages, timers and everything
// else that [Held] lists. Requests above it are refused or wait. Each actor below /user, with all below it, may have half of
// it unless its Limits.Tree says otherwise. The default is three quarters of the machine's memory, or of what its control
// group may use; 0 is no bound.
func (c Config) WithMemory(bytes int64) Config {
	c.memory = max(bytes, 0)
	c.treeMemory = c.memory / 2
	return c
}

// WithMaxActors bounds the number of actors; 0 is no bound, the default.
func (c Config) WithMaxActors(n int) Config { c.actors = int64(max(n, 0)); return c }

// WithContextValues sets which values of the context of [System.Ask] go with the question, and
// with all that turns send because of it; a service gets them by [Head.Values]. Guests
// do not see them. Timers do not carry them.
func (c Config) WithContextValues(keys ...any) Config { c.values = slices.Clone(keys); return c }

// WithTracer records what messages cause, see [Tracer]. Without it traces are not looked
// at, and cost nothing.
func (c Config) WithTracer(t Tracer) Config { c.tracer = t; return c }
