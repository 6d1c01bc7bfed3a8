package host

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
)

// ordersOf are what an operator can tell an actor any number of times.
func ordersOf(s *System, ref Ref, other Props) map[string]func() error {
	return map[string]func() error{
		"restart": func() error { return s.Operate().Restart(ref) },
		"renew":   func() error { return s.Operate().Renew(ref, other) },
		"stop":    func() error { s.Stop(ref); return nil },
		"pause":   func() error { return s.Operate().Pause(ref, true) },
		"unpause": func() error { return s.Operate().Unpause(ref, false) },
		"crash":   func() error { return s.Operate().Crash(ref, 0, "") },
		"decide":  func() error { return s.Operate().Decide(ref, supervision.Restart) },
		"reset":   func() error { return s.Operate().ResetBackoff(ref) },
		"inspect": func() error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := s.View().Inspect(ctx, ref)
			return err
		},
		"watch": func() error {
			_, forget, err := s.WatchEnd(ref)
			if err == nil {
				forget()
			}
			return err
		},
	}
}

// However often an operator says the same to an actor in a long turn, or to one whose supervisor is in one,
// what waits stays short, and it has the effect of once.
func TestOrdersToABusyActorMerge(t *testing.T) {
	const most = 3 * sysmail.FirstThin
	often := thorough.SlowOf(20_000, 100_000)
	if race.Enabled {
		often = 5000
	}
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	for what := range ordersOf(nil, Ref{}, Props{}) {
		for _, busy := range []string{"the actor", "its supervisor"} {
			t.Run(what+" while busy is "+busy, func(t *testing.T) {
				l := newLab(t, supervision.Default())
				var during func()
				n := often
				long := func() {
					if during != nil {
						during()
						during = nil
					}
				}
				child := Func(func(ctx *Context, m Message) error { long(); return nil })
				if what == "renew" { // of a guest: what keeps it busy is that it never gets its turn
					child = counting(t, m)
				}
				top := l.spawn("top", Func(func(ctx *Context, m Message) error { long(); return nil }).WithChildren(Child{"kid", child}))
				kid := l.at("top/kid")
				order := ordersOf(l.System, kid, counting(t, m))[what]
				k, p := l.table.Get(kid.UID()), l.table.Get(top.UID())
				flood := func() {
					for range n {
						must(0, order())(t)
						if w := len(k.sysq.Items) + len(p.sysq.Items); w > 2*most {
							t.Fatalf("%d wait", w)
						}
					}
				}
				during = flood
				switch {
				case busy != "the actor":
					must(0, l.Tell(top, 1))(t)
				case what == "renew":
					flood()
				default:
					must(0, l.Tell(kid, 1))(t)
				}
				l.run()
				i, err := l.View().Info(kid)
				switch what {
				case "restart", "renew":
					if i.State != StateRunning || i.Incarnation == 0 || i.Incarnation > 2*most {
						t.Errorf("%v, incarnation %d", i.State, i.Incarnation)
					}
					if k.renewals != 0 || k.life.Held(life.Renewed) {
						t.Errorf("it waits for %d restarts", k.renewals)
					}
				case "stop":
					if !errors.Is(err, ErrUnknown) {
						t.Errorf("%v", err)
					}
				case "pause":
					if !i.Paused {
						t.Error("it is not paused")
					}
				case "crash":
					if i.Crashes == 0 || i.State != StateRunning {
						t.Errorf("%d crashes, %v", i.Crashes, i.State)
					}
				case "watch":
					if n := len(k.work.Watch.Watchers()); n != 0 {
						t.Errorf("%d watch it", n)
					}
				}
				if m := p.super.Family.Find("kid"); m != nil && m.Orders != k.orders {
					t.Errorf("it has carried out %d orders of %d", k.orders, m.Orders)
				}
			})
		}
	}
}

// A guest that spins is told 10^5 times to restart: few of the orders wait, and it restarts.
func TestOrdersToASpinningGuest(t *testing.T) {
	s := newSystem(t, NewConfig("test").WithStopGrace(50*time.Millisecond))
	g := must(s.Spawn("g", Guest(load(t, newEngine(t), "testdata/hostile/loop.wasm"), "hostile").WithLimits(Limits{Fuel: 1 << 62})))(t)
	must(0, s.Tell(g, 1))(t)
	a := s.table.Get(g.UID())
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !ok(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("it does not run", a.place.Running)
	longest := 0
	for range 100_000 {
		must(0, s.Operate().Restart(g))(t)
		longest = max(longest, int(a.sysq.N.Load()), int(a.parent.sysq.N.Load()))
	}
	if longest > 8*sysmail.FirstThin {
		t.Errorf("%d orders waited", longest)
	}
	until("it is not restarted", func() bool {
		i, err := s.View().Info(g)
		return err == nil && i.Incarnation > 0 && i.State == StateRunning && !a.life.Held(life.Renewed)
	})
}

var boomFailure = &abi.Failure{Kind: abi.FailureGuestError, Reason: "boom"}

// Too many who look at an actor at once are told at once that it is busy.
func TestLooksAreBounded(t *testing.T) {
	var q sysmail.Queue
	var read atomic.Int32
	var all []*look.Visit
	for range 5 * sysmail.MostLooks {
		l := look.NewLook(func() { read.Add(1) })
		all = append(all, l)
		q.Push(&sysmail.Msg{Kind: sysmail.Look, Own: sysmail.Own{Look: l}})
	}
	waiting := 0
	for _, l := range all {
		select {
		case <-l.Answered():
			if l.Done() {
				t.Fatal("it has seen something")
			}
		default:
			waiting++
		}
	}
	if waiting < sysmail.MostLooks || waiting > 2*sysmail.MostLooks+sysmail.FirstThin || len(q.Items) != waiting {
		t.Errorf("%d wait, %d are in the queue", waiting, len(q.Items))
	}
	for _, m := range q.Take() {
		m.Look.At()
	}
	if int(read.Load()) != waiting {
		t.Errorf("%d have seen it", read.Load())
	}
}

// restartedByHand is a cause as that of an operator's restart.
var restartedByHand = &abi.Failure{Kind: abi.FailureKilled, Reason: "restarted by an operator"}

// Any number of the same leaves few, mixed with others or not.
func TestWhatIsTheSameIsThinnedOut(t *testing.T) {
	same := map[string][]sysmail.Msg{
		"orders to restart":   {{Kind: sysmail.AwaitRenewal}, {Kind: sysmail.Restart, Kin: sysmail.Kin{How: sysmail.Order | sysmail.Now, Failure: restartedByHand}}, {Kind: sysmail.Renewed}},
		"restarts of a child": {{Kind: sysmail.Renew, Kin: sysmail.Kin{Ref: 1, Failure: restartedByHand}}, {Kind: sysmail.Renew, Kin: sysmail.Kin{Ref: 2, Failure: restartedByHand}}},
		"other recipes":       {{Kind: sysmail.Renew, Kin: sysmail.Kin{Ref: 1, Failure: renewedByHand, Detail: &renewal{}}}, {Kind: sysmail.Renew, Kin: sysmail.Kin{Ref: 1, Failure: restartedByHand}}, {Kind: sysmail.ResetBackoff, Kin: sysmail.Kin{Ref: 1}}},
		"pauses":              {{Kind: sysmail.Pause}, {Kind: sysmail.Unpause, Kin: sysmail.Kin{How: sysmail.Below}}, {Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.Below}}, {Kind: sysmail.Unpause}},
		"crashes":             {{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: boomFailure}}},
		"decisions":           {{Kind: sysmail.Decide, Kin: sysmail.Kin{Ref: 1, Directive: supervision.Stop}}, {Kind: sysmail.ResetBackoff, Kin: sysmail.Kin{Ref: 1}}, {Kind: sysmail.Decide, Kin: sysmail.Kin{Ref: 1, Directive: supervision.Resume}}},
		"stops":               {{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "a"}}, {Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "b"}}, {Kind: sysmail.Quit}, {Kind: sysmail.Stray}},
	}
	for what, messages := range same {
		var q sysmail.Queue
		for range 20_000 {
			for _, m := range messages {
				q.Push(&m)
				if len(q.Items) > 2*sysmail.FirstThin {
					t.Fatalf("%s: %d wait", what, len(q.Items))
				}
			}
		}
	}
	// The last props count, with all orders.
	var q sysmail.Queue
	first, second := &renewal{&Props{typ: "first"}}, &renewal{&Props{typ: "second"}}
	for range 10 * sysmail.FirstThin {
		for _, n := range []*renewal{first, {}, second, {}} {
			q.Push(&sysmail.Msg{Kind: sysmail.Renew, Kin: sysmail.Kin{Ref: 1, Detail: n}})
		}
	}
	q.Thin()
	if m := q.Take(); len(m) != 1 || m[0].Detail != any(second) || m[0].More != 40*sysmail.FirstThin-1 {
		t.Errorf("%d are left, %+v", len(m), m[0])
	}
}
