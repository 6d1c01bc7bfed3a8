package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// apply carries out the commands of one turn, in order. What is refused becomes a dead
// letter or an envelope to the actor; it does not fail the turn. In the last turn of an
// incarnation only sends and forwards are carried out.
func (g *guest) apply(scr *scratch, cmds []abi.Command, current *mailbox.Envelope) {
	last := current.Kind == abi.KindStop || current.Kind == abi.KindPreRestart
	scr.from = current.Sender
	if scr.attached = g.actor.rules.Load().attached; current.Attached != nil {
		scr.attached = g.actor.rules.Load().attachedIn(current)
	}
	for i := range cmds {
		cmd := &cmds[i]
		if cmd.Op == abi.OpSend && cmd.ToPath == nil {
			g.send(scr, cmd)
			continue
		}
		o := action{g, scr, cmd, current}
		switch {
		case last && cmd.Op != abi.OpSend && cmd.Op != abi.OpForward:
		case leaves(cmd.Op):
			o.leave()
		default:
			o.local()
		}
	}
}

// leaves reports whether a command has an effect outside of its actor. The effects of all
// other commands come about again when the turns are repeated.
func leaves(op abi.Op) bool {
	switch op {
	case abi.OpSend, abi.OpForward, abi.OpAsk, abi.OpSpawn, abi.OpStop, abi.OpWatch, abi.OpUnwatch, abi.OpResetBackoff, abi.OpCancelAsk:
		return true
	}
	return false
}

// send is the hot path: a ref that was seen last time costs no look-up.
func (g *guest) send(scr *scratch, cmd *abi.Command) {
	a := g.actor
	e := scr.cache.New()
	e.Kind, e.Sender, e.SenderPath, e.Correlation, e.Origin = abi.KindMessage, a.uid, a.path, cmd.Correlation, scr.origin
	if scr.attached != nil {
		e.Attached = scr.attached
	}
	if cmd.Flags != 0 {
		switch {
		case cmd.Flags&abi.FlagReply != 0:
			e.Kind = abi.KindReply
		case cmd.Flags&abi.FlagReplyError != 0:
			e.Kind = abi.KindReplyError
		}
		if cmd.Flags&abi.FlagNoInfluence != 0 {
			e.Flags |= mark.NoInfluence
		}
		if cmd.Flags&cmdDue != 0 {
			mark.Until(e, g.due)
		}
	}
	e.SetPayload(cmd.Payload)
	if cmd.Headers != nil {
		if a.sys.cfg.Tracer == nil {
			e.SetHeaders(cmd.Headers)
		} else {
			a.sys.tracing.Choose(&scr.trace, e, cmd.Headers)
		}
	}
	if last := g.lastTo; last != nil && last.uid == cmd.ToRef {
		_ = a.sys.deliverTo(scr, last, e)
		return
	}
	if a.tree.guesses.None() && a.barred(scr, cmd.ToRef, scr.from) {
		a.sys.refuse(scr, DeadDenied, errGuessed, cmd.ToRef, "", e)
		e.Free()
		return
	}
	if to := a.sys.here(cmd.ToRef); to != nil {
		g.lastTo = to
		_ = a.sys.deliverTo(scr, to, e)
		return
	}
	_ = a.deliver(scr, cmd.ToRef, e) // somebody outside, or a dead letter
}

// forward sends a copy of an envelope on with its original sender; the receiver may then
// answer that sender if delegated says so. If there is no room for it nothing is
// copied.
func (a *actor) forward(scr *scratch, to abi.Ref, name string, current *mailbox.Envelope, delegated bool) error {
	on := message.HandedOn(current, a.uid, a.path)
	delegated = delegated && on.Sender == current.Sender
	if t := a.sys.here(to); t != nil && t.gate.Policy() == supervision.MeanwhileKeep && t.box.Full(current.Size()) {
		err := t.box.WhyFull()
		a.sys.refuse(scr, DeadMailboxFull, err, t.uid, t.path, &on)
		return err
	}
	e := message.CloneEnvelope(current)
	e.Kind, e.Sender, e.SenderPath, e.Correlation, e.Attached = on.Kind, on.Sender, on.SenderPath, on.Correlation, message.WithoutGrants(e.Attached)
	if on.Kind == current.Kind {
		e.Origin = current.Origin
	}
	if name != "" {
		e.Attached = message.Below(e.Attached, name)
	}
	scr.trace.Stamp(e)
	if delegated {
		a.sys.delegate(scr, e, a.uid, to)
	}
	return a.deliver(scr, to, e)
}
