package host

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// hoarder keeps questions and answers none.
type hoarder struct{}

func (k *hoarder) Receive(ctx *Context, m Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	switch text {
	case "crash":
		return errors.New("oh")
	case "stop":
		ctx.Stop(ctx.Self())
		return nil
	case "answer":
		return ctx.Reply("now")
	}
	return nil
}

func ended(t *testing.T, p *Pending) error {
	t.Helper()
	select {
	case m := <-p.Answer():
		return m.Err()
	default:
		t.Fatal("it still waits")
		return nil
	}
}

// A bound ask ends with the incarnation that has taken it: of a failure with the id that its
// report has, else with ErrEnded. One that is not bound waits, and so does one that is in the
// mailbox still.
func TestBoundAsks(t *testing.T) {
	for name, p := range map[string]func(*testing.T) Props{
		"native": func(*testing.T) Props { return Native(func() Actor { return &hoarder{} }) },
	} {
		t.Run(name, func(t *testing.T) {
			sys, _ := manual(t, nil)
			sub := sys.Subscribe(16, func(e *Event) bool { return e.Kind == EventFailed })
			ref := must(sys.Spawn("k", p(t)))(t)
			bound := must(sys.Request(ref, Bound{Value: "keep"}))(t)
			answered := must(sys.Request(ref, Bound{Value: "answer"}))(t)
			free := must(sys.Request(ref, "keep"))(t)
			sys.RunUntilIdle(1000)
			crash := must(sys.Request(ref, Bound{Value: "crash"}))(t)
			later := must(sys.Request(ref, Bound{Value: "keep"}))(t)
			sys.RunUntilIdle(1000)
			e := <-sub.C()
			if e.ID == "" || len(e.ID) != 16 {
				t.Fatalf("the report has the id %q", e.ID)
			}
			for what, err := range map[string]error{"taken": ended(t, bound), "the one that crashes": ended(t, crash)} {
				var f *TurnError
				if !errors.As(err, &f) || f.ID != e.ID {
					t.Errorf("%s: %v, the report is %s", what, err, e.ID)
				}
			}
			if err := ended(t, answered); err != nil {
				t.Error(err)
			}
			for what, p := range map[string]*Pending{"not bound": free, "of the next incarnation": later} {
				select {
				case m := <-p.Answer():
					t.Errorf("%s: %v", what, m.Err())
				default:
				}
			}
			if err := sys.Tell(ref, "stop"); err != nil {
				t.Fatal(err)
			}
			sys.RunUntilIdle(1000)
			if err := ended(t, later); !errors.Is(err, ErrEnded) || !errors.Is(err, ErrStopped) {
				t.Error(err)
			}
			free.Cancel()
		})
	}
}

// A question that is not bound is not over with the incarnation that has taken it, nor with the actor: a handle may
// answer it afterwards, and so may the actor that it was forwarded to.
func TestAnswersAfterTheEnd(t *testing.T) {
	sys, _ := manual(t, nil)
	var to Ref
	var kept []*Reply
	act := Func(func(ctx *Context, m Message) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		switch {
		case text == "crash":
			return errCrash
		case text == "stop":
			ctx.Stop(ctx.Self())
		case text == "hand" && ctx.Self() != to:
			return ctx.Forward(to)
		default:
			r, err := ctx.Later()
			kept = append(kept, r)
			return err
		}
		return nil
	})
	to = must(sys.Spawn("to", act))(t)
	ref := must(sys.Spawn("k", act))(t)
	for _, end := range []string{"crash", "stop"} {
		kept = nil
		asked := []*Pending{must(sys.Request(ref, "keep"))(t), must(sys.Request(ref, "hand"))(t)}
		sys.RunUntilIdle(1000)
		must(0, sys.Tell(ref, end))(t)
		sys.RunUntilIdle(1000)
		for i, r := range kept {
			if len(asked[i].Answer()) != 0 {
				t.Fatalf("%s: the question %d is over", end, i)
			}
			must(0, r.Send("late"))(t)
		}
		for i, p := range asked {
			if err := ended(t, p); err != nil {
				t.Errorf("%s: the question %d ends with %v", end, i, err)
			}
		}
	}
}

// A resume loses no state, so what was taken may still be answered.
func TestBoundAsksAndResume(t *testing.T) {
	sys, _ := manual(t, func(c Config) Config { return c.WithGuardian(supervision.Default().WithOtherwise(supervision.Resume)) })
	ref := must(sys.Spawn("k", Native(func() Actor { return &hoarder{} })))(t)
	p := must(sys.Request(ref, Bound{Value: "keep"}))(t)
	if err := sys.Tell(ref, "crash"); err != nil {
		t.Fatal(err)
	}
	sys.RunUntilIdle(1000)
	select {
	case m := <-p.Answer():
		t.Error(m.Err())
	default:
	}
	p.Cancel()
}

// What an actor has taken is forgotten when it was answered, however much that was.
func TestBoundAsksAreForgotten(t *testing.T) {
	sys, _ := manual(t, nil)
	ref := must(sys.Spawn("k", Native(func() Actor { return &hoarder{} })))(t)
	open := must(sys.Request(ref, Bound{Value: "keep"}))(t)
	for range 320 {
		p := must(sys.Request(ref, Bound{Value: "keep"}))(t)
		sys.RunUntilIdle(1000)
		p.Cancel()
	}
	if n := len(sys.table.Get(ref.UID()).taken.End()); n > 32 {
		t.Errorf("%d are noted", n)
	}
	open.Cancel()
}

// Reports have ids of their own, which say nothing about the actor.
func TestReportIDs(t *testing.T) {
	sys, _ := manual(t, nil)
	seen := map[string]bool{}
	for of := range 20 {
		for turn := range uint64(20) {
			seen[sys.reportID(1, uint64(of)*1000+turn)] = true
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d ids of 400 reports", len(seen))
	}
	other, _ := manual(t, nil)
	if other.reportID(1, 1) == sys.reportID(1, 1) && *other.secret != *sys.secret {
		t.Error("the ids of two systems are the same")
	}
}

// A question that waits in the stash was not taken: who takes it out of there takes it, and one
// that is delivered again after a crash is bound still.
func TestBoundAsksLater(t *testing.T) {
	for name, c := range map[string]struct {
		crashed CrashedMessage
		receive func(*Context, string) error
	}{
		"stashed": {CrashedMessage{}, func(ctx *Context, text string) error {
			switch {
			case text == "open":
				ctx.Unstash()
			case text == "crash":
				return errors.New("oh")
			case ctx.Head().Incarnation() == 0:
				return ctx.Stash()
			}
			return nil
		}},
		"delivered again": {RedeliverCrashed(1), func(ctx *Context, text string) error {
			if text == "crash" || ctx.Head().Incarnation() == 0 {
				return errors.New("oh")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sys, _ := manual(t, nil)
			sub := sys.Subscribe(16, func(e *Event) bool { return e.Kind == EventFailed })
			ref := must(sys.Spawn("k", Func(func(ctx *Context, m Message) error {
				var text string
				if err := m.Decode(&text); err != nil {
					return err
				}
				return c.receive(ctx, text)
			}).WithCrashedMessage(c.crashed)))(t)
			p := must(sys.Request(ref, Bound{Value: "question"}))(t)
			sys.RunUntilIdle(1000)
			if name == "stashed" { // the stash goes back to the mailbox
				_ = sys.Tell(ref, "crash")
				sys.RunUntilIdle(1000)
			}
			select {
			case m := <-p.Answer():
				t.Fatalf("it was not taken yet: %v", m.Err())
			default:
			}
			for len(sub.C()) > 0 {
				<-sub.C()
			}
			_ = sys.Tell(ref, "crash")
			sys.RunUntilIdle(1000)
			e := <-sub.C()
			var f *TurnError
			if err := ended(t, p); !errors.As(err, &f) || f.ID != e.ID {
				t.Errorf("%v, the report is %s", err, e.ID)
			}
		})
	}
}

func TestBoundAsksInAGuestsStash(t *testing.T) { everyManner(t, rowBoundAsksInAGuestsStash) }

func rowBoundAsksInAGuestsStash(t *testing.T) {
	l := newStage(t, nil)
	g := l.spawn("guest", puppet(t))
	ask := func(records ...[]byte) *Pending {
		p := must(l.Request(g, Bound{Value: script(records...)}))(t)
		l.run()
		return p
	}
	stashed, taken := ask(now(abi.AppendStash(nil))), ask(now(toProbe("taken")))
	l.say(g, script(trap()))
	l.run()
	if err := ended(t, taken); !errors.As(err, new(*TurnError)) {
		t.Error(err)
	}
	select {
	case m := <-stashed.Answer():
		t.Errorf("it is in the stash: %v", m.Err())
	default:
	}
	l.Stop(g)
	l.run()
	if err := ended(t, stashed); !errors.Is(err, ErrStopped) || errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}
