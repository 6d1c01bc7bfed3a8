package main

import (
	"sort"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

const opening = 100

// account has a balance, and remembers what it has decided: also that something cannot be.
type account struct {
	mistake mistake
	balance int64
	said    map[string]string
}

// Started implements actor.Starter.
func (a *account) Started(ctx *actor.Context) error {
	var args note
	err := ctx.DecodeArgs(&args)
	a.mistake, a.balance, a.said = args.mistake, opening, map[string]string{}
	return err
}

// Save implements actor.Saver.
func (a *account) Save(_ *actor.Context, w *abi.Writer) error {
	keys := make([]string, 0, len(a.said))
	for k := range a.said {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if a.mistake == savesNoKeys {
		keys = nil
	}
	w.Array(2 + 2*len(keys))
	w.Int(a.mistake)
	w.Int(a.balance)
	for _, k := range keys {
		w.Text(k)
		w.Text(a.said[k])
	}
	return nil
}

// Load implements actor.Saver.
func (a *account) Load(_ *actor.Context, r *abi.Reader) error {
	a.said = map[string]string{}
	n := r.Array()
	a.mistake, a.balance = r.Int(), r.Int()
	for ; n > 3 && r.OK(); n -= 2 {
		key := r.Text()
		a.said[key] = r.Text()
	}
	return r.Done()
}

func (a *account) Receive(ctx *actor.Context, msg *actor.Message) error {
	var n note
	if err := msg.Decode(&n); err != nil {
		return err
	}
	if n.op == "look" {
		return ctx.Reply(actor.Int(a.balance))
	}
	key := n.op + strconv.FormatInt(n.key, 10)
	said := a.said[key]
	switch {
	case said != "" && a.mistake == repeatedIsNo:
		said = "no"
	case said != "":
	default:
		if a.mistake == lastKeyOnly {
			clear(a.said)
		}
		said = a.do(&n)
		a.said[key] = said
	}
	return ctx.Reply(actor.Text(said))
}

func (a *account) do(n *note) string {
	switch {
	case n.op == "set":
		a.balance = n.amount
	case n.op == "put":
		a.balance += n.amount
	case a.balance < n.amount && a.mistake != lookThenTake:
		return "no"
	default:
		a.balance -= n.amount
	}
	return "ok"
}

// book knows the balances of all accounts, and looks at the pages of the till.
type book struct{}

func (b *book) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	var n note
	if err := msg.Decode(&n); err != nil {
		return err
	}
	if n.op == "page" {
		if n.amount != pageEntries {
			panic("a page has " + strconv.FormatInt(n.amount, 10) + " entries")
		}
		return nil
	}
	names := []string{"alice", "bob", "carol"}
	balances := make([]int64, len(names))
	left, missing := len(names), false
	asker, question := ctx.Sender(), ctx.Correlation()
	for i, name := range names {
		ctx.AskPath("/user/"+name, &note{op: "look"}, time.Second, func(ctx *actor.Context, answer *actor.Message) error {
			var known bool
			balances[i], known = answer.Int()
			missing = missing || !known
			if left--; left > 0 {
				return nil
			}
			if missing {
				return ctx.AnswerError(asker, question, "an account does not answer")
			}
			return ctx.Answer(asker, question, actor.Func(func(w *abi.Writer) {
				w.Map(len(names))
				for i, name := range names {
					w.Text(name)
					w.Int(balances[i])
				}
			}))
		})
	}
	return nil
}
