package durable

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// redraw is a role as another manifest has it.
func redraw(rt *rapid.T, r role) role {
	if rapid.IntRange(0, 2).Draw(rt, "same") == 0 {
		return r
	}
	n, x := r, drawRole(rt, r.Name, 0)
	is := func(what string) bool { return rapid.Bool().Draw(rt, what) }
	if is("strategy") {
		n.Otherwise, n.Kind, n.Keep, n.Restarts, n.Exceeded, n.Shared, n.Sliding, n.Backoff, n.Shutdown = x.Otherwise, x.Kind, x.Keep, x.Restarts, x.Exceeded, x.Shared, x.Sliding, x.Backoff, x.Shutdown
	}
	if is("lifetime") {
		n.Life, n.Signif = x.Life, x.Signif
	}
	if is("rights") {
		n.Rights, n.Services = x.Rights, x.Services
	}
	if n.Limits = x.Limits; is("start") {
		n.Start = x.Start
	}
	if is("crashed") {
		n.Crashed = x.Crashed
	}
	n.Children = nil
	for _, k := range r.Children {
		if rapid.IntRange(0, 5).Draw(rt, "gone") > 0 {
			n.Children = append(n.Children, redraw(rt, k))
		}
	}
	name := rapid.SampledFrom([]string{"n", "a", "b"}).Draw(rt, "new")
	if rapid.IntRange(0, 5).Draw(rt, "begins") == 0 && !slices.ContainsFunc(n.Children, func(k role) bool { return k.Name == name }) {
		n.Children = append(n.Children, drawRole(rt, name, 0))
	}
	if is("order") {
		slices.Reverse(n.Children)
	}
	return n
}

// Between two lives the manifest changes: all that it says of an actor, its children and their order, and who is durable at all. The next process starts, early and
// late alike, and once more to the same.
func TestHistoriesWithOtherManifests(t *testing.T) {
	thorough.Checks(t, 20)
	starts := 0
	kinds := append([]string{"manifest", "manifest", "manifest", "cut"}, happenings...)
	rapid.Check(t, func(rt *rapid.T) {
		roles, all := drawHistory(rt, kinds)
		p := &play{t: t, rt: rt, roles: roles, kills: true}
		props := func() Props {
			x := Props{}
			for _, r := range p.roles {
				x[r.Name] = r.props(t)
			}
			return x
		}
		p.begins = func(w *lived, _ *happening) { w.props = props() }
		p.start()
		defer func() { p.end(t) }()
		p.rest()
		dice := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "dice")))
		again := func(h *happening, forgets []string) {
			fs, now := p.fs.Copy(), p.clock.Now()
			if h.What == "cut" {
				for range h.N {
					p.Step()
				}
				if fs = p.fs.Copy(); h.N%2 == 0 {
					fs = p.fs.After(p.fs.Done(), dice)
				}
				port.Freeze(p.System)
			}
			p.end(t)
			var looks [3]map[string]string
			whole := false
			for i, late := range []bool{!h.Late, h.Late, h.Late} {
				var copied *crashfs.FS
				if copied = fs.Copy(); i == 2 {
					copied = p.fs.Copy() // of the life before, which has only begun
					p.end(t)
				}
				w := &lived{fs: copied, clock: host.NewVirtualClock(now), props: props()}
				for _, name := range forgets[:min(len(forgets), 2-i)] {
					forget(t, copied, name)
				}
				x, err := w.begin(t, late)
				if err != nil {
					rt.Fatalf("it does not start: %v\n%s", err, p.story())
				}
				looks[i] = w.look()
				x.Release()
				if w.rest(); i == 1 {
					for w.store.Work() {
					}
					whole = w.whole() // else some begin anew in each process
				}
				if w.long {
					p.lived = w
					return
				}
				if i > 0 {
					looks[i] = w.look() // when it has gone on
				}
				if p.lived = w; i == 0 {
					looks[0] = w.look()
					w.end(t)
				}
			}
			starts += 3
			same(rt, "early and late", looks[0], looks[1], p.story)
			if whole {
				same(rt, "once more", looks[1], looks[2], p.story)
			}
		}
		for i := range all {
			h := &all[i]
			if p.long {
				return
			}
			p.done = append(p.done, h.String())
			var forgets []string
			switch h.What {
			case "manifest":
				if len(p.roles) > 1 && rapid.IntRange(0, 4).Draw(rt, "gone") == 0 {
					forgets = append(forgets, p.roles[0].Name)
					p.roles = slices.Clone(p.roles[1:])
				}
				for j := range p.roles {
					p.roles[j] = redraw(rt, p.roles[j])
				}
				p.done = append(p.done, "then:\n"+(&play{roles: p.roles}).story())
				again(h, forgets)
			case "kill", "cut":
				again(h, nil)
			default:
				p.done = p.done[:len(p.done)-1]
				p.one(h)
			}
			p.rest()
		}
	})
	t.Logf("%d starts compared", starts)
}

// forget has a store forget an actor.
func forget(t testing.TB, fs *crashfs.FS, name string) {
	t.Helper()
	s, err := Open(Options{Dir: "store", FS: fs, Clock: host.NewVirtualClock(time.Unix(1_700_000_000, 0)), space: someSpace(), Sim: &Sim{Rand: rand.NewChaCha8([32]byte{2}), Segment: 64 << 10, Secret: historySecret}})
	if err == nil {
		_ = s.Forget(t.Context(), "w", name) // it may have ended
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}
