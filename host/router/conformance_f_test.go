package router_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/supervision"
)

// Rows F of docs/conformance.md.

// F01: a router is a value: it is never changed, and works in an actor and outside.
func TestF01_RouterValue(t *testing.T) {
	each(t, func(w *world) {
		var refs []host.Ref
		for _, p := range w.crowd(3) {
			refs = append(refs, must(w.Lookup(p))(t))
		}
		two := router.New(w.System, router.RoundRobin(0), refs[:2]...)
		three := two.With(refs[2])
		if len(two.Routees()) != 2 || len(three.Routees()) != 3 || len(three.Without(refs[0]).Routees()) != 2 {
			t.Error("a router was changed")
		}
		for range 3 {
			if err := three.Tell("a"); err != nil {
				t.Error(err)
			}
		}
		w.run()
		w.wants("w0:a", "w1:a", "w2:a")
		if err := three.Tell(router.ToAll("b")); err != nil {
			t.Error(err)
		}
		w.run()
		w.wants("w0:b", "w1:b", "w2:b")
		if err := router.New(w.System, router.RoundRobin(0)).Tell("c"); !errors.Is(err, router.ErrNoRoutee) {
			t.Error(err)
		}
		inside := must(w.Spawn("inside", host.Func(func(ctx *host.Context, m host.Message) error { return three.Forward(ctx, m) })))(t)
		w.asks(inside, "who", "w0 3", "w1 3", "w2 3")
		w.tell(inside, router.ToAll("d"))
		w.wants("w0:d", "w1:d", "w2:d")
	})
}

// F02: a pool makes its routees; one that has stopped is not replaced; with the last one the
// pool stops.
func TestF02_Pool(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.RoundRobin))
		w.asks(r, "who", "0 1", "1 1", "2 1")
		w.tell(r, "stop")
		if n := w.children(r); n != 2 {
			t.Errorf("%d children", n)
		}
		w.asks(r, "who", "2 2", "1 2", "2 3")
		w.tell(r, "stop", "stop")
		if _, err := w.View().Info(r); err == nil {
			t.Error("the pool lives on without routees")
		}
	})
}

// F03: a group sends to paths, and neither makes nor watches anybody.
func TestF03_Group(t *testing.T) {
	each(t, func(w *world) {
		paths := w.crowd(2)
		r := w.start(router.Group(router.RoundRobin, append(paths, "/user/late")...))
		w.asks(r, "who", "w0 1", "w1 1", "w0 2")
		if w.children(r) != 0 {
			t.Error("the group has children")
		}
		// A path names whoever is there when a message is sent.
		w.Stop(must(w.Lookup(paths[0]))(t))
		w.run()
		w.asks(r, "who", "w1 2", "w1 3")
		w.crowd(1) // another w0
		must(w.Spawn("late", w.worker))(t)
		w.run()
		if err := w.Tell(r, router.ToAll("x")); err != nil {
			t.Error(err)
		}
		w.run()
		w.wants("w0:x", "w1:x", "late:x")
		if must(w.View().Info(r))(t).Restarts != 0 {
			t.Error("the group was restarted")
		}
	})
}

// F05: the sender is preserved; answers do not come by the router.
func TestF05_Sender(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(2, w.worker, router.RoundRobin))
		before := must(w.View().Info(r))(t).Turns
		w.tell(r, "who")
		w.wants("reply 0 1")
		if n := must(w.View().Info(r))(t).Turns; n != before+1 {
			t.Errorf("the router has had %d turns", n-before)
		}
	})
}

// F06: ours differs: a routee that fails is restarted and no other is touched. Escalation is by
// choice; then the router fails, and with it all routees are restarted, as many as there were.
func TestF06_Supervision(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.RoundRobin))
		w.tell(r, "a", "crash", "b")
		w.wants("0:a", "2:b")
		w.asks(r, "who", "0 2", "1 1", "2 2")
		if got := w.events(host.EventRestarted); !slices.Equal(got, []string{"1"}) {
			t.Errorf("restarted: %q", got)
		}
	})
	each(t, func(w *world) {
		escalate := supervision.Default().WithOtherwise(supervision.Escalate)
		r := w.start(router.Pool(3, w.worker, router.RoundRobin).WithSupervision(escalate))
		if got := w.ask(r, headed("adjust", 1)); got != "done" {
			t.Fatal(got)
		}
		w.tell(r, "a", "crash")
		w.heard = nil
		if n := w.children(r); n != 4 {
			t.Errorf("%d routees after the restart", n)
		}
		for range 4 {
			if got := w.ask(r, "who"); !strings.HasSuffix(got, " 1") {
				t.Errorf("%q was not restarted", got)
			}
		}
		if i := must(w.View().Info(r))(t); i.Restarts != 1 {
			t.Errorf("%d restarts of the router", i.Restarts)
		}
	})
}

func headed(op string, v any) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{router.Header: op}}
}

// F07
func TestF07_RoundRobin(t *testing.T) {
	each(t, func(w *world) {
		w.asks(w.start(router.Pool(3, w.worker, router.RoundRobin)), "who", "0 1", "1 1", "2 1", "0 2", "1 2", "2 2", "0 3")
		w.StopNow(must(w.Lookup("/user/router"))(t))
		w.run()
		w.asks(w.start(router.Group(router.RoundRobin, w.crowd(2)...)), "who", "w0 1", "w1 1", "w0 2")
	})
}

// F08: uniform, and with the same seed the same.
func TestF08_Random(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(4, w.worker, router.Random))
		for range 400 {
			w.post(r, "x")
		}
		w.run()
		count := map[string]int{}
		for _, x := range w.heard {
			count[x]++
		}
		for name, n := range count {
			if n < 70 || n > 130 {
				t.Errorf("%s %d of 400 times", name, n)
			}
		}
		if len(count) != 4 {
			t.Errorf("%v", count)
		}
	})
	picks := func(seed uint64) (all []int) {
		l := router.Random(seed)
		for range 50 {
			all, _ = l.Pick(all, nil, make([]router.Routee, 7))
		}
		return all
	}
	if !slices.Equal(picks(5), picks(5)) || slices.Equal(picks(5), picks(6)) {
		t.Error("the seed does not decide")
	}
}

// F11
func TestF11_Broadcast(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.Broadcast))
		w.tell(r, "a", "b")
		slices.Sort(w.heard)
		w.wants("0:a", "0:b", "1:a", "1:b", "2:a", "2:b")
		if got := w.ask(r, "who"); !strings.HasSuffix(got, " 3") {
			t.Error(got)
		}
	})
	each(t, func(w *world) {
		w.tell(w.start(router.Group(router.Broadcast, w.crowd(2)...)), "a")
		w.wants("w0:a", "w1:a")
	})
}

// F12: all are asked, the first answer is the router's; an error is not an answer while another
// may still come; after within an error; what comes later is dropped.
func TestF12_ScatterGatherFirst(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.ScatterGather(0)))
		for _, n := range []string{" 1", " 2"} {
			if got := w.ask(r, "who"); !strings.HasSuffix(got, n) {
				t.Errorf("%q", got)
			}
		}
		if _, dead := w.DeadLetters(); dead != 0 {
			t.Errorf("%d dead letters: late answers are dropped", dead)
		}
		w.asks(r, "error", "router: all of 3 routees have failed, the first with: no")
		if got := w.ask(r, "crash"); !strings.HasPrefix(got, "router: all of 3 routees have failed, the first with: ") || !strings.Contains(got, "crashed") {
			t.Errorf("%q", got)
		}
		p := must(w.Request(r, "mute"))(t)
		w.run()
		w.pass(router.DefaultWithin - time.Millisecond)
		if len(p.Answer()) != 0 {
			t.Error("answered early")
		}
		w.pass(2 * time.Millisecond)
		wantAnswer(t, p, "router: none of 3 routees has answered within 5s")
		w.tell(r, "x") // no question: to all
		w.wants("0:x", "1:x", "2:x")
	})
	each(t, func(w *world) { // one that fails does not count while others may answer
		paths := w.crowd(2)
		mute := must(w.Spawn("mute", host.Func(func(ctx *host.Context, _ host.Message) error { return ctx.ReplyError("never") })))(t)
		r := w.start(router.Group(router.ScatterGather(time.Second), append([]string{mute.Path()}, paths...)...))
		if got := w.ask(r, "who"); !strings.HasSuffix(got, " 1") {
			t.Errorf("%q", got)
		}
		p := must(w.Request(r, "slow"))(t)
		w.run()
		w.pass(100 * time.Millisecond)
		wantAnswer(t, p, "slow")
	})
}

// The time of a question goes with it through logics that ask themselves: what its asker waits for no
// longer routees do not begin with, and the errors say that time. A lasting one is done all the same.
func TestDeadlinesThroughRoutersThatAsk(t *testing.T) {
	for name, logic := range map[string]router.Make{"scatter-gather": router.ScatterGather(time.Second), "tail-chopping": router.TailChopping(time.Second, 10*time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			each(t, func(w *world) {
				r := w.start(router.Pool(1, w.worker, logic))
				routee := must(w.Lookup("/user/router/0"))(t)
				ask := func(v any, time time.Duration) {
					asker := must(w.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
						if m.Kind == abi.KindMessage {
							return ctx.Ask(r, v, 1, time)
						}
						return nil
					})))(t)
					must(0, w.Tell(asker, true))(t)
					w.run()
				}
				must(0, w.Operate().Pause(routee, false))(t)
				w.run()
				ask("short", 100*time.Millisecond)
				ask("long", time.Hour) // the router waits for a second
				ask(host.Marked{Value: "lasting", Marks: host.Lasting}, 100*time.Millisecond)
				w.pass(200 * time.Millisecond)
				ask("in time", 100*time.Millisecond)
				must(0, w.Operate().Unpause(routee, false))(t)
				w.run()
				w.wants("0:long", "0:lasting", "0:in time")
				must(0, w.Operate().Pause(routee, false))(t)
				w.run()
				ask("long", time.Hour)
				ask(host.Marked{Value: "lasting", Marks: host.Lasting}, time.Hour)
				w.pass(1100 * time.Millisecond)
				must(0, w.Operate().Unpause(routee, false))(t)
				w.run()
				w.wants("0:lasting")
			})
		})
	}
}

func wantAnswer(t *testing.T, p *host.Pending, want string) {
	t.Helper()
	select {
	case m := <-p.Answer():
		if got := answerOf(m); got != want {
			t.Errorf("answered %q, want %q", got, want)
		}
	default:
		t.Errorf("no answer, want %q", want)
	}
}

// F13: one after the other, after the interval or when one has failed.
func TestF13_TailChopping(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.TailChopping(time.Second, 20*time.Millisecond)))
		starts := 0
		turns := func() (n int) {
			for _, k := range []string{"0", "1", "2"} {
				n += int(must(w.View().Info(must(w.Lookup("/user/router/" + k))(t)))(t).Turns)
			}
			return n - starts
		}
		starts = turns() // the starts of guests are turns
		if got := w.ask(r, "who"); !strings.HasSuffix(got, " 1") || turns() != 1 {
			t.Errorf("%q, %d turns", got, turns())
		}
		p := must(w.Request(r, "mute"))(t)
		w.run()
		for want := 2; want <= 4; want++ {
			if turns() != want {
				t.Errorf("%d turns, want %d", turns(), want)
			}
			w.pass(20 * time.Millisecond)
		}
		if turns() != 4 {
			t.Error("one was asked twice")
		}
		w.pass(time.Second)
		wantAnswer(t, p, "router: none of 3 routees has answered within 1s")
		// The second is asked after the interval, and the first is quicker all the same.
		p = must(w.Request(r, "slow"))(t)
		w.run()
		w.pass(50 * time.Millisecond)
		w.pass(50 * time.Millisecond)
		wantAnswer(t, p, "slow")
		if got := w.ask(r, "error"); got != "router: all of 3 routees have failed, the first with: no" {
			t.Error(got)
		}
	})
}

// F14: by header, by function, by field; virtual nodes.
func TestF14_ConsistentHashing(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(4, w.worker, router.ConsistentHashing(router.Hashing{})))
		first := map[string]string{}
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			name, _, _ := strings.Cut(w.ask(r, router.Keyed(key, "who")), " ")
			first[key] = name
		}
		for key, want := range first {
			if name, _, _ := strings.Cut(w.ask(r, router.Keyed(key, "who")), " "); name != want {
				t.Errorf("%s goes to %s, then to %s", key, want, name)
			}
		}
		w.asks(r, "who", router.ErrNoKey.Error())
	})
	w := inGo(t)
	byText := router.Hashing{Key: func(m *host.Message) []byte {
		var text string
		if m.Decode(&text) != nil {
			return nil
		}
		return []byte(text)
	}}
	r := w.start(router.Pool(4, w.worker, router.ConsistentHashing(byText)))
	w.tell(r, "a", "a", "b", "b")
	if len(w.heard) != 4 || w.heard[0] != w.heard[1] || w.heard[2] != w.heard[3] {
		t.Errorf("%q", w.heard)
	}
	w.asks(r, 7, router.ErrNoKey.Error())
	// The function goes first.
	if a, b := w.ask(r, router.Keyed("1", "who")), w.ask(r, router.Keyed("2", "who")); a[0] != b[0] {
		t.Errorf("%s, %s", a, b)
	}
}

// F16: logics of one's own; the sample of the source picks three at a time.
func TestF16_CustomLogic(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(7, w.worker, func(uint64) router.Logic { return &redundancy{n: 3} }))
		for _, want := range [][]string{{"0:x", "1:x", "2:x"}, {"3:x", "4:x", "5:x"}, {"6:x", "0:x", "1:x"}} {
			w.tell(r, "x")
			w.wants(want...)
		}
	})
}

type redundancy struct{ n, next int }

func (r *redundancy) Pick(picked []int, _ *host.Message, routees []router.Routee) ([]int, error) {
	for range r.n {
		picked = append(picked, r.next%len(routees))
		r.next++
	}
	return picked, nil
}

// F17: to all, whatever the logic, and to each once.
func TestF17_BroadcastEnvelope(t *testing.T) {
	for _, logic := range []router.Make{router.RoundRobin, router.Random, router.SmallestMailbox, router.Broadcast, router.Balancing, router.ConsistentHashing(router.Hashing{}), router.ScatterGather(0), router.TailChopping(0, 0)} {
		each(t, func(w *world) {
			r := w.start(router.Pool(3, w.worker, logic))
			if err := w.Tell(r, router.ToAll("x")); err != nil {
				t.Error(err)
			}
			w.run()
			slices.Sort(w.heard)
			w.wants("0:x", "1:x", "2:x")
		})
	}
	// The envelope is for one router: a router that is a routee gets the message without it.
	w := inGo(t)
	inner := must(w.Spawn("inner", router.Pool(2, w.worker, router.RoundRobin).Props()))(t)
	outer := must(w.Spawn("outer", router.Group(router.RoundRobin, inner.Path()).Props()))(t)
	w.asks(outer, router.ToAll("who"), "0 1", "1 1", "0 2")
}

// F18: a poison pill is for the router, whose children stop after their turn; sent to all, they
// handle what waits first, and then the router stops.
func TestF18_PoisonPill(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(2, w.worker, router.RoundRobin))
		if err := w.PoisonPill(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		if got := w.events(host.EventStopped); len(got) != 3 || got[2] != "router" {
			t.Errorf("stopped: %q", got)
		}
	})
	each(t, func(w *world) {
		r := w.start(router.Pool(2, w.worker, router.RoundRobin))
		w.post(r, "a", "b", "c")
		if err := w.Tell(r, headed("stop", nil)); err != nil {
			t.Fatal(err)
		}
		w.run()
		slices.Sort(w.heard)
		w.wants("0:a", "0:c", "1:b")
		if got := w.events(host.EventStopped); len(got) != 3 || got[2] != "router" {
			t.Errorf("stopped: %q", got)
		}
	})
	each(t, func(w *world) { // those of a group are somebody else's
		paths := w.crowd(2)
		r := w.start(router.Group(router.RoundRobin, paths...))
		if err := w.PoisonPill(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		for _, p := range paths {
			must(w.Lookup(p))(t)
		}
	})
}

// F19: the router fails, and its supervisor decides about it and its children; sent to all, each
// of them fails, and the router decides.
func TestF19_Kill(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(2, w.worker, router.RoundRobin).WithSupervision(supervision.Default().WithOtherwise(supervision.Restart)))
		w.asks(r, "who", "0 1", "1 1")
		if err := w.Operate().Kill(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		if got := w.events(host.EventFailed); !slices.Equal(got, []string{"router"}) {
			t.Errorf("failed: %q", got)
		}
		w.asks(r, "who", "0 1", "1 1")
		w.asks(r, headed("kill", nil), "done")
		if got := w.events(host.EventFailed); len(got) != 2 || slices.Contains(got, "router") {
			t.Errorf("failed: %q", got)
		}
		w.asks(r, "who", "0 1", "1 1")
	})
	each(t, func(w *world) {
		paths := w.crowd(1)
		r := w.start(router.Group(router.RoundRobin, paths...))
		w.asks(r, "who", "w0 1")
		if err := w.Operate().Kill(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.asks(r, "who", "w0 2")
	})
}

// F20: what a router is told is done in its order.
func TestF20_Management(t *testing.T) {
	each(t, func(w *world) {
		other := w.crowd(1)[0]
		r := w.start(router.Pool(2, w.worker, router.RoundRobin))
		w.asks(r, headed("routees", nil), "/user/router/0 /user/router/1")
		w.asks(r, headed("add", other), "done")
		w.asks(r, headed("add", other), "router: "+other+" is a routee already")
		w.asks(r, headed("routees", nil), "/user/router/0 /user/router/1 "+other)
		w.asks(r, "who", "0 1", "1 1", "w0 1")
		w.asks(r, headed("adjust", 2), "done")
		w.asks(r, headed("routees", nil), "/user/router/0 /user/router/1 "+other+" /user/router/2 /user/router/3")
		w.asks(r, headed("adjust", -3), "done")
		w.asks(r, headed("routees", nil), "/user/router/0 "+other)
		w.asks(r, headed("remove", other), "done")
		w.asks(r, headed("remove", other), "router: "+other+" is not a routee")
		w.asks(r, headed("remove", "/user/router/0"), "done")
		if _, err := w.View().Info(r); err == nil {
			t.Error("the pool lives on without routees")
		}
		must(w.Lookup(other))(t)
	})
	// Those that leave handle what waits for them, and answer.
	each(t, func(w *world) {
		r := w.start(router.Pool(2, w.worker, router.RoundRobin))
		w.post(r, "a", "b", "c", "d")
		must(w.Request(r, headed("adjust", -1)))(t)
		w.post(r, "e")
		w.run()
		slices.Sort(w.heard)
		w.wants("0:a", "0:c", "0:e", "1:b", "1:d")
	})
}

// F24: ours differs: the logic runs in the router's own turn, between the turns of guests; it
// costs no turn of one.
func TestF24_NoGuestsTurn(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(2, w.worker, router.RoundRobin))
		before := w.View().Stats().Turns
		w.asks(r, "who", "0 1")
		if n := w.View().Stats().Turns - before; n != 2 {
			t.Errorf("%d turns", n)
		}
		if n := must(w.View().Info(r))(t); n.Fuel != 0 || n.Type != "router" {
			t.Errorf("%+v", n)
		}
	})
}
