package host

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/workplace"
)

// Dispatcher says where an actor's turns run, and for how long at a time. The zero value is
// the system's own: on its workers, which all actors share, Config.WithThroughput messages at a
// time. It is immutable.
type Dispatcher struct {
	pool       string
	pinned     bool
	throughput int
	deadline   time.Duration
}

// MaxThroughput bounds the throughput of an actor.
const MaxThroughput = 10_000

// OnPool runs the turns of an actor in Go on a pool of the system's, see [Config.WithPool].
func OnPool(name string) Dispatcher { return Dispatcher{pool: name} }

// Pinned runs the turns of an actor in Go on an operating system thread of its own, which runs
// nothing else: for libraries that must always be called on the same thread. The number of such
// actors is bounded, see [Config.WithPinned].
func Pinned() Dispatcher { return Dispatcher{pinned: true} }

// WithThroughput sets how many messages the actor handles before others run, 1 to MaxThroughput; 0: the system's default. A
// guest takes up to n messages in one call.
func (d Dispatcher) WithThroughput(n int) Dispatcher { d.throughput = n; return d }

// Throughput is what WithThroughput has set; 0: the system's default.
func (d Dispatcher) Throughput() int { return d.throughput }

// WithDeadline sets the time, by the system's clock, after which no further message begins before others
// had their turn; 0 is no limit. The running turn goes on. A guest then takes
// one message at a time, which costs more. Long turns are preempted even without it.
func (d Dispatcher) WithDeadline(t time.Duration) Dispatcher { d.deadline = t; return d }

// String describes how the dispatcher differs from the system's own, for a person; "" if it does not.
func (d Dispatcher) String() string {
	var all []string
	switch {
	case d.pool != "":
		all = append(all, "the pool "+strconv.Quote(d.pool))
	case d.pinned:
		all = append(all, "a thread of its own")
	}
	if d.throughput > 0 {
		all = append(all, fmt.Sprintf("%d messages at a time", d.throughput))
	}
	if d.deadline > 0 {
		all = append(all, fmt.Sprintf("%v at a time", d.deadline))
	}
	return strings.Join(all, ", ")
}

func (d Dispatcher) check(guest bool) error {
	switch {
	case guest && (d.pinned || d.pool != ""):
		return fmt.Errorf("%w: a guest runs on the system's workers; pools and threads are for actors in Go", ErrBadProps)
	case d.throughput < 0 || d.throughput > MaxThroughput:
		return fmt.Errorf("%w: a throughput of %d, must be 1 to %d", ErrBadProps, d.throughput, MaxThroughput)
	case d.deadline < 0:
		return fmt.Errorf("%w: a deadline of %v, must not be negative", ErrBadProps, d.deadline)
	}
	return nil
}

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

// messages is how many messages an actor handles before others have their turn, where usual is the system's; below 0: with a
// deadline, so that a run looks at one number.
func (d *Dispatcher) messages(usual int) int32 {
	n := int32(min(usual, math.MaxInt32))
	if d == nil {
		return n
	}
	if d.throughput > 0 {
		n = int32(d.throughput)
	}
	if d.deadline > 0 {
		n = -n
	}
	return n
}

// named is the name of the pool; "" for none.
func (d *Dispatcher) named() string {
	if d == nil {
		return ""
	}
	return d.pool
}

// isPinned reports whether the actor has a thread of its own.
func (d *Dispatcher) isPinned() bool { return d != nil && d.pinned }
