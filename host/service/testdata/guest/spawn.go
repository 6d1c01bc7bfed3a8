package main

import (
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

func init() {
	actor.Need(abi.FeatureMailboxes)
	actor.Register("spawn-parent", func() actor.Actor { return &spawner{} })
	actor.Register("spawn-child", func() actor.Actor { return &listener{} })
	actor.Register("path-teller", func() actor.Actor { return teller{} })
}

// spawner is asked to spawn a child: [name, mailbox, dispatcher], maps with the keys of a manifest, or null; a fourth element is the
// role of the node that the child is to run on.
// It answers with "" when the child has started, or with why it has not. [name] is a child with the SDK's
// own options.
type spawner struct {
	to       actor.Ref
	question uint64
	child    actor.Ref
}

func (s *spawner) Receive(ctx *actor.Context, m *actor.Message) error {
	switch m.Kind() {
	case actor.KindSpawnFailed:
		return ctx.Answer(s.to, s.question, actor.Text(m.Text()))
	case actor.KindMessage:
	default:
		return actor.ErrUnhandled
	}
	r := m.Reader()
	n := r.Array()
	name := r.Text()
	var o actor.SpawnOptions
	if n == 1 {
		o.Lifetime = actor.Temporary
		o.Mailbox = actor.Mailbox{Kind: "priority", Messages: 100, Bytes: 4096, Full: "drop-newest", Types: map[string]int{"stop": 0, "work": 1}, Levels: 3}
		o.Dispatcher = actor.Dispatcher{Throughput: 1, Deadline: time.Millisecond}
	} else {
		if r.Peek() != abi.TypeNull {
			o.Mailbox = append(actor.Raw{}, r.Raw()...)
		} else {
			r.Skip()
		}
		if r.Peek() != abi.TypeNull {
			o.Dispatcher = append(actor.Raw{}, r.Raw()...)
		} else {
			r.Skip()
		}
		if n == 4 {
			o.Place = actor.OnRole(r.Text())
		}
	}
	s.to, s.question = m.Sender(), m.Correlation()
	s.child = ctx.SpawnWith("spawn-child", name, actor.Null, o)
	to, question := s.to, s.question
	ctx.Ask(s.child, actor.Text("ready"), time.Minute, func(ctx *actor.Context, m *actor.Message) error {
		if m.Kind() != actor.KindReply {
			return nil // the spawn has failed, which is answered
		}
		return ctx.Answer(to, question, actor.Text(""))
	})
	return nil
}

// listener remembers what it is told, and answers "heard" with it.
type listener struct{ heard []string }

func (l *listener) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	switch text := m.Text(); text {
	case "ready":
		return ctx.Reply(actor.Text(""))
	case "heard":
		return ctx.Reply(actor.Text(strings.Join(l.heard, " ")))
	default:
		l.heard = append(l.heard, text)
	}
	return nil
}

// teller tells the actor at a path something: [path, text].
type teller struct{}

func (teller) Receive(ctx *actor.Context, m *actor.Message) error {
	r := m.Reader()
	if r.Array() != 2 {
		return actor.ErrUnhandled
	}
	path := r.Text()
	ctx.TellPath(path, actor.Text(r.Text()))
	return nil
}
