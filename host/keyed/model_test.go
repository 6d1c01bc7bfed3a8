package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"pgregory.net/rapid"
)

// Whatever is sent, by header and by path, while actors end, crash, stop themselves, are evicted and
// time passes, in any order of turns: every message is handled once, those of a key in their order,
// and there are never two actors of a key (the workers see to that).
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		max := rapid.IntRange(1, 4).Draw(rt, "max")
		at := rapid.SampledFrom([]keyed.AtLimit{keyed.Refuse, keyed.Evict}).Draw(rt, "at the limit")
		c := keyed.New(w.worker()).WithIdle(10 * time.Second).WithMax(max).WithAtLimit(at)
		r := w.start(c)
		keys := []string{"a", "b", "c", "d"}
		if at == keyed.Refuse {
			keys = keys[:max] // nothing is refused then
		}
		key := rapid.SampledFrom(keys)
		verb := rapid.SampledFrom([]string{"x", "x", "x", "crash", "stop", "timer 15s", "timer 3s", "ask 5s", "child"})
		n := map[string]int{}
		sent := 0
		refused := 0
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), verb.Draw(t, "what")
				if v == "child" {
					v = "x"
				}
				n[k]++
				sent++
				text := fmt.Sprintf("%s #%d", v, n[k])
				var err error
				if rapid.Bool().Draw(t, "by path") {
					err = w.TellPath("/user/users/"+k, text)
				} else {
					err = w.Tell(r, keyed.For(k, text))
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"some turns": func(t *rapid.T) { w.RunUntilIdle(rapid.IntRange(1, 5).Draw(t, "n")) },
			"run":        func(*rapid.T) { w.run() },
			"pass":       func(t *rapid.T) { w.clock.Advance(time.Duration(rapid.IntRange(1, 12).Draw(t, "s")) * time.Second) },
			"restart":    func(t *rapid.T) { _ = w.Operate().Restart(r) },
			"": func(t *rapid.T) {
				if alive := len(w.Select("/user/users/*")); alive > max {
					t.Fatalf("%d actors, at most %d", alive, max)
				}
			},
		})
		w.run()
		last := map[string]int{}
		handled := 0
		for _, h := range w.heard {
			k, text, _ := strings.Cut(h, ":")
			_, no, numbered := strings.Cut(text, "#")
			if !numbered {
				continue // of a timer, an ask
			}
			handled++
			var i int
			_, _ = fmt.Sscan(no, &i)
			if i <= last[k] {
				rt.Fatalf("%s: %d behind %d: %q", k, i, last[k], w.heard)
			}
			last[k] = i
		}
		for {
			select {
			case e := <-w.log.C():
				switch {
				case e.Kind == host.EventUnhandled:
					rt.Fatalf("unhandled: %+v", e.Dead)
				case e.Kind == host.EventDeadLetter && e.Dead.Reason == host.DeadRefused:
					refused++
				// A worker's own question, which waits too long for its turn, is not a message of the test's.
				case e.Kind == host.EventDeadLetter && e.Dead.Reason != host.DeadExpired:
					rt.Fatalf("a dead letter: %+v", e.Dead)
				}
				continue
			default:
			}
			break
		}
		if at == keyed.Refuse && refused > 0 || handled+refused != sent {
			rt.Fatalf("%d sent, %d handled, %d refused: %q", sent, handled, refused, w.heard)
		}
		w.pass(time.Minute)
		w.pass(time.Minute)
		w.there()
	})
}

// Whatever comes to a keeper in any order of turns, its counts are those of what it knows and stay within the
// bounds; in the end nothing is left but the keys that it remembers.
func TestTheBookIsRight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		c := keyed.New(w.worker()).WithIdle(10*time.Second).WithMax(rapid.IntRange(1, 3).Draw(rt, "max")).
			WithMaxPerSender(rapid.IntRange(0, 2).Draw(rt, "of a sender")).WithRemember(rapid.IntRange(0, 3).Draw(rt, "remembered")).
			WithBuffer(rapid.IntRange(1, 40).Draw(rt, "buffer"), rapid.Int64Range(1, 400).Draw(rt, "bytes")).
			WithAtLimit(rapid.SampledFrom([]keyed.AtLimit{keyed.Refuse, keyed.Evict}).Draw(rt, "at the limit"))
		p, check := c.Checked()
		r := must(w.Spawn("users", p))(t)
		w.run()
		senders := []host.Ref{{}}
		for _, name := range []string{"one", "other"} {
			senders = append(senders, must(w.Spawn(name, host.Func(func(*host.Context, host.Message) error { return nil })))(t))
		}
		w.run()
		key := rapid.SampledFrom([]string{"a", "b", "c", "d", "a", "b", "c", "d", "bad", "bad2", "bad3", "bad4"})
		verb := rapid.SampledFrom([]string{"x", "x", "x", "x", "a longer text", "crash", "stop", "timer 15s"})
		step := rapid.SampledFrom([]string{"send", "send", "send", "send", "pause", "unpause", "stop", "passivate", "passivate", "pass", "restart"})
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			k := key.Draw(rt, "key")
			ref, err := w.Lookup("/user/users/" + k)
			switch step := step.Draw(rt, "step"); {
			case step == "send":
				for range rapid.IntRange(1, 8).Draw(rt, "messages") {
					_ = w.TellFrom(rapid.SampledFrom(senders).Draw(rt, "from"), r, keyed.For(key.Draw(rt, "key"), verb.Draw(rt, "what")))
				}
			case step == "passivate":
				_ = w.Tell(r, host.Headed{Value: k, Headers: map[string]string{keyed.Header: "passivate"}})
			case step == "pass":
				w.clock.Advance(time.Duration(rapid.IntRange(1, 70).Draw(rt, "s")) * time.Second)
			case step == "restart":
				_ = w.Operate().Restart(r)
			case err != nil:
			case step == "pause":
				_ = w.Operate().Pause(ref, false)
			case step == "unpause":
				_ = w.Operate().Unpause(ref, false)
			case step == "stop":
				w.Stop(ref)
			}
			w.RunUntilIdle(rapid.SampledFrom([]int{0, 1, 2, 3, 1000}).Draw(rt, "turns"))
			if err := check(); err != nil {
				rt.Fatal(err)
			}
		}
		for _, ref := range w.Select("/user/users/*") {
			_ = w.Operate().Unpause(ref, false)
			w.Stop(ref)
		}
		for range 10 {
			w.pass(time.Minute)
		}
		w.there()
		if err := check(); err != nil {
			rt.Fatal(err)
		}
		w.heard = nil
	})
}

// Many senders ask for few keys on several threads while actors come and go all the time: every
// question is answered or refused, each key counts what it has handled, and no actor is there
// twice.
func TestHammer(t *testing.T) {
	s := must(host.New(host.NewConfig("hammer")))(t)
	defer func() { _ = s.Close(context.Background()) }()
	var mu sync.Mutex
	live, twice := map[string]int{}, false
	count := func(name string, by int) {
		mu.Lock()
		defer mu.Unlock()
		live[name] += by
		twice = twice || live[name] > 1
	}
	r := must(s.Spawn("users", keyed.New(host.Native(func() host.Actor { return &hammered{count: count} })).
		WithIdle(time.Millisecond).WithMax(6).WithAtLimit(keyed.Evict).Props()))(t)
	rounds := 2000
	if testing.Short() {
		rounds = 400
	}
	var wg sync.WaitGroup
	answered := make([]int, 4)
	for g := range answered {
		wg.Go(func() {
			for i := range rounds {
				key := fmt.Sprintf("k%d", (i*7+g)%12)
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				m, err := s.Ask(ctx, r, keyed.For(key, []string{"x", "x", "stop", "crash"}[i%4]))
				cancel()
				var turn *host.TurnError
				switch {
				case err == nil:
					var got string
					if m.Decode(&got) != nil || got != key {
						t.Errorf("%q answered for %s", got, key)
					}
					answered[g]++
				case errors.As(err, &turn): // a crash
				case errors.Is(err, keyed.ErrFull), errors.Is(err, keyed.ErrBuffer):
				default:
					t.Errorf("%s: %v", key, err)
					return
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if twice {
		t.Error("two actors of a key at a time")
	}
	for g, n := range answered {
		if n < rounds/3 {
			t.Errorf("%d: %d of %d were answered", g, n, rounds)
		}
	}
}

type hammered struct{ count func(string, int) }

func (h *hammered) Started(ctx *host.Context) error { h.count(ctx.Self().Name(), 1); return nil }
func (h *hammered) Stopped(ctx *host.Context)       { h.count(ctx.Self().Name(), -1) }
func (h *hammered) Receive(ctx *host.Context, m host.Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	switch text {
	case "crash":
		return errors.New("crashed")
	case "stop":
		ctx.Stop(ctx.Self())
	}
	return ctx.Reply(ctx.Self().Name())
}
