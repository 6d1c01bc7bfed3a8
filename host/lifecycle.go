package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// restarting is a restart under way.
type restarting struct {
	cause *abi.Failure
	due   bool // the delay has passed
	keep  bool // the children stay
	late  bool // there was a delay
	timer clock.Timer
}

// begin starts an incarnation; cause is why the one before it ended.
func (c *cell) begin(scr *scratch, cause *abi.Failure) {
	c.setState(stateRunning)
	c.begun = false
	c.startedAt.Store(c.sys.cfg.clock.Now().UnixNano())
	f := c.start(scr, cause)
	if f != nil {
		c.fail(scr, initFailure(f))
		return
	}
	c.begun = true
	c.firstCheckpoint()
	c.startChildren(scr)
	if !c.sys.bus.quiet() {
		kind := EventStarted
		if cause != nil {
			kind = EventRestarted
		}
		e := c.event(kind)
		e.Failure = cause
		c.sys.bus.publish(e)
	}
	c.reconsider(scr)
}

// start runs the first turn of an incarnation.
func (c *cell) start(scr *scratch, cause *abi.Failure) *abi.Failure {
	if c.props.image != nil {
		return c.startGuest(scr, cause)
	}
	return c.startNative(scr, cause)
}

// initFailure is f as the failure of a start.
func initFailure(f *abi.Failure) *abi.Failure {
	if f.Kind == abi.FailureInit {
		return f
	}
	g := *f
	g.Kind = abi.FailureInit
	g.Reason = f.Kind.String()
	if f.Reason != "" {
		g.Reason += ": " + f.Reason
	}
	return &g
}

// startChildren starts those that the props name, unless they have survived.
func (c *cell) startChildren(scr *scratch) {
	for _, k := range c.props.children {
		if c.child(k.Name) == nil {
			if _, err := c.spawn(scr, k.Name, k.Props, c.nextHostRef()); err != nil {
				c.sys.logf(c, abi.LogError, "the child %q cannot be started: %v", k.Name, err)
			}
		}
	}
}

// fail suspends the actor and tells its supervisor. Failing again meanwhile
// changes nothing.
func (c *cell) fail(scr *scratch, f *abi.Failure) {
	if c.state != stateRunning {
		return
	}
	c.setState(stateFailed)
	c.cause = f
	c.suspendChildren(scr)
	if c.parent == nil {
		c.sys.escalated(scr, c, f)
		return
	}
	m := sysMsg{kind: sysChildFailed, child: c, failure: f, reason: c.cannotResume(), mail: c.crash, obeyed: c.obeyed}
	c.crash = nil
	c.parent.post(scr, m)
}

// quit is the actor's own stop. The supervisor of a permanent actor is asked first.
func (c *cell) quit(scr *scratch, reason string) {
	if c.state != stateRunning {
		return
	}
	c.own = true
	if c.props.life != supervision.Permanent || c.parent == nil {
		c.stopNow(scr, reason)
		return
	}
	c.setState(stateFailed)
	c.suspendChildren(scr)
	c.parent.post(scr, sysMsg{kind: sysChildEnded, child: c, reason: reason, obeyed: c.obeyed})
}

func (c *cell) suspendChildren(scr *scratch) {
	for _, k := range c.kids() {
		k.post(scr, sysMsg{kind: sysSuspend})
	}
}

func (c *cell) unsuspendChildren(scr *scratch) {
	for _, k := range c.kids() {
		k.post(scr, sysMsg{kind: sysUnsuspend})
	}
}

// weight is how often the actor's children are suspended.
func (c *cell) weight() int {
	if c.state == stateFailed {
		return c.suspends + 1
	}
	return c.suspends
}

// resume goes on after a failure, with the state from before the failing turn. Where
// that cannot be had the actor is restarted.
func (c *cell) resume(scr *scratch) {
	if c.state != stateFailed {
		return
	}
	if !c.relayed && !c.rewind(scr) {
		c.askForRestart(scr)
		return
	}
	culprit := c.culprit
	c.own, c.relayed, c.culprit, c.cause = false, false, nil, nil
	c.setState(stateRunning)
	c.unsuspendChildren(scr)
	if culprit != nil {
		c.give(scr, culprit, sysMsg{kind: sysResume})
	}
	if !c.sys.bus.quiet() {
		c.sys.bus.publish(c.event(EventResumed))
	}
	c.reconsider(scr)
}

// askForRestart tells the supervisor that the actor cannot be resumed. The limit and
// the delay of restarts hold for what follows.
func (c *cell) askForRestart(scr *scratch) {
	m := sysMsg{kind: sysChildFailed, child: c, failure: c.cause, reason: c.cannotResume(), obeyed: c.obeyed, directive: supervision.Restart, again: true}
	if m.failure == nil {
		m.failure = &abi.Failure{Kind: abi.FailureExit, Reason: "the actor has ended"}
	}
	if m.reason == "" {
		m.reason = "the state from before the turn could not be brought back"
	}
	c.parent.post(scr, m)
}

// prepareRestart ends the present incarnation; the next begins when the delay is
// over and the children are gone.
func (c *cell) prepareRestart(scr *scratch, m *sysMsg) {
	if c.state == stateStopping || c.state == stateRestarting {
		return
	}
	wereSuspended, kids := c.state == stateFailed, c.kids()
	cause := m.failure
	if cause == nil {
		cause = c.cause
	}
	c.preRestart(scr, cause)
	c.setState(stateRestarting)
	c.culprit, c.relayed, c.own = nil, false, false
	r := &restarting{cause: cause, due: m.delay <= 0, late: m.delay > 0, keep: m.keep}
	c.restart = r
	c.endIncarnation(scr, m.delay > 0)
	if !r.due {
		c.shutGate()
		c.pending.Add(1)
		r.timer = c.sys.cfg.clock.AfterFunc(m.delay, func() {
			c.pending.Add(-1)
			c.post(nil, sysMsg{kind: sysRestartDue, token: r})
		})
	}
	if !m.keep {
		kids = c.kids() // the last turn may have made some
	}
	for _, k := range kids {
		if !m.keep {
			c.unwatch(scr, k.uid) // the next incarnation does not know it
			c.give(scr, k, sysMsg{kind: sysStop, reason: "the parent restarts"})
			continue
		}
		if wereSuspended {
			k.post(scr, sysMsg{kind: sysUnsuspend})
		}
		c.give(scr, k, sysMsg{kind: sysRestart, failure: cause, keep: true})
	}
	c.maybeRestart(scr)
}

// endIncarnation takes back what belongs to an incarnation. The mailbox, the
// watches and what was stashed survive.
func (c *cell) endIncarnation(scr *scratch, release bool) {
	if c.actor != nil {
		c.stopNative(scr)
	}
	c.begun, c.group = false, supervision.Group{}
	c.cancelTimers()
	c.dropAsks()
	c.setReceiveTimeout(0)
	c.endGrace()
	c.unstash()
	c.forgetStates()
	c.forgetSleep()
	if x := c.inst.Load(); x != nil && (release || x.Reset() != nil) {
		c.releaseInstance()
	}
}

// releaseInstance gives the instance back. Killing takes the same lock, so that
// nobody kills what is another actor's by now.
func (c *cell) releaseInstance() {
	c.mu.Lock()
	x := c.inst.Swap(nil)
	c.mu.Unlock()
	if x != nil {
		c.sys.awake.remove(c)
		c.used.Store(false)
		x.Put()
	}
}

func (c *cell) maybeRestart(scr *scratch) {
	r := c.restart
	if c.state != stateRestarting || r == nil || !r.due {
		return
	}
	if !r.keep {
		c.mu.Lock()
		left := len(c.children)
		c.mu.Unlock()
		if left > 0 {
			return
		}
	}
	c.restart, c.cause = nil, nil
	if r.late {
		c.openGate()
		c.beginGrace()
	}
	c.incarnation++
	c.life.Store(c.incarnation)
	c.restarts++
	c.begin(scr, r.cause)
}

// stop asks the cell to stop after its current turn. Any goroutine may call it.
func (c *cell) stop(scr *scratch) {
	c.post(scr, sysMsg{kind: sysStop})
	c.killLater()
}

// stopNow begins the end: the children first.
func (c *cell) stopNow(scr *scratch, reason string) {
	if c.state == stateStopping || c.state == stateStopped {
		return
	}
	if reason == "" {
		reason = "stopped"
	}
	c.stopReason = reason
	if c.restart != nil {
		if c.restart.timer != nil && c.restart.timer.Stop() {
			c.pending.Add(-1)
		}
		c.restart = nil
	}
	c.openGate()
	c.setState(stateStopping)
	c.mu.Lock()
	c.closed = true
	left := len(c.children)
	c.mu.Unlock()
	if left == 0 {
		c.finishStop(scr)
		return
	}
	for _, k := range c.kids() {
		k.post(scr, sysMsg{kind: sysStop, reason: "the parent stops"})
		k.killLater()
	}
}

func (c *cell) childStopped(scr *scratch, child *cell, own bool) {
	left := c.disown(child)
	if own {
		c.significantEnded(scr, child)
	}
	if child == c.culprit {
		c.culprit = nil
	}
	switch {
	case c.state == stateStopping && left == 0:
		c.finishStop(scr)
	case c.state == stateRestarting:
		c.maybeRestart(scr)
	}
}

// finishStop is the end: the last turn, then the mailbox, then whoever must know.
func (c *cell) finishStop(scr *scratch) {
	c.lastTurn(scr)
	c.setState(stateStopped)
	c.cancelTimers()
	c.dropAsks()
	c.setReceiveTimeout(0)
	c.endGrace()
	c.forgetStates()
	c.forgetSleep()
	c.sys.table.remove(c.uid)
	c.sys.fuelSpent.Add(c.burnt)
	c.releaseInstance()
	for _, e := range c.stash {
		c.dead(DeadStopped, e)
	}
	for _, e := range c.late {
		e.Free()
	}
	c.stash, c.late, c.undecided = nil, nil, nil
	c.mbox.Close(func(e *mailbox.Envelope) { c.dead(DeadStopped, e) })
	for uid := range c.watching {
		if t := c.sys.table.get(uid); t != nil {
			t.post(scr, sysMsg{kind: sysUnwatch, ref: c.uid})
		}
	}
	c.watching = nil
	if !c.sys.bus.quiet() {
		e := c.event(EventStopped)
		e.Note = c.stopReason
		e.Failure = c.cause
		c.sys.bus.publish(e)
	}
	left := c.sysq.close()
	if c.parent != nil {
		c.parent.post(scr, sysMsg{kind: sysChildStopped, child: c, own: c.own})
	}
	watchers := make([]abi.Ref, 0, len(c.watchers))
	for uid := range c.watchers {
		watchers = append(watchers, uid)
	}
	slices.Sort(watchers) // map order decides nothing
	for _, uid := range watchers {
		c.sys.notifyEnd(scr, uid, c.uid, c.stopReason)
	}
	c.watchers = nil
	for i := range left {
		c.afterlife(scr, &left[i])
	}
	if c.parent == nil {
		c.sys.guardianStopped(c)
	}
}

// dead makes a dead letter of an envelope and frees it. What the host itself has
// put there is nobody's message; who wants to know who the actor is hears of it.
func (c *cell) dead(reason DeadReason, e *mailbox.Envelope) {
	if isMail(e) && e.Flags&flagKept == 0 || e.Flags&flagIdentify != 0 {
		c.sys.deadLetter(reason, c.uid, c.path, e)
	}
	e.Free()
}

// killLater kills a turn that goes on for too long after its actor was stopped.
func (c *cell) killLater() {
	if !c.running() || c.inst.Load() == nil {
		return
	}
	c.sys.cfg.clock.AfterFunc(c.sys.cfg.grace, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if x := c.inst.Load(); x != nil && c.running() && c.sysq.n.Load() > 0 {
			x.Kill("stopped")
			c.sys.disp.Hurry(&c.task)
		}
	})
}
