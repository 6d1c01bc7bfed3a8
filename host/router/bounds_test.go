package router_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/internal/race"
)

// Nobody to send to is answered at once, and what was sent is a dead letter.
func TestNoRoutees(t *testing.T) {
	for name, c := range map[string]router.Config{
		"pool":    router.Pool(0, inGo(t).worker, router.RoundRobin),
		"group":   router.Group(router.RoundRobin, "/user/none"),
		"asking":  router.Group(router.ScatterGather(0), "/user/none"),
		"balance": router.Pool(0, inGo(t).worker, router.Balancing),
		"nobody":  router.Pool(2, inGo(t).worker, func(uint64) router.Logic { return &redundancy{} }),
	} {
		t.Run(name, func(t *testing.T) {
			w := inGo(t)
			r := w.start(c)
			w.asks(r, "who", router.ErrNoRoutee.Error())
			if name != "group" {
				return
			}
			w.asks(r, router.ToAll("who"), router.ErrNoRoutee.Error())
			w.tell(r, "x")
			letters, _ := w.DeadLetters()
			if n := len(letters); n != 2 || letters[n-1].Reason != host.DeadRefused || !strings.HasSuffix(letters[n-1].Path, "/user/router") {
				t.Errorf("%+v", letters)
			}
		})
	}
}

// A full routee delays nobody: the question ends at once, and the router goes on.
func TestFullRoutee(t *testing.T) {
	w := inGo(t)
	r := w.start(router.Pool(2, w.worker.WithLimits(host.Limits{Mailbox: 1}), router.RoundRobin))
	if err := w.Operate().Pause(must(w.Lookup("/user/router/0"))(t), false); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.tell(r, "x", "y")
	w.asks(r, "who", host.ErrMailboxFull.Error(), "1 2")
	w.wants("1:y")
}

// Who may manage: Go code, the parent, and whom the router's configuration names.
func TestWhoMayManage(t *testing.T) {
	each(t, func(w *world) {
		friend := must(w.Spawn("friend", asker()))(t)
		foe := must(w.Spawn("foe", asker()))(t)
		paths := w.crowd(2)
		r := w.start(router.Group(router.RoundRobin, paths[0]).WithManagers("/user/friend").WithAdmitted("/user/w*"))
		order := func(who host.Ref, op string, v any) string {
			return w.ask(who, []any{r.Path(), op, v})
		}
		const denied = "router: the sender may not manage the router"
		const master = "router: actors may not do this"
		for _, op := range []string{"broadcast", "routees", "add", "remove", "adjust", "stop", "kill", "nonsense"} {
			if got := order(foe, op, paths[1]); got != denied {
				t.Errorf("%s: %q", op, got)
			}
		}
		for _, c := range []struct {
			op   string
			v    any
			want string
		}{
			{"routees", nil, paths[0]},
			{"add", "/user/foe", master},
			{"add", paths[1], "done"},
			{"add", "/user/*", "router: the payload is not the path of one actor"},
			{"add", 7, "router: the payload is not the path of one actor"},
			{"routees", nil, paths[0] + " " + paths[1]},
			{"adjust", 1, "router: a group has no size"},
			{"adjust", "x", "router: the payload is not a number of routees"},
			{"stop", nil, master},
			{"kill", nil, master},
			{"nonsense", nil, `router: there is no order "nonsense"`},
			{"remove", paths[0], "done"},
			{"routees", nil, paths[1]},
		} {
			if got := order(friend, c.op, c.v); got != c.want {
				t.Errorf("%s %v: %q, want %q", c.op, c.v, got, c.want)
			}
		}
		if got := order(friend, "broadcast", "who"); !strings.HasPrefix(got, "w1 ") {
			t.Error(got)
		}
		w.asks(r, headed("add", "/user/foe"), "done") // Go may
		w.asks(r, headed("add", r.Path()), "router: a router cannot be its own routee")
	})
}

// asker asks [path, order, payload] on behalf of whoever asks it.
func asker() host.Props {
	return host.Native(func() host.Actor { return &proxy{} })
}

type proxy struct{ reply *host.Reply }

func (p *proxy) Receive(ctx *host.Context, m host.Message) error {
	if p.reply != nil {
		var v any
		if err := m.Decode(&v); err != nil {
			return err
		}
		r := p.reply
		p.reply = nil
		return r.Send(v)
	}
	var in []any
	if err := m.Decode(&in); err != nil {
		return err
	}
	r, err := ctx.Later()
	if err != nil {
		return err
	}
	p.reply = r
	to, err := ctx.System().Lookup(in[0].(string))
	if err != nil {
		return err
	}
	return ctx.Ask(to, headed(in[1].(string), in[2]), 1, time.Minute)
}

// What a router holds on somebody's behalf is bounded: questions, asks, bytes; of one sender
// a quarter; and all of it is given back.
func TestQuestionsAreBounded(t *testing.T) {
	for _, chop := range []bool{false, true} {
		t.Run(fmt.Sprintf("chop %v", chop), func(t *testing.T) {
			w := inGo(t)
			logic := router.ScatterGather(time.Second)
			if chop {
				logic = router.TailChopping(time.Second, 10*time.Second)
			}
			const questions = 8
			r := w.start(router.Pool(2, w.worker, logic).WithQuestions(questions, 400))
			flood := must(w.Spawn("flood", host.Func(func(ctx *host.Context, m host.Message) error {
				if m.Correlation != 0 && m.Kind != 0 && len(m.Payload) > 3 && m.Sender == r {
					return nil
				}
				for i := range 100 {
					if err := ctx.Ask(r, "mute", uint64(i+1), time.Hour); err != nil {
						return err
					}
				}
				return nil
			})))(t)
			if err := w.Tell(flood, "go"); err != nil {
				t.Fatal(err)
			}
			w.run()
			// The flood has a quarter; somebody else is still heard.
			if got := w.ask(r, "who"); !strings.HasSuffix(got, " ") && !strings.Contains(got, " ") || strings.HasPrefix(got, "router: too many") {
				t.Errorf("answered %q", got)
			}
			turns := must(w.View().Info(must(w.Lookup("/user/router/0"))(t)))(t).Turns + must(w.View().Info(must(w.Lookup("/user/router/1"))(t)))(t).Turns
			if most := uint64(10*questions/4 + 4); turns > most {
				t.Errorf("the routees have had %d turns, at most %d", turns, most)
			}
			w.pass(2 * time.Second)
			if got := w.ask(r, "who"); !strings.Contains(got, " ") || strings.HasPrefix(got, "router:") {
				t.Errorf("then answered %q", got)
			}
			// A question that is too large to be kept.
			if chop {
				w.asks(r, strings.Repeat("x", 200), router.ErrBusy.Error())
			}
			// The end of the router is no silence.
			p := must(w.Request(r, "mute"))(t)
			w.run()
			w.Stop(r)
			w.run()
			wantAnswer(t, p, "router: the router has stopped")
		})
	}
}

// A router that is restarted answers what it had been asked.
func TestRestartAnswers(t *testing.T) {
	w := inGo(t)
	r := w.start(router.Pool(2, w.worker, router.ScatterGather(time.Minute)))
	p := must(w.Request(r, "mute"))(t)
	w.run()
	if err := w.Operate().Restart(r); err != nil {
		t.Fatal(err)
	}
	w.run()
	wantAnswer(t, p, "router: the router was restarted")
	if got := w.ask(r, "who"); !strings.HasSuffix(got, " 1") {
		t.Error(got)
	}
}

// The simple logics allocate nothing for a message, and the payload is not copied.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	byText := func(m *host.Message) []byte { return m.Payload }
	for name, logic := range map[string]router.Make{
		"round-robin": router.RoundRobin, "random": router.Random, "smallest-mailbox": router.SmallestMailbox, "balancing": router.Balancing,
		"consistent-hashing":  router.ConsistentHashing(router.Hashing{Key: byText}),
		"by field":            router.ConsistentHashing(router.Hashing{Field: "k"}),
		"with a bounded load": router.ConsistentHashing(router.Hashing{Field: "k", Load: 1.5}),
	} {
		t.Run(name, func(t *testing.T) {
			clock := host.NewVirtualClock(time.Unix(1, 0))
			s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1)))(t)
			defer s.Close(t.Context())
			n := 0
			var at []*byte
			sink := host.Func(func(_ *host.Context, m host.Message) error {
				n++
				if len(at) < 1 {
					at = append(at, &m.Payload[0])
				}
				return nil
			})
			var target host.Ref
			var boxed any = host.Raw{0xa1, 0x61, 'k', 0x07}
			burst := 0
			driver := must(s.Spawn("driver", host.Func(func(ctx *host.Context, m host.Message) error {
				for range burst {
					if err := ctx.Tell(target, boxed); err != nil {
						return err
					}
				}
				return nil
			})))(t)
			cost := func(to host.Ref) float64 {
				target, burst = to, 100
				send := func() {
					if err := s.Tell(driver, boxed); err != nil {
						t.Fatal(err)
					}
					s.RunUntilIdle(100_000)
				}
				for range 50 {
					send()
				}
				return testing.AllocsPerRun(100, send)
			}
			direct := cost(must(s.Spawn("sink", sink))(t))
			routed := cost(must(s.Spawn("router", router.Pool(4, sink, logic).Props()))(t))
			if routed > direct+1 { // of a hundred messages
				t.Errorf("%v allocations, sent directly %v, for 100 messages", routed, direct)
			}
			if n < 10_000 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// A message goes on as it is: the receiver's payload lies where the sender's has been put.
func TestForwardDoesNotCopy(t *testing.T) {
	w := inGo(t)
	var at *byte
	var text string
	sink := host.Func(func(_ *host.Context, m host.Message) error {
		at = &m.Payload[0]
		return m.Decode(&text)
	})
	spy := func(uint64) router.Logic { return &spying{at: &at, t: t} }
	r := w.start(router.Pool(1, sink, spy))
	long := strings.Repeat("x", 10_000)
	w.tell(r, long)
	if text != long {
		t.Error("the payload has changed")
	}
	if spied != at {
		t.Error("the payload was copied")
	}
}

var spied *byte

type spying struct {
	at **byte
	t  *testing.T
}

func (s *spying) Pick(picked []int, m *host.Message, _ []router.Routee) ([]int, error) {
	spied = &m.Payload[0]
	return append(picked, 0), nil
}

// A logic that picks whom there is not fails the router, and its message goes nowhere.
func TestWrongLogic(t *testing.T) {
	w := inGo(t)
	r := w.start(router.Pool(1, w.worker, func(uint64) router.Logic { return wrong{} }))
	if got := w.ask(r, "who"); !strings.Contains(got, "panic") {
		t.Errorf("answered %q", got)
	}
	if i := must(w.View().Info(r))(t); i.Crashes != 1 {
		t.Errorf("%d crashes", i.Crashes)
	}
}

type wrong struct{}

func (wrong) Pick(picked []int, _ *host.Message, _ []router.Routee) ([]int, error) {
	return append(picked, 7), nil
}

// A router with which something is wrong, or whose routees could not start, is not spawned: unlimited restarts would be a
// loop without end.
func TestWrongRouter(t *testing.T) {
	w := inGo(t)
	for i, c := range []router.Config{
		router.Pool(-1, w.worker, router.RoundRobin), router.Pool(router.MaxRoutees+1, w.worker, router.RoundRobin), router.Pool(1, w.worker, nil),
		router.Pool(1, host.Props{}, router.RoundRobin), router.Group(router.RoundRobin, "a"), router.Group(router.RoundRobin, "/user/*"),
		router.Group(router.RoundRobin, "/user/a").WithResizer(router.DefaultResizer()), router.Pool(1, w.worker, router.RoundRobin).WithResizer(router.Resizer{}),
		router.Pool(1, w.worker, router.RoundRobin).WithQuestions(-1, 0),
	} {
		if _, err := w.Spawn("r"+strconv.Itoa(i), c.Props()); !errors.Is(err, host.ErrBadProps) {
			t.Errorf("router %d: %v", i, err)
		}
	}
}

// A guest reaches a router by its path like any other actor, and is answered by a routee.
func TestGuestSendsToRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	for _, sleepy := range []bool{false, true} {
		guest := func(typ string) host.Props {
			return host.Guest(must(image())(t), typ).WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
		}
		w := newWorld(t, guest("worker"), sleepy)
		w.start(router.Pool(2, w.worker, router.RoundRobin))
		boss := must(w.Spawn("boss", guest("boss")))(t)
		w.tell(boss, "tell /user/router a", "tell /user/router b", "tell /user/router c")
		w.wants("0:a", "1:b", "0:c")
		w.tell(boss, "ask /user/router who", "ask /user/router who")
		w.wants("answer 1 2", "answer 0 3")
		w.Stop(must(w.Lookup("/user/router"))(t))
		w.run()
		w.start(router.Group(router.RoundRobin))
		w.tell(boss, "ask /user/router who")
		w.wants("answer router: there is no routee")
		w.Stop(must(w.Lookup("/user/router"))(t))
		w.run()
		w.start(router.Pool(3, w.worker, router.ScatterGather(time.Second)))
		w.tell(boss, "ask /user/router who")
		if len(w.heard) != 1 || !strings.HasSuffix(w.heard[0], " 1") {
			t.Errorf("heard %q", w.heard)
		}
	}
}

// A router is not its own routee, or a message would go round for ever.
func TestNotItself(t *testing.T) {
	w := inGo(t)
	r := w.start(router.Group(router.RoundRobin, "/user/router"))
	w.asks(r, "who", router.ErrNoRoutee.Error())
}

// The seed of the system decides what a router draws.
func TestSeedOfTheSystem(t *testing.T) {
	draws := func(seed uint64) (all []int) {
		s := must(host.New(host.NewConfig("test").WithManual().WithSeed(seed)))(t)
		defer s.Close(t.Context())
		sink := host.Func(func(ctx *host.Context, _ host.Message) error {
			n, err := strconv.Atoi(ctx.Self().Name())
			all = append(all, n)
			return err
		})
		r := must(s.Spawn("router", router.Pool(9, sink, router.Random).Props()))(t)
		for range 30 {
			if err := s.Tell(r, 1); err != nil {
				t.Fatal(err)
			}
			s.RunUntilIdle(1000)
		}
		return all
	}
	if a := draws(1); len(a) != 30 || !slices.Equal(a, draws(1)) || slices.Equal(a, draws(2)) {
		t.Error("the seed does not decide")
	}
}

// A pool that may not grow any more goes on as it is.
func TestNoRoomToGrow(t *testing.T) {
	w := inGo(t)
	d := router.DefaultResizer()
	d.Lower, d.Every = 5, 1
	r := w.start(router.Pool(1, w.worker, router.RoundRobin).WithResizer(d).WithLimits(host.Limits{Tree: host.TreeLimits{Actors: 3}}))
	w.asks(r, "who", "0 1", "1 1", "0 2")
	if i := must(w.View().Info(r))(t); i.Crashes != 0 || i.Children != 2 {
		t.Errorf("%d crashes, %d routees", i.Crashes, i.Children)
	}
	if got := w.ask(r, headed("adjust", 1)); got == "done" || got == "" {
		t.Errorf("answered %q", got)
	}
}
