//go:build !wasip1

package actortest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// relay passes texts on to /user/p, says "later ..." after a second, and tells its parent "up ...".
type relay struct{ n int64 }

func (r *relay) Receive(ctx *actor.Context, m *actor.Message) error {
	r.n++
	text := m.Text()
	switch {
	case m.Kind() == actor.KindTimer:
		ctx.TellPath("/user/p", actor.Text("ding"))
	case m.Kind() != actor.KindMessage:
		return actor.ErrUnhandled
	case text == "tick":
		ctx.Every(1, time.Second, nil)
	case text == "count":
		return ctx.Reply(actor.Int(r.n))
	case text == "end":
		ctx.StopSelf()
	case strings.HasPrefix(text, "up "):
		ctx.Tell(ctx.Parent(), actor.Text(text))
	default:
		ctx.ForwardPath("/user/p")
	}
	return nil
}

func init() { actor.Register("relay", func() actor.Actor { return &relay{} }) }

func text(s string) func(actortest.Sent) bool {
	return func(m actortest.Sent) bool { return m.Text() == s }
}

func plain(all []actortest.Sent) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, s.Text())
	}
	return strings.Join(parts, " ")
}

func TestProbeExpects(t *testing.T) {
	w := actortest.NewWorld(t)
	p := w.Probe("p")
	r := w.Spawn("relay")
	send := func(texts ...string) {
		for _, text := range texts {
			w.Tell(r, actor.Text(text))
		}
	}
	send("a", "b", "c", "d", "e")
	p.Expect(actor.Text("a"))
	p.ExpectAny(actor.Text("x"), actor.Text("b"))
	if got := plain(p.ExpectAll(actor.Text("d"), actor.Text("c"))); got != "c d" {
		t.Error(got)
	}
	var v actor.Text
	if p.ExpectAs(&v); v != "e" {
		t.Error(v)
	}
	send("1", "2", "3", "x", "y")
	if got := plain(p.ReceiveN(2)); got != "1 2" {
		t.Error(got)
	}
	if got := plain(p.ReceiveWhile(actortest.While{}, func(s actortest.Sent) bool { return s.Text() < "x" })); got != "3" {
		t.Error(got)
	}
	p.FishFor("y", text("y")) // the x was kept until now
	p.Ignore(text("noise"))
	send("noise", "z")
	p.Expect(actor.Text("z"))

	send("tick")
	begun := w.Now()
	p.ExpectNone(999 * time.Millisecond)
	p.Within(0, 10*time.Second, func() {
		p.Expect(actor.Text("ding"))
		if d := w.Now().Sub(begun); d != time.Second {
			t.Error(d)
		}
		p.Within(0, time.Hour, func() {
			if d := p.Remaining(); d != 10*time.Second-time.Millisecond {
				t.Error(d)
			}
		})
		if got := plain(p.ReceiveWhile(actortest.While{Most: 2500 * time.Millisecond}, nil)); got != "ding ding" {
			t.Error(got)
		}
		if got := plain(p.ReceiveWhile(actortest.While{Most: time.Hour, Idle: 400 * time.Millisecond}, nil)); got != "" {
			t.Error(got)
		}
		if got := plain(p.ReceiveWhile(actortest.While{Count: 1}, nil)); got != "ding" {
			t.Error(got)
		}
	})
	p.Within(0, time.Hour, func() {
		p.Within(0, time.Second, func() {
			if d := p.Remaining(); d != time.Second {
				t.Error(d)
			}
		})
	})
	q := w.Probe("quiet")
	q.Within(0, time.Second, func() { q.ExpectNone(2 * time.Second) }) // how long it took is not checked
	p.ReceiveWhile(actortest.While{Most: 1}, nil)
	n := int64(0)
	w.Await(5*time.Second, "two more", func() bool { n = int64(len(p.Waiting())); return n == 2 })

	for want, f := range map[string]func(w *actortest.World, p *actortest.Probe, r *actortest.Actor){
		"expected: \"b\"\n  came: forward \"a\"": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			p.Expect(actor.Text("b"))
		},
		"no message for 0s":                           func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { p.ExpectNone(0) },
		"expected: 2 messages\n  came: forward \"a\"": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { p.ReceiveN(2) },
		"expected: \"a\" and \"a\", in any order": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			p.ExpectAll(actor.Text("a"), actor.Text("a"))
		},
		"expected: \"b\", in any order\n  came: forward \"a\"": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { p.ExpectAll(actor.Text("b")) },
		"the end of": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			p.ReceiveN(1)
			other := w.Spawn("desk", actortest.Args(actor.Text("x")))
			p.Watch(r.Ref())
			p.Watch(other.Ref())
			w.Stop(r)
			p.ExpectTerminated(other.Ref())
		},
		"a *actor.Int":                       func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { var v actor.Int; p.ExpectAs(&v) },
		"expected: z\n  came: forward \"a\"": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { p.FishFor("z", text("z")) },
		"it took 0s, expected at least 1s": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			p.Within(time.Second, time.Hour, func() { p.ReceiveN(1) })
		},
		"it took 2s, expected at most 1s": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			p.Within(0, time.Second, func() { w.Advance(2 * time.Second) })
		},
		"Remaining outside of Within": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { p.Remaining() },
		"expected within 1s: the end": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			w.Await(time.Second, "the end", func() bool { return false })
		},
		"the test has taken no message":     func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { p.Reply(nil) },
		"there is an actor /user/p already": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) { w.Probe("p") },
		"something becomes due in 57s": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			w.After(time.Minute, func() {})
			p.FishFor("z", text("z"))
		},
		"nothing within 1s\n  what waits:\n    the probe": func(w *actortest.World, p *actortest.Probe, r *actortest.Actor) {
			q := w.Probe("q")
			q.Within(0, time.Second, func() { q.Expect(nil) })
		},
	} {
		fails(t, want, func(t testing.TB) {
			w := actortest.NewWorld(t)
			p, r := w.Probe("p"), w.Spawn("relay")
			w.Tell(r, actor.Text("a"))
			f(w, p, r)
		})
	}
}

func TestProbeTalks(t *testing.T) {
	w := actortest.NewWorld(t)
	p, q := w.Probe("p"), w.Probe("q")
	r := w.Spawn("relay", actortest.Parent(q.Ref()), actortest.Named("r"))
	if r.Path() != "/user/q/r" {
		t.Error(r.Path())
	}
	q.Tell(r.Ref(), actor.Text("up and away"))
	if s := q.Expect(actor.Text("up and away")); s.From != r.Ref() || s.Kind != actortest.Tell {
		t.Errorf("%+v", s)
	}
	q.Ask(r.Ref(), actor.Text("how?"), 0) // is forwarded to p
	p.Expect(actor.Text("how?"))
	if p.Sender() != q.Ref() {
		t.Error(p.Sender())
	}
	p.Reply(actor.Text("so"))
	if s := q.Expect(actor.Text("so")); s.Kind != actortest.Reply || s.Correlation != 1 {
		t.Errorf("%+v", s)
	}
	q.Ask(p.Ref(), actor.Text("why?"), 0)
	p.Expect(actor.Text("why?"))
	p.ReplyError("because")
	if s := q.ExpectKind(actortest.ReplyError); s.Text() != "because" {
		t.Errorf("%+v", s)
	}
	o := w.Probe("o")
	q.Ask(p.Ref(), actor.Text("who?"), 0)
	p.Expect(actor.Text("who?"))
	p.Forward(o.Ref())
	o.Expect(actor.Text("who?"))
	o.Reply(actor.Text("me"))
	q.Expect(actor.Text("me"))
	q.Reply(actor.Text("hello me")) // who has answered has not asked
	if s := o.Expect(actor.Text("hello me")); s.Kind != actortest.Tell {
		t.Errorf("%+v", s)
	}
	q.Ask(p.Ref(), actor.Text("never"), time.Second)
	q.Within(time.Second, time.Second, func() { q.ExpectKind(actortest.Timeout) })
	p.Expect(actor.Text("never"))
	p.Reply(actor.Text("too late"))
	if dead := w.Dead(); len(dead) != 1 || dead[0].Text() != "too late" {
		t.Errorf("%+v", dead)
	}

	p.Watch(r.Ref())
	o.Watch(r.Ref())
	o.Unwatch(r.Ref())
	w.Tell(r, actor.Text("end"))
	if reason := p.ExpectTerminated(r.Ref()); reason != "stopped" {
		t.Error(reason)
	}
	o.ExpectNone(time.Second)
	p.Watch(o.Ref())
	o.Stop()
	p.ExpectTerminated(o.Ref())
	p.Tell(o.Ref(), actor.Text("hello?"))
	if dead := w.Dead(); len(dead) != 1 {
		t.Errorf("%+v", dead)
	}

	left := 2
	var pilot actortest.Pilot
	pilot = func(p *actortest.Probe, m actortest.Sent) actortest.Pilot {
		p.Reply(actor.Text(fmt.Sprint(m.Text(), len(p.Waiting()))))
		if left--; left == 0 {
			return nil
		}
		return pilot
	}
	p.Autopilot(pilot)
	for i := range 3 {
		q.Ask(p.Ref(), actor.Text(fmt.Sprint("ask", i, " ")), time.Second)
	}
	if got := plain(q.ReceiveN(2)); got != "ask0 0 ask1 1" { // before the message waits
		t.Errorf("%q", got)
	}
	q.ExpectKind(actortest.Timeout)
	if p.Sender() != o.Ref() { // what the test has taken last, and not the pilot
		t.Error(p.Sender())
	}
	p.ReceiveN(3)
}

func TestWorldFaults(t *testing.T) {
	run := func(seed uint64, make func(w *actortest.World)) (now, later string, w *actortest.World) {
		w = actortest.NewWorld(t, actortest.Seed(seed))
		p := w.Probe("p")
		r := w.Spawn("relay")
		make(w)
		for i := range 6 {
			r.Send(actor.Text(fmt.Sprint(i)))
		}
		now = plain(p.ReceiveWhile(actortest.While{Idle: 1}, nil))
		return now, plain(p.ReceiveWhile(actortest.While{Most: time.Minute}, nil)), w
	}
	for _, c := range []struct {
		make       func(f *actortest.Fault)
		now, later string
	}{
		{func(f *actortest.Fault) { f.Nth(2).Drop() }, "0 2 3 4 5", ""},
		{func(f *actortest.Fault) { f.Every(3).Drop() }, "0 1 3 4", ""},
		{func(f *actortest.Fault) { f.Matching(text("1")).Delay(time.Second) }, "0 2 3 4 5", "1"},
		{func(f *actortest.Fault) { f.Nth(4).Duplicate() }, "0 1 2 3 3 4 5", ""},
		{func(f *actortest.Fault) { f.Every(3).Reorder() }, "0 1 3 2 4 5", ""},
		{func(f *actortest.Fault) { f.From("/user/nobody").Drop() }, "0 1 2 3 4 5", ""},
		{func(f *actortest.Fault) { f.Drop().End() }, "0 1 2 3 4 5", ""},
	} {
		now, later, _ := run(1, func(w *actortest.World) { c.make(w.Fault("/user/*")) })
		if now != c.now || later != c.later {
			t.Errorf("%q, later %q; want %q and %q", now, later, c.now, c.later)
		}
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		some := func(w *actortest.World) {
			w.Fault("/user/p").Chance(0.3).Drop()
			w.Fault("/user/p").Chance(0.4).Reorder()
		}
		a, _, _ := run(seed, some)
		if b, _, _ := run(seed, some); a != b {
			t.Errorf("seed %d: %q and %q", seed, a, b)
		}
		seen[a] = true
	}
	if len(seen) < 15 {
		t.Errorf("twenty seeds are %d runs", len(seen))
	}
	w := actortest.NewWorld(t)
	r := w.Spawn("relay")
	f := w.Fault("/user/relay").Nth(3).Crash()
	ask := func() string {
		s := w.Ask(r, actor.Text("count"))
		return s.Kind.String() + " " + fmt.Sprint(s.Int()) + s.Text()
	}
	if got := ask() + ask() + ask() + ask(); got != "reply 1reply 2reply_error 0trap: a fault of the testreply 1" {
		t.Errorf("%q", got)
	}
	if all := w.Failures(); len(all) != 1 || all[0].Failure.Kind != abi.FailureTrap || f.Hits() != 1 {
		t.Errorf("%+v", all)
	}
	fails(t, "a fault of \"[\"", func(t testing.TB) { actortest.NewWorld(t).Fault("[") })

	// A service that loses the first request.
	w = actortest.NewWorld(t)
	rates, p := w.Serve("rates", nil), w.Probe("p")
	w.Fault("/system/rates").Nth(1).Drop()
	for range 2 {
		p.Ask(rates.Ref(), actor.Text("now"), time.Second)
	}
	if s := p.ExpectKind(actortest.ReplyError); s.Correlation != 2 {
		t.Errorf("%+v", s)
	}
	p.ExpectKind(actortest.Timeout)
}
