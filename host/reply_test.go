package host

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// desk keeps the handles of questions that it answers later.
func newDesk(handles *[]*Reply, limit int) Props {
	return Func(func(ctx *Context, _ Message) error {
		r, err := ctx.Later()
		if err == nil {
			*handles = append(*handles, r)
		}
		return err
	}).WithLimits(Limits{Replies: limit})
}

// isGone reports whether nobody waits for the answer any more.
func isGone(r *Reply) bool {
	select {
	case <-r.Gone():
		return true
	default:
		return false
	}
}

// A handle answers after the turn, from another goroutine, once.
func TestReplyLater(t *testing.T) {
	eachAsker(t, nil, func(l *stage, ask func(Ref) func() string) {
		for _, fail := range []bool{false, true} {
			var handles []*Reply
			answer := ask(l.spawn("", newDesk(&handles, 0)))
			l.run()
			if got := answer(); got != "" || len(handles) != 1 || isGone(handles[0]) {
				l.t.Fatalf("%q, %d handles", got, len(handles))
			}
			errs := make([]error, 8)
			var group sync.WaitGroup
			for i := range errs {
				group.Go(func() {
					if fail {
						errs[i] = handles[0].Fail("no")
					} else {
						errs[i] = handles[0].Send("yes")
					}
				})
			}
			group.Wait()
			l.run()
			used := 0
			for _, err := range errs {
				if errors.Is(err, ErrUsed) {
					used++
				} else if err != nil {
					l.t.Error(err)
				}
			}
			want := map[bool]string{false: "answer", true: "error"}[fail]
			if got := answer(); used != len(errs)-1 || got != want {
				l.t.Errorf("%d of %d were refused, %q", used, len(errs), got)
			}
		}
	})
}

// What cannot be encoded does not use a handle up.
func TestReplyThatCannotBeEncoded(t *testing.T) {
	var handles []*Reply
	l := newStage(t, nil)
	p := must(l.Request(l.spawn("a", newDesk(&handles, 0)), 1))(t)
	l.run()
	if err := handles[0].Send(make(chan int)); err == nil || errors.Is(err, ErrUsed) {
		t.Error(err)
	}
	if err := handles[0].Send("yes"); err != nil {
		t.Error(err)
	}
	if m := <-p.Answer(); describe(m) != "reply yes" {
		t.Error(describe(m))
	}
}

// A handle knows when nobody waits any more, and then neither counts nor sends.
func TestReplyToWhoHasGone(t *testing.T) {
	for name, leave := range map[string]func(l *stage, ask Ref, handles *[]*Reply){
		"timeout":                   func(l *stage, _ Ref, _ *[]*Reply) { l.pass(time.Minute) },
		"stop":                      func(l *stage, a Ref, _ *[]*Reply) { l.Stop(a) },
		"restart":                   func(l *stage, a Ref, _ *[]*Reply) { l.say(a, script(trap())) },
		"answered by somebody else": func(l *stage, _ Ref, _ *[]*Reply) { service, _ := l.Lookup("/user/service"); l.say(service, "answer") },
	} {
		t.Run(name, func(t *testing.T) {
			everyManner(t, func(t *testing.T) {
				l := newStage(t, nil)
				var handles []*Reply
				var last Message
				service := l.spawn("service", Func(func(ctx *Context, m Message) error {
					if m.Correlation == 0 { // answer the last question in the turn, without the handle
						return ctx.emit(last.Sender.UID(), "yes", abi.KindReply, last.Correlation)
					}
					last = m.Clone()
					r, err := ctx.Later()
					handles = append(handles, r)
					return err
				}))
				g := l.spawn("g", puppet(t))
				l.say(g, script(now(abi.AppendAsk(nil, service.UID(), "", 3, uint64(time.Minute), nil, encoded("get")))))
				if len(handles) != 1 || isGone(handles[0]) || l.table.Get(service.UID()).replies.Load() != 1 {
					t.Fatal("it has gone already")
				}
				leave(l, g, &handles)
				l.run()
				if !isGone(handles[0]) {
					t.Error("nobody has told")
				}
				if err := handles[0].Send("late"); !errors.Is(err, ErrUnknown) {
					t.Error(err)
				}
				if n := l.table.Get(service.UID()).replies.Load(); n != 0 {
					t.Errorf("%d handles count", n)
				}
			})
		})
	}
	// From outside: a question that is given up.
	l := newStage(t, nil)
	var handles []*Reply
	p := must(l.Request(l.spawn("a", newDesk(&handles, 0)), 1))(t)
	l.run()
	p.Cancel()
	if !isGone(handles[0]) || !errors.Is(handles[0].Send("late"), ErrUnknown) {
		t.Error("it does not know")
	}
}

// So do handles of an inbox's questions.
func TestReplyToAnInboxThatHasGone(t *testing.T) {
	for name, leave := range map[string]func(*Inbox){
		"forgotten": func(in *Inbox) { in.Forget(7) },
		"closed":    (*Inbox).Close,
	} {
		l := newStage(t, nil)
		var handles []*Reply
		in := l.Inbox(0)
		defer in.Close()
		a := l.spawn("a", newDesk(&handles, 0))
		if err := in.Ask(a, 1, 7); err != nil {
			t.Fatal(err)
		}
		l.run()
		if len(handles) != 1 || isGone(handles[0]) {
			t.Fatalf("%s: it has gone already", name)
		}
		leave(in)
		if !isGone(handles[0]) || !errors.Is(handles[0].Send("late"), ErrUnknown) || l.table.Get(a.UID()).replies.Load() != 0 {
			t.Errorf("%s: it does not know", name)
		}
	}
}

// There are as many handles as the limit says; a used one does not count.
func TestLimitOfReplies(t *testing.T) {
	l := newStage(t, nil)
	var handles []*Reply
	var refused error
	a := l.spawn("a", Func(func(ctx *Context, _ Message) error {
		r, err := ctx.Later()
		if err != nil {
			refused = err
			return ctx.ReplyError("busy")
		}
		handles = append(handles, r)
		return nil
	}).WithLimits(Limits{Replies: 2}))
	var asked []*Pending
	for range 3 {
		asked = append(asked, must(l.Request(a, 1))(t))
	}
	l.run()
	if len(handles) != 2 || !errors.Is(refused, ErrLimit) {
		t.Fatalf("%d handles, %v", len(handles), refused)
	}
	if err := handles[0].Send("yes"); err != nil {
		t.Fatal(err)
	}
	asked = append(asked, must(l.Request(a, 1))(t))
	l.run()
	if len(handles) != 3 {
		t.Error("a used handle counts")
	}
	for _, p := range asked {
		p.Cancel()
	}
	// Nobody asks: there is nothing to answer.
	refused = nil
	if err := l.Tell(a, 1); err != nil {
		t.Fatal(err)
	}
	l.run()
	if !errors.Is(refused, ErrNoQuestion) {
		t.Error(refused)
	}
}

// Handles, their askers and their giving up race without harm.
func TestRepliesRace(t *testing.T) {
	s := newSystem(t, NewConfig("replies").WithWorkers(4))
	var answered atomic.Int64
	service := must(s.Spawn("service", Func(func(ctx *Context, _ Message) error {
		r, err := ctx.Later()
		if err != nil {
			return err
		}
		go func() {
			if r.Send("yes") == nil {
				answered.Add(1)
			}
		}()
		return nil
	})))(t)
	var group sync.WaitGroup
	var got atomic.Int64
	for i := range 8 {
		group.Go(func() {
			for range 200 {
				p, err := s.Request(service, 1)
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					p.Abandon()
				}
				if m, ok := <-p.Answer(); ok {
					if m.Err() != nil {
						t.Error(m.Err())
					}
					got.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got.Load() < 800 {
		t.Errorf("%d answers", got.Load())
	}
	a := s.table.Get(service.UID())
	waitFor(t, "the handles", func() bool { return a.replies.Load() == 0 })
}
