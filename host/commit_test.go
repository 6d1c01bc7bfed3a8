package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/supervision"
)

// A recorder hears of each turn before any of it takes effect; its error lets nothing out.

// commits is one that answers at once, or collects the turns of one actor.
type commits struct {
	l      *stage
	of     string
	seen   []string
	early  bool // something had left before the recorder was told
	refuse error
	later  bool
	open   []*turn.Turn
}

func (r *commits) commit(t *turn.Turn) {
	if r.of == "" || !strings.HasSuffix(t.Path, "/"+r.of) {
		t.Answer(nil)
		return
	}
	if a := r.l.table.Get(t.Actor); r.l.table.Get(r.l.probe.UID()).box.Len() > 0 || a.work.Timers.Len() > 0 {
		r.early = true
	}
	line := fmt.Sprintf("incarnation %d, turn %d, %d of %d messages:", t.Incarnation, t.First, t.Done, len(t.Mail))
	last := 0
	if err := t.Commands(func(turn int, c *abi.Command) {
		line += strings.Repeat(";", turn-last) + " " + c.Op.String()
		last = turn
	}); err != nil {
		line += err.Error()
	}
	for _, e := range t.Effects {
		line += fmt.Sprint(" effect ", e.Kind)
	}
	if t.Failure != nil {
		line += fmt.Sprintf(" failed: %v", t.Failure.Kind)
	}
	if t.Cut != nil {
		line += " cut"
	}
	r.seen = append(r.seen, line)
	if r.later {
		r.open = append(r.open, t)
		return
	}
	t.Answer(r.refuse)
}

// answer answers all that wait.
func (r *commits) answer(err error) {
	for _, t := range r.open {
		t.Answer(err)
	}
	r.open = nil
	r.l.run()
}

func newRecorder(t *testing.T) (*commits, *stage) {
	r := &commits{}
	r.l = newStage(t, func(c Config) Config { partsOf(&c).Commit = r.commit; return c })
	return r, r.l
}

func TestCommitOfGuests(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		r, l := newRecorder(t)
		g := l.spawn("g", puppet(t))
		r.of = "g"
		timer := abi.AppendTimer(nil, 1, uint64(1000*ms), 0, nil)
		l.post(g, script(now(toProbe("a"))))
		l.post(g, script(now(toProbe("b"), toProbe("c"))))
		l.post(g, script(now(timer)))
		for l.table.Get(g.UID()).box.Len() > 0 {
			l.Step()
		}
		want := []string{"incarnation 0, turn 1, 3 of 3 messages: send; send send; timer"}
		if manner != inBatches {
			// The probe has its messages by then, which were recorded before.
			r.early = false
			want = []string{"incarnation 0, turn 1, 1 of 1 messages: send", "incarnation 0, turn 2, 1 of 1 messages: send send", "incarnation 0, turn 3, 1 of 1 messages: timer"}
		}
		l.run()
		if !slices.Equal(r.seen, want) || r.early {
			t.Errorf("%q, early: %v", r.seen, r.early)
		}
		l.wants("message a", "message b", "message c")

		r.seen, r.refuse = nil, errors.New("the disk is full")
		l.table.Get(g.UID()).work.Timers.CancelAll()
		l.post(g, script(now(toProbe("d"), timer)))
		l.run()
		l.wants()
		if e := l.raw(EventFailed); len(e) == 0 || e[0].Failure.Kind != abi.FailureHost || e[0].Failure.Reason != "the turn could not be recorded: the disk is full" {
			t.Errorf("%+v", e)
		}
		if l.table.Get(g.UID()) != nil && l.table.Get(g.UID()).work.Timers.Len() != 0 {
			t.Error("a timer of a turn that was not recorded")
		}
	})
}

func TestCommitOfNatives(t *testing.T) {
	r, l := newRecorder(t)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		return errors.Join(tellProbe(ctx, "x"), ctx.Reply("y"))
	}))
	r.of = "a"
	l.say(a, 1)
	if want := []string{"incarnation 0, turn 1, 1 of 1 messages: effect 0 effect 0"}; !slices.Equal(r.seen, want) || r.early {
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

// The recorder hears of turns that fail and of those that are killed, with what ended well before them.
func TestFailedTurnsAreCommitted(t *testing.T) {
	inBatches.run(t, "in batches", func(t *testing.T) {
		r, l := newRecorder(t)
		g := l.spawn("g", puppet(t))
		r.of = "g"
		l.post(g, script(now(toProbe("a"))))
		l.post(g, script(trap()))
		l.post(g, script(now(toProbe("b"))))
		l.run()
		l.wants("message a", "message b")
		n := l.spawn("n", Func(func(ctx *Context, m Message) error {
			_ = tellProbe(ctx, "x")
			return errors.New("no")
		}))
		r.of = "n"
		l.say(n, 1)
		l.wants()
		if len(r.seen) < 3 || r.seen[0] != "incarnation 0, turn 1, 1 of 3 messages: send failed: trap" || !slices.Contains(r.seen, "incarnation 0, turn 1, 0 of 1 messages: failed: guest_error") {
			t.Errorf("%q", r.seen)
		}
	})
}

// While the recorder has not answered, the actor does nothing else, and nobody else waits.
func TestAnActorIsHeldUntilItsTurnIsCommitted(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for what, p := range map[string]struct {
			p   Props
			say func(text string) any
		}{
			"guest":  {puppet(t, on(abi.KindStart, toProbe("start"))), func(text string) any { return script(now(toProbe(text))) }},
			"native": {Native(func() Actor { return &saysAll{} }), func(text string) any { return text }},
			"behaviour": {Behave("b", func() Behaviour {
				return behaviourOf(func(ctx *Context, m Message) {
					var text string
					_ = m.Decode(&text)
					_ = tellProbe(ctx, text)
				})
			}), func(text string) any { return text }},
		} {
			t.Run(what, func(t *testing.T) {
				r, l := newRecorder(t)
				r.of, r.later = "a", true
				ref := l.spawn("a", p.p)
				l.post(ref, p.say("x"))
				l.run()
				l.wants()
				if what != "behaviour" { // which does nothing at its start
					r.answer(nil)
					l.wants("message start")
				}
				l.Stop(ref)
				l.run()
				if l.table.Get(ref.UID()) == nil {
					t.Fatal("it has stopped before its turn was recorded")
				}
				other := l.spawn("other", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, "other") }))
				l.say(other, 1)
				l.wants("message other")
				r.later = false // its last turn is waited for
				r.answer(nil)
				l.wants("message x")
				if l.table.Get(ref.UID()) != nil {
					t.Error("it has not stopped")
				}
			})
		}
	})
}

// saysAll tells the probe what it is told.
type saysAll struct{}

func (*saysAll) Started(ctx *Context) error { return tellProbe(ctx, "start") }
func (*saysAll) Receive(ctx *Context, m Message) error {
	var text string
	return errors.Join(m.Decode(&text), tellProbe(ctx, text))
}

// behaviourOf is a behaviour that calls f for each message.
type behaviourOf func(ctx *Context, m Message)

func (behaviourOf) Start(*Context, *abi.Failure) *abi.Failure { return nil }
func (f behaviourOf) Handle(ctx *Context, n int) *abi.Failure {
	for m, ok := ctx.Head().Next(); ok; m, ok = ctx.Head().Next() {
		f(ctx, m)
	}
	return nil
}
func (behaviourOf) Decide(*Context, Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}
func (behaviourOf) CannotRewind() string { return "" }
func (behaviourOf) Rewind(*Context) bool { return true }
func (behaviourOf) End(*Context, End)    {}

// Workers do not wait for a recorder: 400 actors whose turns take 5 ms each to record are done after a few of them.
func TestWorkersDoNotWaitForTheRecorder(t *testing.T) {
	const actors, turns, sync5 = 400, 3, 5 * time.Millisecond
	var mu sync.Mutex
	var group []*turn.Turn
	syncs := 0
	commit := func(t *turn.Turn) {
		mu.Lock()
		defer mu.Unlock()
		if group = append(group, t); len(group) == 1 {
			time.AfterFunc(sync5, func() {
				mu.Lock()
				all := group
				group = nil
				syncs++
				mu.Unlock()
				for _, t := range all {
					t.Answer(nil)
				}
			})
		}
	}
	cfg := NewConfig("commit").WithWorkers(2)
	partsOf(&cfg).Commit = commit
	s := newSystem(t, cfg)
	var left sync.WaitGroup
	left.Add(actors * turns)
	for i := range actors {
		p := puppet(t)
		if i%2 == 0 {
			p = Func(func(ctx *Context, m Message) error { return nil })
		}
		ref := must(s.Spawn(fmt.Sprint("a", i), p))(t)
		for range turns {
			go func() {
				defer left.Done()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if i%2 == 0 {
					_ = s.Tell(ref, 1)
				} else if _, err := s.Ask(ctx, ref, script(rec(recReport, 0, nil))); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	left.Wait()
	for mu.Lock(); group != nil; mu.Lock() {
		mu.Unlock()
		time.Sleep(sync5)
	}
	defer mu.Unlock()
	if syncs > actors/4 {
		t.Errorf("%d syncs for %d turns: workers wait", syncs, actors*(turns+1))
	}
}
