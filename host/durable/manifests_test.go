package durable

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

var firstMoment = time.Unix(1_700_000_000, 0)

// toldTo is a system to which these things have happened, one after the other.
func toldTo(t testing.TB, props Props, told ...func(w *lived)) *lived {
	t.Helper()
	w, err := live(t, crashfs.New(), host.NewVirtualClock(firstMoment), props, false)
	if err != nil {
		t.Fatal(err)
	}
	w.rest()
	for _, f := range told {
		f(w)
		w.rest()
	}
	return w
}

// does has the actor at a path carry out commands in a turn.
func does(path string, flag byte, cmds ...cmd) func(w *lived) {
	return func(w *lived) { w.come(happening{What: "tell", Path: path, Acts: []act{{Flag: flag, Cmds: cmds}}}) }
}

// starts checks that a store starts with other props, early and late, again after that, and with the first props again; check is told of
// each start that has gone on.
func starts(t *testing.T, w *lived, before, after Props, check func(w *lived)) {
	t.Helper()
	fs := w.fs
	for i, props := range []Props{after, after, before, after} {
		for _, late := range []bool{false, true} {
			x, err := live(t, fs.Copy(), host.NewVirtualClock(w.clock.Now()), props, late)
			if err != nil {
				t.Errorf("start %d, late %v: %v", i, late, err)
				return
			}
			x.rest()
			check(x)
			if late {
				if i%2 == 0 { // with its own limits in it
					_ = x.store.Checkpoint(t.Context())
					x.rest()
				}
				fs = x.fs.Copy()
			}
			if err := x.store.Checkpoint(t.Context()); err != nil { // it compares with what the one before has
				t.Errorf("start %d, late %v: %v", i, late, err)
			}
			x.end(t)
		}
	}
}

// What has begun is there again, whatever its manifest allows now; and what was refused has not begun.
func TestWhatHasBegunIsThereAgain(t *testing.T) {
	p := puppet(puppetImage(t))
	tree := func(n int) host.Props { return p.WithLimits(host.Limits{Tree: host.TreeLimits{Actors: n}}) }
	spawns := func(name, options string) func(w *lived) {
		return does("p", 0, cmd{Op: "spawn", Name: name, Options: options})
	}
	all := []func(w *lived){spawns("a", ""), spawns("b", ""), spawns("c", "")}
	kids := p.WithChildren(host.Child{Name: "a", Props: p}, host.Child{Name: "b", Props: p}, host.Child{Name: "c", Props: p})
	small := func(p host.Props) host.Props {
		return p.WithLimits(host.Limits{Tree: host.TreeLimits{Actors: 2, Memory: 1}, Children: 1})
	}
	for name, c := range map[string]struct {
		before, after host.Props
		told          []func(w *lived)
		want          string
	}{
		"a smaller tree":         {p, tree(2), all, "abc"},
		"a larger tree":          {tree(3), p, all, "ab"},
		"fewer children":         {p, p.WithLimits(host.Limits{Children: 1}), all, "abc"},
		"more children":          {p.WithLimits(host.Limits{Children: 2}), p, all, "ab"},
		"less memory":            {p, small(p), all, "abc"},
		"fewer that props name":  {kids, small(kids), nil, "abc"},
		"no spawns":              {p, p.WithCapabilities(host.Capabilities{}), all, "abc"},
		"spawns":                 {p.WithCapabilities(host.Capabilities{Spawn: []string{"other"}}), p, all, ""},
		"smaller boxes":          {p, p.WithLimits(host.Limits{Mailbox: 1}), []func(w *lived){spawns("a", "roomy")}, "a"},
		"a child of its own box": {p, p, []func(w *lived){spawns("a", "box"), spawns("b", "")}, "b"},
	} {
		for _, checkpoint := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				told := c.told
				if checkpoint {
					told = append(slices.Clone(told), func(w *lived) { _ = w.store.Checkpoint(t.Context()) })
				}
				w := toldTo(t, Props{"p": c.before}, told...)
				defer w.end(t)
				starts(t, w, Props{"p": c.before}, Props{"p": c.after}, func(w *lived) {
					var names []string
					for path := range w.glance() {
						if name, ok := strings.CutPrefix(path, "/user/p/"); ok {
							names = append(names, name)
						}
					}
					slices.Sort(names)
					if got := strings.Join(names, ""); got != c.want {
						t.Errorf("checkpoint %v: %q are there, not %q", checkpoint, got, c.want)
					}
				})
			})
		}
	}
}

// Other actors go on who have had to do with one that is forgotten: who has asked it, has watched it, was watched by it, or was told of its end.
func TestOthersOfWhoIsForgotten(t *testing.T) {
	p := puppet(puppetImage(t))
	count := act{Kind: byte(abi.KindReply), Flag: last}
	for name, told := range map[string][]func(w *lived){
		"was asked":          {does("p0", 0, cmd{Op: "ask", Path: "p1", Key: 1, D: time.Hour})},
		"was asked by ref":   {does("p1", 0, cmd{Op: "ask", Path: "p0", Key: 1, D: time.Hour}), does("p0", 0, cmd{Op: "ask", Path: "p1", Key: 2, D: time.Hour})},
		"was identified":     {does("p0", 0, cmd{Op: "identify", Path: "p1", Key: 1, D: time.Hour})},
		"has watched":        {does("p1", 0, cmd{Op: "watch", Path: "p0"}), func(w *lived) { w.come(happening{What: "stop", Path: "p0"}) }},
		"was watched":        {does("p0", 0, cmd{Op: "watch", Path: "p1"}), func(w *lived) { w.come(happening{What: "stop", Path: "p1"}) }},
		"has stopped it":     {does("p1", 0, cmd{Op: "stop", Path: "p0"})},
		"has sent":           {does("p1", 0, cmd{Op: "send", Path: "p0", Then: []act{count}}), does("p0", 0, cmd{Op: "send", Path: "p1"})},
		"has asked":          {does("p1", 0, cmd{Op: "ask", Path: "p0", Key: 1, D: time.Hour}), func(w *lived) { w.clock.Advance(2 * time.Hour) }},
		"has spawned":        {does("p1", 0, cmd{Op: "spawn", Name: "a"}), does("p0", 0, cmd{Op: "ask", Path: "p1/a", Key: 1, D: time.Hour}, cmd{Op: "watch", Path: "p1/a"}), does("p1", trap)},
		"waits for its time": {does("p1", trap), does("p0", 0, cmd{Op: "ask", Path: "p1", Key: 1, D: time.Millisecond}), func(w *lived) { w.clock.Advance(time.Second) }},
	} {
		for at := range len(told) + 1 { // where a checkpoint is
			t.Run(name, func(t *testing.T) {
				both := Props{"p0": p, "p1": p.WithSupervision(supervision.Default().WithOtherwise(supervision.Suspend))}
				all := slices.Insert(slices.Clone(told), at, func(w *lived) { _ = w.store.Checkpoint(t.Context()) })
				w := toldTo(t, both, all...)
				defer w.end(t)
				want := w.look()["/user/p0"]
				one := maps.Clone(both)
				delete(one, "p1")
				for _, late := range []bool{false, true} {
					fs := w.fs.Copy()
					for range 2 { // twice
						forget(t, fs, "p1")
						back, err := live(t, fs, host.NewVirtualClock(w.clock.Now()), one, late)
						if err != nil {
							t.Fatalf("a checkpoint at %d, late %v: %v", at, late, err)
						}
						if got := back.look()["/user/p0"]; turnsOf(got) < turnsOf(want) {
							t.Errorf("a checkpoint at %d, late %v: %s", at, late, around(want, got))
						}
						back.rest()
						fs = back.fs.Copy()
						back.end(t)
						back, err = live(t, fs, host.NewVirtualClock(w.clock.Now()), both, late) // it begins anew
						if err != nil {
							t.Fatalf("a checkpoint at %d, late %v, anew: %v", at, late, err)
						}
						back.rest()
						fs = back.fs.Copy()
						back.end(t)
					}
				}
			})
		}
	}
}

// turnsOf is how many turns an actor has had, as a look says.
func turnsOf(look string) (n int) {
	if _, text, ok := strings.Cut(look, " Turns:"); ok {
		for _, c := range text {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
	}
	return n
}

// A child that its parent's props do not name any more stops at the start, with all below it, whatever it was made with, and is gone then.
func TestChildrenThatAreGone(t *testing.T) {
	p := puppet(puppetImage(t))
	echo, keep := keptEcho(t)
	other := puppetOf(host.Guest(echo, "echo"))
	odd := p.WithSupervision(supervision.Default().WithKind(supervision.AllForOne).WithOtherwise(supervision.Escalate)).WithLifetime(supervision.Permanent)
	for name, kid := range map[string]host.Props{
		"a plain one":          p,
		"one with children":    p.WithChildren(host.Child{Name: "x", Props: p}),
		"one with other rules": odd.WithChildren(host.Child{Name: "x", Props: odd.WithLifetime(supervision.Temporary)}),
		"a module of its own":  other,
	} {
		for _, checkpoint := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				before, after := Props{"p": p.WithChildren(host.Child{Name: "a", Props: kid}, host.Child{Name: "b", Props: p})}, Props{"p": p.WithChildren(host.Child{Name: "b", Props: p})}
				w := &lived{fs: crashfs.New(), clock: host.NewVirtualClock(firstMoment), props: before, change: keep}
				x, err := w.begin(t, false)
				if err != nil {
					t.Fatal(err)
				}
				x.Release()
				w.rest()
				for _, path := range []string{"p", "p/a", "p/b", "p/a/x"} {
					does(path, 0, cmd{Op: "send", Path: "p/b"}, cmd{Op: "spawn", Name: "s0"})(w)
					w.rest()
				}
				if checkpoint {
					if err := w.store.Checkpoint(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				defer func() { w.end(t) }()
				fs := w.fs.Copy()
				for i, props := range []Props{after, after, before} {
					back := &lived{fs: fs.Copy(), clock: host.NewVirtualClock(firstMoment), props: props, change: w.change}
					x, err := back.begin(t, i%2 == 0)
					if err != nil {
						t.Fatalf("start %d, checkpoint %v: %v", i, checkpoint, err)
					}
					x.Release()
					back.rest()
					there := back.glance()
					if there["/user/p"] == "" || there["/user/p/b"] == "" || there["/user/p/s0"] == "" || there["/user/p/b/s0"] == "" {
						t.Errorf("start %d, checkpoint %v: %v", i, checkpoint, there)
					}
					for path := range there {
						if strings.HasPrefix(path, "/user/p/a") && i < 2 {
							t.Errorf("start %d, checkpoint %v: %s is there", i, checkpoint, path)
						}
					}
					fs = back.fs.Copy()
					back.end(t)
				}
			})
		}
	}
}

// What an actor is to its supervisor, and what becomes of messages whose turn fails, changes between two lives: what has come of it is repeated.
func TestOtherLifetimes(t *testing.T) {
	p := puppet(puppetImage(t))
	rules := map[string]func(host.Props) host.Props{
		"transient":   func(p host.Props) host.Props { return p },
		"permanent":   func(p host.Props) host.Props { return p.WithLifetime(supervision.Permanent) },
		"temporary":   func(p host.Props) host.Props { return p.WithLifetime(supervision.Temporary) },
		"significant": func(p host.Props) host.Props { return p.WithSignificant(true) },
		"again":       func(p host.Props) host.Props { return p.WithCrashedMessage(host.RedeliverCrashed(2)) },
	}
	family := func(rule func(host.Props) host.Props) Props {
		s := supervision.Default().WithOtherwise(supervision.Restart).WithShutdown(supervision.ShutdownAny)
		return Props{"p": p.WithSupervision(s).WithChildren(host.Child{Name: "a", Props: rule(p).WithChildren(host.Child{Name: "x", Props: rule(p)})}, host.Child{Name: "b", Props: rule(p)})}
	}
	for from, a := range rules {
		for to, b := range rules {
			if from == to {
				continue
			}
			t.Run(from+", then "+to, func(t *testing.T) {
				w := toldTo(t, family(a), does("p/a/x", trap), does("p/b", 0, cmd{Op: "stopself", Path: "p/b"}), does("p/a", trap), does("p/a", 0, cmd{Op: "stopself", Path: "p/a"}))
				defer w.end(t)
				want := w.glance()
				for _, late := range []bool{false, true} {
					back := &lived{fs: w.fs.Copy(), clock: host.NewVirtualClock(w.clock.Now()), props: family(b)}
					x, err := back.begin(t, late)
					if err != nil {
						t.Fatalf("late %v: %v", late, err)
					}
					if got := back.glance(); want["/user/p"] != "" && !maps.Equal(got, want) {
						t.Errorf("late %v: %v, not %v", late, got, want)
					}
					x.Release()
					back.rest()
					again, err := live(t, back.fs.Copy(), host.NewVirtualClock(w.clock.Now()), family(a), late)
					if err != nil {
						t.Fatalf("late %v, and back: %v", late, err)
					}
					again.end(t)
					back.end(t)
				}
			})
		}
	}
}

// An order to go on after a failure was in vain, as the supervisor's strategy does not keep states: so it is when it is repeated, though
// a repetition keeps the states of all who had such orders.
func TestOrdersInVainAreInVainAgain(t *testing.T) {
	p := puppet(puppetImage(t))
	with := func(d supervision.Directive) host.Props {
		return p.WithSupervision(supervision.Default().WithOtherwise(d))
	}
	props := Props{"p": with(supervision.Resume).WithChildren(host.Child{Name: "a", Props: with(supervision.Escalate).WithChildren(host.Child{Name: "x", Props: p})})}
	w := toldTo(t, props, does("p/a/x", 0), does("p/a/x", trap), does("p/a/x", 0))
	defer w.end(t)
	want := w.look()["/user/p/a/x"]
	if !strings.Contains(want, "Incarnation:1") {
		t.Fatal(want)
	}
	starts(t, w, props, props, func(w *lived) {
		if got := w.look()["/user/p/a/x"]; got != want {
			t.Error(around(want, got))
		}
	})
}

// A sibling of who has failed restarted with it, or stopped as it was temporary: so it does when it is repeated, whatever it is now.
func TestSiblingsAreWhatTheyWere(t *testing.T) {
	p := puppet(puppetImage(t))
	for _, kind := range []supervision.Kind{supervision.AllForOne, supervision.RestForOne} {
		family := func(l supervision.Lifetime) Props {
			kid := host.Child{Name: "b", Props: p.WithLifetime(l)}
			return Props{"p": p.WithSupervision(supervision.Default().WithKind(kind).WithOtherwise(supervision.Restart)).WithChildren(host.Child{Name: "a", Props: p}, kid)}
		}
		for _, c := range [][2]supervision.Lifetime{{supervision.Transient, supervision.Temporary}, {supervision.Temporary, supervision.Transient}, {supervision.Permanent, supervision.Temporary}} {
			w := toldTo(t, family(c[0]), does("p/a", trap), does("p/b", 0), does("p/a", 0))
			want := w.glance()
			if (want["/user/p/b"] == "") != (c[0] == supervision.Temporary) {
				t.Fatal(want)
			}
			starts(t, w, family(c[0]), family(c[1]), func(w *lived) {
				if got := w.glance(); !maps.Equal(got, want) {
					t.Errorf("%v, %v: %v, not %v", kind, c, got, want)
				}
			})
			w.end(t)
		}
	}
}

// A child that has failed while its supervisor could not decide, and has then been stopped, is in no checkpoint.
func TestWhoHasStoppedIsNotDecidedAbout(t *testing.T) {
	p := puppet(puppetImage(t))
	a := p.WithChildren(host.Child{Name: "x", Props: p})
	props := Props{"p": p.WithSupervision(supervision.Default().WithOtherwise(supervision.Suspend)).WithChildren(host.Child{Name: "a", Props: a})}
	w := toldTo(t, props, does("p/a", trap), func(w *lived) { w.come(happening{What: "crash", Path: "p/a/x"}) }, func(w *lived) { w.come(happening{What: "stop", Path: "p/a/x"}) }, func(w *lived) {
		if err := w.store.Checkpoint(t.Context()); err != nil {
			t.Error(err)
		}
	})
	defer w.end(t)
	starts(t, w, props, props, func(w *lived) {
		if there := w.glance(); there["/user/p/a"] == "" || there["/user/p/a/x"] != "" {
			t.Error(there)
		}
	})
}

// keptEcho is another image, and has a store keep its code.
func keptEcho(t testing.TB) (*runtime.Image, func(*Options)) {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", "echo.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	image := load(t, code, runtime.ImageConfig{Name: "echo"})
	sum, _ := sandbox.Fingerprint(image)
	identity, _ := sandbox.Identity(image)
	kept := &sync.Map{}
	return image, func(o *Options) {
		o.Code = func([]byte, *Module) (*runtime.Image, error) { return image, nil }
		o.Sim.Modules = kept
		o.Sim.Opened = func(s *Store) {
			if err := s.Keep(sum[:], &Module{Name: "echo", Code: code, Identity: identity[:]}); err != nil {
				t.Error(err)
			}
		}
	}
}
