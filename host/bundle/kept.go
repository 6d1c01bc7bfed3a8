package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// The code of durable actors is kept in the store before they run it: they come back with it, whatever the manifest names by then. When they
// are back they are upgraded to what the manifest names.

// fetch reads the code of a module.
type fetch func(context.Context) ([]byte, error)

// fetching is code that has been read.
func fetching(code []byte) fetch { return func(context.Context) ([]byte, error) { return code, nil } }

// keepCode keeps what a module has, if durable actors may run it. Nothing is kept without a store.
func (b *Bundle) keepCode(ctx context.Context, m *Manifest, name string, l *loaded) error {
	if b.store == nil || durableWith(m, name) == "" {
		return nil
	}
	sum, err := sandbox.Fingerprint(l.image)
	if err != nil {
		return err
	}
	identity, err := sandbox.Identity(l.image)
	if err != nil {
		return err
	}
	if l.sum = sum[:]; b.store.Holds(l.sum) {
		return nil
	}
	code, err := l.fetch(ctx)
	if err == nil && hashOf(code) != l.hash {
		err = errors.New("its code has changed since it was loaded")
	}
	var config []byte
	if err == nil {
		spec := l.spec
		spec.Go, spec.Wasm, spec.Upgrade = "", "", nil
		config, err = json.Marshal(spec)
	}
	if err == nil {
		err = b.store.Keep(l.sum, &durable.Module{Name: name, Config: config, Code: code, Identity: identity[:]})
	}
	if err != nil {
		return fmt.Errorf("module %s: the store cannot keep its code: %w", name, err)
	}
	return nil
}

// releaseCode says that no actor begins with what a module has had, unless a module has the same code now: under other limits, for one.
func (b *Bundle) releaseCode(l *loaded) {
	if b.store == nil || l.sum == nil {
		return
	}
	for _, x := range b.loaded {
		if bytes.Equal(x.sum, l.sum) {
			return
		}
	}
	b.store.Release(l.sum)
}

// keptCodes are the images of code that the store has kept, while durable actors come back.
type keptCodes struct {
	mu     sync.Mutex
	images map[string]*loaded // by fingerprint
}

// mostKeptMemory bounds the memory that kept code may ask for, in bytes, unless a module of the manifest has more. What is in the
// store may come from elsewhere.
const mostKeptMemory = 1 << 30

// loadKept implements durable.Options.Code. Limits are those of the present module of that name, else the default ones, and memory at
// least what it was: a state of then must fit.
func (b *Bundle) loadKept(fingerprint []byte, kept *durable.Module) (*runtime.Image, error) {
	k := &b.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.images[string(fingerprint)]; l != nil {
		return l.image, nil
	}
	if k.images == nil {
		k.images = map[string]*loaded{}
	}
	if l := b.twinOf(fingerprint); l != nil {
		k.images[string(fingerprint)] = l
		return l.image, nil
	}
	var mod Module
	if err := json.Unmarshal(kept.Config, &mod); err != nil {
		return nil, fmt.Errorf("module %s: %w", kept.Name, err)
	}
	most := uint64(mostKeptMemory)
	for i := range b.Manifest.Modules {
		most = max(most, b.Manifest.Modules[i].Memory)
	}
	env, memory, freeze := mod.Env, min(mod.Memory, most), mod.Freeze
	mod, _ = b.Manifest.Module(kept.Name)
	mod.Name, mod.Env, mod.Memory, mod.Freeze, mod.Dirs = kept.Name, env, max(memory, mod.Memory), freeze, nil
	image, err := b.engine.Load(context.Background(), kept.Code, mod.ImageConfig())
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", kept.Name, err)
	}
	k.images[string(fingerprint)] = &loaded{spec: mod, image: image, hash: hashOf(kept.Code), sum: bytes.Clone(fingerprint)}
	return image, nil
}

// retireKept closes code that was kept after its last actor, and the store keeps it as long as one runs it. It returns the names of the modules that it is of.
func (b *Bundle) retireKept() (names []string) {
	k := &b.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, sum := range slices.Sorted(maps.Keys(k.images)) {
		l := k.images[sum]
		if x := b.probation; x != nil && l == x.kept {
			continue // until that is over; and no actor of the module is upgraded before
		}
		b.releaseCode(l)
		if b.twinOf([]byte(sum)) != l {
			b.codes.retire(l.spec.Name, l)
		}
		names = append(names, l.spec.Name)
	}
	k.images = nil
	slices.Sort(names)
	return slices.Compact(names)
}

// catchUp upgrades the durable actors that have come back with other code than their module has now, in the ways that the manifest says.
// Where that fails they keep their code, as do those that it does not come to in time: others wait for the start.
func (b *Bundle) catchUp(sys *host.System) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if b.store != nil && !b.store.Steps() { // else real time decides about nothing
		ctx, cancel = context.WithTimeout(ctx, catchUpTime)
		defer cancel()
	}
	go func() {
		select {
		case <-sys.Terminated():
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, name := range b.retireKept() {
		module, l := b.modules[name], b.loaded[name]
		if x := b.probation; module == nil || x != nil && x.Module == name {
			continue // the manifest has no such module, or it is on probation: its actors stay what they are
		}
		o := upgrade.Options{Ways: b.Manifest.ways(name)}
		r, err := upgrade.Run(ctx, sys, module, l.image, o)
		if err != nil {
			b.log.Error("durable actors keep the code that they had", "module", name, "error", err)
		}
		if r != nil {
			b.tellCaughtUp(name, r)
		}
	}
}

// catchUpTime bounds how long a start waits for these upgrades, in all.
var catchUpTime = 30 * time.Second

// mostTold bounds the actors that are named in the log.
const mostTold = 20

func (b *Bundle) tellCaughtUp(name string, r *upgrade.Report) {
	if len(r.Actors) == 0 {
		return // what was kept was needed to repeat what it has done, and no actor runs it now
	}
	did := map[string]int{}
	told := 0
	for i := range r.Actors {
		a := &r.Actors[i]
		did[a.Did]++
		text := "a durable actor keeps the code that it had"
		if a.Did == upgrade.Restarted {
			text = "a durable actor begins anew with the new code: its state is lost"
		} else if a.Did == upgrade.Upgraded {
			continue
		}
		if told++; told <= mostTold {
			b.log.Warn(text, "module", name, "actor", a.Path, "why", a.Why)
		}
	}
	var all []string
	for _, what := range slices.Sorted(maps.Keys(did)) {
		all = append(all, fmt.Sprintf("%d %s", did[what], what))
	}
	b.log.Info("the code of durable actors has changed since the last run", "module", name, "now", b.Hash(name), "actors", strings.Join(all, ", "))
}
