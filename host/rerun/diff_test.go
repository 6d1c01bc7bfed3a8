package rerun

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/runtime"
)

// lines is a run of a few puppets that get messages one after another.
func lines(t *testing.T, change func(host.Config) host.Config, mail func(w *world)) *recorder.Recording {
	t.Helper()
	w := quietWorld(t, change)
	mail(w)
	return w.end()
}

// quietWorld has two puppets and nothing that happens by itself.
func quietWorld(t *testing.T, change func(host.Config) host.Config) *world {
	t.Helper()
	w := newBareWorld(t, setting{workers: 2, config: change})
	image := load(t, "puppet", modules(t)[0], runtime.ImageConfig{})
	for _, name := range []string{"a", "b"} {
		w.spawn(name, host.Guest(image, "puppet").WithCapabilities(host.Capabilities{Send: []string{"/**"}}))
	}
	return w
}

func (w *world) tell(path string, v any) {
	w.t.Helper()
	ref, err := w.Lookup("/user/" + path)
	if err == nil {
		err = w.Tell(ref, v)
	}
	if err == nil {
		err = w.Idle(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Two runs of the same messages are the same, though their refs, seeds and times are not. The first turn that is another one
// is named: by its message, its command, its failure, or because only one run has it.
func TestDiffNamesTheFirstOtherTurn(t *testing.T) {
	toB := func(s string) host.Raw {
		return script(rec(0, 0, send("/user/b", script(rec(0, 0, send("/user/nobody", text(s)))))))
	}
	usual := func(w *world) {
		w.tell("a", script(rec(recAdd, 1)))
		w.tell("a", toB("one"))
		w.tell("a", toB("two"))
		w.tell("b", script(rec(recAdd, 2)))
	}
	first := lines(t, nil, usual)
	for name, x := range map[string]struct {
		mail func(*world)
		want Divergence
		text string
	}{
		"same": {mail: usual},
		"another message": {func(w *world) {
			w.tell("a", script(rec(recAdd, 1)))
			w.tell("a", toB("one"))
			w.tell("a", toB("TWO"))
			w.tell("b", script(rec(recAdd, 2)))
		}, Divergence{Path: "/user/a", Turn: 3, What: DiffersMessage, Command: -1}, "message"},
		"a failure more": {func(w *world) {
			w.tell("a", script(rec(0, trap)))
		}, Divergence{Path: "/user/a", Turn: 1, What: DiffersMessage, Command: -1}, ""},
		"a turn less": {func(w *world) {
			w.tell("a", script(rec(recAdd, 1)))
			w.tell("a", toB("one"))
			w.tell("a", toB("two"))
		}, Divergence{Path: "/user/b", Turn: 3, What: DiffersMessage, Command: -1, Byte: -1}, "message"},
		"an actor more": {func(w *world) {
			usual(w)
			w.spawn("c", host.Guest(load(t, "puppet", modules(t)[0], runtime.ImageConfig{}), "puppet"))
			w.tell("c", script(rec(recAdd, 2)))
		}, Divergence{Path: "/user/c", Turn: 0, What: DiffersMissing, Command: -1, Byte: -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Diff(t.Context(), compiled(t), first, lines(t, func(c host.Config) host.Config { return c.WithSeed(7) }, x.mail), Options{Modules: modules(t)})
			if err != nil {
				t.Fatal(err)
			}
			if x.want.Path == "" {
				if c.First != nil || c.Equal != c.Turns[0] || c.Equal < 7 {
					t.Fatalf("%+v, %v", c, c.First)
				}
				return
			}
			d := c.First
			if d == nil {
				t.Fatalf("%+v", c)
			}
			t.Log(d, d.Texts)
			if d.Path != x.want.Path || d.Turn != x.want.Turn || d.What != x.want.What || d.Command != x.want.Command || (d.Byte < 0) != (x.want.Byte < 0) {
				t.Errorf("%+v", d)
			}
			if !strings.Contains(d.Texts[0], x.text) {
				t.Errorf("%q", d.Texts)
			}
		})
	}
}

// What a guest makes of random numbers is another command of the same message. Its number and byte are named.
func TestDiffNamesTheCommand(t *testing.T) {
	var r [2]*recorder.Recording
	for n := range r {
		r[n] = lines(t, nil, func(w *world) {
			w.spawn("family", host.Guest(load(t, "family", modules(t)[1], runtime.ImageConfig{NoFreeze: true}), "worker").WithCapabilities(host.Capabilities{Send: []string{"/user/a"}}))
			w.spawn("sink", host.Func(func(*host.Context, host.Message) error { return nil }))
			for range 10 {
				w.tell("family", "order") // a map's
			}
		})
	}
	c, err := Diff(t.Context(), compiled(t), r[0], r[1], Options{Modules: modules(t)})
	if err != nil {
		t.Fatal(err)
	}
	d := c.First
	if d == nil || d.Path != "/user/family" || d.What != DiffersCommand || d.Command != 0 || d.Byte < 1 || c.Differing != 1 {
		t.Fatalf("%+v %+v", c, d)
	}
	t.Log(d, d.Texts)
}

// A long run under load differs from itself nowhere, and from another one somewhere; what is found is the same each time.
func TestDiffOfLongRuns(t *testing.T) {
	var r [2]*recorder.Recording
	for n := range r {
		w := newWorld(t, setting{workers: 3, turns: 20})
		w.load(uint64(n), 60)
		r[n] = w.end()
	}
	if c, err := Diff(t.Context(), compiled(t), r[0], r[0], Options{Modules: modules(t)}); err != nil || c.First != nil || c.Equal != c.Turns[0] {
		t.Fatalf("%v %+v", err, c)
	}
	var found []string
	for range 2 {
		c, err := Diff(t.Context(), compiled(t), r[0], r[1], Options{Modules: modules(t)})
		if err != nil || c.First == nil {
			t.Fatalf("%v %+v", err, c)
		}
		found = append(found, fmt.Sprint(c.First, c.First.Texts, c.Equal, c.Differing))
	}
	if t.Log(found[0]); len(slices.Compact(found)) != 1 {
		t.Errorf("%q", found)
	}
}

// Turns of an incarnation may come before the last ones of the incarnation before.
func TestTurnsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l line
		want := map[uint64]uint64{}
		for order, turn := range rapid.SliceOfNDistinct(rapid.Uint64Range(0, 20), 1, 20, rapid.ID).Draw(rt, "turns") {
			l.add(turn, mark{order: uint32(order)})
			want[turn] = uint64(order)
		}
		first := slices.Min(slices.Collect(maps.Keys(want)))
		if l.first() != first {
			rt.Fatalf("%+v begins with %d, not %d", l.parts, l.first(), first)
		}
		for turn := range uint64(22) {
			order, there := want[turn]
			if p := l.at(turn); there != (p != nil) || there && uint64(p.order) != order {
				rt.Fatalf("turn %d of %+v: %v", turn, l.parts, p)
			}
			at, _, more := l.next(turn)
			for wanted := turn; ; wanted++ {
				if _, there := want[wanted]; there || wanted > 21 {
					if more != there || more && at != wanted {
						rt.Fatalf("after %d of %+v: %d, not %d", turn, l.parts, at, wanted)
					}
					break
				}
			}
		}
	})
}
