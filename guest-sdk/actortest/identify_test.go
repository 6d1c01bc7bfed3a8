//go:build !wasip1

package actortest_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// finder asks who is at the paths that it is told, and notes what it hears.
type finder struct{ heard []string }

func (f *finder) Receive(ctx *actor.Context, m *actor.Message) error {
	text := m.Text()
	if m.Kind() != actor.KindMessage {
		return errors.New("an answer comes to Receive")
	}
	if name, ok := strings.CutPrefix(text, "spawn "); ok {
		ctx.Spawn("finder", name, nil)
		return nil
	}
	switch text {
	case "heard":
		all := strings.Join(f.heard, ", ")
		f.heard = nil
		return ctx.Reply(actor.Text(all))
	case "both":
		f.find(ctx, "/user/b")
		f.find(ctx, "/user/c")
		return nil
	}
	if strings.ContainsAny(text, "*?") {
		ctx.IdentifyPath(text, time.Second, func(_ *actor.Context, found []actor.Identity, total int, err error) error {
			out := text + ":" + strconv.Itoa(total)
			for _, one := range found {
				out += " " + one.Path
			}
			f.note(out, err)
			return nil
		})
		return nil
	}
	f.find(ctx, text)
	return nil
}

func (f *finder) find(ctx *actor.Context, path string) {
	ctx.Identify(path, time.Second, func(_ *actor.Context, who actor.Ref, err error) error {
		f.note(path+" is "+strconv.FormatUint(uint64(who), 10), err)
		return nil
	})
}

func (f *finder) note(what string, err error) {
	switch err {
	case nil:
	case actor.ErrNoActor:
		what += ": nobody"
	case actor.ErrNoAnswer:
		what += ": no answer"
	default:
		what += ": " + err.Error()
	}
	f.heard = append(f.heard, what)
}

func init() { actor.Register("finder", func() actor.Actor { return &finder{} }) }

func TestIdentify(t *testing.T) {
	a := actortest.Spawn(t, "finder")
	heard := func(want string) {
		t.Helper()
		if got := a.Send(actor.Text("heard")).Reply().Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	both := a.Send(actor.Text("both")).Sent
	if len(both) != 2 || both[0].Kind != actortest.Identify || both[0].Path != "/user/b" || both[0].Timeout != time.Second {
		t.Fatalf("%+v", both)
	}
	a.Identified(both[1], 30) // in any order
	a.Identified(both[0], 20)
	heard("/user/c is 30, /user/b is 20")
	a.Identified(a.Send(actor.Text("/user/b")).Sent[0], 0)
	a.AnswerError(a.Send(actor.Text("/user/b")).Sent[0], "too many")
	a.Send(actor.Text("/user/b"))
	a.Advance(time.Second)
	heard("/user/b is 0: nobody, /user/b is 0: actor: too many, /user/b is 0: no answer")

	all := a.Send(actor.Text("/user/*")).Sent[0]
	a.IdentifiedAll(all, 3, actor.Identity{Ref: 7, Path: "/user/a"}, actor.Identity{Ref: 8, Path: "/user/b"})
	a.IdentifiedAll(a.Send(actor.Text("/user/*")).Sent[0], 0)
	a.Answer(a.Send(actor.Text("/user/*")).Sent[0], actor.Text("garbage"))
	a.AnswerError(a.Send(actor.Text("/user/*")).Sent[0], abi.NoSuchActor)
	heard("/user/*:3 /user/a /user/b, /user/*:0, /user/*:0: " + garbage() + ", /user/*:0: nobody")
}

func garbage() string {
	_, _, err := abi.DecodeIdentities([]byte("\x67garbage"))
	return err.Error()
}

// In a world whoever is there answers, in its turn.
func TestIdentifyInAWorld(t *testing.T) {
	w := actortest.NewWorld(t)
	a, b := w.Spawn("finder", actortest.Named("a")), w.Spawn("finder", actortest.Named("b"))
	w.Tell(b, actor.Text("spawn kid"))
	is := func(path, want string) {
		t.Helper()
		w.Tell(a, actor.Text(path))
		if got := w.Ask(a, actor.Text("heard")).Text(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	ref := strconv.FormatUint(uint64(b.Ref()), 10)
	kid := strconv.FormatUint(uint64(w.Find("/user/b/kid").Ref()), 10)
	is("/user/b", "/user/b is "+ref)
	is("../b", "../b is "+ref)
	is("../b/kid", "../b/kid is "+kid)
	is("/user/b#"+ref, "/user/b#"+ref+" is "+ref)
	is("/user/b#"+kid, "/user/b#"+kid+" is 0: nobody")
	is("/user/none", "/user/none is 0: nobody")
	is("./none", "./none is 0: nobody")
	is("/user/*", "/user/*:2 /user/a /user/b")
	is("/user/?/k*d", "/user/?/k*d:1 /user/b/kid")
	is("/user/none*", "/user/none*:0")
	w.Stop(b)
	is("/user/b", "/user/b is 0: nobody")
	if dead := w.Dead(); len(dead) != 0 {
		t.Errorf("%+v", dead)
	}
	if out := w.Out(); slices.ContainsFunc(out, func(s actortest.Sent) bool { return s.Kind == actortest.Identify }) {
		t.Errorf("%+v", out)
	}
}
