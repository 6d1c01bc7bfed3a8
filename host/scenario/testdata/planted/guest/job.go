package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

const (
	patience = 4 * time.Second // for an answer
	pause    = time.Second     // before what has no answer is said again
)

// job carries out one transfer, and ends. It keeps nothing: after a crash it says everything again, and the accounts know by the
// keys what they have done.
type job struct {
	note
	tries int64
	keys  int64
}

// Started implements actor.Starter.
func (j *job) Started(ctx *actor.Context) error {
	if err := ctx.DecodeArgs(&j.note); err != nil {
		return err
	}
	switch j.mistake {
	case lookThenTake, lookThenSet:
		j.look(ctx)
	case noWait:
		j.put(ctx)
		j.take(ctx)
	default:
		j.take(ctx)
	}
	return nil
}

func (j *job) Receive(*actor.Context, *actor.Message) error { return actor.ErrUnhandled }

// order is what an account is told.
func (j *job) order(op string, amount int64) *note {
	n := &note{op: op, key: j.id, amount: amount}
	if j.mistake == noKey {
		j.keys++
		n.key = j.id*1000 + j.keys
	}
	if j.mistake == amountIsKey {
		n.key = amount
	}
	return n
}

// ask asks an account until it answers; then is called with the text of its answer, or with "" if it is not asked again.
func (j *job) ask(ctx *actor.Context, name string, n *note, again func() bool, then func(ctx *actor.Context, answer *actor.Message, text string)) {
	ctx.AskPath("/user/"+name, n, patience, func(ctx *actor.Context, answer *actor.Message) error {
		switch {
		case answer.Kind() == actor.KindReply:
			then(ctx, answer, answer.Text())
		case !again():
			then(ctx, answer, "")
		default:
			ctx.Wait(pause, func(ctx *actor.Context, _ *actor.Message) error {
				next := j.order(n.op, n.amount)
				j.ask(ctx, name, next, again, then)
				return nil
			})
		}
		return nil
	})
}

// take has the payer's account give the amount.
func (j *job) take(ctx *actor.Context) {
	j.ask(ctx, j.from, j.order("take", j.amount), func() bool { return j.mistake != timeoutIsNo }, func(ctx *actor.Context, _ *actor.Message, text string) {
		switch {
		case j.mistake == noWait:
		case text == "ok", text == "no" && j.mistake == noIsYes:
			j.put(ctx)
		default: // it is refused
			ctx.StopSelf()
		}
	})
}

// put has the payee's account take it.
func (j *job) put(ctx *actor.Context) {
	order := j.order("put", j.amount)
	if j.mistake == notConfirmed {
		ctx.TellPath("/user/"+j.to, order)
		ctx.StopSelf()
		return
	}
	again := func() bool {
		j.tries++
		return j.mistake != noRetry && (j.mistake != twoTries || j.tries < 2)
	}
	j.ask(ctx, j.to, order, again, func(ctx *actor.Context, _ *actor.Message, _ string) {
		ctx.StopSelf()
	})
}

// look is how two of the mistakes begin.
func (j *job) look(ctx *actor.Context) {
	always := func() bool { return true }
	j.ask(ctx, j.from, j.order("look", 0), always, func(ctx *actor.Context, answer *actor.Message, _ string) {
		balance, _ := answer.Int()
		switch {
		case balance < j.amount:
			ctx.StopSelf()
		case j.mistake == lookThenTake:
			j.take(ctx)
		default:
			j.ask(ctx, j.from, j.order("set", balance-j.amount), always, func(ctx *actor.Context, _ *actor.Message, _ string) { j.put(ctx) })
		}
	})
}
