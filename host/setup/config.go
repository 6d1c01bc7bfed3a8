// Package setup has the configuration of a system: host.Config is its Config.
package setup

import (
	"log/slog"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Defaults of [Config].
const (
	DefaultThroughput  = 16
	DefaultDeadLetters = 256
	DefaultDeadBytes   = 4 << 20
	DefaultStopGrace   = 2 * time.Second
	DefaultIdleAfter   = 30 * time.Second

	DefaultLoggedDeadLetters = 10
	DefaultPinned            = 16
)

// Config says how a system works. It is immutable: every With method returns a
// changed copy. Begin with host.NewConfig. O is what the options of a guest's spawn are read as, X an extension: types of
// package host.
type Config[O, X any] struct{ parts Parts[O, X] }

// New is the configuration of a system of this name: the machine's clock,
// a secret from the operating system, a worker a core. The name must be valid as an actor's name.
func New[O, X any](name string) Config[O, X] {
	return Config[O, X]{Parts[O, X]{
		Name: name, Clock: clock.Real(), Throughput: DefaultThroughput, Dead: DefaultDeadLetters, DeadBytes: DefaultDeadBytes,
		Pinned: DefaultPinned, Guardian: supervision.Default(), Grace: DefaultStopGrace, IdleAfter: DefaultIdleAfter, AskTimeout: outside.DefaultTimeout,
		Letters: DefaultLoggedDeadLetters, LettersAtEnd: true, Memory: sandbox.MachineMemory() / 4 * 3, TreeMemory: sandbox.MachineMemory() / 8 * 3,
	}}
}

// WithClock sets the clock of turns, timers, delays and deadlines of asks.
func (c Config[O, X]) WithClock(cl clock.Clock) Config[O, X] { c.parts.Clock = cl; return c }

// WithSeed derives the secret from a number, so that a run can be repeated: refs, guests'
// randomness and jitter come out the same. Refs are then only as hard to guess as the seed,
// so it is for tests and simulations.
func (c Config[O, X]) WithSeed(seed uint64) Config[O, X] {
	c.parts.Secret, c.parts.Saved = secret.Of(seed), false
	return c
}

// WithSecret sets what refs, guests' randomness and jitter are derived from, as
// host.System.Secret of an earlier run has it.
func (c Config[O, X]) WithSecret(s secret.Secret) Config[O, X] {
	c.parts.Secret, c.parts.Saved = &s, true
	return c
}

// WithWorkers sets the number of turns that run at a time; 0 is GOMAXPROCS.
func (c Config[O, X]) WithWorkers(n int) Config[O, X] { c.parts.Workers = n; return c }

// WithManual makes a system without goroutines of its own: turns run within
// host.System.Step and host.System.RunUntilIdle. With a virtual clock and a seed every
// run is the same. A store makes checkpoints only when it is told to: durable.Store.Checkpoint.
func (c Config[O, X]) WithManual() Config[O, X] { c.parts.Manual = true; return c }

// WithShuffle is WithManual with another order of turns: at each step the seed chooses one of all
// actors that have work. A simulation tries many seeds to find what
// depends on the order; one seed always gives the same run.
func (c Config[O, X]) WithShuffle(seed uint64) Config[O, X] {
	c.parts.Manual, c.parts.Shuffle = true, &seed
	return c
}

// WithThroughput sets how many messages an actor handles before others get their
// turn; at least 1.
func (c Config[O, X]) WithThroughput(n int) Config[O, X] { c.parts.Throughput = max(n, 1); return c }

// WithDeadLetters sets how many dead letters are kept for host.System.DeadLetters.
func (c Config[O, X]) WithDeadLetters(n int) Config[O, X] { c.parts.Dead = max(n, 0); return c }

// WithDeadLetterBytes bounds the payloads and headers of kept dead letters, in bytes, so that they
// can be delivered again: those of more than event.MaxDeadPayload bytes count, one may take a quarter,
// and the oldest are dropped. They count for no actor.
func (c Config[O, X]) WithDeadLetterBytes(n int64) Config[O, X] {
	c.parts.DeadBytes = max(n, 0)
	return c
}

// WithGuardian sets the strategy of /user, the parent of what host.System.Spawn makes.
func (c Config[O, X]) WithGuardian(s supervision.Strategy) Config[O, X] {
	c.parts.Guardian = s
	return c
}

// WithIdleAfter sets after how much time without a message a guest gives its instance
// back, and keeps only what differs from its image until the next message. It may
// take up to twice as long; 0 is never.
func (c Config[O, X]) WithIdleAfter(d time.Duration) Config[O, X] {
	c.parts.IdleAfter = max(d, 0)
	return c
}

// WithMostAwake sets how many guests have an instance at most. Above it, a guest that starts or wakes first puts one to
// sleep that has not been used recently. Where all are busy those whose turns are under way come on top, and sleep when
// their turns have ended. A guest that cannot sleep (see docs/architecture/images.md) counts, and leaves so much less for
// others; it has its instance beyond the bound, too: for a limit on all see runtime.Config.WithMaxInstances. 0 is no bound.
func (c Config[O, X]) WithMostAwake(n int) Config[O, X] { c.parts.MostAwake = max(n, 0); return c }

// WithSpawnOptions sets how the options of guests' spawns are read; see
// bundle.SpawnOptions. Without it a spawn with options fails.
func (c Config[O, X]) WithSpawnOptions(read func(options []byte) (O, error)) Config[O, X] {
	c.parts.Options = read
	return c
}

// WithStopGrace sets how long a turn may go on after its actor was asked to stop
// before it is killed.
func (c Config[O, X]) WithStopGrace(d time.Duration) Config[O, X] { c.parts.Grace = d; return c }

// WithAskTimeout sets how long an ask from Go waits if its context has no deadline, so
// that none waits for ever; it may take a quarter longer.
func (c Config[O, X]) WithAskTimeout(d time.Duration) Config[O, X] {
	if d > 0 {
		c.parts.AskTimeout = d
	}
	return c
}

// WithLog writes the system's events to a log: failures and dead letters as warnings, log lines of guests on their levels,
// starts and stops for debugging. Reading the events is cheaper and gives more details; see host.System.Subscribe.
func (c Config[O, X]) WithLog(l *slog.Logger) Config[O, X] { c.parts.Log = l; return c }

// WithMemory bounds what the host holds for all actors together, in bytes: guests' memories, messages, timers and everything
// else that host.Held lists. Requests above it are refused or wait. Each actor below /user, with all below it, may have half of
// it unless its Limits.Tree says otherwise. The default is three quarters of the machine's memory, or of what its control
// group may use; 0 is no bound.
func (c Config[O, X]) WithMemory(bytes int64) Config[O, X] {
	c.parts.Memory = max(bytes, 0)
	c.parts.TreeMemory = c.parts.Memory / 2
	return c
}

// WithMaxActors bounds the number of actors; 0 is no bound, the default.
func (c Config[O, X]) WithMaxActors(n int) Config[O, X] { c.parts.Actors = int64(max(n, 0)); return c }

// WithContextValues sets which values of the context of host.System.Ask go with the question, and
// with all that turns send because of it; a service gets them by host.Head.Values. Guests
// do not see them. Timers do not carry them.
func (c Config[O, X]) WithContextValues(keys ...any) Config[O, X] {
	c.parts.Values = slices.Clone(keys)
	return c
}

// WithTracer records what messages cause, see host.Tracer. Without it traces are not looked
// at, and cost nothing.
func (c Config[O, X]) WithTracer(t span.Tracer) Config[O, X] { c.parts.Tracer = t; return c }

// WithLoggedDeadLetters sets how many dead letters the log of [Config.WithLog] gets: the first ones, and
// then a line that says that there are no more. 0 is none, host.AllDeadLetters is all; the default is
// DefaultLoggedDeadLetters, since a sender without a receiver usually goes on sending. Events and
// counts have all of them.
func (c Config[O, X]) WithLoggedDeadLetters(first int) Config[O, X] {
	c.parts.Letters = max(first, 0)
	return c
}

// WithoutLettersOfTheEnd keeps dead letters out of the log that are made when the system ends, as
// many are: messages that wait in mailboxes, messages to actors that have stopped.
func (c Config[O, X]) WithoutLettersOfTheEnd() Config[O, X] { c.parts.LettersAtEnd = false; return c }

// WithPool gives the system a pool for actors in Go that block in their turns: at most workers
// turns run on it at a time, 1 to 256; others wait. It uses a goroutine for each. A manual system
// has no pools: all actors run within Step.
func (c Config[O, X]) WithPool(name string, workers int) Config[O, X] {
	c.parts.Pools = append(slices.Clone(c.parts.Pools), workplace.Pool{Name: name, Workers: workers})
	return c
}

// WithPinned sets how many actors may have a thread of their own; the default is DefaultPinned.
func (c Config[O, X]) WithPinned(n int) Config[O, X] { c.parts.Pinned = max(n, 0); return c }

// WithNode sets the number of the node that the system is on, 1 to abi.MaxNode (1023); it is part of all refs and full
// paths (wasm://name@3/user/a). Nodes that talk to each other have different numbers. 0, the default, is a system that is
// alone. New fails for others.
func (c Config[O, X]) WithNode(n uint16) Config[O, X] { c.parts.Node = n; return c }

// WithEpoch sets which life of a saved secret this is: no ref of an ask, an inbox or a reply handle is one of another
// epoch, so that an answer to an ask of an earlier life is not taken for one of this. The default is 0, and with
// [Config.WithSecret] the time of New by the system's clock, in nanoseconds.
func (c Config[O, X]) WithEpoch(n uint64) Config[O, X] { c.parts.Epoch = &n; return c }

// WithExtensions adds extensions that New makes, in this order; each once, however often it is
// given. If one fails, New closes those before it and fails.
func (c Config[O, X]) WithExtensions(xs ...X) Config[O, X] {
	c.parts.Extensions = append(c.parts.Extensions[:len(c.parts.Extensions):len(c.parts.Extensions)], xs...)
	return c
}

// WithRecorder has r hear of all that actors take in, and lets no turn take effect before r has answered; see
// [record.Recorder]. The guardians are not recorded but for what they decide. Without it nothing is paid for.
// A recorded actor's mailbox takes a lock for each message, and senders from Go do not wait for room in it
// (host/mailbox.Block answers at once).
func (c Config[O, X]) WithRecorder(r record.Recorder) Config[O, X] {
	c.parts.Recorder, c.parts.Commit = r, r.Turn
	c.parts.Gate, _ = r.(record.Gate)
	c.parts.Direct, _ = r.(record.Direct)
	return c
}

// WithStore is [Config.WithRecorder] for durable actors: r is told only of the actors whose props say so
// (host.Props.WithDurable), and of those below them. All others run as without a recorder. See package host/durable, which
// has such a recorder and starts systems with it.
func (c Config[O, X]) WithStore(r record.Recorder) Config[O, X] {
	c = c.WithRecorder(r)
	c.parts.Partial = true
	return c
}

// WithBlackBox keeps the last turns of each guest, so that a failure can be repeated: r writes it to a crash file, see
// package blackbox. r may be closed when the system is. Without it nothing is paid for. What is kept is within r's bounds,
// and on no actor's account.
func (c Config[O, X]) WithBlackBox(r *blackbox.Recorder) Config[O, X] { c.parts.Box = r; return c }

// WithRecording has r write down what all guests take in, so that host/rerun can run them again. r is closed after the
// system. Guests with directories, durable ones, and those whose code is exchanged are not recorded from then on: what they
// send is written down whole. Without it nothing is paid for.
func (c Config[O, X]) WithRecording(r *recorder.Recorder) Config[O, X] { c.parts.Tape = r; return c }
