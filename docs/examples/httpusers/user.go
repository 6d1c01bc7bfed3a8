package main

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// user is the actor of a user: it holds the notes and ends when it was idle.
type user struct{ notes []string }

// Started implements host.Starter.
func (u *user) Started(ctx *host.Context) error {
	var idle time.Duration
	if err := ctx.Args(&idle); err != nil {
		return err
	}
	ctx.SetReceiveTimeout(idle)
	return nil
}

// Receive implements host.Actor. It answers with all notes, after it has added one.
func (u *user) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind == abi.KindReceiveTimeout {
		ctx.Stop(ctx.Self())
		return nil
	}
	var note string
	if err := m.Decode(&note); err != nil {
		return err
	}
	switch {
	case note == "":
	case len(note) > 1000:
		return ctx.ReplyError("a note has at most 1000 bytes")
	case strings.ContainsRune(note, 0):
		return errors.New("a note with a zero byte") // the turn fails, the actor is restarted
	default:
		u.notes = append(u.notes, note)
	}
	return ctx.Reply(strings.Join(u.notes, "\n"))
}
