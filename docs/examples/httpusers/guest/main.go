// The user's actor as a guest: it does what the one in Go does.
package main

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

type user struct{ notes []string }

func (u *user) Started(ctx *actor.Context) error {
	args := ctx.Args()
	idle := time.Duration(args.Int()) // of the host, in nanoseconds
	if err := args.Done(); err != nil {
		return err
	}
	ctx.SetReceiveTimeout(idle)
	return nil
}

func (u *user) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() == abi.KindReceiveTimeout {
		ctx.StopSelf()
		return nil
	}
	switch note := msg.Text(); {
	case note == "":
		return ctx.Reply(actor.Text(strings.Join(u.notes, "\n")))
	case len(note) > 1000:
		return ctx.ReplyError("a note has at most 1000 bytes")
	case strings.ContainsRune(note, 0):
		return errors.New("a note with a zero byte")
	default:
		u.notes = append(u.notes, note)
		return ctx.Reply(actor.Text(strings.Join(u.notes, "\n")))
	}
}

func init() { actor.Register("user", func() actor.Actor { return &user{} }) }

func main() {}
