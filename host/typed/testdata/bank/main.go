// Command bank is the guest of the tests of typed messages.
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// bank says what it is told to the actor /user/probe.
type bank struct{ payments int64 }

var (
	_ Bank           = (*bank)(nil)
	_ actor.Receiver = (*bank)(nil)
)

func (b *bank) Receive(ctx *actor.Context, msg *actor.Message) error {
	return ReceiveBank(ctx, msg, b)
}

func say(ctx *actor.Context, format string, args ...any) {
	ctx.TellPath("/user/probe", actor.Text(fmt.Sprintf(format, args...)))
}

func (b *bank) Started(ctx *actor.Context) error { say(ctx, "started"); return nil }

func (b *bank) Stopped(ctx *actor.Context) { say(ctx, "stopped") }

func (b *bank) PreRestart(ctx *actor.Context, reason string) {
	say(ctx, "before a restart: %s", reason)
}

func (b *bank) Pay(ctx *actor.Context, p *payment) (*receipt, error) {
	b.payments++
	say(ctx, "pay %d %s", p.Cents, p.Currency)
	switch p.Cents {
	case 0:
		return nil, ctx.ReplyError("nothing is no payment")
	case -1:
		return nil, fmt.Errorf("a robbery")
	case -2:
		return nil, nil // it never answers
	case -3:
		ctx.TellPath("/user/probe", &entry{Payment: *p, From: ctx.Sender()})
	}
	return &receipt{uint64(b.payments)}, nil
}

func (b *bank) PayWhole(ctx *actor.Context, p *paymentV1) error {
	say(ctx, "pay %d whole euros", p.Euros)
	return nil
}

func (b *bank) Note(ctx *actor.Context, n *note) { say(ctx, "note %s", n.Text) }

func (b *bank) Count(ctx *actor.Context, _ *count) *total { return &total{b.payments} }

func (b *bank) Audit(ctx *actor.Context, msg *actor.Message) error {
	name, version, _ := msg.Type()
	say(ctx, "audit of %s %d", name, version)
	return nil
}

func (b *bank) Secret(ctx *actor.Context, _ *actor.Message) { say(ctx, "a secret") }

func (b *bank) Key(ctx *actor.Context, _ *actor.Message) { say(ctx, "a key") }

// ReceiveOther takes what is not a message of the protocol.
func (b *bank) ReceiveOther(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindTerminated:
		say(ctx, "the end of another")
	case msg.Is("watch"):
		ctx.Watch(msg.Sender())
	case msg.Is("other"):
		say(ctx, "other")
	default:
		return actor.ErrUnhandled
	}
	return nil
}

// teller sends to a bank what it is told as a text.
type teller struct {
	bank    BankRef
	offered actor.RefOf[*note]
}

func (t *teller) Receive(ctx *actor.Context, msg *actor.Message) error {
	var h hire
	if msg.Decode(&h) == nil && h.Bank.Ref() != 0 {
		t.bank = NewBankRef(h.Bank.Ref())
		if h.Timeout != 0 {
			t.bank = t.bank.WithTimeout(time.Duration(h.Timeout) * time.Millisecond)
		}
		return nil
	}
	var o offer
	if msg.Decode(&o) == nil && o.To.Ref() != 0 {
		o.To.Tell(ctx, &note{"offered"})
		return nil
	}
	what, arg, _ := strings.Cut(msg.Text(), " ")
	n := int64(0)
	fmt.Sscan(arg, &n)
	switch what {
	case "pay":
		t.bank.Pay(ctx, &payment{Cents: n, Currency: "EUR"}, func(ctx *actor.Context, r *receipt, err error) error {
			if err != nil {
				say(ctx, "no receipt for %d: %v", n, err)
				return nil
			}
			say(ctx, "receipt %d for %d", r.Number, n)
			return nil
		})
		say(ctx, "asked %d", n)
	case "whole":
		t.bank.PayWhole(ctx, &paymentV1{int32(n)})
	case "second":
		ctx.TellTyped(t.bank.Ref(), &paymentV2{n})
	case "note":
		t.bank.Note(ctx, &note{arg})
	case "count":
		t.bank.Count(ctx, &count{}, func(ctx *actor.Context, c *total, err error) error {
			say(ctx, "%d payments, %v", c.Payments, err)
			return nil
		})
	case "plain":
		ctx.Tell(t.bank.Ref(), &note{arg}) // without its type
	default:
		return actor.ErrUnhandled
	}
	return nil
}

func init() {
	actor.Register("bank", func() actor.Actor { return &bank{} })
	actor.Register("teller", func() actor.Actor { return &teller{} })
}

func main() {}
