package upgrade_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// replayed upgrades actors by having their code handle all messages again.
func replayed(w *lasting, image *runtime.Image, o upgrade.Options) *upgrade.Report {
	w.t.Helper()
	keep(w.t, w.store, image)
	o.Ways = func(string, string) []upgrade.Way { return []upgrade.Way{upgrade.State, upgrade.Replay} }
	return must(upgrade.Run(context.Background(), w.System, w.module, image, o))(w.t)
}

// runs is the code that an actor runs.
func (w *lasting) runs(image *runtime.Image, name string) bool {
	w.t.Helper()
	sum := must(sandbox.Fingerprint(image))(w.t)
	return strings.Contains(w.look()[name], strings.Trim(fmt.Sprint(sum[:]), "[]"))
}

// TestReplay: code that cannot load a state handles again what the actor has handled, and goes on as the old code would have. So it does
// when its process has been killed since.
func TestReplay(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "repeat")
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, old))(t)
	for range 5 {
		w.count("a")
	}
	w.count("b")
	for range 3 { // several messages of one entry
		p := must(w.Request(must(w.Lookup("/user/a"))(t), host.Raw{1}))(t)
		defer p.Cancel()
	}
	w.rest()
	if r := replayed(w, new, upgrade.Options{Plan: true}); r.Actors[0].Did != upgrade.WouldBe || r.Actors[0].Way != upgrade.Replay || r.Actors[0].Tried != 8 || w.runs(new, "a") {
		t.Fatalf("%+v", r)
	}
	r := replayed(w, new, upgrade.Options{})
	for _, a := range r.Actors {
		if a.Did != upgrade.Upgraded || a.Way != upgrade.Replay {
			t.Fatalf("%+v", a)
		}
	}
	if len(r.Actors) != 3 || r.Stopped != "" || !w.runs(new, "a") || w.runs(old, "a") {
		t.Fatalf("%+v\n%s", r, w.look()["a"])
	}
	if v, n := w.count("a"); v != 1 || n != 9 {
		t.Error(v, n)
	}
	looks := w.look()
	w.end()
	for _, image := range []*runtime.Image{old, new} { // whatever the manifest names
		x := must(openLasting(t, fs.Copy(), kept, image))(t)
		for _, name := range lastingNames {
			if x.looks[name] != looks[name] {
				t.Errorf("%s is\n%s\nand was\n%s", name, x.looks[name], looks[name])
			}
		}
		if v, n := x.count("a"); v != 1 || n != 10 {
			t.Error(v, n)
		}
		x.end()
	}
	x := must(openLastingAs(t, fs.Copy(), kept, new, true))(t) // they have not returned yet
	if r := replayed(x, byHand(t, "repeat-other"), upgrade.Options{}); of(&world{t: t}, r, "/a").Did != upgrade.Kept || of(&world{t: t}, r, "/b").Did != upgrade.Upgraded {
		t.Errorf("%+v", r)
	}
	if v, n := x.count("a"); v != 1 || n != 10 {
		t.Error(v, n)
	}
	x.end()
}

// TestReplayAgain: an actor that has come to its code so can be upgraded so again, also after a restart: what came
// before that does not count.
func TestReplayAgain(t *testing.T) {
	first, second := byHand(t, "repeat"), byHand(t, "repeat-other")
	w := must(openLasting(t, crashfs.New(), &sync.Map{}, byHand(t, "tally1")))(t)
	w.count("a")
	w.count("a")
	replayed(w, first, upgrade.Options{})
	if r := replayed(w, second, upgrade.Options{}); r.Actors[0].Did != upgrade.Upgraded {
		t.Fatalf("%+v", r)
	}
	if v, n := w.count("a"); v != 2 || n != 3 { // by its own code now
		t.Error(v, n)
	}
	if err := w.Operate().Restart(must(w.Lookup("/user/a"))(t)); err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.count("a")
	if r := replayed(w, first, upgrade.Options{}); of(&world{t: t}, r, "/a").Did != upgrade.Upgraded {
		t.Fatalf("%+v", r)
	}
	if v, n := w.count("a"); v != 1 || n != 2 {
		t.Error(v, n)
	}
	w.end()
}

// TestKilledInAReplay: whenever the power fails while actors come to code that handles their messages again, each comes back with its old code or
// with that one, in the same state.
func TestKilledInAReplay(t *testing.T) {
	defer func(n int) { swap.Part = n }(swap.Part)
	swap.Part = 64
	old, new := byHand(t, "tally1"), byHand(t, "repeat")
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, old))(t)
	for range 3 {
		w.count("a")
		w.count("b")
	}
	w.rest()
	from := fs.Done()
	replayed(w, new, upgrade.Options{Probation: time.Minute, Wait: func(context.Context, time.Duration) { w.rest() }})
	w.rest()
	to := fs.Done()
	w.end()
	runs := map[bool]int{}
	for changes := from; changes <= to; changes++ {
		for seed := range uint64(2) {
			image := []*runtime.Image{old, new}[seed]
			x, err := openLasting(t, fs.After(changes, rand.New(rand.NewPCG(seed, uint64(changes)))), kept, image)
			if err != nil {
				t.Fatalf("after %d changes, with %s: %v", changes, image.Name(), err)
			}
			for name, n := range map[string]int{"a": 4, "b": 4, "c": 1} {
				runs[x.runs(new, name)]++
				if v, has := x.count(name); v != 1 || has != n {
					t.Errorf("after %d changes, with %s: %s has version %d and counts %d, not %d", changes, image.Name(), name, v, has, n)
				}
			}
			x.end()
		}
	}
	if t.Logf("%d changes, new code %v", to-from, runs); runs[true] == 0 || runs[false] == 0 {
		t.Error("one of them never came back")
	}
}

// TestReplayDiffers: code that does something else with what the actor has got, or fails, does not get the actor, and the report says where.
func TestReplayDiffers(t *testing.T) {
	for name, why := range map[string]string{
		"repeat-other": "turn 3: command 0 of 1 is another one than the old code has asked for",
		"repeat-trap":  "turn 3, which the old code has ended well: trap",
		"repeat-loop":  "turn 3, which the old code has ended well: fuel",
	} {
		t.Run(name, func(t *testing.T) {
			old, fs, kept := byHand(t, "tally1"), crashfs.New(), &sync.Map{}
			w := must(openLasting(t, fs, kept, old))(t)
			for range 4 {
				w.count("a")
			}
			r := replayed(w, byHand(t, name), upgrade.Options{})
			a, b := of(&world{t: t}, r, "/a"), of(&world{t: t}, r, "/b")
			if a.Did != upgrade.Kept || !strings.Contains(a.Why, "replay: "+why) || b.Did != upgrade.Upgraded {
				t.Errorf("%+v\n%+v", a, b)
			}
			if v, n := w.count("a"); v != 1 || n != 5 {
				t.Error(v, n)
			}
			looks := w.look()
			w.end()
			x := must(openLasting(t, fs.Copy(), kept, old))(t)
			if x.looks["a"] != looks["a"] {
				t.Error(x.looks["a"], looks["a"])
			}
			x.end()
		})
	}
}

// TestReplayWithoutItsBeginning: of an actor whose first messages are not kept any more nothing is handled again.
func TestReplayWithoutItsBeginning(t *testing.T) {
	w := must(openLasting(t, crashfs.New(), &sync.Map{}, byHand(t, "tally1")))(t)
	for range 2000 {
		w.count("a")
		if w.Tell(must(w.Lookup("/user/a"))(t), host.Raw(append([]byte{0x58, 200}, make([]byte, 200)...))) != nil {
			t.Fatal("it cannot be sent anything")
		}
	}
	for range 3 {
		if err := w.store.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	r := replayed(w, byHand(t, "repeat"), upgrade.Options{})
	if a := of(&world{t: t}, r, "/a"); a.Did != upgrade.Kept || !strings.Contains(a.Why, "not kept any more; store.keep says") {
		t.Errorf("%+v", a)
	}
	if r.Stopped == "" {
		t.Errorf("%+v", r)
	}
	w.end()
}

// TestReplayIsForDurableActors: others have no messages that are kept.
func TestReplayIsForDurableActors(t *testing.T) {
	w, _ := handWorld(t, byHand(t, "tally1"))
	r := must(upgrade.Run(context.Background(), w.System, w.module, byHand(t, "repeat"), upgrade.Options{Ways: func(string, string) []upgrade.Way { return []upgrade.Way{upgrade.Replay} }}))(t)
	if a := r.Actors[0]; a.Did != upgrade.Kept || !strings.Contains(a.Why, "none of its ways is open (replay)") {
		t.Errorf("%+v", a)
	}
}

// TestReplayOfQuestions: code that is told when a question is over is told the same again, whatever time it is.
func TestReplayOfQuestions(t *testing.T) {
	w := must(openLasting(t, crashfs.New(), &sync.Map{}, byHand(t, "asked")))(t)
	clock := w.Clock().(*host.VirtualClock)
	to := must(w.Lookup("/user/a"))(t)
	asker := must(w.Spawn("asker", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		return ctx.Ask(to, host.Raw{1}, 1, time.Hour+5)
	})))(t)
	w.count("a") // without a deadline
	if err := w.Tell(asker, host.Raw{0}); err != nil {
		t.Fatal(err)
	}
	w.rest()
	if _, n := w.count("a"); n != 3+5+2*6 { // the last digit; and of null
		t.Fatal(n)
	}
	clock.Advance(2 * time.Hour)
	w.rest()
	if r := replayed(w, byHand(t, "asked-anew"), upgrade.Options{}); r.Actors[0].Did != upgrade.Upgraded {
		t.Errorf("%+v", r.Actors[0])
	}
	if _, n := w.count("a"); n != 4+5+3*6 {
		t.Error(n)
	}
	if r := replayed(w, byHand(t, "repeat"), upgrade.Options{}); !strings.Contains(r.Actors[0].Why, "command 0 of 1 is another one") { // who is not told
		t.Errorf("%+v", r.Actors[0])
	}
	w.end()
}

// TestReplayOfGo: new code by the Go SDK comes to the very state that it would have had: timers, dice, questions, what is put aside, children.
func TestReplayOfGo(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	for _, restarts := range []int{0, 1} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) { replayOfGo(t, restarts) })
	}
}

func replayOfGo(t *testing.T, restarts int) {
	both, code := must(images())(t), must(guesttest.Build(filepath.Join("testdata", "tally")))(t)
	var said [2][]string
	for i := range said {
		clock := host.NewVirtualClock(lastingNow)
		store := must(durable.Open(durable.Options{Dir: "store", FS: crashfs.New(), Sim: &durable.Sim{Rand: rand.NewChaCha8([32]byte{1}), Secret: host.Secret{5}}}))(t)
		module := host.NewModule(both[0])
		for _, image := range both {
			sum, identity := must(sandbox.Fingerprint(image))(t), must(sandbox.Identity(image))(t)
			if err := store.Keep(sum[:], &durable.Module{Name: image.Name(), Code: code, Identity: identity[:]}); err != nil {
				t.Fatal(err)
			}
		}
		p := host.GuestOf(module, "tally").WithCapabilities(host.Capabilities{Send: []string{"/user/*"}, Spawn: []string{"*"}}).
			WithLimits(host.Limits{Memory: 64 << 20, Fuel: 1_000_000_000}).WithDurable()
		x := must(store.Prepare(host.NewConfig("w").WithClock(clock).WithManual().WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)), durable.Props{"a": p}))(t)
		sys := x.System()
		must(sys.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
			var s string
			if m.Decode(&s) == nil {
				said[i] = append(said[i], s)
			}
			return nil
		})))(t)
		must(sys.Spawn("mute", host.Func(func(*host.Context, host.Message) error { return nil })))(t)
		must(x.Recover())(t)
		a := must(sys.Spawn("a", p))(t)
		x.Release()
		rest := func() {
			for sys.RunUntilIdle(1<<20) > 0 || store.Work() {
			}
		}
		tell := func(texts ...string) {
			for _, s := range texts {
				if err := sys.Tell(a, s); err != nil {
					t.Fatal(err)
				}
			}
			rest()
		}
		for range restarts { // the children of an incarnation have later numbers than those of the one before
			tell("child", "child", "of an earlier incarnation")
			if err := sys.Operate().Restart(a); err != nil {
				t.Fatal(err)
			}
			rest()
		}
		tell("rate", "timer", "dice", "stash", "x", "ask", "tell hello", "child", "child")
		for range 3 {
			clock.Advance(40 * time.Second)
			rest()
		}
		tell("dice", "unstash", "y", "child")
		if i == 1 {
			r := must(upgrade.Run(context.Background(), sys, module, both[1], upgrade.Options{Ways: func(string, string) []upgrade.Way { return []upgrade.Way{upgrade.Replay} }}))(t)
			for _, a := range r.Actors {
				if a.Did != upgrade.Upgraded {
					t.Errorf("%+v", a)
				}
			}
			if len(r.Actors) != 4 || r.Stopped != "" {
				t.Errorf("%+v", r)
			}
		}
		clock.Advance(time.Minute)
		tell("dice", "child", "tell bye", "get")
		_ = sys.Close(context.Background())
		_ = store.Close()
	}
	if n := len(said[0]) - 1; n < 2 || said[0][n][0] != '1' || fmt.Sprint(append(said[0][:n:n], "2"+said[0][n][1:])) != fmt.Sprint(said[1]) {
		t.Errorf("%q and after an upgrade %q", said[0], said[1])
	}
}
