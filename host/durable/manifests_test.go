package durable

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
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
				fs = x.fs.Copy()
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
		"smaller boxes":          {p, p.WithLimits(host.Limits{Mailbox: 1}), []func(w *lived){spawns("a", "throughput")}, "a"},
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
