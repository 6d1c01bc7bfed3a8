package host

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// apply carries out the commands of one turn, in order. What is refused becomes
// a dead letter or an envelope to the actor; it does not fail the turn.
func (c *cell) apply(scr *scratch, cmds []abi.Command, current *mailbox.Envelope, now int64) {
	stopping := current.Kind == abi.KindStop || current.Kind == abi.KindPreRestart
	for i := range cmds {
		cmd := &cmds[i]
		if stopping && cmd.Op != abi.OpSend && cmd.Op != abi.OpForward {
			continue // who is about to end can only say farewell
		}
		switch cmd.Op {
		case abi.OpSend:
			if cmd.ToPath != nil && wild(string(cmd.ToPath)) {
				c.applySelection(scr, cmd, func(one *abi.Command) { c.applySend(scr, one) })
				continue
			}
			c.applySend(scr, cmd)
		case abi.OpForward:
			if cmd.ToPath != nil && wild(string(cmd.ToPath)) {
				c.applySelection(scr, cmd, func(one *abi.Command) { _ = c.forward(scr, one.ToRef, current) })
				continue
			}
			if uid, ok := c.target(scr, cmd, c.caps.send); ok {
				_ = c.forward(scr, uid, current)
			}
		case abi.OpAsk:
			c.applyAsk(scr, cmd)
		case abi.OpSpawn:
			c.applySpawn(scr, cmd)
		case abi.OpStop:
			c.applyStop(scr, cmd)
		case abi.OpWatch:
			if uid, ok := c.target(scr, cmd, c.caps.send); ok {
				if c.watch(scr, uid, "") != nil {
					c.refused(scr, DeadLimit, uid, "", nil)
				}
			}
		case abi.OpUnwatch:
			if uid, ok := c.target(scr, cmd, c.caps.send); ok {
				c.unwatch(scr, uid)
			}
		case abi.OpTimer:
			if c.setTimer(cmd.Key, time.Duration(cmd.Delay), time.Duration(cmd.Period), cmd.Payload) != nil {
				c.refused(scr, DeadLimit, c.uid, "timer", cmd.Payload)
			}
		case abi.OpCancel:
			c.cancelTimer(cmd.Key)
		case abi.OpReceiveTimeout:
			c.setReceiveTimeout(time.Duration(cmd.Delay))
		case abi.OpStash:
			_ = c.stashCurrent(current) // refused: a dead letter says so
		case abi.OpUnstash:
			c.unstash()
		case abi.OpDecide:
			c.applyDecide(cmd)
		case abi.OpResetBackoff:
			c.resetBackoff(scr)
		case abi.OpUnhandled:
			if current.Kind == abi.KindTerminated {
				c.pact(scr)
			} else {
				c.unhandled(current)
			}
		}
	}
}

// pact fails an actor that did not handle the end of one that it watches.
func (c *cell) pact(scr *scratch) {
	c.fail(scr, &abi.Failure{Kind: abi.FailureDeathPact, Reason: "the end of a watched actor was not handled", Turn: c.turns})
}

// applySend is the hot path: a ref that was seen last time costs no look-up.
func (c *cell) applySend(scr *scratch, cmd *abi.Command) {
	e := scr.cache.New()
	e.Kind, e.Sender, e.Correlation = abi.KindMessage, c.uid, cmd.Correlation
	if cmd.Flags != 0 {
		switch {
		case cmd.Flags&abi.FlagReply != 0:
			e.Kind = abi.KindReply
		case cmd.Flags&abi.FlagReplyError != 0:
			e.Kind = abi.KindReplyError
		}
		if cmd.Flags&abi.FlagNoInfluence != 0 {
			e.Flags |= flagNoInfluence
		}
	}
	e.SetPayload(cmd.Payload)
	if cmd.Headers != nil {
		e.SetHeaders(cmd.Headers)
	}
	if last := c.lastTo; last != nil && last.uid == cmd.ToRef {
		c.sys.push(scr, last, e)
		return
	}
	uid, ok := c.target(scr, cmd, c.caps.send)
	if !ok {
		scr.cache.Free(e)
		return
	}
	if to := c.sys.table.get(uid); to != nil {
		c.lastTo = to
		c.sys.push(scr, to, e)
		return
	}
	_ = c.sys.deliver(scr, uid, e) // a promise, or a dead letter
}

// target is whom a command names. A path that names nobody, or that the actor
// may not use, becomes a dead letter.
func (c *cell) target(scr *scratch, cmd *abi.Command, allowed []pathGlob) (abi.Ref, bool) {
	if cmd.ToPath == nil {
		return cmd.ToRef, true
	}
	path := string(cmd.ToPath)
	elements, child, ok := relative(c.elements, path)
	uid := abi.Ref(0)
	if !ok {
		elements, uid, ok = splitRef(c.sys.cfg.name, path)
	}
	if !ok {
		c.refused(scr, DeadUnknown, 0, path, cmd.Payload)
		return 0, false
	}
	if !child && !matchAny(allowed, elements) {
		c.refused(scr, DeadDenied, 0, path, cmd.Payload)
		return 0, false
	}
	t := c.sys.find(elements)
	if t == nil || uid != 0 && t.uid != uid {
		c.refused(scr, DeadUnknown, uid, path, cmd.Payload)
		return 0, false
	}
	return t.uid, true
}

// refused makes a dead letter of what a command wanted to send.
func (c *cell) refused(scr *scratch, reason DeadReason, to abi.Ref, path string, payload []byte) {
	e := scr.cache.New()
	e.Sender = c.uid
	e.SetPayload(payload)
	c.sys.deadLetter(reason, to, path, e)
	scr.cache.Free(e)
}

// forward sends a copy of an envelope on in the name of its sender.
func (c *cell) forward(scr *scratch, to abi.Ref, current *mailbox.Envelope) error {
	e := cloneEnvelope(current)
	if e.Kind != abi.KindReply && e.Kind != abi.KindReplyError {
		e.Kind = abi.KindMessage
	}
	e.Value = nil
	return c.sys.deliver(scr, to, e)
}

func (c *cell) applyAsk(scr *scratch, cmd *abi.Command) {
	if c.addAsk(cmd.Correlation, time.Duration(cmd.Delay)) != nil {
		c.refused(scr, DeadLimit, cmd.ToRef, string(cmd.ToPath), cmd.Payload)
		e := scr.cache.New()
		e.Kind, e.Correlation = abi.KindReplyError, 0
		e.Payload = appendText(e.Payload, "ask refused: the correlation is in use or too many asks are pending")
		c.sys.push(scr, c, e)
		return
	}
	c.applySend(scr, cmd)
}

func (c *cell) applySpawn(scr *scratch, cmd *abi.Command) {
	c.spawned++
	var p Props
	err := ErrDenied
	if allowed(c.caps.spawn, string(cmd.Type)) {
		p = Guest(c.props.image, string(cmd.Type)).WithLimits(c.props.limits).WithCapabilities(c.props.caps)
		p.args = Raw(append([]byte{}, cmd.Payload...))
		if len(cmd.Payload) == 0 {
			p.args = nil
		}
		p, err = c.withOptions(p, cmd.Options)
	}
	if err == nil {
		_, err = c.spawn(scr, string(cmd.Name), p, cmd.Ref)
	}
	if err == nil {
		return
	}
	c.spawnRefused(cmd, err)
	e := scr.cache.New()
	e.Kind, e.Sender = abi.KindSpawnFailed, cmd.Ref
	e.Payload = appendText(e.Payload, err.Error())
	c.sys.push(scr, c, e)
}

// withOptions applies the options of a spawn. Children of guests are supervised as
// their parent supervises its own, unless the options say otherwise.
func (c *cell) withOptions(p Props, options []byte) (Props, error) {
	p = p.WithSupervision(c.props.strategy)
	if options == nil {
		return p, nil
	}
	if c.sys.cfg.options == nil {
		return p, fmt.Errorf("%w: this host reads no options of spawns", ErrBadProps)
	}
	o, err := c.sys.cfg.options(options)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrBadProps, err)
	}
	return p.WithLifetime(o.Lifetime).WithSignificant(o.Significant).WithCrashedMessage(o.Crashed).WithSupervision(o.Supervision), nil
}

func allowed(patterns []string, name string) bool {
	for _, p := range patterns {
		if matchElement(p, name) {
			return true
		}
	}
	return false
}

// applyStop stops the actor itself, a child, or whom a capability names.
func (c *cell) applyStop(scr *scratch, cmd *abi.Command) {
	uid, ok := c.target(scr, cmd, c.caps.stop)
	if !ok {
		return
	}
	if uid == c.uid {
		c.post(scr, sysMsg{kind: sysQuit, reason: "stopped"})
		return
	}
	t := c.sys.table.get(uid)
	if t == nil {
		return
	}
	if t.parent != c && !matchAny(c.caps.stop, t.elements) {
		c.refused(scr, DeadDenied, uid, t.path, nil)
		return
	}
	t.stop(scr)
}
