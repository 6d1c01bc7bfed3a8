package router_test

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
)

// logics that ask themselves.
func asking() map[string]router.Make {
	return map[string]router.Make{"scatter-gather": router.ScatterGather(time.Second), "tail-chopping": router.TailChopping(time.Second, 10*time.Millisecond)}
}

func (w *world) stop(paths ...string) {
	w.t.Helper()
	for _, p := range paths {
		w.Stop(must(w.Lookup(p))(w.t))
	}
	w.run()
}

// Routees that have ended leave a group that asks: nobody asks them, they are no routees any more, and who is
// at the path again is one.
func TestEndedRouteesLeaveGroupsThatAsk(t *testing.T) {
	for name, logic := range asking() {
		t.Run(name, func(t *testing.T) {
			each(t, func(w *world) {
				paths := w.crowd(3)
				r := w.start(router.Group(logic, paths...))
				w.stop(paths[:2]...)
				w.asks(r, "who", "w2 1")
				if got := w.ask(r, "error"); got != "router: all of 1 routees have failed, the first with: no" {
					t.Errorf("%q: those that have ended were asked", got)
				}
				w.asks(r, order("routees", nil), paths[2])
				w.stop(paths[2])
				if _, dead := w.DeadLetters(); dead != 0 {
					t.Errorf("%d dead letters", dead)
				}
				w.asks(r, "who", router.ErrNoRoutee.Error(), router.ErrNoRoutee.Error())
				w.asks(r, order("routees", nil), "")
				if letters, _ := w.DeadLetters(); len(letters) != 2 || letters[0].Reason != host.DeadRefused {
					t.Errorf("%+v", letters)
				}
				must(w.Spawn("w1", w.worker))(t)
				w.run()
				w.asks(r, "who", "w1 1")
			})
		})
	}
}

// Nor does a pool ask them, and one that has lost its last stops.
func TestEndedRouteesLeavePoolsThatAsk(t *testing.T) {
	for name, logic := range asking() {
		t.Run(name, func(t *testing.T) {
			each(t, func(w *world) {
				r := w.start(router.Pool(3, w.worker, logic))
				w.stop("/user/router/0", "/user/router/1")
				w.asks(r, "who", "2 1")
				if got := w.ask(r, "error"); got != "router: all of 1 routees have failed, the first with: no" {
					t.Errorf("%q", got)
				}
				w.asks(r, order("routees", nil), must(w.Lookup("/user/router/2"))(t).Path())
				w.stop("/user/router/2")
				if _, err := w.View().Info(r); err == nil {
					t.Error("it goes on without routees")
				}
				if _, dead := w.DeadLetters(); dead != 0 {
					t.Errorf("%d dead letters", dead)
				}
			})
		})
	}
}

// What ends while a question goes from one to the next is passed over, and all others are asked once.
func TestRouteesEndDuringAQuestion(t *testing.T) {
	each(t, func(w *world) {
		paths := w.crowd(6)
		r := w.start(router.Group(router.TailChopping(time.Minute, time.Second), paths...))
		p := must(w.Request(r, "mute"))(t)
		w.run()
		turns := map[string]uint64{}
		for _, path := range paths {
			turns[path] = must(w.View().Info(must(w.Lookup(path))(t)))(t).Turns
		}
		least := min(turns[paths[0]], turns[paths[1]]) // of those that were not asked yet; one was
		for ended, i := 0, 0; ended < 3; i++ {
			if turns[paths[i]] == least {
				w.stop(paths[i])
				ended++
			}
		}
		for range 10 {
			w.pass(time.Second)
		}
		w.pass(time.Minute)
		m := <-p.Answer()
		if got := answerOf(m); !strings.HasPrefix(got, "router: none of ") {
			t.Error(got)
		}
		var asked []string
		for _, path := range paths {
			if ref, err := w.Lookup(path); err == nil {
				n := must(w.View().Info(ref))(t).Turns
				asked = append(asked, fmt.Sprint(path, " ", n))
			}
		}
		if len(asked) < 3 {
			t.Fatal(asked)
		}
		_, n, _ := strings.Cut(asked[0], " ")
		for _, a := range asked {
			if !strings.HasSuffix(a, " "+n) {
				t.Errorf("not each was asked once: %q", asked)
			}
		}
	})
}

// No router waits for the parent of a routee that has ended, which is in a turn and has not heard of it.
func TestEndedRouteesOfABusyParent(t *testing.T) {
	logics := asking()
	logics["round-robin"] = router.RoundRobin
	for name, logic := range logics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := must(host.New(host.NewConfig("x").WithWorkers(4)))(t)
			defer s.Close(t.Context())
			begun, release := make(chan struct{}), make(chan struct{})
			defer close(release)
			parent := must(s.Spawn("parent", host.Func(func(ctx *host.Context, m host.Message) error {
				if len(ctx.Children()) > 0 {
					close(begun)
					<-release
					return nil
				}
				_, err := ctx.Spawn("w", host.Func(func(ctx *host.Context, _ host.Message) error { return ctx.Reply("here") }))
				return errors.Join(err, ctx.Reply(nil))
			})))(t)
			must(s.Ask(t.Context(), parent, 1))(t)
			w := must(s.Lookup("/user/parent/w"))(t)
			r := must(s.Spawn("router", router.Group(logic, w.Path()).Props()))(t)
			must(s.Ask(t.Context(), r, "who"))(t)

			if err := s.Tell(parent, 2); err != nil {
				t.Fatal(err)
			}
			<-begun
			ended := must(s.Ended(w))(t)
			s.Stop(w)
			<-ended
			for alive := true; alive; _, alive = s.Load(w) {
				goruntime.Gosched()
			}
			p := must(s.Request(r, "who"))(t)
			select {
			case m := <-p.Answer():
				if got := answerOf(m); got != router.ErrNoRoutee.Error() {
					t.Error(got)
				}
			case <-time.After(5 * time.Second):
				t.Error("it waits for the parent of a routee that has ended")
			}
		})
	}
}

// Groups and pools whose routees come and go by thousands keep nothing of those that have gone.
func TestManyEndedRouteesLeaveNothing(t *testing.T) {
	const rounds, each = 30, 200
	mute := host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Reply(ctx.Self().Name()) })
	for name, logic := range asking() {
		t.Run(name, func(t *testing.T) {
			w := inGo(t)
			var paths []string
			for i := range each {
				paths = append(paths, fmt.Sprint("/user/m", i))
			}
			group := w.start(router.Group(logic, paths...))
			pool := must(w.Spawn("pool", router.Pool(1, w.worker, logic).Props()))(t)
			w.run()
			round := func() {
				var refs []host.Ref
				for i := range each {
					refs = append(refs, must(w.Spawn(fmt.Sprint("m", i), mute))(t))
				}
				w.asks(pool, order("adjust", each), "done")
				if got := w.ask(group, "x"); !strings.HasPrefix(got, "m") {
					t.Fatal(got)
				}
				for _, ref := range refs {
					w.Stop(ref)
				}
				for _, ref := range w.Select("/user/pool/*")[1:] {
					w.Stop(ref)
				}
				w.run()
				w.asks(group, "x", router.ErrNoRoutee.Error())
				if got := w.ask(pool, order("routees", nil)); strings.Count(got, " ") != 0 {
					t.Fatal(got)
				}
			}
			round()
			round()
			held := must(w.View().Held(group))(t).Total() + must(w.View().Held(pool))(t).Total()
			before := heap()
			for range rounds {
				round()
			}
			if now := must(w.View().Held(group))(t).Total() + must(w.View().Held(pool))(t).Total(); now > held {
				t.Errorf("%d bytes are on the accounts, before it were %d", now, held)
			}
			if more := int64(heap()) - int64(before); more > 6<<20 { // the paths of those that have gone lately
				t.Errorf("%d routees that have ended have left %d bytes", rounds*each*2, more)
			}
		})
	}
}

func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
