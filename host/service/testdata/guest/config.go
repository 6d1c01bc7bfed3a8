package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/config"
)

func init() {
	actor.Register("config-user", func() actor.Actor { return &user{} })
	actor.Register("config-deaf", func() actor.Actor { return deaf{} })
}

// deaf handles nothing.
type deaf struct{}

func (deaf) Receive(*actor.Context, *actor.Message) error { return actor.ErrUnhandled }

// user does with settings and secrets what it is told: a text of an order and its arguments.
type user struct {
	changes []string
	secret  []byte
}

func (x *user) Receive(ctx *actor.Context, msg *actor.Message) error {
	if keys, ok := config.ChangeOf(ctx, msg); ok {
		x.changes = append(x.changes, keys...)
		return nil
	}
	if msg.Kind() != actor.KindMessage {
		return nil
	}
	if msg.Reader().Peek() != abi.TypeText {
		return nil
	}
	to, correlation := msg.Sender(), msg.Correlation()
	answer := func(ctx *actor.Context, text string, err error) error {
		if err != nil {
			return ctx.AnswerError(to, correlation, err.Error())
		}
		return ctx.Answer(to, correlation, actor.Text(text))
	}
	words := split(msg.Text())
	switch words[0] {
	case "string":
		config.String(ctx, words[1], func(ctx *actor.Context, v string, err error) error { return answer(ctx, v, err) })
	case "int":
		config.Int(ctx, words[1], func(ctx *actor.Context, v int64, err error) error {
			return answer(ctx, strconv.FormatInt(v, 10), err)
		})
	case "duration":
		config.Duration(ctx, words[1], func(ctx *actor.Context, v time.Duration, err error) error { return answer(ctx, v.String(), err) })
	case "bool":
		config.Bool(ctx, words[1], func(ctx *actor.Context, v bool, err error) error {
			return answer(ctx, strconv.FormatBool(v), err)
		})
	case "list":
		config.List(ctx, words[1], "", func(ctx *actor.Context, values []config.Value, more bool, err error) error {
			text := ""
			for _, v := range values {
				text += v.Key + " "
			}
			return answer(ctx, text+strconv.FormatBool(more), err)
		})
	case "watch":
		config.Watch(ctx, words[1:], func(ctx *actor.Context, err error) error { return answer(ctx, "watches", err) })
	case "changes":
		text := ""
		for _, c := range x.changes {
			text += c + " "
		}
		return answer(ctx, text, nil)
	case "secret": // KEY what-with-it [PATH]
		config.Secret(ctx, words[1], func(ctx *actor.Context, secret []byte, err error) error {
			if err != nil {
				return answer(ctx, "", err)
			}
			x.secret = secret
			if err := x.tell(ctx, words[2:], secret); err != nil {
				return err
			}
			return answer(ctx, "done "+strconv.Itoa(len(secret)), nil)
		})
	}
	return nil
}

// tell does everything with a secret that the host may show.
func (x *user) tell(ctx *actor.Context, words []string, secret []byte) error {
	s := string(secret)
	switch words[0] {
	case "log":
		ctx.Info("the password is " + s)
		ctx.Warn("in base64 " + base64.StdEncoding.EncodeToString([]byte("user:"+s)) + ", in hex " + hex.EncodeToString(secret))
		fmt.Println("to stdout:", s)
		fmt.Fprintf(os.Stderr, "quoted %q, in numbers %v\n", s, secret)
	case "panic":
		panic("cannot log in with " + s)
	case "error":
		return fmt.Errorf("refused: %s", s)
	case "exit":
		fmt.Fprintln(os.Stderr, s)
		os.Exit(3)
	case "send":
		for range 50 {
			ctx.TellPath(words[1], actor.Text("password="+s))
			ctx.TellPath(words[1], actor.Func(func(w *abi.Writer) {
				w.Map(2)
				w.Text("password")
				w.ByteString(secret)
				w.Text("padding " + s)
				w.Text(string(make([]byte, 990)) + s)
			}))
		}
	case "spawn":
		ctx.Spawn("config-deaf", s, nil)
		ctx.Spawn("config-deaf", "child", actor.Text(s))
		ctx.Spawn(s, "other", nil)
	case "timer":
		ctx.After(1, 0, actor.Text(s))
		ctx.After(2, 1e15, actor.Text(s))
	case "none":
	}
	return nil
}
