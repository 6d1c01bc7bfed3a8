package upgrade_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// byHand loads a guest that is written by hand.
func byHand(t *testing.T, name string) *runtime.Image {
	t.Helper()
	code := must(os.ReadFile(filepath.Join("testdata", "wat", name+".wasm")))(t)
	return must(must(engine())(t).Load(context.Background(), code, runtime.ImageConfig{Name: name}))(t)
}

// handWorld is a manual system with an actor whose module has an image.
func handWorld(t *testing.T, image *runtime.Image) (w *world, g host.Ref) {
	t.Helper()
	w = &world{t: t, clock: host.NewVirtualClock(time.Unix(1_700_000_000, 0)), module: host.NewModule(image), old: image}
	w.System = must(host.New(host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1).WithGuardian(supervision.Default())))(t)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	must(w.Spawn("sink", host.Func(func(_ *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage {
			w.heard = append(w.heard, string(m.Payload))
		}
		return nil
	})))(t)
	g = must(w.Spawn("g", host.GuestOf(w.module, "tally").WithLimits(host.Limits{Memory: 1 << 20, Fuel: 1_000_000})))(t)
	w.run()
	return w, g
}

// count has it count once more; the answer is 100 times its version and the count.
func count(w *world, g host.Ref) byte {
	w.t.Helper()
	p := must(w.Request(g, host.Raw{1}))(w.t)
	defer p.Cancel()
	w.run()
	select {
	case m := <-p.Answer():
		if m.Err() == nil && len(m.Payload) == 2 {
			return m.Payload[1]
		}
		w.t.Fatalf("%v %x", m.Err(), m.Payload)
	default:
		w.t.Fatal("no answer")
	}
	return 0
}

// Whatever code does that is to save or to load, the actor stays as it was, and nothing of it leaves.
func TestHostileSavesAndLoads(t *testing.T) {
	for name, why := range map[string]string{
		"save-trap": "unreachable", "save-loop": "fuel", "save-grow": "unreachable", "save-twice": "saved 2 times", "save-send": "asked for send",
		"save-garbage": "not one item", "load-trap": "unreachable", "load-loop": "fuel", "load-grow": "unreachable", "load-send": "asked for send",
		"load-saved": "asked for saved",
	} {
		t.Run(name, func(t *testing.T) {
			names := []string{"tally1", name}
			version := byte(100)
			if strings.HasPrefix(name, "save") {
				names, version = []string{name, "tally1"}, 200
			}
			w, g := handWorld(t, byHand(t, names[0]))
			w.new = byHand(t, names[1])
			count(w, g)
			for _, plan := range []bool{true, false} {
				a := of(w, w.upgrade(upgrade.Options{Plan: plan, Probation: time.Minute, Wait: func(context.Context, time.Duration) {}}), "/g")
				if a.Did != upgrade.Kept || !strings.HasPrefix(a.Why, name[:4]+": ") || !strings.Contains(a.Why, why) {
					t.Errorf("%+v", a)
				}
			}
			if n := count(w, g); n != version+2 {
				t.Errorf("it answers %d", n)
			}
			if len(w.heard) > 0 || w.module.Image() != w.old {
				t.Error("it has sent", w.heard)
			}
		})
	}
}

// The state of a guest that is written by hand goes over, and back after a crash.
func TestByHand(t *testing.T) {
	w, g := handWorld(t, byHand(t, "tally1"))
	w.new = byHand(t, "tally2")
	count(w, g)
	r := w.upgrade(upgrade.Options{Probation: time.Minute, MaxFailures: 1, Wait: func(context.Context, time.Duration) {
		if n := count(w, g); n != 202 {
			t.Errorf("it answers %d", n)
		}
	}})
	if a := of(w, r, "/g"); a.Did != upgrade.Upgraded || count(w, g) != 203 {
		t.Errorf("%+v", a)
	}
}

// A trial of an actor whose turn has failed goes on until that is undone: the actor is held.
func TestATrialThatHasFailed(t *testing.T) {
	image := byHand(t, "tally1")
	for _, fails := range []bool{false, true} {
		told := 0
		trial := swap.NewTrial(image, &sandbox.Snapshot{}, &sandbox.Snapshot{}, 1000, func(*abi.Failure) { told++ })
		if fails && (!trial.Fail(&abi.Failure{}) || told != 1) {
			t.Error("its failure is not undone")
		}
		trial.EndIfWell("late")
		if _, _, _, over := trial.Kept(); (over == "") != fails {
			t.Errorf("it is over: %q", over)
		}
		trial.End("later")
		if _, _, _, over := trial.Kept(); over == "" || trial.Fail(&abi.Failure{}) {
			t.Error("it is not over")
		}
	}
}

// An upgrade does not wait for ever for an actor that is in a long turn: not while it collects the actors, nor while it takes one, nor at its end.
func TestLongTurns(t *testing.T) {
	defer upgrade.SetVisit(10 * time.Millisecond)()
	members, take, settle := swap.Members, swap.Take, swap.Settle
	defer func() { swap.Members, swap.Take, swap.Settle = members, take, settle }()
	for name, block := range map[string]func(){
		"members": func() {
			swap.Members = func(ctx context.Context, system, module any) []swap.Member {
				<-ctx.Done()
				all := members(ctx, system, module)
				for i := range all {
					all[i].Image, all[i].Unseen = nil, true
				}
				return all
			}
		},
		"take": func() {
			swap.Take = func(ctx context.Context, _ any, _ abi.Ref) (*swap.Taken, error) {
				<-ctx.Done()
				return nil, swap.ErrNotNow
			}
		},
		"settle": func() { swap.Settle = func(ctx context.Context, _ any, _ abi.Ref) { <-ctx.Done() } },
	} {
		t.Run(name, func(t *testing.T) {
			swap.Members, swap.Take, swap.Settle = members, take, settle
			w, g := handWorld(t, byHand(t, "tally1"))
			w.new = byHand(t, "tally2")
			block()
			r := w.upgrade(upgrade.Options{Probation: time.Minute, MaxFailures: 9, Wait: func(context.Context, time.Duration) {}})
			a := of(w, r, "/g")
			if name == "settle" {
				if err := w.Tell(g, host.Raw{9}); err != nil { // nobody undoes the crash, so it is one
					t.Fatal(err)
				}
				if n := count(w, g); a.Did != upgrade.Upgraded || n != 201 {
					t.Errorf("%+v: it answers %d", a, n)
				}
				return
			}
			if n := count(w, g); a.Did != upgrade.Kept || n != 101 || a.Why == "" {
				t.Errorf("%+v: it answers %d", a, n)
			}
		})
	}
}
