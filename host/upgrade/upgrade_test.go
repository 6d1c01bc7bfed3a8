package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// images are the old code and the new.
var images = sync.OnceValues(func() (all [2]*runtime.Image, err error) {
	for i := range all {
		if all[i], err = version(i + 1); err != nil {
			return all, err
		}
	}
	return all, nil
})

// version loads the guest as version n.
func version(n int) (*runtime.Image, error) {
	code, err := guesttest.Build(filepath.Join("testdata", "tally"))
	if err != nil {
		return nil, err
	}
	e, err := engine()
	if err != nil {
		return nil, err
	}
	return e.Load(context.Background(), code, runtime.ImageConfig{Name: fmt.Sprint("tally", n), Env: []string{fmt.Sprint("VERSION=", n)}})
}

var engine = sync.OnceValues(func() (*runtime.Engine, error) { return runtime.New(context.Background(), runtime.NewConfig()) })

// world is a manual system whose actors run the old code.
type world struct {
	*host.System
	t        *testing.T
	clock    *host.VirtualClock
	module   *host.Module
	old, new *runtime.Image
	heard    []string
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newWorld(t *testing.T) *world {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	both := must(images())(t)
	w := &world{t: t, clock: host.NewVirtualClock(time.Unix(1_700_000_000, 0)), module: host.NewModule(both[0]), old: both[0], new: both[1]}
	w.System = must(host.New(host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1).WithGuardian(supervision.Default())))(t)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	must(w.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		var s string
		if m.Decode(&s) == nil {
			w.heard = append(w.heard, s)
		}
		return nil
	})))(t)
	must(w.Spawn("mute", host.Func(func(*host.Context, host.Message) error { return nil })))(t)
	w.run()
	return w
}

func (w *world) run() { w.RunUntilIdle(1 << 20) }

func (w *world) start(name, typ string) host.Ref {
	w.t.Helper()
	p := host.GuestOf(w.module, typ).WithCapabilities(host.Capabilities{Send: []string{"/user/*"}, Spawn: []string{"*"}}).
		WithLimits(host.Limits{Memory: 64 << 20, Fuel: 1_000_000_000})
	ref := must(w.Spawn(name, p))(w.t)
	w.run()
	return ref
}

func (w *world) tell(to host.Ref, texts ...string) {
	w.t.Helper()
	for _, s := range texts {
		if err := w.Tell(to, s); err != nil {
			w.t.Fatal(err)
		}
	}
}

// get is what the actor says of itself.
func (w *world) get(of host.Ref) string {
	w.t.Helper()
	w.run()
	w.heard = nil
	w.tell(of, "get")
	w.run()
	if len(w.heard) == 0 {
		return "nothing"
	}
	defer func() { w.heard = nil }()
	return w.heard[len(w.heard)-1]
}

func (w *world) upgrade(o upgrade.Options) *upgrade.Report {
	w.t.Helper()
	return must(upgrade.Run(context.Background(), w.System, w.module, w.new, o))(w.t)
}

func of(w *world, r *upgrade.Report, path string) upgrade.Actor {
	w.t.Helper()
	for _, a := range r.Actors {
		if strings.HasSuffix(a.Path, path) {
			return a
		}
	}
	w.t.Fatalf("%s is not in the report: %+v", path, r)
	return upgrade.Actor{}
}

// What the actor was, and all that the host holds for it, is there with the new code: random messages and an upgrade at a random
// turn end as with a twin that has had the new code from the start.
func TestLikeATwin(t *testing.T) {
	words := []string{"a", "b", "timer", "rate", "child", "stash", "unstash", "dice", "pass"}
	for seed := range thorough.SlowOf[uint64](5, 12) {
		r := rand.New(rand.NewPCG(seed, 1))
		var script []string
		for range 30 {
			script = append(script, words[r.IntN(len(words))])
		}
		at := r.IntN(len(script))
		var got [2]string
		for i := range got {
			w := newWorld(t)
			if i == 1 {
				w.module = host.NewModule(w.new)
			}
			g := w.start("g", "tally")
			for k, s := range script {
				if s == "pass" {
					w.clock.Advance(40 * time.Second)
				} else {
					w.tell(g, s)
				}
				if k == at && i == 0 {
					if r.IntN(2) == 0 { // else messages wait in the mailbox
						w.run()
					}
					if a := of(w, w.upgrade(upgrade.Options{}), "/g"); a.Did != upgrade.Upgraded {
						t.Fatal(a)
					}
				}
				w.run()
			}
			w.clock.Advance(10 * time.Minute)
			got[i] = w.get(g)
		}
		if got[0] != got[1] || !strings.HasPrefix(got[0], "2 ") {
			t.Fatalf("seed %d, upgraded at %d of %v: %s, the twin %s", seed, at, script, got[0], got[1])
		}
	}
}

// What fails to save or to load stays with its code and state, and says why.
func TestFailuresKeepTheActor(t *testing.T) {
	w := newWorld(t)
	for mode, why := range map[string]string{
		"save panic": "oh", "save error": "not now", "save loop": "", "save grow": "memory", "save send": "asked for send", "save stop": "asked for stop",
		"save exit": "exit", "save garbage": "not one item", "save nothing": "not one item", "save two": "not one item",
		"load panic": "oh", "load error": "not now", "load loop": "", "load grow": "memory", "load send": "asked for send", "load stop": "asked for stop", "load exit": "exit",
	} {
		for _, plan := range []bool{true, false} {
			w.module = host.NewModule(w.old)
			x := w.start(fmt.Sprint(strings.ReplaceAll(mode, " ", "-"), plan), "tally")
			w.tell(x, "a", "mode "+mode)
			w.run()
			was := w.get(x)
			a := of(w, w.upgrade(upgrade.Options{Plan: plan, Patience: time.Nanosecond}), x.Path()[strings.LastIndexByte(x.Path(), '/'):])
			if a.Did != upgrade.Kept || !strings.HasPrefix(a.Why, mode[:4]+": ") || !strings.Contains(a.Why, why) {
				t.Errorf("%s: %+v", mode, a)
			}
			if now := w.get(x); now != was || !strings.HasPrefix(now, "1 1 ") {
				t.Errorf("%s: it was %q and is %q", mode, was, now)
			}
		}
	}
	if len(w.heard) > 0 {
		t.Error("something was sent:", w.heard)
	}
}

// A crash of the new code is undone: the actor goes on with its old code and its state, and that gets the message.
func TestGoBack(t *testing.T) {
	w := newWorld(t)
	var all []host.Ref
	for i := range 4 {
		all = append(all, w.start(fmt.Sprint("g", i), "tally"))
		w.tell(all[i], "a", "timer")
	}
	differs := w.start("h", "tally")
	w.run()
	twin := w.start("twin", "tally")
	w.tell(twin, "a", "timer", "b", "d", "crash2", "c")
	w.run()
	want := w.get(twin)
	w.heard = nil
	r := w.upgrade(upgrade.Options{Probation: time.Minute, MaxFailures: 0, Wait: func(_ context.Context, d time.Duration) {
		for i, g := range all {
			if w.tell(g, "b"); i < 2 {
				w.tell(g, "d", "crash2", "c")
			}
		}
		w.tell(differs, "differ")
		w.run()
	}})
	w.run()
	if r.Stopped == "" || !r.RolledBack || r.Crashes != 2 || w.module.Image() != w.old {
		t.Errorf("%+v", r)
	}
	for i, g := range all {
		if a := of(w, r, g.Path()); a.Did != upgrade.WentBack {
			t.Errorf("%+v", a)
		}
		if got := w.get(g); i < 2 && got != want || !strings.HasPrefix(got, "1 ") {
			t.Errorf("g%d: %s, the twin %s", i, got, want)
		}
	}
	if a := of(w, r, "/h"); a.Did != upgrade.Paused || a.Differ == nil || a.Differ.Sent == a.Differ.Old {
		t.Errorf("%+v", a)
	}
	if got := w.get(differs); got != "nothing" {
		t.Error("a paused actor has answered", got)
	}
	_ = w.Operate().Unpause(differs, false)
	if got := w.get(differs); got != "2 0 0" {
		t.Errorf("it goes on with %q", got)
	}
	w.clock.Advance(2 * time.Minute)
	if got := w.get(all[3]); !strings.HasPrefix(got, "1 3 ") {
		t.Error("the timer has not come:", got)
	}
}

// A type that does not save restarts, and the report says that its state is lost; the plan says it before.
func TestRestartIsSaid(t *testing.T) {
	w := newWorld(t)
	g := w.start("g", "plain")
	w.tell(g, "a")
	w.run()
	if a := of(w, w.upgrade(upgrade.Options{Plan: true}), "/g"); a.Did != upgrade.WouldLose || !strings.Contains(a.Why, "plain saves") {
		t.Errorf("%+v", a)
	}
	if got := w.get(g); !strings.HasPrefix(got, "1 1 ") {
		t.Error("a plan has changed something:", got)
	}
	only := func(string, string) []upgrade.Way { return []upgrade.Way{upgrade.State} }
	if a := of(w, w.upgrade(upgrade.Options{Ways: only}), "/g"); a.Did != upgrade.Kept {
		t.Errorf("%+v", a)
	}
	if got := w.get(g); !strings.HasPrefix(got, "1 1 ") {
		t.Error(got)
	}
	w.module = host.NewModule(w.old)
	h := w.start("h", "plain")
	w.tell(h, "a")
	if a := of(w, w.upgrade(upgrade.Options{}), "/h"); a.Did != upgrade.Restarted {
		t.Errorf("%+v", a)
	}
	if got := w.get(h); got != "2 0 0" {
		t.Error(got)
	}
}

// An actor that waits for an answer is upgraded when that has come.
func TestWaitsForAnswers(t *testing.T) {
	w := newWorld(t)
	g := w.start("g", "tally")
	w.tell(g, "a", "ask")
	w.run()
	if a := of(w, w.upgrade(upgrade.Options{Plan: true}), "/g"); a.Did != upgrade.Kept || !strings.Contains(a.Why, "waits for 1 answers") {
		t.Errorf("%+v", a)
	}
	w.clock.Advance(2 * time.Minute)
	w.run()
	if a := of(w, w.upgrade(upgrade.Options{}), "/g"); a.Did != upgrade.Upgraded {
		t.Errorf("%+v", a)
	}
	if got := w.get(g); !strings.HasPrefix(got, "2 2 ") {
		t.Error(got)
	}
}

// Replaced code is there until its last actor has ended or moved on, asleep or not, and as long as one can go back to it. Then it is closed.
func TestCodeInUseIsKept(t *testing.T) {
	w := newWorld(t)
	old := must(version(1))(t)
	w.module = host.NewModule(old)
	stays, goes, back := w.start("stays", "tally"), w.start("goes", "tally"), w.start("back", "tally")
	w.tell(stays, "a", "mode save panic")
	w.tell(goes, "a")
	w.tell(back, "a")
	w.run()
	r := w.upgrade(upgrade.Options{Probation: time.Minute, MaxFailures: 1, Patience: time.Nanosecond, Wait: func(context.Context, time.Duration) {
		if n := sandbox.Users(old); n != 3 {
			t.Errorf("%d use the old code: one runs it, and two can go back to it", n)
		}
		old.Retire()
		w.tell(back, "crash2")
		w.run()
	}})
	for path, did := range map[string]string{"/stays": upgrade.Kept, "/goes": upgrade.Upgraded, "/back": upgrade.WentBack} {
		if a := of(w, r, path); a.Did != did {
			t.Errorf("%+v", a)
		}
	}
	if n := sandbox.Users(old); n != 2 {
		t.Errorf("%d use the old code", n)
	}
	for ref, want := range map[host.Ref]string{stays: "1 1 ", goes: "2 1 ", back: "1 2 "} {
		if got := w.get(ref); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", ref, got)
		}
	}
	code := func(of host.Ref) string {
		i := must(w.View().Inspect(context.Background(), of))(t)
		return i.Module
	}
	if code(stays) != "tally1" || code(goes) != "tally2" {
		t.Error("what they run is", code(stays), code(goes))
	}
	if err := w.Operate().Restart(stays); err != nil { // with the code of the module
		t.Fatal(err)
	}
	w.run()
	if got := w.get(stays); got != "2 0 0" || sandbox.Users(old) != 1 {
		t.Error(got, sandbox.Users(old))
	}
	w.Stop(back)
	w.run()
	if x, err := sandbox.Get(old); !errors.Is(err, sandbox.ErrClosed) {
		t.Error("it is open:", err)
		x.Put()
	}
	if got := w.get(goes); !strings.HasPrefix(got, "2 1 ") {
		t.Error(got)
	}
}

// A crash after the last look at the crashes is undone as any other: nobody stays held.
func TestCrashesAtTheVeryEnd(t *testing.T) {
	w := newWorld(t)
	g := w.start("g", "tally")
	w.tell(g, "a")
	w.run()
	settle := swap.Settle
	defer func() { swap.Settle = settle }()
	swap.Settle = func(ctx context.Context, system any, of abi.Ref) {
		w.tell(g, "crash2", "b")
		w.run()
		settle(ctx, system, of)
	}
	r := w.upgrade(upgrade.Options{Probation: time.Minute, MaxFailures: 5, Wait: func(context.Context, time.Duration) {}})
	if r.Crashes != 1 {
		t.Fatal("the test has not met the moment:", r)
	}
	w.run()
	if got := w.get(g); !strings.HasPrefix(got, "1 3 ") {
		t.Errorf("%s; %+v", got, of(w, r, "/g"))
	}
}
