package main

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

func init() {
	actor.Need(abi.FeatureIdentify)
	actor.Register("identify-finder", func() actor.Actor { return finder{} })
}

// finder is asked for a path, and answers who is there: the ref; for [path] how many, and their paths.
type finder struct{}

func (finder) Receive(ctx *actor.Context, m *actor.Message) error {
	to, question := m.Sender(), m.Correlation()
	r := m.Reader()
	if r.Peek() == abi.TypeText {
		ctx.Identify(m.Text(), time.Second, func(ctx *actor.Context, who actor.Ref, err error) error {
			if err != nil {
				return ctx.AnswerError(to, question, err.Error())
			}
			return ctx.Answer(to, question, actor.Uint(who))
		})
		return nil
	}
	if r.Array() != 1 {
		return actor.ErrUnhandled
	}
	ctx.IdentifyPath(r.Text(), time.Second, func(ctx *actor.Context, found []actor.Identity, total int, err error) error {
		if err != nil {
			return ctx.AnswerError(to, question, err.Error())
		}
		out := strconv.Itoa(total)
		for _, one := range found {
			out += " " + one.Path
		}
		return ctx.Answer(to, question, actor.Text(out))
	})
	return nil
}

func init() { actor.Register("keyed-self", func() actor.Actor { return keyedSelf{} }) }

// keyedSelf answers with its name and its key. If it is told to spawn, it does, and the child answers.
type keyedSelf struct{}

func (keyedSelf) Receive(ctx *actor.Context, m *actor.Message) error {
	switch {
	case m.Is("spawn") && ctx.Name() != "child":
		ctx.Forward(ctx.Spawn("keyed-self", "child", nil))
		return nil
	case m.Is("crash"):
		panic("crashed")
	}
	return ctx.Reply(actor.Text(strconv.Quote(ctx.Name()) + " " + strconv.Quote(ctx.Key())))
}
