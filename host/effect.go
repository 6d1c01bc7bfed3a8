package host

import (
	"bytes"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What durable actors ask of services has an identity, and is kept until it is answered. When the process has died, the next one
// asks again for what has no answer in the log. A service that keeps keys together with its effects does each of them once.

// Effect is the identity of a request of a durable actor: see [Head.Effect].
type Effect = mailbox.Effect

// Effect is the identity of the current message, if it is the ask of a durable actor to a service; nil if it is not. It must not be
// changed, and may be kept.
func (h Head) Effect() *Effect {
	if h.ctx.env == nil || h.ctx.env.Attached == nil {
		return nil
	}
	return h.ctx.env.Attached.Effect
}

// sendKeyed sends the question of a durable actor if it is for a service, or tells the actor that there is no room to keep it; true:
// it is for another actor.
func sendKeyed(o action, to abi.Ref) (other bool) {
	a, cmd := o.actor, o.cmd
	t := a.sys.here(to)
	if t == nil || t.parent != a.sys.services || t.durable {
		return true
	}
	n := a.work.Asks.Asked() + 1
	r := &asks.Request{
		To: to, Number: n, Key: secretFor(a).Effect(a.uid, n, a.TurnTime().UnixNano()),
		Headers: bytes.Clone(cmd.Headers), Payload: bytes.Clone(cmd.Payload),
	}
	if err := a.work.KeepRequest(a, cmd.Correlation, r); err != nil {
		a.sys.abandoned(o.scr, a.work.DropAsk(a, cmd.Correlation)...)
		o.tellRefusal(hostReply(o.scr, 0, cmd.Correlation, "ask refused: there is no room to keep it until it is answered"))
		return false
	}
	attached := o.scr.attached
	o.scr.attached = message.Keyed(attached, effectOf(a, r))
	o.sendTo(to, "")
	o.scr.attached = attached
	return false
}

func effectOf(a *actor, r *asks.Request) *Effect {
	return &Effect{Key: r.Key, Number: r.Number, Settled: a.work.Asks.Settled(r.To)}
}

// askedAgain is an envelope on its way to a service.
type askedAgain struct {
	to  abi.Ref
	env *Envelope
}

// askAgain is what a durable actor has asked of services and has no answer of, if there is time for one. Nothing runs.
func askAgain(a *actor) (again []askedAgain) {
	open := a.work.Asks.Open()
	if len(open) == 0 {
		return nil
	}
	answered := map[uint64]bool{}
	if b := recordedOf(a); b != nil {
		b.Counting(func(e *Envelope) {
			if e.Kind == abi.KindReply || e.Kind == abi.KindReplyError {
				answered[e.Correlation] = true
			}
		})
	}
	now := a.Now()
	for _, r := range open {
		ask := a.work.Asks.Get(r.Correlation())
		if answered[r.Correlation()] || !ask.Due.After(now) {
			continue
		}
		e := mailbox.New()
		e.Kind, e.Sender, e.SenderPath, e.Correlation = abi.KindMessage, a.uid, a.path, r.Correlation()
		e.Attached = message.Keyed(a.rules.Load().attached, effectOf(a, r))
		if v, ok := abi.FindHeader(r.Headers, abi.HeaderDeadline); !ok || string(v) != abi.DeadlineNone {
			mark.Until(e, ask.Due.UnixNano())
		}
		e.SetHeaders(r.Headers)
		e.SetPayload(r.Payload)
		again = append(again, askedAgain{r.To, e})
	}
	return again
}
