// A desk and its clerk as guests: see docs/guide/mailboxes.md.
package main

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// desk does its jobs in the order in which its mailbox hands them out.
type desk struct{ done []string }

// Receive implements actor.Actor.
func (d *desk) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Is("report") {
		return ctx.Reply(actor.Text(strings.Join(d.done, " ")))
	}
	job := m.Text()
	if m.Header("urgency") != "" {
		job += "!"
	}
	d.done = append(d.done, job)
	return nil
}

// clerk brings jobs to whoever asks for them, the urgent one last.
type clerk struct{}

// Receive implements actor.Actor.
func (clerk) Receive(ctx *actor.Context, m *actor.Message) error {
	to := m.Sender()
	ctx.Tell(to, actor.Text("file"))
	ctx.Tell(to, actor.Text("copy"))
	ctx.TellWith(to, actor.Text("sign"), actor.Header{Key: "urgency", Value: "0"})
	return nil
}

// front has a desk of its own, at which urgent jobs come first, and passes everything on to it.
type front struct{ desk actor.Ref }

// Started implements actor.Starter.
func (f *front) Started(ctx *actor.Context) error {
	f.desk = ctx.SpawnWith("desk", "desk", nil, actor.SpawnOptions{
		Mailbox:    actor.Mailbox{Kind: "priority", Header: "urgency", Messages: 100},
		Dispatcher: actor.Dispatcher{Throughput: 4},
	})
	return nil
}

// Receive implements actor.Actor.
func (f *front) Receive(ctx *actor.Context, _ *actor.Message) error {
	ctx.Forward(f.desk)
	return nil
}

func init() {
	actor.Need(abi.FeatureMailboxes)
	actor.Register("front", func() actor.Actor { return &front{} })
	actor.Register("desk", func() actor.Actor { return &desk{} })
	actor.Register("clerk", func() actor.Actor { return clerk{} })
}

func main() {}
