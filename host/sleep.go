package host

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// An idle guest gives its instance back and keeps what distinguishes it from its
// image, some hundred bytes; the next message brings it back. Nobody notices: a
// snapshot is all of an actor's state, and mailbox, timers, asks and watches are the
// host's. Actors sleep when nothing has come for a while, and earlier when more are
// awake than there should be.

// awake are the actors of a system that have an instance, in the order in which they
// got it; sharded, since all workers come by.
type awake struct {
	after  time.Duration // 0: never
	most   int64         // 0: no bound
	clock  clock.Clock
	count  atomic.Int64
	armed  atomic.Bool
	next   atomic.Uint64 // shard to evict from
	shards [awakeShards]awakeShard

	mu    sync.Mutex
	timer clock.Timer
	ended bool
}

const awakeShards = 16

type awakeShard struct {
	mu    sync.Mutex
	first *cell // the oldest
	last  *cell
	_     [64]byte // a cache line between neighbours
}

func (a *awake) shard(c *cell) *awakeShard { return &a.shards[uint64(c.uid)%awakeShards] }

// add notes that c has an instance and uses it, and finds another that could do without
// if there are too many. Whoever is asked to sleep is forgotten until it is used again.
func (a *awake) add(scr *scratch, c *cell) {
	if a.after == 0 && a.most == 0 || sandbox.CannotSave(c.props.image) != "" {
		return
	}
	s := a.shard(c)
	s.mu.Lock()
	if c.listed {
		s.mu.Unlock()
		return
	}
	s.push(c)
	s.mu.Unlock()
	n := a.count.Add(1)
	if a.most > 0 && n > a.most {
		a.evict(scr, c)
	}
	if a.after > 0 && a.armed.CompareAndSwap(false, true) {
		a.arm()
	}
}

// push puts c at the end; mu is held.
func (s *awakeShard) push(c *cell) {
	c.listed, c.older, c.newer = true, s.last, nil
	if s.last != nil {
		s.last.newer = c
	} else {
		s.first = c
	}
	s.last = c
}

// unlink takes c out; mu is held.
func (s *awakeShard) unlink(c *cell) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		s.first = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		s.last = c.older
	}
	c.listed, c.older, c.newer = false, nil, nil
}

// remove notes that c has no instance any more.
func (a *awake) remove(c *cell) {
	s := a.shard(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.listed {
		s.unlink(c)
		a.count.Add(-1)
	}
}

// evict asks one of the oldest to sleep, of one shard after the other.
func (a *awake) evict(scr *scratch, newcomer *cell) {
	for range 2 * awakeShards { // those with a second chance have used it in the second round
		s := &a.shards[a.next.Add(1)%awakeShards]
		if c := s.victim(newcomer); c != nil {
			a.count.Add(-1)
			c.post(scr, sysMsg{kind: sysSleep})
			return
		}
	}
}

// victim is the oldest that was not used since it was last looked at.
func (s *awakeShard) victim(newcomer *cell) *cell {
	const looks = 16
	s.mu.Lock()
	defer s.mu.Unlock()
	for range looks {
		c := s.first
		if c == nil {
			return nil
		}
		s.unlink(c)
		if c != newcomer && !c.used.Swap(false) {
			return c
		}
		s.push(c)
	}
	return nil
}

// arm sweeps after the time that an actor may be idle.
func (a *awake) arm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.timer = a.clock.AfterFunc(a.after, a.sweep)
	}
}

// sweep asks those to sleep that were not used since the last sweep.
func (a *awake) sweep() {
	for i := range a.shards {
		s := &a.shards[i]
		var idle []*cell
		s.mu.Lock()
		for c := s.first; c != nil; {
			next := c.newer
			if !c.used.Swap(false) {
				s.unlink(c)
				idle = append(idle, c)
			}
			c = next
		}
		s.mu.Unlock()
		a.count.Add(int64(-len(idle)))
		for _, c := range idle {
			c.post(nil, sysMsg{kind: sysSleep})
		}
	}
	if a.count.Load() > 0 {
		a.arm()
		return
	}
	a.armed.Store(false)
	if a.count.Load() > 0 && a.armed.CompareAndSwap(false, true) {
		a.arm()
	}
}

func (a *awake) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// sleep gives the instance back, if nothing is to be done.
func (c *cell) sleep() {
	x := c.inst.Load()
	if x == nil || !c.begun || c.state != stateRunning || c.used.Load() || !c.mbox.Empty() || len(c.late) > 0 {
		return
	}
	s, err := x.Drain()
	if err != nil {
		return
	}
	c.asleep = s
	c.releaseInstance()
	c.sys.asleep.Add(1)
}

// instance is the actor's instance; one that sleeps is woken. It fails with
// sandbox.ErrTooManyInstances if there is none at the moment.
func (c *cell) instance(scr *scratch) (*sandbox.Instance, error) {
	if x := c.inst.Load(); x != nil || c.asleep == nil {
		return x, nil
	}
	x, err := sandbox.GetSaved(c.props.image, c.asleep)
	if err != nil {
		return nil, err
	}
	c.asleep = nil
	c.sys.asleep.Add(-1)
	c.take(scr, x)
	return x, nil
}

// take makes x the actor's instance.
func (c *cell) take(scr *scratch, x *sandbox.Instance) {
	c.inst.Store(x)
	c.use(scr)
}

// use notes that the instance is being used.
func (c *cell) use(scr *scratch) {
	if !c.used.Load() {
		c.used.Store(true)
		c.sys.awake.add(scr, c)
	}
}

// forgetSleep drops the state of an actor that sleeps: its incarnation is over.
func (c *cell) forgetSleep() {
	if c.asleep != nil {
		c.asleep = nil
		c.sys.asleep.Add(-1)
	}
}

// instanceRetry is when an actor that got no instance tries again.
const instanceRetry = 5 * time.Millisecond

// noInstance deals with an actor that cannot be woken: for lack of an instance it
// waits, anything else is a failure.
func (c *cell) noInstance(scr *scratch, err error) {
	if !errors.Is(err, sandbox.ErrTooManyInstances) {
		c.fail(scr, &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()})
		return
	}
	c.starved = true
	c.pending.Add(1)
	c.sys.awake.evict(scr, c)
	c.sys.cfg.clock.AfterFunc(instanceRetry, func() {
		c.pending.Add(-1)
		c.post(nil, sysMsg{kind: sysInstance})
	})
}
