package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"go.yaml.in/yaml/v3"
)

// upgradeKey is the key of a module, or of an actor and all below it, that says how state comes to other code.
const upgradeKey = "upgrade"

var upgradeShape = list("how its actors come to other code while they run: the first of these ways that their code allows; default: state, events, restart, and of durable actors state, events. "+
	"state: the old code writes the state and the new code reads it; events: the new code handles the events that the actor has kept; "+
	"replay: the new code handles again all messages that a durable actor has handled, if store.keep keeps them, and has to do the same; restart: it begins anew, and the state is lost", enum("a way", "state", "events", "replay", "restart"))

// ways reads the key.
func (c *checker) ways(v view) []upgrade.Way {
	x := v.get(upgradeKey)
	names := v.texts(upgradeKey)
	if !x.given() {
		return nil
	}
	ways, err := upgrade.ParseWays(names)
	switch {
	case err != nil:
		c.At(x.n, "%s: %v", upgradeKey, err)
	case len(ways) == 0 && x.n.Kind == yaml.SequenceNode:
		c.At(x.n, "%s: it names no way", upgradeKey)
	}
	return ways
}

// ways are those of the actors of a module: what the nearest actor of the manifest above them says, itself included, else the
// module. nil: nothing is said.
func (m *Manifest) ways(module string) func(path, typ string) []upgrade.Way {
	said := map[string][]upgrade.Way{}
	m.Walk(func(path string, a *Actor) {
		if a.Upgrade != nil {
			said[path] = a.Upgrade
		}
	})
	mod, _ := m.Module(module)
	return func(path, _ string) []upgrade.Way {
		for len(said) > 0 && path != "" {
			if w := said[path]; w != nil {
				return w
			}
			path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		}
		return mod.Upgrade
	}
}

// PrepareModule is [Bundle.Prepare] for other code of one module. It is checked as any module, under the module's limits and in
// its environment; the manifest, and with it what actors may do, stays as it is. The error is a [ModuleError] if the code does not load.
func (b *Bundle) PrepareModule(ctx context.Context, name string, code []byte, o Options) (*Change, error) {
	if err := b.probed(); err != nil {
		return nil, err
	}
	m := b.Manifest
	mod, ok := m.Module(name)
	if !ok {
		var names []string
		for _, x := range m.Modules {
			names = append(names, x.Name)
		}
		return nil, fmt.Errorf("the bundle %s has no module %q%s", m.Name, name, grammar.Suggest(name, names))
	}
	cfg := mod.ImageConfig()
	if o.Progress != nil {
		cfg.Progress = func(stage string) { o.Progress(mod.Name, stage) }
	}
	image, err := b.engine.Load(ctx, code, cfg)
	if err != nil {
		return nil, m.ModuleError(mod, err)
	}
	c := &Change{Manifest: m, b: b, loaded: maps.Clone(b.loaded)}
	c.loaded[name] = &loaded{spec: b.loaded[name].spec, image: image, hash: hashOf(code), fetch: fetching(code)}
	err = checkTypes(m, c.loaded)
	if err == nil {
		err = c.compare()
	}
	if err != nil {
		c.Discard()
		return nil, err
	}
	return c, nil
}

// Upgraded is what has become of a module's actors.
type Upgraded struct {
	Module      string
	Before, Now string // hashes, see [Bundle.Hash]
	*upgrade.Report
}

// ErrOtherChanges says that not only code has changed.
var ErrOtherChanges = errors.New("bundle: the manifest has changed, and not only code")

// Upgrade exchanges the code of the actors that run, module by module in the order of the manifest, and keeps their state where it can: see
// package upgrade, and the manifest's key upgrade. It stops after a module whose upgrade was stopped. It fails, and nothing has changed, with
// [ErrOtherChanges] if there is more to change than code. tell is called as o.Tell would be.
func (c *Change) Upgrade(ctx context.Context, sys *host.System, o upgrade.Options, tell func(module string, s upgrade.Step)) (done []Upgraded, err error) {
	if why := append(slices.Clone(c.Whole), c.plan.whys()...); len(why) > 0 {
		c.Discard()
		return nil, fmt.Errorf("%w: %s", ErrOtherChanges, strings.Join(why, "; "))
	}
	for _, m := range c.Modules {
		if m.Before == "" {
			continue // no actor has it
		}
		var r *upgrade.Report
		if tell != nil {
			o.Tell = func(s upgrade.Step) { tell(m.Name, s) }
		}
		if r, err = c.exchange(ctx, sys, m.Name, o); r != nil { // also if ctx has ended it
			done = append(done, Upgraded{m.Name, m.Before, m.Now, r})
		}
		if err != nil || r.Stopped != "" {
			break
		}
	}
	for name, l := range c.loaded { // of modules that were not reached
		if l != c.b.loaded[name] {
			l.image.Retire()
		}
	}
	return done, err
}

// exchange upgrades the actors of a module, and has the bundle go on with the image that the module has then.
func (c *Change) exchange(ctx context.Context, sys *host.System, name string, o upgrade.Options) (*upgrade.Report, error) {
	b := c.b
	before, now, module := b.loaded[name], c.loaded[name], b.modules[name]
	o.Ways = c.Manifest.ways(name)
	var r *upgrade.Report
	var err error
	if !o.Plan {
		err = b.keepCode(ctx, c.Manifest, name, now)
		if now.sum != nil {
			o.Remember = b.store.Remember
		}
	}
	if err == nil {
		r, err = upgrade.Run(ctx, sys, module, now.image, o)
	}
	if module.Image() != now.image {
		c.loaded[name] = before
		b.releaseCode(now)
		b.codes.retire(name, now)
		return r, err
	}
	b.adopt(name, now)
	b.releaseCode(before)
	b.codes.retire(name, before)
	return r, err
}

// adopt notes what a module runs from now on.
func (b *Bundle) adopt(name string, now *loaded) {
	all := maps.Clone(b.loaded)
	all[name] = now
	b.take(b.Manifest, all)
}

// whys are the reasons of the steps of a plan.
func (p plan) whys() (all []string) {
	for _, s := range p.steps {
		all = append(all, "the actor "+s.name+": "+s.why)
	}
	return all
}
