package durable

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// A history is played twice: once by a system that never stops, and once by one that has checkpoints and is killed. What there is of them is
// noted where the second one was killed, and at the end, and must be the same.

// play is how a history goes for one of the two.
type play struct {
	*lived
	t     testing.TB
	rt    *rapid.T
	kills bool // it is the one that is killed
	roles []role
	done  []string
	looks []look
	had   []string // outside, of lives before

	begins func(w *lived, h *happening) // before a life: its props, and what its store is opened with; nil: as the one before
	comes  func(h *happening) bool      // what this class has happen; false: it is what all have
	died   bool                         // and is not back yet
	left   *crashfs.FS                  // what it has left then
}

// look is what there was of a system.
type look struct {
	when   string
	actors map[string]string
	seen   []string
}

func (p *play) story() string {
	var text strings.Builder
	for _, r := range p.roles {
		fmt.Fprintf(&text, "%+v\n", r)
	}
	return text.String() + strings.Join(p.done, "\n")
}

// note notes what there is. A glance has none return who is away.
func (p *play) note(when string, glance bool) {
	if p.long {
		return
	}
	l := look{when: when, seen: slices.Concat(p.had, p.seen)}
	if glance {
		l.actors = p.glance()
	} else {
		l.actors = p.look()
	}
	p.looks = append(p.looks, l)
}

// glance is what a look at all says of each.
func (w *lived) glance() map[string]string {
	all := map[string]string{}
	for _, i := range w.View().AppendInfo(nil) {
		if p := i.Ref.Path(); strings.HasPrefix(p, "/user/") && p != "/user/outside" {
			state := i.State
			if state == host.StateAsleep {
				state = host.StateRunning
			}
			all[p] = fmt.Sprint(i.Ref, i.Type, state, i.Paused, i.Incarnation, i.Turns) // what waits may not count any more
		}
	}
	return all
}

// start begins the first life.
func (p *play) start() {
	p.life(crashfs.New(), host.NewVirtualClock(time.Unix(1_700_000_000, 0)), &happening{Late: p.kills})
}

// life begins a life, up to its release.
func (p *play) life(fs *crashfs.FS, clock *host.VirtualClock, h *happening) {
	w := &lived{fs: fs, clock: clock}
	if p.lived != nil {
		w.props = p.lived.props
	}
	p.begins(w, h)
	x, err := w.begin(p.t, h.Late)
	if err != nil {
		p.rt.Fatalf("it does not start: %v\n%s", err, p.story())
	}
	p.lived = w
	x.Release()
	if h.N%2 == 0 {
		p.rest()
	}
}

// dies ends a life at rest.
func (p *play) dies() {
	p.left, p.had, p.died = p.fs.Copy(), slices.Concat(p.had, p.seen), true
}

// whole reports whether all are there that a start would have begin.
func (w *lived) whole() bool {
	for name := range w.props {
		if _, err := w.Lookup("/user/" + name); err != nil {
			return false
		}
	}
	return true
}

// back has it come back.
func (p *play) back(h *happening) {
	now := p.clock.Now()
	p.end(p.t)
	p.died = false
	p.life(p.left, host.NewVirtualClock(now), h)
	p.rest()
}

// again starts who has ended, as a start does.
func (p *play) again() {
	for _, name := range slices.Sorted(maps.Keys(p.props)) {
		if _, err := p.Lookup("/user/" + name); err != nil {
			_, _ = p.Spawn(name, p.props[name])
		}
	}
	p.rest()
}

// all plays what happens.
func (p *play) all(history []happening) {
	for i := range history {
		if p.long || p.died {
			return
		}
		p.one(&history[i])
	}
}

func (p *play) one(h *happening) {
	p.done = append(p.done, h.String())
	switch {
	case p.comes != nil && p.comes(h):
	case h.What == "kill":
		if p.kills {
			p.dies()
			p.back(h)
		} else {
			p.again()
		}
		p.note("killed", h.N%3 > 0)
	case h.What == "checkpoint":
		if p.kills {
			_ = p.store.Checkpoint(p.t.Context())
		}
	case h.What == "compact":
		if p.kills {
			_ = p.store.Compact(p.t.Context())
		}
	default:
		p.come(*h)
	}
	p.rest()
}

// histories plays a history twice, and compares. It returns how many looks were compared.
func histories(t testing.TB, rt *rapid.T, roles []role, all []happening, class func(p *play)) int {
	t.Helper()
	var both [2]*play
	for i := range both {
		p := &play{t: t, rt: rt, roles: roles, kills: i == 1}
		both[i] = p
		class(p)
		p.start()
		p.rest()
		p.all(all)
		p.note("at the end", false)
		p.end(t)
		if p.long {
			return 0
		}
	}
	a, b := both[0].looks, both[1].looks
	for i := range min(len(a), len(b)) {
		same(rt, a[i].when, a[i].actors, b[i].actors, both[1].story)
		if !slices.Equal(a[i].seen, b[i].seen) {
			rt.Fatalf("%s: outside has seen\n%v\nand of the one that was killed\n%v\n%s", a[i].when, a[i].seen, b[i].seen, both[1].story())
		}
	}
	if len(a) != len(b) {
		rt.Fatalf("%d looks and %d\n%s", len(a), len(b), both[1].story())
	}
	return len(a)
}
