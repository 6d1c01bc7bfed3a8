//go:build !wasip1

package router_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/router"
)

const workers = router.At("/user/workers")

// boss manages the workers as it is told, and tells the log what came of it.
type boss struct{}

func (boss) Receive(ctx *actor.Context, m *actor.Message) error {
	done := func(ctx *actor.Context, err error) error {
		ctx.TellPath("/user/log", actor.Text(fmt.Sprint(err)))
		return nil
	}
	switch m.Text() {
	case "all":
		workers.ToAll(ctx, actor.Text("x"))
	case "keyed":
		workers.TellKeyed(ctx, "ann", actor.Text("x"))
	case "ask":
		workers.AskKeyed(ctx, "ann", actor.Text("x"), time.Second, func(ctx *actor.Context, m *actor.Message) error {
			ctx.TellPath("/user/log", actor.Text(m.Text()))
			return nil
		})
	case "add":
		workers.Add(ctx, "/user/more", time.Second, done)
	case "remove":
		workers.Remove(ctx, "/user/more", time.Second, done)
	case "adjust":
		workers.Adjust(ctx, -2, time.Second, done)
	case "stop":
		workers.StopRoutees(ctx, time.Second, nil)
	case "kill":
		workers.KillRoutees(ctx, time.Second, done)
	case "routees":
		workers.Routees(ctx, time.Second, func(ctx *actor.Context, paths []string, err error) error {
			ctx.TellPath("/user/log", actor.Text(fmt.Sprint(paths, err, errors.Is(err, actor.ErrNoAnswer))))
			return nil
		})
	}
	return nil
}

type list []string

func (l list) MarshalCBOR(w *abi.Writer) {
	w.Array(len(l))
	for _, s := range l {
		w.Text(s)
	}
}

// What a router is told is an order in a header; what it answers, refuses or does not answer is told.
func TestOrders(t *testing.T) {
	actor.Register("boss", func() actor.Actor { return boss{} })
	w := actortest.NewWorld(t)
	b := w.Spawn("boss")
	log, at := w.Probe("log"), w.Probe("workers")
	said := func(want string) {
		t.Helper()
		if got := log.ReceiveN(1)[0].Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, c := range []struct {
		tell, header, value, payload string
		reply                        actor.Encoder
		refuse                       bool
		then                         string
	}{
		{tell: "all", header: abi.HeaderRouter, value: "broadcast", payload: "x"},
		{tell: "keyed", header: abi.HeaderRouterKey, value: "ann", payload: "x"},
		{tell: "ask", header: abi.HeaderRouterKey, value: "ann", payload: "x", reply: actor.Text("y"), then: "y"},
		{tell: "add", header: abi.HeaderRouter, value: "add", payload: "/user/more", reply: nil, then: "<nil>"},
		{tell: "remove", header: abi.HeaderRouter, value: "remove", payload: "/user/more", refuse: true, then: "no"},
		{tell: "adjust", header: abi.HeaderRouter, value: "adjust", then: "<nil>"},
		{tell: "stop", header: abi.HeaderRouter, value: "stop"},
		{tell: "kill", header: abi.HeaderRouter, value: "kill", refuse: true, then: "no"},
		{tell: "routees", header: abi.HeaderRouter, value: "routees", reply: list{"/a", "/b"}, then: "[/a /b] <nil> false"},
		{tell: "routees", header: abi.HeaderRouter, value: "routees", reply: actor.Text("?"), then: "[] abi: an item of another type was expected, this is text, at offset 0 false"},
	} {
		w.Tell(b, actor.Text(c.tell))
		s := at.ReceiveN(1)[0]
		if s.Header(c.header) != c.value || c.payload != "" && s.Text() != c.payload {
			t.Errorf("%s: %q is told with %q", c.tell, s.Payload, s.Header(c.header))
		}
		switch {
		case s.Correlation == 0:
		case c.refuse:
			at.ReplyError("no")
		default:
			at.Reply(c.reply)
		}
		if c.then != "" {
			said(c.then)
		}
	}
	w.Tell(b, actor.Text("routees"))
	at.ReceiveN(1)
	w.Advance(time.Second)
	said("[] actor: there was no answer in time true")
}
