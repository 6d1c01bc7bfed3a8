package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/host/internal/workplace"
)

// Dispatcher says where an actor's turns run, and for how long at a time. The zero value is the system's own: on its workers,
// which all actors share, Config.WithThroughput messages at a time. It is immutable. Its methods: WithThroughput (how many
// messages the actor handles before others run, 1 to MaxThroughput), Throughput, WithDeadline (after which no further message
// begins before others had their turn), String.
type Dispatcher = workplace.Dispatcher

// MaxThroughput bounds the throughput of an actor.
const MaxThroughput = workplace.MaxThroughput

// OnPool runs the turns of an actor in Go on a pool of the system's, see [Config.WithPool].
func OnPool(name string) Dispatcher { return workplace.OnPool(name) }

// Pinned runs the turns of an actor in Go on an operating system thread of its own, which runs
// nothing else: for libraries that must always be called on the same thread. The number of such
// actors is bounded, see [Config.WithPinned].
func Pinned() Dispatcher { return workplace.Pinned() }

// WithDispatcher sets where the actor's turns run, and for how long at a time.
func (p Props) WithDispatcher(d Dispatcher) Props { p.dispatch = &d; return p }

// Bounds of pools and threads.
const (
	DefaultPinned = 16
	MaxPools      = workplace.MostPools
)

// WithPool gives the system a pool for actors in Go that block in their turns: at most workers
// turns run on it at a time, 1 to 256; others wait. It uses a goroutine for each. A manual system
// has no pools: all actors run within Step.
func (c Config) WithPool(name string, workers int) Config {
	c.pools = append(slices.Clone(c.pools), workplace.Pool{Name: name, Workers: workers})
	return c
}

// WithPinned sets how many actors may have a thread of their own; the default is DefaultPinned.
func (c Config) WithPinned(n int) Config { c.pinned = max(n, 0); return c }
