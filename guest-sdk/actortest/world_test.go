//go:build !wasip1

package actortest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// office gives work to desks that it starts, and asks the archive.
type office struct{ news []string }

func (o *office) Receive(ctx *actor.Context, msg *actor.Message) error {
	what, name, _ := strings.Cut(msg.Text(), " ")
	switch {
	case msg.Kind() == actor.KindTerminated, msg.Kind() == actor.KindSpawnFailed:
		o.news = append(o.news, msg.Kind().String()+" "+msg.Text())
	case what == "hire":
		desk := ctx.Spawn("desk", name, actor.Text(name))
		ctx.Watch(desk)
		ctx.Tell(desk, actor.Text("welcome"))
	case what == "work":
		ctx.ForwardPath("./" + name)
	case what == "news":
		return ctx.Reply(actor.Text(strings.Join(o.news, "; ")))
	case what == "archive":
		asker, question := ctx.Sender(), ctx.Correlation()
		ctx.AskPath("/user/archive", actor.Text(name), time.Second, func(ctx *actor.Context, answer *actor.Message) error {
			return ctx.Answer(asker, question, actor.Text(answer.Kind().String()+" "+answer.Text()))
		})
	case what == "late":
		ctx.TellPath("/user/office/"+name, actor.Text("tick"))
	default:
		return actor.ErrUnhandled
	}
	return nil
}

type desk struct {
	name string
	done int
}

func (d *desk) Started(ctx *actor.Context) error {
	if ctx.Args().Null() {
		return errors.New("no name")
	}
	var name actor.Text
	err := ctx.DecodeArgs(&name)
	d.name = string(name)
	return err
}

func (d *desk) Stopped(ctx *actor.Context) { ctx.TellPath("/user/log", actor.Text(d.name+" goes")) }

func (d *desk) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindTimer:
		ctx.TellPath("/user/log", actor.Text(d.name+" "+ctx.Now().Format("05.0")))
		return nil
	case strings.HasPrefix(msg.Text(), "work"):
		d.done++
		return ctx.Reply(actor.Text(fmt.Sprint(d.name, " ", d.done, " of ", ctx.Incarnation())))
	}
	switch msg.Text() {
	case "welcome":
		d.done = 10
	case "tick":
		ctx.Every(1, time.Second, nil)
	case "silent":
	case "leave":
		ctx.StopSelf()
	case "fail":
		return errors.New("tired")
	}
	return nil
}

func init() {
	actor.Register("office", func() actor.Actor { return &office{} })
	actor.Register("desk", func() actor.Actor { return &desk{} })
}

func texts(sent []actortest.Sent) string {
	var parts []string
	for _, s := range sent {
		parts = append(parts, s.Path+" "+s.Text())
	}
	return strings.Join(parts, ", ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Actors find each other by refs, by paths and as children, in the order of what is sent.
func TestWorld(t *testing.T) {
	w := actortest.NewWorld(t)
	o := w.Spawn("office")
	w.Tell(o, actor.Text("hire ada"))
	w.Tell(o, actor.Text("hire bob"))
	expect(t, "actors", strings.Join(w.Actors(), " "), "/user/office /user/office/ada /user/office/bob")
	expect(t, "a forwarded question", w.Ask(o, actor.Text("work ada")).Text(), "ada 11 of 0")
	ada := w.Find("/user/office/ada")
	expect(t, "asked directly", w.Ask(ada, actor.Text("work")).Text(), "ada 12 of 0")

	w.Tell(ada, actor.Text("fail")) // and is restarted
	expect(t, "a restart", w.Ask(ada, actor.Text("work")).Text(), "ada 1 of 1")
	if f := w.Failures(); len(f) != 1 || f[0].Path != "/user/office/ada" || f[0].Failure.Reason != "tired" {
		t.Errorf("%+v", f)
	}
	expect(t, "a question whose turn fails", w.Ask(ada, actor.Text("fail")).Text(), "guest_error: tired")

	w.Tell(o, actor.Text("hire bob"))
	w.Tell(ada, actor.Text("leave"))
	expect(t, "what the office knows", w.Ask(o, actor.Text("news")).Text(), "spawn_failed the name bob is taken; terminated unknown; terminated stopped")
	expect(t, "to a child that could not be", texts(w.Dead()), " welcome")
	expect(t, "actors", strings.Join(w.Actors(), " "), "/user/office /user/office/bob")
	expect(t, "left the world", texts(w.Out()), "/user/log ada goes")
	w.Stop(o)
	expect(t, "children first", texts(w.Out()), "/user/log bob goes")
	expect(t, "actors", strings.Join(w.Actors(), " "), "")
	fails(t, "/user/office has not answered", func(t testing.TB) {
		w := actortest.NewWorld(t)
		w.Ask(w.Spawn("office"), actor.Text("late nobody"))
	})
}

// What leaves the world is the test's to answer; time is the same for all.
func TestWorldOutsideAndTime(t *testing.T) {
	w := actortest.NewWorld(t, actortest.At(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)))
	o := w.Spawn("office")
	question := func() actortest.Sent {
		t.Helper()
		o.Send(actor.Text("archive a")) // the turn is the test's, the rest the world's
		w.Run()
		out := w.Out()
		if len(out) != 1 || out[0].Kind != actortest.Ask || out[0].Path != "/user/archive" || out[0].Text() != "a" {
			t.Fatalf("%+v", out)
		}
		return out[0]
	}
	w.Answer(question(), actor.Text("found"))
	expect(t, "answered", texts(w.Out()), " reply found")
	w.AnswerError(question(), "burnt")
	expect(t, "refused", texts(w.Out()), " reply_error burnt")
	late := question()
	w.Advance(999 * time.Millisecond)
	expect(t, "too early", texts(w.Out()), "")
	w.Advance(time.Millisecond)
	expect(t, "too late", texts(w.Out()), " ask_timeout ")
	w.Answer(late, actor.Text("found"))
	if dead := w.Dead(); len(dead) != 1 || dead[0].Text() != "found" {
		t.Errorf("%+v", dead)
	}

	for _, name := range []string{"ada", "bob"} {
		w.Tell(o, actor.Text("hire "+name))
		w.Tell(o, actor.Text("late "+name))
		w.Advance(300 * time.Millisecond)
	}
	w.Advance(2 * time.Second)
	expect(t, "two clocks", texts(w.Out()), "/user/log ada 02.0, /user/log bob 02.3, /user/log ada 03.0, /user/log bob 03.3")
	bob := w.Find("/user/office/bob")
	if !w.Now().Equal(bob.Now()) || !w.Now().Equal(o.Now()) {
		t.Error("the clocks differ")
	}
	w.Stop(bob)
	w.Stop(o)
	w.Out()
	w.Advance(time.Minute)
	expect(t, "after the end", texts(w.Out()), "")
}

// The test may supervise, and be a parent.
func TestWorldSupervision(t *testing.T) {
	w := actortest.NewWorld(t)
	o := w.Spawn("office")
	kid := w.Spawn("desk", actortest.Parent(o.Ref()), actortest.Named("kid"), actortest.Args(actor.Text("kid")))
	expect(t, "its path", kid.Path(), "/user/office/kid")
	w.Supervise(func(a *actortest.Actor, f *abi.Failure) actor.Directive {
		switch {
		case a == kid && f.Reason == "tired":
			return actor.Resume
		}
		return actor.DefaultDirective
	})
	w.Ask(kid, actor.Text("work"))
	w.Tell(kid, actor.Text("fail"))
	expect(t, "resumed", w.Ask(kid, actor.Text("work")).Text(), "kid 2 of 0")
	if d := w.Spawn("desk"); !d.Ended() {
		t.Error("a start that has failed is alive")
	}
	w.Stop(kid)
	w.Tell(kid, actor.Text("work"))
	if dead := w.Dead(); len(dead) != 1 {
		t.Errorf("%+v", dead)
	}
	expect(t, "a question to one that has ended", w.Ask(kid, actor.Text("work")).Text(), "the actor has stopped")

	alone := actortest.Spawn(t, "clerk", actortest.Parent(77), actortest.Args(actor.Text("x")))
	if to := alone.Started().Sent[0].To; to != 77 {
		t.Errorf("its parent is %d", to)
	}
	fails(t, "is not an actor of this world", func(t testing.TB) { actortest.NewWorld(t).Spawn("office", actortest.Parent(5)) })
	fails(t, "there is an actor /user/office already", func(t testing.TB) {
		w := actortest.NewWorld(t)
		w.Spawn("office")
		w.Spawn("office")
	})
}
