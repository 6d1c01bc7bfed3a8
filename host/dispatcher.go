package host

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/printable"
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

// pool is a pool for actors that block.
type pool struct {
	name    string
	workers int
}

// Bounds of pools and threads.
const (
	DefaultPinned = 16
	MaxPools      = 64
)

// WithPool gives the system a pool for actors in Go that block in their turns: at most workers
// turns run on it at a time, 1 to 256; others wait. It uses a goroutine for each. A manual system
// has no pools: all actors run within Step.
func (c Config) WithPool(name string, workers int) Config {
	c.pools = append(slices.Clone(c.pools), pool{name, workers})
	return c
}

// WithPinned sets how many actors may have a thread of their own; the default is DefaultPinned.
func (c Config) WithPinned(n int) Config { c.pinned = max(n, 0); return c }

// checkPools reports what is wrong with the pools.
func (c Config) checkPools() error {
	seen := map[string]bool{}
	for _, p := range c.pools {
		switch {
		case !abi.ValidName([]byte(p.name)) || seen[p.name]:
			return fmt.Errorf("host: %q is not a valid name for a pool, or is in use already", printable.Clip(p.name, 100))
		case p.workers < 1 || p.workers > dispatch.MaxWorkers:
			return fmt.Errorf("host: the pool %s has %d workers, must have 1 to %d", p.name, p.workers, dispatch.MaxWorkers)
		}
		seen[p.name] = true
	}
	if len(seen) > MaxPools {
		return fmt.Errorf("host: %d pools, at most %d", len(seen), MaxPools)
	}
	return nil
}

func (s *System) openPools() {
	s.pools = map[string]*dispatch.Dispatcher{}
	for _, p := range s.cfg.pools {
		s.pools[p.name] = dispatch.New(dispatch.Config{Workers: p.workers, Fixed: true})
	}
}

// closePools waits for the pools and threads, whose actors have stopped.
func (s *System) closePools(ctx context.Context) {
	for _, p := range s.cfg.pools {
		if d := s.pools[p.name]; d != nil && d.Close(ctx) != nil {
			_ = d.Close(context.Background())
		}
	}
	s.threads.Wait()
}

// dispatched sets the dispatcher of a new actor.
func (a *actor) dispatched() error {
	a.disp, a.throughput = a.sys.disp, int32(min(a.sys.cfg.throughput, math.MaxInt32))
	d := a.props.dispatch
	if d == nil {
		return nil
	}
	if d.throughput > 0 {
		a.throughput = int32(d.throughput)
	}
	if d.deadline > 0 {
		a.throughput = -a.throughput // Run looks at one number
	}
	switch {
	case d.pool != "":
		known := slices.ContainsFunc(a.sys.cfg.pools, func(p pool) bool { return p.name == d.pool })
		if !known {
			return fmt.Errorf("%w: the system has no pool %q", ErrBadProps, printable.Clip(d.pool, 100))
		}
		if p := a.sys.pools[d.pool]; p != nil {
			a.disp = p
		}
	case d.pinned && !a.sys.cfg.manual:
		if a.sys.pinned.Add(1) > int64(a.sys.cfg.pinned) {
			a.sys.pinned.Add(-1)
			return fmt.Errorf("%w: %d actors have a thread of their own, see Config.WithPinned", ErrLimit, a.sys.cfg.pinned)
		}
		a.sys.threads.Add(1)
		a.disp = dispatch.New(dispatch.Config{Workers: 1, Fixed: true, Threads: true})
	}
	return nil
}

// leaveThread ends the thread of an actor that has stopped, which may be this one.
func (a *actor) leaveThread() {
	if a.props.dispatch == nil || !a.props.dispatch.pinned || a.disp == a.sys.disp {
		return
	}
	a.sys.pinned.Add(-1)
	go func() {
		defer a.sys.threads.Done()
		_ = a.disp.Close(context.Background())
	}()
}
