package router_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/supervision"
)

// F12: every routee is asked once for each question, and the first answer wins, wherever its routee stands in the
// list; an error is no answer while others may come, and what comes later goes nowhere.
func TestF12_TheFirstAnswerWins(t *testing.T) {
	w := inGo(t)
	replies := map[string]*host.Reply{}
	asked := map[string]int{}
	var paths []string
	for _, name := range []string{"a", "b", "c"} {
		ref := must(w.Spawn(name, host.Func(func(ctx *host.Context, _ host.Message) (err error) {
			asked[ctx.Self().Name()]++
			replies[ctx.Self().Name()], err = ctx.Later()
			return err
		})))(t)
		paths = append(paths, ref.Path())
	}
	r := w.start(router.Group(router.ScatterGather(time.Minute), paths...))
	for n := range 3 {
		p := must(w.Request(r, "who"))(t)
		w.run()
		for _, name := range []string{"a", "b", "c"} {
			if asked[name] != n+1 {
				t.Errorf("question %d: %s was asked %d times", n+1, name, asked[name])
			}
		}
		must(0, replies["c"].Fail("no"))(t)
		w.run()
		if len(p.Answer()) != 0 {
			t.Fatal("an error is the answer")
		}
		must(0, replies["b"].Send("of b"))(t)
		w.run()
		must(0, replies["a"].Send("of a"))(t)
		w.run()
		if m := <-p.Answer(); answerOf(m) != "of b" {
			t.Errorf("question %d: %q", n+1, answerOf(m))
		}
	}
	if _, dead := w.DeadLetters(); dead != 0 {
		t.Errorf("%d dead letters", dead)
	}
}

// A question counts once among those under way, and for its sender, until it is answered: the bound is met
// exactly, and afterwards there is as much room as before.
func TestQuestionsCountOnce(t *testing.T) {
	w := inGo(t)
	for name, logic := range asking() {
		t.Run(name, func(t *testing.T) {
			paths := []string{must(w.Spawn(name+"-mute", host.Func(func(*host.Context, host.Message) error { return nil })))(t).Path()}
			r := must(w.Spawn(name, router.Group(logic, paths...).WithQuestions(8, 1<<20).Props()))(t)
			w.run()
			for round := range 2 {
				var open []*host.Pending
				for range 8 {
					p := must(w.Request(r, "who"))(t)
					w.run()
					if len(p.Answer()) != 0 {
						t.Errorf("round %d: the question %d is answered %q", round, len(open)+1, answerOf(<-p.Answer()))
					}
					open = append(open, p)
				}
				if got := w.ask(r, "who"); !strings.HasPrefix(got, router.ErrBusy.Error()) {
					t.Errorf("round %d: one more than the bound is answered %q", round, got)
				}
				w.pass(2 * time.Second)
				for _, p := range open {
					<-p.Answer()
				}
			}
		})
	}
}

// last picks the routee that is the last one of the list.
type last struct{}

func (last) Pick(picked []int, _ *host.Message, routees []router.Routee) ([]int, error) {
	return append(picked, len(routees)-1), nil
}

// F23: the message that makes a pool grow is handled by the routees that were there; the next one finds the
// new one.
func TestF23_TheMessageThatAsksIsNotHelped(t *testing.T) {
	w := inGo(t)
	d := router.DefaultResizer()
	d.Upper, d.Every, d.RampUp, d.Pressure, d.BackoffRate = 2, 1, 1, 2, 0
	r := w.start(router.Pool(1, w.worker, func(uint64) router.Logic { return last{} }).WithResizer(d))
	routee := must(w.Lookup("/user/router/0"))(t)
	for i := range 40 {
		w.post(routee, "waits"+strconv.Itoa(i))
	}
	w.post(r, "first")
	w.run()
	w.post(r, "second")
	w.run()
	for _, h := range w.heard {
		if h == "1:first" {
			t.Error("the message that has made the pool grow went to the new routee")
		}
	}
	if n := w.children(r); n != 2 {
		t.Fatalf("%d routees", n)
	}
	if got := w.heard[len(w.heard)-1]; got != "1:second" {
		t.Errorf("the next message: %q", got)
	}
}

// A pool whose children outlive its restart has as many routees afterwards as before: not those, too, that were
// removed and have not ended.
func TestARestartedPoolAdoptsNoMoreThanItHad(t *testing.T) {
	w := inGo(t)
	must(w.Spawn("p", host.Func(func(*host.Context, host.Message) error { return nil }).
		WithSupervision(supervision.Default().WithOtherwise(supervision.Restart).WithKeepChildren(true)).
		WithChildren(host.Child{Name: "r", Props: router.Pool(3, w.worker, router.RoundRobin).Props()})))(t)
	w.run()
	r := must(w.Lookup("/user/p/r"))(t)
	for i := range 3 {
		must(0, w.Operate().Pause(must(w.Lookup("/user/p/r/"+strconv.Itoa(i)))(t), false))(t)
	}
	w.run()
	w.asks(r, order("adjust", -1), "done")
	must(0, w.Operate().Restart(r))(t)
	w.run()
	if n := w.children(r); n != 3 {
		t.Fatalf("%d children, one of which is about to end", n)
	}
	if got := strings.Fields(w.ask(r, order("routees", nil))); len(got) != 2 {
		t.Errorf("the routees are %q", got)
	}
}
