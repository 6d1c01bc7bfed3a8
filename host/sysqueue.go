package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// sysKind is what a system message asks of a cell.
type sysKind uint8

const (
	sysStart        sysKind = iota // begin the first incarnation
	sysStop                        // stop for good
	sysSuspend                     // an ancestor has failed
	sysUnsuspend                   // it goes on
	sysResume                      // go on after the own failure
	sysRestart                     // begin another incarnation
	sysRestartDue                  // the delay before it has passed
	sysChildFailed                 // a child waits for a decision
	sysChildStopped                // a child has gone
	sysWatch                       // somebody wants to know of the end
	sysUnwatch                     // not any more
	sysTerminated                  // a watched actor has gone
	sysQuit                        // stop, by the actor's own wish
	sysChildEnded                  // a permanent child has stopped itself and waits for a decision
	sysDecide                      // an operator's decision about a child
	sysResetBackoff                // count the failures of a child anew
	sysGraceOver                   // a delayed restart has held
	sysSleep                       // give the instance back
	sysInstance                    // there may be an instance again
	sysLate                        // an envelope that found the mailbox full
)

// sysMsg is a system message. They overtake user messages.
type sysMsg struct {
	kind    sysKind
	child   *cell
	ref     abi.Ref
	failure *abi.Failure
	delay   time.Duration
	keep    bool // sysRestart: the children stay
	token   *restarting
	grace   *grace
	env     *mailbox.Envelope
	reason  string
	own     bool // sysStop: the actor's end is nobody's order
	mail    *CrashedMail

	order     bool                  // it is the supervisor's
	obeyed    uint64                // sysChildFailed, sysChildEnded: orders that the child had carried out
	directive supervision.Directive // sysChildFailed: decided already; sysDecide
	again     bool                  // sysChildFailed: the child could not be resumed
}

// sysQueue is unbounded, which is fine: only the host writes to it, a bounded
// number of messages for each actor concerned.
type sysQueue struct {
	mu     sync.Mutex
	items  []sysMsg
	spare  []sysMsg
	closed bool
	n      atomic.Int32
}

// push is false if the actor has gone.
func (q *sysQueue) push(m sysMsg) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.items = append(q.items, m)
	q.n.Store(int32(len(q.items)))
	return true
}

// take returns all that waits; give it back to done.
func (q *sysQueue) take() []sysMsg {
	if q.n.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.spare = q.spare[:0], nil
	q.n.Store(0)
	return items
}

func (q *sysQueue) done(items []sysMsg) {
	if cap(items) > 64 {
		return
	}
	clear(items)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.spare == nil {
		q.spare = items[:0]
	}
}

// close refuses later pushes and returns what is left.
func (q *sysQueue) close() []sysMsg {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	items := q.items
	q.items = nil
	q.n.Store(0)
	return items
}

// post sends a system message; false if the actor has gone.
func (c *cell) post(scr *scratch, m sysMsg) bool {
	if !c.sysq.push(m) {
		return false
	}
	c.wake(scr)
	switch m.kind {
	case sysWatch, sysUnwatch, sysTerminated, sysSleep, sysLate:
	default: // the life of the actor does not wait behind long turns
		c.sys.disp.Hurry(&c.task)
	}
	return true
}

// wake schedules the cell, on the caller's worker if there is one.
func (c *cell) wake(scr *scratch) {
	if scr != nil {
		c.sys.disp.Schedule(&c.task, scr.w)
	} else {
		c.sys.disp.Schedule(&c.task, nil)
	}
}

// handleSystem handles all system messages, those included that arrive meanwhile.
func (c *cell) handleSystem(scr *scratch) {
	for {
		items := c.sysq.take()
		if items == nil {
			return
		}
		for i := range items {
			c.system(scr, &items[i])
		}
		c.sysq.done(items)
	}
}

func (c *cell) system(scr *scratch, m *sysMsg) {
	if c.state == stateStopped {
		c.afterlife(scr, m)
		return
	}
	if m.order {
		c.obeyed++
	}
	switch m.kind {
	case sysStart:
		if c.state == stateNew {
			c.begin(scr, nil)
		}
	case sysStop:
		c.own = c.own || m.own
		c.stopNow(scr, m.reason)
	case sysQuit:
		c.quit(scr, m.reason)
	case sysChildEnded:
		c.childEnded(scr, m)
	case sysDecide:
		c.decided(scr, m.child, m.directive)
	case sysResetBackoff:
		if c.child(m.child.name()) == m.child {
			m.child.record.Reset()
		}
	case sysGraceOver:
		if c.grace == m.grace && m.grace != nil {
			c.endGrace()
		}
	case sysSleep:
		c.sleep()
	case sysInstance:
		c.starved = false
	case sysLate:
		c.late = append(c.late, m.env) // bounded by the timers and asks
	case sysSuspend:
		c.suspends++
		c.suspendChildren(scr)
	case sysUnsuspend:
		c.suspends--
		c.unsuspendChildren(scr)
		c.reconsider(scr)
	case sysResume:
		c.resume(scr)
	case sysRestart:
		c.prepareRestart(scr, m)
	case sysRestartDue:
		if c.restart != nil && c.restart == m.token {
			c.restart.due = true
			c.maybeRestart(scr)
		}
	case sysChildFailed:
		c.childFailed(scr, m)
	case sysChildStopped:
		c.childStopped(scr, m.child, m.own)
	case sysWatch:
		if c.watchers == nil {
			c.watchers = map[abi.Ref]struct{}{}
		}
		c.watchers[m.ref] = struct{}{}
	case sysUnwatch:
		delete(c.watchers, m.ref)
	case sysTerminated:
		c.watchedEnded(scr, m.ref, m.reason)
	}
}

// afterlife answers what reaches an actor that has stopped.
func (c *cell) afterlife(scr *scratch, m *sysMsg) {
	switch m.kind {
	case sysWatch:
		c.sys.notifyEnd(scr, m.ref, c.uid, c.stopReason)
	case sysLate:
		m.env.Free()
	}
}
