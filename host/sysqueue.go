package host

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// sysKind is what a system message asks of an actor.
type sysKind uint8

const (
	sysStart        sysKind = iota // begin the first incarnation
	sysStop                        // stop for good
	sysQuit                        // stop, as the actor itself asks
	sysSuspend                     // an ancestor has failed
	sysUnsuspend                   // it goes on
	sysResume                      // go on after its own failure
	sysRestart                     // begin another incarnation
	sysBegin                       // begin the incarnation that was held back
	sysRestartDue                  // the delay before it has passed
	sysGraceOver                   // a delayed restart has held
	sysChildFailed                 // a child waits for a decision
	sysChildEnded                  // a permanent child has stopped itself and waits for one
	sysChildHalted                 // a child has ended its incarnation and waits for sysBegin
	sysChildBegun                  // it has begun the next one
	sysChildStopped                // a child has gone
	sysDecide                      // an operator's decision about a child
	sysRenew                       // an operator wants a child restarted
	sysAwaitRenewal                // an operator tells the supervisor to restart it
	sysRenewed                     // the supervisor has dealt with that
	sysPause                       // an operator holds back the actor's messages
	sysUnpause                     // and lets them in again
	sysCrash                       // an operator makes it fail
	sysLook                        // somebody looks at what only the actor knows
	sysResetBackoff                // count the failures of a child anew
	sysSignal                      // what others tell it, see signal.go
	sysBorn                        // an actor that it looks out for was started
	sysSleep                       // give the instance back, if nothing is to be done
	sysInstance                    // there may be an instance again
	sysStray                       // it has sent to too many refs that nobody has
)

// sysMsg is a system message. System messages overtake user messages. Besides its kind it is one of three things: what
// others tell it, which may come from another node; an order or a report within a family, which shares a node; what
// the actor tells itself.
type sysMsg struct {
	kind   sysKind
	more   int32          // how many that say the same were merged into it
	signal *signal.Signal // sysSignal
	kin
	own
}

// kin is what a supervisor or an operator orders, and what a child reports.
type kin struct {
	how       how
	directive supervision.Directive // sysChildFailed: decided already; sysDecide
	ref       abi.Ref               // the child it is about
	child     *actor                // sysChildFailed, sysChildStopped: it may have left the table
	failure   *abi.Failure
	reason    string
	orders    uint64 // sysChildFailed, sysChildEnded, sysChildHalted, sysChildBegun: that the child had carried out; sysResume, again: the actor
	delay     time.Duration
	detail    any // sysChildFailed: the *CrashedMail; sysChildStopped: the envelopes that have come too late; sysRenew, sysRestart: the *renewal
}

// how is what there is to an order or a report, as a set.
type how uint16

const (
	howOrder     how = 1 << iota // it is an order of the supervisor
	howKeep                      // sysRestart: the children stay
	howHold                      // sysRestart: until sysBegin
	howNow                       // sysRestart: a delay under way is over
	howBelow                     // sysPause, sysUnpause: all below it, too
	howByItself                  // sysStop, sysChildStopped: the end follows from the actor's own failure or stop, not from an order
	howAgain                     // sysChildFailed: the child could not be resumed; sysResume: there was no room for it before
	howEscalated                 // sysChildFailed: the failure is one of its own children's
	howCrowded                   // sysChildFailed: its start was refused because there is no room
	howNoted                     // it is in the records already
)

func (h how) has(what how) bool { return h&what != 0 }

// howIf is what, if that is so.
func howIf(so bool, what how) how {
	if so {
		return what
	}
	return 0
}

// own is what an actor tells itself, or somebody of its node who looks at it.
type own struct {
	due  any   // sysRestartDue, sysGraceOver: what the alarm was set for
	look *look // sysLook
	born *birth
}

// birth is the start of an actor that another one looks out for.
type birth struct {
	to   *lookout
	ref  abi.Ref
	path string
}

// systemQueue has no bound for messages about lives: the host writes a bounded number of
// those for each actor concerned. Messages that guests and operators can cause in any number while the
// actor is busy are thinned out: see thin.
type systemQueue struct {
	mu     sync.Mutex
	items  []sysMsg
	spare  []sysMsg
	closed bool
	n      atomic.Int32
	thinAt int       // how long it may become before it is thinned out; 0: firstThin
	first  [1]sysMsg // room for the usual length
}

// init gives the queue its initial room.
func (q *systemQueue) init() { q.spare = q.first[:0] }

// waiting reports whether there is a message. Any goroutine may ask.
func (q *systemQueue) waiting() bool { return q.n.Load() > 0 }

// push is false if the actor has gone.
func (q *systemQueue) push(m *sysMsg) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.items == nil {
		q.items, q.spare = q.spare, nil
	}
	q.items = append(q.items, *m)
	if len(q.items) >= max(q.thinAt, firstThin) {
		q.thin()
	}
	q.n.Store(int32(len(q.items)))
	return true
}

// take returns all that waits; give it back to done.
func (q *systemQueue) take() []sysMsg {
	if q.n.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.thinAt = nil, 0
	q.n.Store(0)
	return items
}

// putBack puts messages that were taken before all others.
func (q *systemQueue) putBack(items []sysMsg) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(slices.Clone(items), q.items...)
	q.n.Store(int32(len(q.items)))
}

func (q *systemQueue) done(items []sysMsg) {
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
func (q *systemQueue) close() []sysMsg {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	items := q.items
	q.items = nil
	q.n.Store(0)
	return items
}

// post sends a system message; false if the actor has gone.
func (a *actor) post(scr *scratch, m sysMsg) bool {
	if !a.sysq.push(&m) {
		return false
	}
	a.wake(scr)
	if a.turn != nil && a.running() {
		a.turn.endBatch()
	}
	if m.kind.urgent() {
		a.disp.Hurry(&a.task)
	}
	return true
}

// urgent reports whether a message does not wait behind long turns: the life of an actor
// does not.
func (k sysKind) urgent() bool {
	switch k {
	case sysSignal, sysBorn, sysSleep, sysLook:
		return false
	}
	return true
}

// handleSystem handles all system messages, including those that arrive meanwhile.
func (a *actor) handleSystem(scr *scratch) {
	if a.turn != nil {
		a.turn.goOn() // what comes from now on is seen, or ends the batch
	}
	for a.sysq.waiting() && !a.isHeld() {
		items := a.sysq.take()
		for i := range items {
			if a.system(scr, &items[i]); a.isHeld() {
				a.sysq.putBack(items[i+1:])
				return
			}
		}
		a.sysq.done(items)
	}
}

func (a *actor) system(scr *scratch, m *sysMsg) {
	if a.life.State() == life.Stopped {
		a.tooLate(scr, m)
		return
	}
	if a.durable {
		noteSignal(a, m)
	}
	if m.how.has(howOrder) {
		a.orders += uint64(1 + m.more)
	}
	switch m.kind {
	case sysStart:
		if a.doomed() == nil && a.life.Do(life.Start) {
			a.begin(scr, nil, false)
		}
	case sysStop:
		how := endOrdered
		if m.how.has(howByItself) {
			how = endByItself
		}
		a.stopNow(scr, m.reason, how)
	case sysQuit:
		a.quit(scr, m.reason)
	case sysSuspend:
		a.life.Suspend()
		a.suspendChildren(scr)
	case sysUnsuspend:
		a.life.Unsuspend()
		a.unsuspendChildren(scr)
		a.super.Reconsider(a.in(scr))
	case sysResume:
		if !m.how.has(howAgain) || m.orders == a.orders {
			a.resume(scr)
		}
	case sysRestart:
		a.prepareRestart(scr, m)
	case sysBegin:
		if a.restart != nil {
			a.restart.hold = false
			a.maybeRestart(scr)
		}
	case sysRestartDue:
		if a.restart != nil && m.due == any(a.restart) {
			a.restart.due = true
			a.maybeRestart(scr)
		}
	case sysGraceOver:
		if m.due == a.gate.Grace() {
			a.endGrace()
		}
	case sysChildFailed, sysChildEnded, sysChildHalted, sysChildBegun, sysChildStopped, sysDecide, sysRenew, sysResetBackoff:
		a.aboutChild(scr, m)
	case sysPause, sysUnpause:
		a.setPaused(scr, m.kind == sysPause, m.how.has(howBelow))
	case sysAwaitRenewal:
		a.renewals += 1 + m.more
		a.holds.add(holdRenewal)
	case sysRenewed:
		if a.renewals -= 1 + m.more; a.renewals == 0 {
			a.holds.drop(holdRenewal)
		}
	case sysCrash:
		a.crashOnOrder(scr, m.failure)
	case sysLook:
		m.look.at(a)
	case sysSignal:
		a.signalled(scr, m.signal)
	case sysBorn:
		a.sawBorn(scr, m.born)
	case sysSleep, sysInstance:
		if g, ok := a.behaviour.(*guest); ok {
			g.residency(scr, m.kind)
		}
	case sysStray:
		a.fail(scr, &abi.Failure{Kind: abi.FailureABIViolation, Reason: "too many messages to refs that name no actor", Turn: a.turns}, endByItself)
	}
}

// aboutChild handles a message from or about a child.
func (a *actor) aboutChild(scr *scratch, m *sysMsg) {
	child := m.child
	if child == nil {
		if child = a.sys.here(m.ref); child == nil || child.parent != a {
			return
		}
	}
	p := a.in(scr)
	switch m.kind {
	case sysChildFailed, sysChildEnded:
		r := scr.newReport()
		*r = supervisor.Report{
			Ref: m.ref, Failure: m.failure, Ended: m.kind == sysChildEnded, Reason: m.reason, Orders: m.orders,
			Directive: m.directive, Again: m.how.has(howAgain), Escalated: m.how.has(howEscalated), Crowded: m.how.has(howCrowded), Detail: m.detail,
		}
		a.super.Report(p, &child.member, r)
		*r = supervisor.Report{}
	case sysChildHalted:
		a.super.Halted(p, &child.member, m.orders)
	case sysChildBegun:
		a.super.Begun(p, &child.member, m.orders)
	case sysDecide:
		a.super.Decide(p, &child.member, m.directive)
	case sysRenew:
		a.super.Renew(p, &child.member, m.failure, m.detail, 1+m.more)
	case sysResetBackoff:
		a.super.ResetBackoff(&child.member)
	case sysChildStopped:
		if a.props.keeps {
			a.dropAsk(scr, uint64(m.ref)) // see Passivate
			back, _ := m.detail.([]*mailbox.Envelope)
			a.takeBack(child.Name(), back)
		}
		left := a.super.Stopped(p, &child.member, m.how.has(howByItself))
		switch {
		case a.life.State() == life.Stopping && left == 0:
			a.finishStop(scr)
		case a.life.State() == life.Restarting:
			a.maybeRestart(scr)
		}
	}
}

// tooLate answers a system message that reaches an actor that has stopped.
func (a *actor) tooLate(scr *scratch, m *sysMsg) {
	switch m.kind {
	case sysSignal:
		a.signalledLate(scr, m.signal)
	case sysLook:
		m.look.gone()
	}
}
