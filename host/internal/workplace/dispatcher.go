package workplace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/errs"
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

// OnPool runs the turns of an actor in Go on a pool.
func OnPool(name string) Dispatcher { return Dispatcher{pool: name} }

// Pinned runs the turns of an actor in Go on a thread of its own.
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

// CheckDispatcher says what is wrong with the dispatcher of an actor, a guest or one in Go. The error wraps errs.ErrBadProps.
func CheckDispatcher(d *Dispatcher, guest bool) error {
	switch {
	case guest && (d.pinned || d.pool != ""):
		return fmt.Errorf("%w: a guest runs on the system's workers; pools and threads are for actors in Go", errs.ErrBadProps)
	case d.throughput < 0 || d.throughput > MaxThroughput:
		return fmt.Errorf("%w: a throughput of %d, must be 1 to %d", errs.ErrBadProps, d.throughput, MaxThroughput)
	case d.deadline < 0:
		return fmt.Errorf("%w: a deadline of %v, must not be negative", errs.ErrBadProps, d.deadline)
	}
	return nil
}

// Messages is how many messages an actor handles before others have their turn, where usual is the system's; below 0: with a
// deadline, so that a run looks at one number. d may be nil, here and below.
func Messages(d *Dispatcher, usual int) int32 {
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

// PoolOf is the name of the pool; "" for none.
func PoolOf(d *Dispatcher) string {
	if d == nil {
		return ""
	}
	return d.pool
}

// Pins reports whether the actor has a thread of its own.
func Pins(d *Dispatcher) bool { return d != nil && d.pinned }

// DeadlineOf is the time after which no further message begins; 0: there is none.
func DeadlineOf(d *Dispatcher) time.Duration {
	if d == nil {
		return 0
	}
	return d.deadline
}
