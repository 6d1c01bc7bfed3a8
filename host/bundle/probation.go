package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/upgrade"
)

// An upgrade whose process has ended while actors were on probation goes on when they are back. Until it is over the bundle does not
// change, as it does not while an upgrade of its own process goes on.

// ErrProbation says that an upgrade of an earlier process goes on.
var ErrProbation = errors.New("bundle: the actors of an upgrade are on probation")

// probation is an upgrade of an earlier process.
type probation struct {
	*record.Probation
	before, now *loaded       // of these one is the module's at the start
	kept        *loaded       // and this one is not; it may have been read from the store
	done        chan struct{} // nothing is done for it any more; nil: nothing was
	over        bool          // kept is not needed; after done
}

// findProbation finds out what the store, which has been read, knows of an upgrade, before actors come back. One that cannot go on is over: the
// manifest names other code by now, or what it would go back to is not there.
func (b *Bundle) findProbation(sys *host.System) error {
	b.probation = nil
	p := b.store.Probation()
	if p == nil {
		return nil
	}
	x, err := b.probationOf(p)
	if err == nil && swap.Manual(sys) {
		err = errors.New("whoever steps the system has to resume it")
	}
	if err == nil {
		b.probation = x
		return nil
	}
	b.log.Warn("the probation of an upgrade ends here", "module", p.Module, "why", err)
	p.Over = true
	return b.store.Remember(p)
}

func (b *Bundle) probationOf(p *record.Probation) (*probation, error) {
	l := b.loaded[p.Module]
	x := &probation{Probation: p, before: l, now: l}
	var of *(*loaded)
	var sum []byte
	switch {
	case l == nil || l.sum == nil:
		return nil, errors.New("no durable actor has that module now")
	case bytes.Equal(l.sum, p.To):
		of, sum = &x.before, p.From
	case bytes.Equal(l.sum, p.From):
		of, sum = &x.now, p.To
	default:
		return nil, errors.New("the manifest names other code than the upgrade was about")
	}
	module, err := b.store.Kept(sum)
	if err == nil {
		_, err = b.loadKept(sum, module)
	}
	if err != nil {
		return nil, err
	}
	k := &b.kept
	k.mu.Lock()
	x.kept = k.images[string(sum)]
	k.mu.Unlock()
	*of = x.kept
	return x, nil
}

// resume has the upgrade go on, if there is one. The actors are back.
func (b *Bundle) resume(sys *host.System) {
	x := b.probation
	if x == nil {
		return
	}
	module, store := b.modules[x.Module], b.store
	o := upgrade.Options{Ways: b.Manifest.ways(x.Module), Remember: store.Remember}
	ctx, cancel := context.WithCancel(context.Background())
	x.done = make(chan struct{})
	b.log.Info("the probation of an upgrade goes on", "module", x.Module, "before", x.before.hash, "now", x.now.hash, "until", untilOf(x.Probation))
	go func() {
		select {
		case <-sys.Terminated():
		case <-ctx.Done():
		}
		cancel()
	}()
	go func() {
		defer close(x.done)
		defer cancel()
		r, err := upgrade.Resume(ctx, sys, module, x.before.image, x.now.image, x.Probation, o)
		select {
		case <-sys.Terminated():
			return // it goes on in the next process
		default:
		}
		if err != nil {
			b.log.Error("the probation of an upgrade ends here", "module", x.Module, "error", err)
		}
		if r != nil {
			b.tellProbation(x, r)
		}
		if module.Image() == x.kept.image {
			all := maps.Clone(b.loaded)
			all[x.Module] = x.kept
			b.codes.set(all)
			return // see probed
		}
		x.over = true
		store.Release(x.kept.sum)
		b.retireProbed(x)
	}()
}

// untilOf is the end of a probation; empty: it is not known yet.
func untilOf(p *record.Probation) string {
	if p.Until == 0 {
		return ""
	}
	return time.Unix(0, p.Until).UTC().Format(time.RFC3339)
}

func (b *Bundle) tellProbation(x *probation, r *upgrade.Report) {
	told := 0
	for i := range r.Actors {
		a := &r.Actors[i]
		if told++; a.Did == upgrade.Upgraded && a.Why == "" || told > mostTold {
			continue
		}
		b.log.Warn("an actor of an upgrade", "module", x.Module, "actor", a.Path, "did", a.Did, "why", a.Why)
	}
	if r.RolledBack {
		b.log.Error("an upgrade was rolled back", "module", x.Module, "now", x.before.hash, "why", r.Stopped)
		return
	}
	b.log.Info("an upgrade is over", "module", x.Module, "now", x.now.hash, "actors", len(r.Actors))
}

// probed takes over what the upgrade of an earlier process has come to, before the bundle changes. It is ErrProbation as long as that goes on.
func (b *Bundle) probed() error {
	x := b.probation
	if x == nil || x.done == nil {
		return nil
	}
	select {
	case <-x.done:
	default:
		return fmt.Errorf("%w: of module %s, since %s", ErrProbation, x.Module, time.Unix(0, x.Began).UTC().Format(time.RFC3339))
	}
	b.probation = nil
	if l := b.loaded[x.Module]; l != x.kept && b.modules[x.Module].Image() == x.kept.image {
		b.adopt(x.Module, x.kept)
		b.releaseCode(l)
		b.codes.retire(x.Module, l)
	}
	return nil
}

// endProbation waits until nothing of an upgrade uses the system, which has terminated. The store knows what is left of it.
func (b *Bundle) endProbation() {
	x := b.probation
	if x == nil {
		return
	}
	if x.done != nil {
		<-x.done
		_ = b.probed() // it is over, or has ended with the system
	}
	if b.probation = nil; !x.over && b.loaded[x.Module] != x.kept {
		b.retireProbed(x)
	}
}

// retireProbed closes the code that no module has, after its last actor.
func (b *Bundle) retireProbed(x *probation) {
	if b.twinOf(x.kept.sum) != x.kept {
		b.codes.retire(x.Module, x.kept)
	}
}
