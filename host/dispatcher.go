package host

import "github.com/wasmactors/wasmactors/host/internal/workplace"

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

// MaxPools bounds the pools of a system.
const MaxPools = workplace.MostPools
