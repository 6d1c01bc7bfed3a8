package durable

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/runtime"
)

// Upgrades in random histories: the puppet in two versions, whose state goes over.

// Flags of records, see host/testdata/build.sh.
const (
	crashes2 = 8  // version 2 traps
	differs2 = 16 // version 2 leaves out the commands
	noSave   = 62 // a slot with which it does not save
	noLoad   = 63 // with which version 2 does not load
)

var savingOnce = sync.OnceValues(func() (all [2]*runtime.Image, err error) {
	e, err := engine()
	for i := range all {
		var code []byte
		name := fmt.Sprint("saving", i+1)
		if err == nil {
			code, err = os.ReadFile(filepath.Join("..", "testdata", name+".wasm"))
		}
		if err == nil {
			all[i], err = e.Load(context.Background(), code, runtime.ImageConfig{Name: name})
		}
	}
	return all, err
})

func savingImages(t testing.TB) [2]*runtime.Image {
	t.Helper()
	all, err := savingOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// keepSaving has a store keep the code of both.
func keepSaving(t testing.TB, s *Store, all [2]*runtime.Image) {
	for _, image := range all {
		code, err := os.ReadFile(filepath.Join("..", "testdata", image.Name()+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		sum, _ := sandbox.Fingerprint(image)
		identity, _ := sandbox.Identity(image)
		if err := s.Keep(sum[:], &Module{Name: image.Name(), Code: code, Identity: identity[:]}); err != nil {
			t.Fatal(err)
		}
	}
}

// vary has some of what a guest is told depend on its version.
func vary(rt *rapid.T, acts []act) {
	for i := range acts {
		a := &acts[i]
		switch rapid.IntRange(0, 15).Draw(rt, "version") {
		case 0, 1:
			a.Flag |= crashes2
		case 2, 3:
			a.Flag |= differs2
		case 4:
			a.Kind = noSave
		case 5:
			a.Kind = noLoad
		}
		for j := range a.Cmds {
			vary(rt, a.Cmds[j].Then)
		}
	}
}

func varyRole(rt *rapid.T, r *role) {
	vary(rt, r.Start)
	for i := range r.Children {
		varyRole(rt, &r.Children[i])
	}
}

// upgrades is the class of histories with upgrades.
type upgrades struct {
	images [2]*runtime.Image
	ways   []upgrade.Way // nil: a state, or those that happenings say
	module *host.Module
	kept   sync.Map
	did    map[string]int
}

// class has a history have upgrades.
func (u *upgrades) class(p *play) {
	u.images = savingImages(p.t)
	now := u.images[0]
	p.begins = func(w *lived, h *happening) {
		if u.module != nil {
			now = u.module.Image()
		}
		u.module = host.NewModule(now)
		w.props = Props{}
		for _, r := range p.roles {
			w.props[r.Name] = r.of(host.GuestOf(u.module, "puppet"))
		}
		w.change = func(o *Options) {
			o.Sim.Modules = &u.kept
			o.Code = func(sum []byte, _ *Module) (*runtime.Image, error) {
				for _, image := range u.images {
					if x, err := sandbox.Fingerprint(image); err == nil && string(x[:]) == string(sum) {
						return image, nil
					}
				}
				return nil, ErrNoModule
			}
			o.Sim.Opened = func(s *Store) { keepSaving(p.t, s, u.images) }
		}
	}
	p.comes = func(h *happening) bool {
		if h.What != "upgrade" {
			return false
		}
		u.upgrade(p, h)
		return true
	}
}

func (u *upgrades) upgrade(p *play, h *happening) {
	p.clock.Advance(1) // who has gone over, or back, at the time of the beginning would be of this upgrade
	left := h.Inner
	var last *happening // it was killed there
	old := u.module.Image()
	var had *runtime.Image // then
	var whole, lost bool
	image := u.images[0]
	if image == old {
		image = u.images[1]
	}
	o := upgrade.Options{Batch: 1 + h.N%3, Remember: p.store.Remember, MaxFailures: []int{0, 0, 1, 1000}[h.N%4]}
	o.Wait = func(context.Context, time.Duration) {
		p.rest()
		for len(left) > 0 && !p.died && !p.long {
			x := &left[0]
			left = left[1:]
			if x.What == "next" {
				return
			}
			if x.What == "kill" {
				p.done = append(p.done, "in it: "+x.String())
				if last = x; p.kills {
					had, whole = u.module.Image(), p.whole()
					p.dies()
				} else {
					p.again()
					p.note("killed in an upgrade", false)
					// No record has a crash. In the next process it comes about later, or not at all, and of several in another
					// order: that is another history.
					if held, paused := crashed(p.lived); paused || lost || len(held) > 1 {
						p.long = true
					}
				}
				continue
			}
			p.done = append(p.done, "in it:")
			before, _ := crashed(p.lived)
			p.one(x)
			after, _ := crashed(p.lived)
			lost = lost || slices.ContainsFunc(before, func(path string) bool { return !slices.Contains(after, path) })
		}
	}
	if h.D > 0 {
		if o.Probation = time.Hour; h.N%5 == 0 {
			o.Canary = 0.5
		}
	} else if h.N%2 == 0 {
		o.Ways = func(string, string) []upgrade.Way { return []upgrade.Way{upgrade.State, upgrade.Restart} }
	}
	if u.ways != nil {
		o.Ways = func(string, string) []upgrade.Way { return u.ways }
	}
	r, err := upgrade.Run(context.Background(), p.System, u.module, image, o)
	for p.died {
		if u.module = host.NewModule(had); o.Canary == 0 && last.N%3 == 0 && whole { // the manifest has the old code still
			u.module = host.NewModule(old)
		}
		p.back(last)
		x := p.store.Probation()
		if x == nil {
			p.rt.Fatalf("its upgrade is not remembered\n%s", p.story())
		}
		p.note("killed in an upgrade", false)
		o.Remember = p.store.Remember
		r, err = upgrade.Resume(context.Background(), p.System, u.module, old, image, x, o)
	}
	if err != nil {
		p.rt.Fatalf("%v\n%s", err, p.story())
	}
	text := fmt.Sprintf("it comes to: new %v, stopped %q, back %v, crashes %d", u.module.Image() == image, r.Stopped, r.RolledBack, r.Crashes)
	for _, a := range r.Actors {
		text += fmt.Sprint("; ", a.Path, " ", a.Did, " ", a.Why, " ", a.Differ)
		if u.did[a.Did]++; a.Did == upgrade.Kept && o.Canary > 0 && last != nil {
			p.long = true // in the next process it is tried once more: nobody knows any more who was to go first
		}
	}
	p.done = append(p.done, text)
}

// crashed are the actors whose new code has crashed, and which are held until they go back.
func crashed(w *lived) (all []string, paused bool) {
	for p, l := range w.look() {
		if strings.Contains(l, "Life:running") && strings.Contains(l, "Saved:[] ") {
			all, paused = append(all, p), paused || strings.Contains(l, "paused true")
		}
	}
	return all, paused
}

// Whatever happens to durable actors while their code is exchanged, on probation, or goes back, a system that is killed at rest again and
// again is the same as the one that never stopped.
func TestHistoriesWithUpgrades(t *testing.T) {
	thorough.Checks(t, 40)
	historiesWithUpgrades(t, nil)
}

// The same where new code handles all again that an actor has handled: resumed and repeated failures, questions and their deadlines, what it has
// put aside, in the entries that there were.
func TestHistoriesWithReplays(t *testing.T) {
	thorough.Checks(t, 40)
	historiesWithUpgrades(t, []upgrade.Way{upgrade.Replay})
}

func historiesWithUpgrades(t *testing.T, ways []upgrade.Way) {
	defer func(n int) { swap.Part = n }(swap.Part)
	swap.Part = 2048
	happenings := happenings
	if ways != nil { // a checkpoint would end what can be handled again: these stores keep no past
		happenings = slices.DeleteFunc(slices.Clone(happenings), func(s string) bool { return s == "checkpoint" || s == "compact" })
	}
	kinds := append([]string{"upgrade", "upgrade", "upgrade", "upgrade"}, happenings...)
	compared, did := 0, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		roles, all := drawHistory(rt, kinds)
		for i := range roles {
			varyRole(rt, &roles[i])
		}
		for i := range all {
			h := &all[i]
			if vary(rt, h.Acts); h.What == "upgrade" {
				h.N = rapid.IntRange(0, 59).Draw(rt, "how")
				if h.D = time.Duration(rapid.IntRange(0, 3).Draw(rt, "probation")); h.D > 0 {
					h.Inner = drawHappenings(rt, append([]string{"next"}, happenings...))
					for j := range h.Inner {
						vary(rt, h.Inner[j].Acts)
					}
				}
			}
		}
		compared += histories(t, rt, roles, all, func(p *play) { (&upgrades{ways: ways, did: did}).class(p) })
	})
	t.Logf("%d compared, %v", compared, did)
}
