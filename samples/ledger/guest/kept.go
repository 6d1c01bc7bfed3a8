package main

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// kept is an account of a cluster. There is one for each name, on one of the nodes, and what it knows is an entry of the service kv,
// which outlives the node. It answers nothing that is not written, writes by compare-and-set, and begins anew from the entry when a
// write fails. So a node that is lost in the middle of anything leaves an entry that is true.
//
// A transfer is taken from the balance, and put among those that are on their way, in one write. The other account writes down which
// of them it has had, so that one may be sent as often as it takes. Clerks number their orders: one that was not answered is sent again,
// and is carried out once.
type kept struct {
	book
	name    string
	version uint64 // of the entry; 0: there is none
	ready   bool   // it was read
	changes uint64 // of the book...
	written uint64 // ...and how many of them are in the entry
	writing bool
	sending bool // the first payment that is on its way was sent
	owed    []answer
	waits   []waiting

	forgetful bool // a deliberate mistake, for wasmactors simulate --bug: nothing is written
}

// answer is given when so many changes are in the entry.
type answer struct {
	after    uint64
	to       actor.Ref
	question uint64
	v        actor.Encoder
}

// waiting is a clerk whose order is on its way.
type waiting struct {
	clerk    string
	id       int64
	to       actor.Ref
	question uint64
}

const (
	deposited  = 2 * time.Second
	sentAgain  = 200 * time.Millisecond
	mostOnWay  = 64
	mostClerks = 256
	mostPayers = 256
)

var errWritten = errors.New("the account was written by another")

func (a *kept) Started(ctx *actor.Context) error {
	a.name = ctx.Key()
	if a.name == "" {
		a.name = ctx.Name()
	}
	if a.forgetful {
		a.book, a.ready = newBook(), true
		return nil
	}
	kv.Get(ctx, a.name, func(ctx *actor.Context, e kv.Entry, err error) error {
		switch {
		case errors.Is(err, service.ErrNotFound):
			a.book = newBook()
		case err != nil:
			return err
		default:
			if err := a.read(e.Value); err != nil {
				return err
			}
			a.version = e.Version
		}
		a.ready = true
		ctx.Unstash()
		a.send(ctx)
		return nil
	})
	return nil
}

func (a *kept) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	if !a.ready {
		ctx.Stash()
		return nil
	}
	if msg.Is("balance") {
		return a.reply(ctx, &standing{Balance: a.balance, OnTheWay: a.sum()})
	}
	var o instruction
	if err := msg.Decode(&o); err != nil {
		return err
	}
	if o.Payer != "" {
		return a.deposit(ctx, &o)
	}
	return a.order(ctx, &o)
}

// order takes a clerk's order to pay.
func (a *kept) order(ctx *actor.Context, o *instruction) error {
	last, known := a.clerks[o.Clerk]
	switch {
	case o.Clerk == "" || o.To == "" || o.To == a.name || o.ID <= 0:
		return ctx.ReplyError("not an order")
	case known && o.ID < last.id:
		return ctx.ReplyError("the clerk has given a later order")
	case known && o.ID == last.id && a.onWay(o.Clerk, o.ID):
		a.waits = append(a.waits, waiting{o.Clerk, o.ID, ctx.Sender(), ctx.Correlation()})
		return nil
	case known && o.ID == last.id:
		return a.reply(ctx, &receipt{o.ID, last.status()})
	case !known && len(a.clerks) >= mostClerks || len(a.way) >= mostOnWay:
		return ctx.ReplyError("busy")
	case o.Amount <= 0 || o.Amount > a.balance:
		a.clerks[o.Clerk] = order{o.ID, true}
		a.changed(ctx)
		return a.reply(ctx, &receipt{o.ID, "refused"})
	}
	a.clerks[o.Clerk] = order{o.ID, false}
	a.balance -= o.Amount
	a.seq++
	a.way = append(a.way, payment{a.seq, o.To, o.Amount, o.Clerk, o.ID, a.changes + 1})
	a.waits = append(a.waits, waiting{o.Clerk, o.ID, ctx.Sender(), ctx.Correlation()})
	a.changed(ctx)
	return nil
}

// deposit takes money of another account. Each account sends one after the other, so the last one says which have come.
func (a *kept) deposit(ctx *actor.Context, o *instruction) error {
	switch _, known := a.payers[o.Payer]; {
	case o.ID <= a.payers[o.Payer]:
		return a.reply(ctx, actor.Int(o.ID))
	case o.Amount <= 0 || !known && len(a.payers) >= mostPayers:
		return ctx.ReplyError("refused")
	}
	a.payers[o.Payer] = o.ID
	a.balance += o.Amount
	a.changed(ctx)
	return a.reply(ctx, actor.Int(o.ID))
}

// reply answers what is asked now, when the book as it is now is written.
func (a *kept) reply(ctx *actor.Context, v actor.Encoder) error {
	if a.changes == a.written {
		return ctx.Reply(v)
	}
	a.owed = append(a.owed, answer{a.changes, ctx.Sender(), ctx.Correlation(), v})
	return nil
}

// changed has the book written: at once, or after the write that is under way.
func (a *kept) changed(ctx *actor.Context) {
	if a.changes++; !a.writing {
		a.write(ctx)
	}
}

func (a *kept) write(ctx *actor.Context) {
	a.writing = true
	changes := a.changes
	if a.forgetful {
		_ = a.wrote(ctx, changes)
		return
	}
	cond := kv.Write{IfVersion: a.version, IfAbsent: a.version == 0}
	kv.Put(ctx, a.name, a.encode(), cond, func(ctx *actor.Context, version uint64, err error) error {
		switch {
		case errors.Is(err, service.ErrConflict) || errors.Is(err, service.ErrExists):
			return errWritten
		case err != nil:
			return err // it is not known whether it was written: the entry says so
		}
		a.version = version
		return a.wrote(ctx, changes)
	})
}

// wrote goes on when so many changes are in the entry.
func (a *kept) wrote(ctx *actor.Context, changes uint64) error {
	a.written, a.writing = changes, false
	for len(a.owed) > 0 && a.owed[0].after <= changes {
		o := a.owed[0]
		a.owed = a.owed[1:]
		if err := ctx.Answer(o.to, o.question, o.v); err != nil {
			return err
		}
	}
	if a.changes > changes {
		a.write(ctx)
	}
	a.send(ctx)
	return nil
}

// send sends the first payment that is on its way and written, again and again.
func (a *kept) send(ctx *actor.Context) {
	if a.sending || len(a.way) == 0 || a.way[0].change > a.written {
		return
	}
	a.sending = true
	p := a.way[0]
	ctx.AskPath("/user/accounts/"+p.to, &instruction{ID: p.seq, Payer: a.name, Amount: p.amount}, deposited, func(ctx *actor.Context, m *actor.Message) error {
		a.sending = false
		if seq, ok := m.Int(); m.Kind() != actor.KindReply || !ok || seq != p.seq {
			a.sending = true
			ctx.Wait(sentAgain, func(ctx *actor.Context, _ *actor.Message) error {
				a.sending = false
				a.send(ctx)
				return nil
			})
			return nil
		}
		a.way = a.way[1:]
		a.changed(ctx)
		var left []waiting
		for _, w := range a.waits {
			if w.clerk == p.clerk && w.id == p.id {
				a.owed = append(a.owed, answer{a.changes, w.to, w.question, &receipt{p.id, "done"}})
			} else {
				left = append(left, w)
			}
		}
		a.waits = left
		return nil
	})
}
