package main

import (
	"bytes"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// history is what was said last in a room.
type history interface {
	keep(ctx *actor.Context, line string)
	// recall calls then with the lines, the oldest first, at once or in a later turn.
	recall(ctx *actor.Context, then func(ctx *actor.Context, lines []string) error)
}

const (
	mostLines = 50
	mostBytes = 32 << 10
)

// newHistory is in the store if the room was granted it, else in the room itself.
func newHistory(ctx *actor.Context) history {
	if _, ok := ctx.Service("kv"); ok {
		path := []byte(ctx.Path())
		name, _, _ := bytes.Cut(path[bytes.LastIndexByte(path, '/')+1:], []byte("#"))
		return &stored{key: "history/" + string(name)}
	}
	return &kept{}
}

// kept is gone when the room crashes.
type kept struct{ lines []string }

func (k *kept) keep(_ *actor.Context, line string) { k.lines = shorten(append(k.lines, line)) }

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

// stored outlives the room, and the process. It is read once, when the first line is needed.
type stored struct {
	key    string
	loaded bool
	kept
	later []func(ctx *actor.Context) error // until it is loaded
}

func (s *stored) keep(ctx *actor.Context, line string) {
	s.ready(ctx, func(ctx *actor.Context) error {
		s.kept.keep(ctx, line)
		text := join(s.lines, "\n")
		service.Tell(ctx, "kv", "put", actor.Func(func(w *abi.Writer) {
			w.Map(2)
			w.Text("key")
			w.Text(s.key)
			w.Text("value")
			w.ByteString([]byte(text))
		}))
		return nil
	})
}

func (s *stored) recall(ctx *actor.Context, then func(ctx *actor.Context, lines []string) error) {
	s.ready(ctx, func(ctx *actor.Context) error { return then(ctx, s.lines) })
}

// ready calls f when the history is there.
func (s *stored) ready(ctx *actor.Context, f func(ctx *actor.Context) error) {
	if s.loaded {
		ctx.Fail(f(ctx))
		return
	}
	if s.later = append(s.later, f); len(s.later) > 1 {
		return
	}
	service.Ask(ctx, "kv", "get", actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("key")
		w.Text(s.key)
	}), 5*time.Second, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err == nil {
			s.lines = linesOf(m)
		} else if service.CodeOf(err) != service.NotFound {
			ctx.Warn("the history cannot be read: " + err.Error())
		}
		s.loaded = true
		for _, f := range s.later {
			if err := f(ctx); err != nil {
				return err
			}
		}
		s.later = nil
		return nil
	})
}

func linesOf(m *actor.Message) (lines []string) {
	r := m.Reader()
	for n := r.Map(); n > 0 && r.OK(); n-- {
		if string(r.TextBytes()) != "value" {
			r.Skip()
			continue
		}
		if b := r.ByteString(); len(b) > 0 {
			for _, line := range bytes.Split(b, []byte("\n")) {
				lines = append(lines, string(line))
			}
		}
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
