package scenario

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/runtime"
)

// twins are other images of the code of a module, to which a simulation upgrades its actors.
type twins struct {
	module string
	images []*runtime.Image // the first is the same code to the host, the second is other code
}

// load loads the twins of all modules, once. After an error there are none, and it is tried again.
func (st *Stage) load(ctx context.Context, b *bundle.Bundle) error {
	if st.twins != nil {
		return nil
	}
	var all []twins
	for _, m := range b.Manifest.Modules {
		t := twins{module: m.Name}
		for _, other := range []bool{false, true} {
			image, err := b.Twin(ctx, m.Name, other)
			if err != nil {
				return err
			}
			t.images = append(t.images, image)
		}
		all = append(all, t)
	}
	st.twins = all
	return nil
}

// plain has the modules of the bundle begin with their own images again, as they can: twins have the same types and inboxes.
func (st *Stage) plain(b *bundle.Bundle) {
	for _, t := range st.twins {
		_ = b.Module(t.module).Replace(b.Images[t.module])
	}
}

// upgrade exchanges the code of the actors of a module, which how chooses as it chooses the code. An actor whose state cannot go
// over now keeps its code until it begins anew.
func (w *world) upgrade(how uint64) error {
	by, all := w.simulated, w.stage.twins
	if len(all) == 0 {
		return nil
	}
	if w.cluster != nil { // of one node: they are replaced one by one
		up := w.cluster.running()
		if len(up) == 0 {
			return nil
		}
		was := w.place
		w.place = up[how>>16%uint64(len(up))]
		defer func() { w.place = was }()
	}
	t := all[how%uint64(len(all))]
	m := w.bundle.Module(t.module)
	image := t.images[how>>8%uint64(len(t.images))]
	if image == m.Image() {
		image = w.bundle.Images[t.module]
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	o := upgrade.Options{
		Ways: func(path, _ string) []upgrade.Way {
			if by.run.Spares(simulate.Upgrade, path) {
				return []upgrade.Way{}
			}
			return []upgrade.Way{upgrade.State, upgrade.Events}
		},
	}
	if by.disk != nil {
		if err := w.bundle.KeepTwin(ctx, image); err != nil {
			return fmt.Errorf("an upgrade: %w", err)
		}
		o.Batch = 1
		o.Tell = func(upgrade.Step) {
			if by.disk.Between() {
				cancel()
			}
		}
	}
	r, err := upgrade.Run(ctx, w.sys, m, image, o)
	switch {
	case err != nil && (r == nil || w.ctx.Err() != nil):
		return fmt.Errorf("an upgrade: %w", err)
	case err != nil:
		w.noteUpgrade("it ends early")
	}
	did := map[string]int{}
	for i := range r.Actors {
		a := &r.Actors[i]
		did[a.Did]++
		if a.Did == upgrade.Kept {
			w.noteUpgrade("%s keeps its code: %s", a.Path, a.Why)
		}
	}
	w.noteUpgrade("%d actors of %s have other code, %d keep theirs", did[upgrade.Upgraded], t.module, did[upgrade.Kept])
	return nil
}

// noteUpgrade notes what becomes of an upgrade, and on which node.
func (w *world) noteUpgrade(format string, args ...any) {
	w.simulated.run.Note("%s", of(w.name, "upgrade: "+fmt.Sprintf(format, args...)))
}

// plainNodes has all nodes have the code of the manifest again, for actors that begin: parents and the nodes of their children must agree.
func (w *world) plainNodes() {
	for _, p := range w.cluster.booted() {
		w.stage.plain(p.bundle)
	}
}
