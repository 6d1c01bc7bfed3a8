package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

// basket keeps its state: texts, and how many x there are behind them.
type basket struct {
	keeper *persist.Keeper
	things string
	more   int
	tag    string
}

func (b *basket) Save(_ *actor.Context, w *abi.Writer) error {
	if b.things != "" || b.more > 0 {
		w.Text(b.things + strings.Repeat("x", b.more))
	}
	return nil
}

func (b *basket) Load(_ *actor.Context, r *abi.Reader) error {
	s := r.Text()
	b.things = strings.TrimRight(s, "x")
	b.more = len(s) - len(b.things)
	return nil
}

func (b *basket) Tags() []string {
	if b.tag == "" {
		return nil
	}
	return []string{b.tag}
}

// Apply is for what was kept as events before.
func (b *basket) Apply(e *persist.Event) error {
	var s actor.Text
	err := persist.Decode(e, &s)
	b.things += string(s) + " "
	return err
}

func (b *basket) say(ctx *actor.Context, what string) {
	ctx.TellPath("/user/probe", actor.Text(what+" "+strconv.FormatUint(b.keeper.Revision(), 10)+": "+b.things+strconv.Itoa(b.more)))
}

func (b *basket) Recovered(ctx *actor.Context) error {
	b.say(ctx, "recovered")
	return nil
}

func (b *basket) Receive(ctx *actor.Context, msg *actor.Message) error {
	what, rest, _ := strings.Cut(msg.Text(), " ")
	var err error
	switch what {
	case "put":
		b.things += rest + " "
	case "keep":
		b.things += rest + " "
		err = b.keeper.Keep(ctx)
	case "more":
		b.more, err = strconv.Atoi(rest)
	case "tag":
		b.tag = rest
	case "clear":
		b.things, b.more = "", 0
	case "forget":
		err = b.keeper.Forget(ctx)
	case "fail":
		b.things += rest + " "
		if err = b.keeper.Keep(ctx); err == nil {
			return errors.New("as told")
		}
	case "say":
		b.say(ctx, "says")
	case "stop":
		ctx.StopSelf()
	default:
		return actor.ErrUnhandled
	}
	if err != nil {
		ctx.TellPath("/user/probe", actor.Text("error "+err.Error()))
	}
	return ctx.Reply(actor.Uint(b.keeper.Revision()))
}

func init() {
	make := func(k *persist.Keeper) actor.Saver { return &basket{keeper: k} }
	d := persist.StateDefinition{Type: "basket.state"}
	persist.RegisterState("basket", d, make)
	d.Automatic, d.Events = true, new(persist.Schema).Type("diary.note", 2)
	persist.RegisterState("auto", d, make)
	d.State = actor.Saves(3).Migrate(2, func(r *abi.Reader, w *abi.Writer) error { w.Text(r.Text()); return nil })
	persist.RegisterState("third", d, make)
	d.State = actor.Saves(2).Migrate(1, func(r *abi.Reader, w *abi.Writer) error { w.Text("old " + r.Text()); return nil })
	persist.RegisterState("second", d, make)
}
