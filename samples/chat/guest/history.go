package main

import (
	"bytes"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// history is what was said last in a room.
type history interface {
	// keep adds a line and calls then in the same turn, which may be a later one: if that fails,
	// neither has happened.
	keep(ctx *actor.Context, line string, then func(ctx *actor.Context))
	// recall calls then with the lines, the oldest first, at once or in a later turn.
	recall(ctx *actor.Context, then func(ctx *actor.Context, lines []string) error)
}

// Bounds of a history; older lines go. It is forgotten when nothing was said for a while.
const (
	mostLines = 50
	mostBytes = 32 << 10
	forgotten = 30 * 24 * time.Hour
)

// newHistory is in the store if the room was granted it, else in the room itself.
func newHistory(ctx *actor.Context) history {
	if _, ok := ctx.Service(kv.Name); ok {
		return &stored{key: "history/" + ctx.Name()}
	}
	return &kept{}
}

// kept is gone when the room crashes.
type kept struct{ lines []string }

func (k *kept) keep(ctx *actor.Context, line string, then func(ctx *actor.Context)) {
	k.lines = shorten(append(k.lines, line))
	then(ctx)
}

func (k *kept) recall(ctx *actor.Context, then func(ctx *actor.Context, lines []string) error) {
	ctx.Fail(then(ctx, k.lines))
}

// shorten leaves the last lines.
func shorten(lines []string) []string {
	bytes, n := 0, 0
	for n < min(len(lines), mostLines) {
		if bytes += len(lines[len(lines)-1-n]) + 1; bytes > mostBytes {
			break
		}
		n++
	}
	return append([]string(nil), lines[len(lines)-n:]...)
}

// stored outlives the room, and the process. It is read once, when it is needed first; if it cannot
// be read, what is said is kept in the room until it can, so that nothing is overwritten.
type stored struct {
	key    string
	loaded bool
	kept
	later []func(ctx *actor.Context) error // until the store has answered
}

// keep writes the whole history anew. Nobody waits for the answer: what leaves with the turn is
// carried out, and a crash of the room does not take it back.
func (s *stored) keep(ctx *actor.Context, line string, then func(ctx *actor.Context)) {
	s.ready(ctx, func(ctx *actor.Context) error {
		s.kept.keep(ctx, line, then)
		if s.loaded {
			kv.Put(ctx, s.key, []byte(join(s.lines, "\n")), kv.Write{TTL: forgotten}, nil)
		}
		return nil
	})
}

func (s *stored) recall(ctx *actor.Context, then func(ctx *actor.Context, lines []string) error) {
	s.ready(ctx, func(ctx *actor.Context) error { return then(ctx, s.lines) })
}

// ready calls f when the history is there, or cannot be had at the moment.
func (s *stored) ready(ctx *actor.Context, f func(ctx *actor.Context) error) {
	if s.loaded {
		ctx.Fail(f(ctx))
		return
	}
	if s.later = append(s.later, f); len(s.later) > 1 {
		return
	}
	kv.Store{Timeout: 5 * time.Second}.Get(ctx, s.key, func(ctx *actor.Context, e kv.Entry, err error) error {
		switch {
		case err == nil:
			s.lines, s.loaded = shorten(append(linesOf(e.Value), s.lines...)), true
		case errors.Is(err, service.ErrNotFound):
			s.loaded = true
		default:
			ctx.Warn("the history cannot be read: " + err.Error())
		}
		later := s.later
		s.later = nil
		for _, f := range later {
			if err := f(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// linesOf is what join has made; the lines have no line breaks themselves.
func linesOf(value []byte) (lines []string) {
	if len(value) == 0 {
		return nil
	}
	for _, line := range bytes.Split(value, []byte("\n")) {
		lines = append(lines, string(line))
	}
	return lines
}

func join(parts []string, between string) string {
	var b []byte
	for i, p := range parts {
		if i > 0 {
			b = append(b, between...)
		}
		b = append(b, p...)
	}
	return string(b)
}
