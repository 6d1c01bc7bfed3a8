package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// awakeGuests counts those that have an instance.
func (l *lab) awakeGuests() (n int) {
	l.table.Each(func(a *actor) {
		if a.hasInstance() {
			n++
		}
	})
	return n
}

// drawnOut runs everything, a run at a time, and says how many guests were awake at most between two
// runs.
func (l *lab) drawnOut() (most int) {
	for l.Step() {
		most = max(most, l.awakeGuests())
	}
	return most
}

func newCrowdedLab(t *testing.T, most int, guardian supervision.Strategy, change func(Config) Config) *lab {
	s, clock := manual(t, func(c Config) Config {
		c = c.WithGuardian(guardian).WithMostAwake(most)
		if change != nil {
			c = change(c)
		}
		return c
	})
	return &lab{s, t, clock, s.Subscribe(eventRoom, nil)}
}

// The bound holds between any two runs, whoever makes guests, and whatever they are busy with: they
// do not wait for their turns to be put away.
func TestMostAwakeIsABound(t *testing.T) {
	const most, many = 8, 300
	quiet := supervision.Default().WithOtherwise(supervision.Suspend)
	for name, begin := range map[string]func(l *lab){
		"an actor in Go makes one after the other": func(l *lab) {
			left := many
			maker := must(l.Spawn("maker", Func(func(ctx *Context, _ Message) error {
				if left--; left < 0 {
					return nil
				}
				ref, err := ctx.Spawn("", puppet(t))
				if err != nil {
					return err
				}
				return ctx.Tell(ref, script(now(sendPath("/user/maker", 1)))) // so the two keep the worker to themselves
			})))(t)
			_ = l.Tell(maker, 1)
		},
		"a guest makes them": func(l *lab) {
			maker := l.spawn("maker", puppet(t).WithLimits(Limits{Children: many}))
			key := childKeyOf(guestOf(l.table.Get(maker.UID())))
			for i := uint64(0); i < many; i += 10 {
				var spawns [][]byte
				for k := i; k < i+10; k++ {
					spawns = append(spawns, abi.AppendSpawn(nil, abi.ChildRef(key, 0, k), "puppet", "", script(), nil))
				}
				_ = l.Tell(maker, script(now(spawns...)))
			}
		},
		"all have much to do": func(l *lab) {
			for range many {
				ref := must(l.Spawn("", puppet(t).WithDispatcher(Dispatcher{}.WithThroughput(1))))(t)
				for range 3 {
					_ = l.Tell(ref, script())
				}
			}
		},
		"all have failed and wait for a decision": func(l *lab) {
			for i := range many {
				ref := must(l.Spawn("", puppet(t)))(t)
				if i%2 == 0 {
					_ = l.Tell(ref, script(trap()))
				} else {
					_ = l.Tell(ref, script(now(abi.AppendFail(nil, "told to"))))
				}
			}
		},
		"none can start": func(l *lab) {
			for range many {
				must(l.Spawn("", puppet(t, onTrap(abi.KindStart))))(t)
			}
		},
		"all are paused, with mail": func(l *lab) {
			for range many {
				ref := must(l.Spawn("", puppet(t)))(t)
				_ = l.Operate().Pause(ref, false)
				_ = l.Tell(ref, script())
			}
		},
		"all are suspended, for their parent has failed": func(l *lab) {
			var kids []Child
			for i := range many {
				kids = append(kids, Child{fmt.Sprint("k", i), puppet(t)})
			}
			parent := must(l.Spawn("parent", Func(func(*Context, Message) error { return errTold }).WithChildren(kids...)))(t)
			_ = l.Tell(parent, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCrowdedLab(t, most, quiet, nil)
			begin(l)
			if n := l.drawnOut(); n > most || n < most/2 {
				t.Errorf("%d guests were awake, the bound is %d", n, most)
			}
			if n := l.View().Stats().Actors; n < many {
				t.Errorf("%d actors", n)
			}
		})
	}
}

// Who has failed and is put away comes back as it was before the failing turn, or with its last turn
// before a restart, as if it had kept its instance.
func TestFailedGuestsArePutAway(t *testing.T) {
	for _, kind := range []string{"a trap", "an error"} {
		fault := trap()
		if kind == "an error" {
			fault = now(abi.AppendFail(nil, "told to"))
		}
		for _, d := range []supervision.Directive{supervision.Resume, supervision.Restart} {
			t.Run(fmt.Sprintf("%s, %v", kind, d), func(t *testing.T) {
				l := newCrowdedLab(t, 2, supervision.Default().WithOtherwise(supervision.Suspend), nil)
				var sunk []string
				must(l.Spawn("probe", sink(&sunk)))(t)
				var all []Ref
				for i := range 10 {
					ref := l.spawn(fmt.Sprint("g", i), puppet(t, on(abi.KindPreRestart, toProbe("last turn"))))
					l.tell(ref, script(rec(recAdd, byte(i+1), nil)))
					all = append(all, ref)
				}
				for _, ref := range all {
					l.tell(ref, script(rec(recAdd, 100, nil), fault))
				}
				if n := l.awakeGuests(); n > 2 {
					t.Fatalf("%d are awake", n)
				}
				for i, ref := range all {
					if err := l.Operate().Decide(ref, d); err != nil {
						t.Fatal(err)
					}
					l.run()
					want := 0
					if d == supervision.Resume {
						want = i + 1
					}
					if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%v holds %v, want %d", ref, got, want)
					}
				}
				want := 0
				if d == supervision.Restart && kind == "an error" { // after a trap there is no last turn
					want = len(all)
				}
				if len(sunk) != want {
					t.Errorf("%d last turns, want %d: %v", len(sunk), want, sunk)
				}
			})
		}
	}
}

// With several workers there are at most as many beyond the bound as workers. Instances that are given
// back are thrown away here, so the engine knows how many are in use.
func TestMostAwakeWithSeveralWorkers(t *testing.T) {
	const most, workers, each = 50, 4, 400
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithPoolBytes(0)))(t)
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	image := load(t, engine, "testdata/echo.wasm")
	sys := newSystem(t, NewConfig("crowd").WithWorkers(workers).WithIdleAfter(0).WithMostAwake(most))
	before := engine.Instances()
	done := make(chan struct{}, workers)
	for range workers {
		var kids []Ref
		maker := must(sys.Spawn("", Func(func(ctx *Context, m Message) error {
			if m.Sender != ctx.Self() && len(kids) > 0 {
				return nil // an answer
			}
			if len(kids) == each {
				done <- struct{}{}
				return nil
			}
			ref, err := ctx.Spawn("", Guest(image, "echo"))
			if err != nil {
				return err
			}
			kids = append(kids, ref)
			for _, to := range []Ref{ref, kids[len(kids)/2], kids[len(kids)/3]} { // some are woken again
				if err := ctx.Tell(to, "hello"); err != nil {
					return err
				}
			}
			return ctx.Tell(ctx.Self(), 1)
		}).WithLimits(Limits{Children: each})))(t)
		_ = sys.Tell(maker, 1)
	}
	var highest, helpers atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for left := workers; left > 0; {
			for range 2 { // before and after, for they come and go
				helpers.Store(max(helpers.Load(), int64(sys.disp.Stats().Detached)))
				highest.Store(max(highest.Load(), int64(engine.Instances()-before)))
			}
			select {
			case <-done:
				left--
			case <-time.After(time.Minute):
				return
			default:
			}
		}
	}()
	<-ended
	waitFor(t, "everybody", func() bool { return sys.View().Stats().Asleep >= workers*each-most })
	// Those that run meanwhile, on the workers and on who helps out where the machine holds one up. Two
	// more are for who has helped only between two looks.
	if n := highest.Load(); n > most+workers+helpers.Load()+2 || n == 0 {
		t.Errorf("%d instances with %d helpers, the bound is %d", n, helpers.Load(), most)
	}
	if s := sys.View().Stats(); s.Crashes != 0 {
		t.Errorf("%+v", s)
	}
}

// Guests that cannot sleep, because they have changed a table, count: others have so much less room, before and after
// the time in which they are idle.
func TestThoseThatCannotSleepCount(t *testing.T) {
	const most, stuck, many = 8, 5, 30
	engine := newEngine(t)
	brute := Guest(load(t, engine, "testdata/brute.wasm"), "brute")
	l := newCrowdedLab(t, most, supervision.Default(), func(c Config) Config { return c.WithIdleAfter(time.Minute) })
	var all []Ref
	for i := range stuck {
		all = append(all, l.spawn(fmt.Sprint("stuck", i), brute))
		l.tell(all[i], order(verbTable, 10, nil))
	}
	var small []Ref
	for i := range many {
		small = append(small, l.spawn(fmt.Sprint("small", i), puppet(t)))
	}
	for round := range 3 {
		for i, r := range small {
			_ = l.Tell(r, script())
			if n := l.drawnOut(); n > most {
				t.Fatalf("round %d, after %d: %d are awake", round, i, n)
			}
		}
		if n := l.awakeGuests(); n != most {
			t.Errorf("round %d: %d are awake, %d may be", round, n, most)
		}
		l.pass(2 * time.Minute) // who is idle is asked to sleep
		l.pass(2 * time.Minute)
		if n := l.awakeGuests(); n != stuck {
			t.Errorf("round %d: %d are awake in the end", round, n)
		}
	}
	for _, r := range all {
		l.Stop(r)
	}
	l.run()
	for _, r := range small {
		_ = l.Tell(r, script())
		l.run()
	}
	if n := l.awakeGuests(); n != most {
		t.Errorf("%d are awake when those have gone", n)
	}
}

// One that could not sleep and is restarted in its instance can again, also if nobody sends to it.
func TestRestartedGuestsSleepAgain(t *testing.T) {
	brute := Guest(load(t, newEngine(t), "testdata/brute.wasm"), "brute")
	l := newCrowdedLab(t, 0, supervision.Default(), halfAMinute)
	ref := l.spawn("g", brute)
	g := guestOf(l.table.Get(ref.UID()))
	l.tell(ref, order(verbTable, 10, nil))
	l.pass(2 * time.Minute)
	l.pass(2 * time.Minute)
	if !g.inst.Awake() {
		t.Fatal("it sleeps although its table has grown")
	}
	must(0, l.Operate().Restart(ref))(t) // as with all its siblings, when one of them fails
	l.run()
	if n := l.table.Get(ref.UID()).Incarnation(); n != 1 || !g.inst.Awake() {
		t.Fatalf("incarnation %d, awake: %v", n, g.inst.Awake())
	}
	l.pass(2 * time.Minute)
	l.pass(2 * time.Minute)
	if g.inst.Awake() {
		t.Error("it is awake for good")
	}
}

// Who finds nobody to put away gives its own instance back at the end of its run, with its state: beside those that
// cannot sleep, and are as many as may be awake, nobody stays awake.
func TestWhoExceedsTheBoundSleepsAfterItsRun(t *testing.T) {
	const most = 2
	brute := Guest(load(t, newEngine(t), "testdata/brute.wasm"), "brute")
	l := newCrowdedLab(t, most, supervision.Default(), nil)
	for range most {
		l.tell(l.spawn("", brute), order(verbTable, 10, nil))
	}
	small := l.spawn("small", puppet(t))
	for range 3 {
		_ = l.Tell(small, script(rec(recAdd, 3, nil)))
		if n := l.drawnOut(); n > most || l.table.Get(small.UID()).hasInstance() {
			t.Errorf("%d are awake, %d may be", n, most)
		}
	}
	if got := answer(t, l.System, small, script(rec(recReport, 0, nil))); fmt.Sprint(got) != "9" {
		t.Errorf("it holds %v", got)
	}
}
