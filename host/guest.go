package host

import (
	"errors"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// startGuest gives the actor an instance and its start envelope.
func (c *cell) startGuest(scr *scratch, cause *abi.Failure) *abi.Failure {
	c.seed = c.sys.secret.seed(forGuest, c.uid, c.incarnation)
	x := c.inst.Load()
	if x == nil {
		var err error
		if x, err = sandbox.GetSeeded(c.props.image, c.sys.secret.seed(forUnfrozen, c.uid, c.incarnation)); err != nil {
			var f *abi.Failure
			if errors.As(err, &f) {
				return f
			}
			return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
		}
		c.take(scr, x)
	}
	start := abi.Start{
		Type: c.props.typ, Path: c.ref().String(), Self: c.uid, Parent: c.parentUID(), Seed: c.seed,
		RefKey: c.childKey(), Spawned: c.spawned, Incarnation: c.incarnation, Args: c.args,
	}
	if cause != nil {
		start.Reason = clip(cause.Error(), maxRestartReason)
	}
	return c.hook(scr, x, abi.KindStart, 0, abi.AppendStart(nil, &start))
}

// maxRestartReason bounds what a start envelope tells of the failure before it,
// in bytes, so that it fits any inbox.
const maxRestartReason = 256

// clip cuts a text to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (c *cell) parentUID() abi.Ref {
	if c.parent == nil {
		return 0
	}
	return c.parent.uid
}

// hook runs one turn that no message has caused.
func (c *cell) hook(scr *scratch, x *sandbox.Instance, kind abi.Kind, sender abi.Ref, payload []byte) *abi.Failure {
	e := scr.cache.New()
	e.Kind, e.Sender = kind, sender
	e.SetPayload(payload)
	scr.same = 0
	now := c.turnTime(scr)
	scr.env = abi.Envelope{Kind: kind, Time: now, Sender: sender, Payload: e.Payload}
	if !x.Push(&scr.env) {
		scr.cache.Free(e)
		return &abi.Failure{Kind: abi.FailureInit, Reason: "the start envelope, with the arguments, is larger than the inbox"}
	}
	scr.batch = append(scr.batch[:0], e)
	_, f := c.execute(scr, x, now)
	return f
}

// stopGuest runs the last turn, of an instance that can still be called.
func (c *cell) stopGuest(scr *scratch) {
	x, err := c.instance(scr)
	if err != nil {
		c.sys.logf(c, abi.LogError, "stopping: %v", err)
		return
	}
	if x == nil || x.Poisoned() {
		return
	}
	if f := c.hook(scr, x, abi.KindStop, 0, []byte{0xf6}); f != nil {
		c.sys.logf(c, abi.LogError, "stopping: %v", f)
	}
}

// guestTurns runs a batch of messages and returns how many were taken from the
// mailbox for good.
func (c *cell) guestTurns(scr *scratch, budget int) int {
	x, err := c.instance(scr)
	if err != nil {
		c.noInstance(scr, err)
		return 0
	}
	c.use(scr)
	if !sandbox.Batching(c.props.image) {
		budget = 1
	}
	now := c.turnTime(scr)
	scr.batch = scr.batch[:0]
	for len(scr.batch) < budget {
		e := c.peek(scr)
		if e == nil || e.Flags&flagControl != 0 {
			break
		}
		alone := e.Kind != abi.KindMessage // cancelling what is next must still work
		if alone && len(scr.batch) > 0 {
			break
		}
		scr.env = abi.Envelope{Kind: e.Kind, Time: now, Sender: e.Sender, Correlation: e.Correlation, Headers: e.Headers, Payload: e.Payload}
		if !x.Push(&scr.env) {
			if len(scr.batch) == 0 {
				c.mbox.Pop()
				c.dead(DeadTooLarge, e)
				return 1
			}
			break
		}
		c.mbox.Pop()
		scr.batch = append(scr.batch, e)
		if alone {
			break
		}
	}
	if len(scr.batch) == 0 {
		return 0
	}
	done, f := c.execute(scr, x, now)
	if f != nil {
		c.fail(scr, f)
	}
	return max(done, 1)
}

// execute runs what was pushed, carries out the commands of the turns that have
// ended, and gives unread messages back. It returns the number of messages that
// are done with, a failing one included.
func (c *cell) execute(scr *scratch, x *sandbox.Instance, now int64) (done int, f *abi.Failure) {
	in := &scr.entry
	in.Now, in.FirstTurn, in.Seed = now, c.turns, c.seed
	in.TurnFuel, in.Deadline, in.MemoryLimit, in.OutboxLimit = c.limits.Fuel, c.limits.Deadline, c.limits.Memory, c.limits.Outbox
	in.Yield, in.Log = scr.w, c
	x.Run(in, &scr.res)
	res := &scr.res
	failed := -1
	for failed < 0 {
		turn, cmds, ok, err := x.NextTurn(scr.cmds[:0])
		if cap(cmds) > cap(scr.cmds) {
			scr.cmds = cmds
		}
		if err != nil {
			failed, f = turn, c.violation(err)
			break
		}
		if !ok {
			break
		}
		if f = c.examine(cmds, turn, res); f != nil {
			failed = turn
			if res.Turns == 1 {
				f.Fuel = res.Fuel // of several turns the parts are not known
			}
			break
		}
		c.apply(scr, cmds, scr.batch[turn], now)
	}
	if failed < 0 && res.Failure != nil {
		failed, f = res.Turns, res.Failure
	}
	done = res.Turns
	if failed >= 0 {
		done = min(failed+1, len(scr.batch))
		f.Turn = c.turns + uint64(failed)
	}
	back := done // the first envelope that goes back to the mailbox
	for i, e := range scr.batch[:done] {
		c.consume(e)
		switch {
		case i == failed:
			c.noteCrash(e, x)
			if !c.dispose(e) {
				back = i
				continue
			}
		case c.recovery != nil && c.remember(e, now, c.turns+uint64(i)):
			continue
		}
		scr.cache.Free(e)
	}
	if back < len(scr.batch) {
		c.mbox.PushFront(scr.batch[back:]...)
	}
	clear(scr.batch)
	scr.batch = scr.batch[:0]
	c.turns += uint64(done)
	if res.Fuel > longTurn || f != nil {
		scr.same = 0
	}
	if res.Fuel > 0 {
		c.burnt += res.Fuel
		c.fuel.Store(c.burnt)
	}
	if c.recovery != nil && f == nil {
		c.checkpointIfDue()
	}
	return done, f
}

// noteCrash keeps for the crash report what the failing turn was about.
func (c *cell) noteCrash(e *mailbox.Envelope, x *sandbox.Instance) {
	if c.sys.bus.quiet() {
		return
	}
	m := &CrashedMail{
		Kind: e.Kind, Sender: e.Sender, Correlation: e.Correlation, Payload: kept(e.Payload),
		Size: len(e.Payload), Waiting: c.mbox.Len(), Redelivered: attemptsOf(e),
	}
	if x != nil {
		m.Memory = x.MemoryBytes()
	}
	c.crash = m
}

// preRestart is the last turn of an instance that is replaced, if it can still be
// called.
func (c *cell) preRestart(scr *scratch, cause *abi.Failure) {
	if c.props.image == nil || !c.begun {
		return
	}
	x, err := c.instance(scr)
	if err != nil || x == nil || x.Poisoned() {
		return
	}
	reason := ""
	if cause != nil {
		reason = clip(cause.Error(), maxRestartReason)
	}
	if f := c.hook(scr, x, abi.KindPreRestart, 0, appendText(nil, reason)); f != nil {
		c.sys.logf(c, abi.LogError, "before the restart: %v", f)
	}
}

func (c *cell) violation(err error) *abi.Failure {
	var f *abi.Failure
	if errors.As(err, &f) {
		return f
	}
	return &abi.Failure{Kind: abi.FailureABIViolation, Reason: err.Error()}
}

// examine checks what the decoder cannot know: a turn's commands as a whole.
func (c *cell) examine(cmds []abi.Command, turn int, res *sandbox.Result) *abi.Failure {
	spawned, stashed := c.spawned, false
	for i := range cmds {
		switch cmd := &cmds[i]; cmd.Op {
		case abi.OpFail:
			return &abi.Failure{Kind: abi.FailureGuestError, Reason: string(cmd.Reason)}
		case abi.OpSpawn:
			if cmd.Ref != abi.ChildRef(c.childKey(), c.uid.Node(), spawned) {
				return &abi.Failure{Kind: abi.FailureABIViolation, Reason: "spawn: the child's ref is not the next one"}
			}
			spawned++
		case abi.OpStash, abi.OpUnstash:
			if cmd.Op == abi.OpStash {
				if stashed {
					return &abi.Failure{Kind: abi.FailureABIViolation, Reason: "stash: the message is stashed already"}
				}
				stashed = true
			}
			if !res.LastTurn(turn) {
				return &abi.Failure{Kind: abi.FailureABIViolation, Reason: "the batch went on after " + cmd.Op.String()}
			}
		case abi.OpStop:
			if cmd.ToRef == c.uid && !res.LastTurn(turn) {
				return &abi.Failure{Kind: abi.FailureABIViolation, Reason: "the batch went on after stop"}
			}
		}
	}
	return nil
}

// GuestLog implements sandbox.LogSink.
func (c *cell) GuestLog(level int, text []byte) {
	if c.sys.bus.quiet() {
		return
	}
	e := c.event(EventLog)
	e.Level, e.Text = level, string(text)
	c.sys.bus.publish(e)
}
