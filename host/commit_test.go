package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// The hook of an entry sees what has come in and what is about to leave, before any of it
// has; its error lets nothing out.

// recorder is such a hook.
type recorder struct {
	l      *stage
	of     Ref
	seen   []string
	early  bool // something had left before the hook was told
	refuse error
}

func (r *recorder) hook(c *commitment) error {
	if c.actor != r.of || r.of.IsZero() {
		return nil
	}
	if r.l.table.Get(r.l.probe.uid).box.Len() > 0 || r.l.table.Get(r.of.uid).timers.Len() > 0 {
		r.early = true
	}
	line := fmt.Sprintf("incarnation %d, turn %d, %d messages:", c.incarnation, c.firstTurn, len(c.mail))
	for i := range c.mail {
		if c.commands == nil {
			continue
		}
		for _, cmd := range c.commands(i) {
			line += " " + cmd.Op.String()
		}
		line += ";"
	}
	for _, e := range c.effects {
		line += fmt.Sprint(" effect ", e.kind)
	}
	r.seen = append(r.seen, line)
	return r.refuse
}

func newRecorder(t *testing.T) (*recorder, *stage) {
	r := &recorder{}
	r.l = newStage(t, func(c Config) Config { c.commit = r.hook; return c })
	return r, r.l
}

func TestCommitOfGuests(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		r, l := newRecorder(t)
		g := l.spawn("g", puppet(t))
		r.of = g
		timer := abi.AppendTimer(nil, 1, uint64(1000*ms), 0, nil)
		l.post(g, script(now(toProbe("a"))))
		l.post(g, script(now(toProbe("b"), toProbe("c"))))
		l.post(g, script(now(timer)))
		for l.table.Get(g.uid).box.Len() > 0 {
			l.Step()
		}
		want := []string{"incarnation 0, turn 1, 3 messages: send; send send; timer;"}
		if manner != inBatches {
			// The probe has its messages by then, which were recorded before.
			r.early = false
			want = []string{"incarnation 0, turn 1, 1 messages: send;", "incarnation 0, turn 2, 1 messages: send send;", "incarnation 0, turn 3, 1 messages: timer;"}
		}
		l.run()
		if !slices.Equal(r.seen, want) || r.early {
			t.Errorf("%q, early: %v", r.seen, r.early)
		}
		l.wants("message a", "message b", "message c")

		r.seen, r.refuse = nil, errors.New("the disk is full")
		l.table.Get(g.uid).timers.CancelAll()
		l.post(g, script(now(toProbe("d"), timer)))
		l.run()
		l.wants()
		if e := l.raw(EventFailed); len(e) == 0 || e[0].Failure.Kind != abi.FailureHost || e[0].Failure.Reason != "the turn could not be recorded: the disk is full" {
			t.Errorf("%+v", e)
		}
		if l.table.Get(g.uid) != nil && l.table.Get(g.uid).timers.Len() != 0 {
			t.Error("a timer of a turn that was not recorded")
		}
	})
}

func TestCommitOfNatives(t *testing.T) {
	r, l := newRecorder(t)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		return errors.Join(tellProbe(ctx, "x"), ctx.Reply("y"))
	}))
	r.of = a
	l.say(a, 1)
	if want := []string{"incarnation 0, turn 1, 1 messages: effect 0 effect 0"}; !slices.Equal(r.seen, want) || r.early {
		t.Errorf("%q, early: %v", r.seen, r.early)
	}
	l.wants("message x", "reply y")
	r.refuse = errors.New("the disk is full")
	l.say(a, 2)
	l.wants()
	if e := l.raw(EventFailed); len(e) == 0 || e[0].Failure.Kind != abi.FailureHost {
		t.Errorf("%+v", e)
	}
}
