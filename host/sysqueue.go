package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
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
	sysWatch                       // somebody wants to know of the end
	sysUnwatch                     // not any more
	sysBorn                        // an actor that it looks out for was started
	sysTerminated                  // a watched actor has gone
	sysUnanswered                  // there will be no answer to an ask
	sysDelegate                    // another one may answer an ask
	sysObserve                     // somebody wants to know when an ask is over
	sysAbandoned                   // it is over
	sysSleep                       // give the instance back, if nothing is to be done
	sysInstance                    // there may be an instance again
	sysStray                       // it has sent to too many refs that nobody has
)

// sysMsg is a system message. System messages overtake user messages. They name actors by refs, so
// that they could cross a border between nodes.
type sysMsg struct {
	kind      sysKind
	directive supervision.Directive // sysChildFailed: decided already; sysDecide

	order     bool // it is an order of the supervisor
	keep      bool // sysRestart: the children stay
	hold      bool // sysRestart: until sysBegin
	now       bool // sysRestart: a delay under way is over
	below     bool // sysPause, sysUnpause: all below it, too
	once      bool // sysWatch: the only watch of its watcher
	byItself  bool // sysStop, sysChildStopped: the end follows from the actor's own failure or stop, not from an order
	again     bool // sysChildFailed: the child could not be resumed; sysResume: there was no room for it before
	escalated bool // sysChildFailed: the failure is one of its own children's
	crowded   bool // sysChildFailed: its start was refused because there is no room

	more        int32   // how many that say the same were merged into it
	ref         abi.Ref // the actor it is about, or the one that wants to know
	other       abi.Ref // sysDelegate: the actor that may answer, too
	correlation uint64  // of an ask
	reason      string

	failure *abi.Failure
	delay   time.Duration
	orders  uint64 // sysChildFailed, sysChildEnded, sysChildHalted, sysChildBegun: that the child had carried out; sysResume, again: the actor
	mail    *CrashedMail
	token   any // of the timer that has fired; sysRenew, sysRestart: the *renewal

	back  []*mailbox.Envelope // sysChildStopped: what has come too late for it
	child *actor              // sysChildFailed, sysChildStopped: it may have left the table; parent and child share a node
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
	case sysWatch, sysUnwatch, sysBorn, sysTerminated, sysUnanswered, sysDelegate, sysObserve, sysSleep, sysLook:
		return false
	}
	return true
}

// handleSystem handles all system messages, including those that arrive meanwhile.
func (a *actor) handleSystem(scr *scratch) {
	if a.turn != nil {
		a.turn.goOn() // what comes from now on is seen, or ends the batch
	}
	for a.sysq.waiting() {
		items := a.sysq.take()
		for i := range items {
			a.system(scr, &items[i])
		}
		a.sysq.done(items)
	}
}

func (a *actor) system(scr *scratch, m *sysMsg) {
	if a.life.State() == life.Stopped {
		a.tooLate(scr, m)
		return
	}
	if m.order {
		a.orders += uint64(1 + m.more)
	}
	switch m.kind {
	case sysStart:
		if a.life.Do(life.Start) {
			a.begin(scr, nil, false)
		}
	case sysStop:
		how := endOrdered
		if m.byItself {
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
		if !m.again || m.orders == a.orders {
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
		if a.restart != nil && m.token == any(a.restart) {
			a.restart.due = true
			a.maybeRestart(scr)
		}
	case sysGraceOver:
		if m.token == a.gate.Grace() {
			a.endGrace()
		}
	case sysChildFailed, sysChildEnded, sysChildHalted, sysChildBegun, sysChildStopped, sysDecide, sysRenew, sysResetBackoff:
		a.aboutChild(scr, m)
	case sysPause, sysUnpause:
		a.setPaused(scr, m.kind == sysPause, m.below)
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
		m.token.(*look).at(a)
	case sysWatch:
		a.watch.AddWatcher(m.ref)
	case sysUnwatch:
		a.watch.RemoveWatcher(m.ref)
	case sysBorn:
		a.sawBorn(scr, m)
	case sysTerminated:
		a.watchedEnded(scr, m.ref, m.reason)
	case sysUnanswered:
		a.noAnswer(scr, m)
	case sysDelegate:
		if ask := a.asks.Get(m.correlation); ask != nil {
			ask.Delegate(m.ref, m.other)
		}
	case sysObserve:
		if !a.asks.Observe(m.correlation, m.ref) {
			a.sys.outside.abandoned(m.ref)
		}
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
		if child = a.sys.table.Get(m.ref); child == nil || child.parent != a {
			return
		}
	}
	p := a.in(scr)
	switch m.kind {
	case sysChildFailed, sysChildEnded:
		r := scr.newReport()
		*r = supervisor.Report{
			Ref: m.ref, Failure: m.failure, Ended: m.kind == sysChildEnded, Reason: m.reason, Orders: m.orders,
			Directive: m.directive, Again: m.again, Escalated: m.escalated, Crowded: m.crowded, Detail: m.mail,
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
		a.super.Renew(p, &child.member, m.failure, m.token, 1+m.more)
	case sysResetBackoff:
		a.super.ResetBackoff(&child.member)
	case sysChildStopped:
		if a.props.keeps {
			a.dropAsk(scr, uint64(m.ref)) // see Passivate
			a.takeBack(child.Name(), m.back)
		}
		left := a.super.Stopped(p, &child.member, m.byItself)
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
	case sysWatch:
		a.sys.notifyEnd(scr, m.ref, a.uid, a.reason)
	case sysObserve:
		a.sys.outside.abandoned(m.ref)
	case sysLook:
		m.token.(*look).gone()
	}
}
