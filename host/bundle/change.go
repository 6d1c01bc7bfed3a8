package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Change is the difference between a running bundle and another version of it, in its
// manifest or its code. [Bundle.Prepare] makes it, and nothing changes until it is applied.
type Change struct {
	Manifest *Manifest
	// Modules are those with other code or other limits, in the order of the manifest.
	Modules []ModuleChange
	// Whole says why the bundle as a whole must start again; empty: it need not.
	Whole []string

	b      *Bundle
	loaded map[string]*loaded
	plan   plan
}

// ModuleChange is a module that has changed.
type ModuleChange struct {
	Name        string
	Before, Now string // hashes, see [Bundle.Hash]; "" for none
}

// ActorChange is what was done with an actor.
type ActorChange struct {
	Path string
	Did  string // upgraded (with its state), restarted, started, stopped or replaced (stopped, and another one started)
	Why  string
	Err  error // it could not be done

	Module string // it was done because this one has other code
	Node   string // of a cluster, where it was done; "": here
}

// loaded is a module as it was loaded.
type loaded struct {
	spec  Module
	image *runtime.Image
	hash  string
	built *buildResult
	fetch fetch  // its code, again
	sum   []byte // its fingerprint, if the store was to keep it: a closed image has none
}

// Hash is the SHA-256 of a module's code in hexadecimal; "" if there is no such module.
func (b *Bundle) Hash(module string) string {
	if l := b.loaded[module]; l != nil {
		return l.hash
	}
	return ""
}

// Empty reports whether there is nothing to apply.
func (c *Change) Empty() bool {
	return len(c.Modules) == 0 && len(c.Whole) == 0 && len(c.plan.steps) == 0
}

// Prepare builds and loads the modules of another manifest, and says what would change.
// A module whose entry is the same is built again only if dirty reports that its sources may
// have changed. The error joins [ModuleError]s and Diagnostics as that of [Open] does, and
// leaves everything as it is. The system may run meanwhile.
func (b *Bundle) Prepare(ctx context.Context, m *Manifest, o Options, dirty func(module string) bool) (*Change, error) {
	if err := b.probed(); err != nil {
		return nil, err
	}
	if err := o.Consent(m); err != nil {
		return nil, err
	}
	c := &Change{Manifest: m, b: b, loaded: map[string]*loaded{}}
	for _, mod := range m.Modules {
		if old := b.loaded[mod.Name]; old != nil && sameModule(old.spec, mod) && !dirty(mod.Name) {
			c.loaded[mod.Name] = old
		}
	}
	if err := loadModules(ctx, b.engine, m, o, c.loaded); err != nil {
		c.Discard()
		return nil, err
	}
	if err := c.compare(); err != nil {
		c.Discard()
		return nil, err
	}
	return c, nil
}

// compare finds out what differs from what runs.
func (c *Change) compare() error {
	b, m := c.b, c.Manifest
	for _, mod := range m.Modules {
		old, now := b.loaded[mod.Name], c.loaded[mod.Name]
		if old != nil && old != now && old.hash == now.hash && sameModule(old.spec, mod) {
			_ = now.image.Close() // the same code runs already
			now = old
			c.loaded[mod.Name] = old
		}
		if old == now {
			continue
		}
		if a := durableWith(m, mod.Name); a != "" && b.store != nil {
			if why := sandbox.CannotSave(now.image); why != "" {
				return fmt.Errorf("module %s has changed, and the durable actor %s runs it, whose state must be savable: %s", mod.Name, a, why)
			}
		}
		change := ModuleChange{Name: mod.Name, Now: now.hash}
		if old != nil {
			change.Before = old.hash
			if err := host.NewModule(old.image).Replace(now.image); err != nil {
				c.Whole = append(c.Whole, fmt.Sprintf("module %s: %v", mod.Name, err))
			}
		}
		c.Modules = append(c.Modules, change)
	}
	c.plan = planOf(b.Manifest, m)
	c.Whole = append(c.Whole, c.plan.whole...)
	return nil
}

// Discard closes the images that were loaded, in place of applying the change.
func (c *Change) Discard() {
	for name, l := range c.loaded {
		if l != c.b.loaded[name] {
			_ = l.image.Close()
		}
	}
}

// Replace makes the bundle the changed one. No system may run from it; [Bundle.Start] then
// starts one.
func (c *Change) Replace() {
	before := c.b.loaded
	c.replace()
	c.retire(before)
}

func (c *Change) replace() {
	c.b.take(c.Manifest, c.loaded)
	c.b.modules = modulesOf(c.loaded)
}

// retire closes the images of before that were replaced, each after its last actor.
func (c *Change) retire(before map[string]*loaded) {
	for name, l := range before {
		if c.loaded[name] != l {
			c.b.releaseCode(l)
			c.b.codes.retire(name, l)
		}
	}
}

// Restart ends the running system within grace, and starts the changed bundle in a new one, as [Bundle.Start] does.
// If that fails, the version before is started again, and the error says why the change was not made. The system
// is nil if not even that was possible.
func (c *Change) Restart(grace time.Duration, change func(host.Config) host.Config, watch func(*host.System)) (*host.System, error) {
	b := c.b
	if b.system != nil {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = b.system.Close(ctx) // actors that do not stop are killed
	}
	manifest, images := b.Manifest, b.loaded
	c.replace()
	sys, err := b.Start(change, watch)
	if err == nil {
		c.retire(images)
		return sys, nil
	}
	b.take(manifest, images)
	b.modules = modulesOf(images)
	c.Discard()
	sys, again := b.Start(change, watch)
	if again != nil {
		return nil, fmt.Errorf("%w; nor did the version before start again: %w", err, again)
	}
	return sys, err
}

// Apply changes the system that runs from the bundle, where Whole is empty. Actors of modules
// that have changed get the new code, with their state where that can go over, see package upgrade; else they restart in their
// place, with their refs and mailboxes. So do those of whose entries arguments, limits, capabilities or
// children have changed. Others of the top level stop, start, or are replaced. ctx bounds the
// wait for those that stop.
func (c *Change) Apply(ctx context.Context, sys *host.System) (done []ActorChange) {
	b, before := c.b, c.b.loaded
	defer c.retire(before)
	codes := map[string]bool{}
	for _, m := range c.Modules {
		codes[m.Name] = true
	}
	steps := append(slices.Clone(c.plan.steps), c.gone(sys, codes)...)
	c.stopFirst(ctx, sys, steps)
	var renewed []ActorChange
	for _, m := range c.Modules {
		if b.modules[m.Name] != nil {
			renewed = append(renewed, c.renew(ctx, sys, m.Name, steps)...)
			continue
		}
		b.modules[m.Name] = host.NewModule(c.loaded[m.Name].image)
	}
	maps.DeleteFunc(b.modules, func(name string, _ *host.Module) bool { return c.loaded[name] == nil })
	b.take(c.Manifest, c.loaded)
	for _, t := range steps {
		did := ActorChange{Path: "/user/" + t.name, Why: t.why}
		a := find(c.Manifest.Actors, t.name)
		switch t.action {
		case restarts:
			did.Did = "restarted"
			ref, err := sys.Lookup(did.Path)
			if err == nil {
				err = sys.Operate().Renew(ref, b.props(a))
			}
			did.Err = err
		case removed:
			did.Did = "stopped"
		case replaced, added:
			if did.Did = "started"; t.action == replaced {
				did.Did = "replaced"
			}
			// The name is free a moment after the end of its actor was told.
			_, made, err := sys.GetOrSpawn(ctx, t.name, b.props(a))
			if err == nil && !made {
				err = host.ErrNameTaken
			}
			did.Err = err
		}
		done = append(done, did)
	}
	return append(done, renewed...)
}

// renew gives the actors of a module its new code: with their state where that can go over, else they restart. Those that a step
// restarts anyway are not reported. After an error the module goes on with the code that it has, and the next change tries again.
func (c *Change) renew(ctx context.Context, sys *host.System, name string, steps []step) (done []ActorChange) {
	b := c.b
	o := upgrade.Options{Insist: true, Patience: reloadPatience, Ways: c.Manifest.ways(name)}
	err := b.keepCode(ctx, c.Manifest, name, c.loaded[name])
	var r *upgrade.Report
	if err == nil {
		r, err = upgrade.Run(context.WithoutCancel(ctx), sys, b.modules[name], c.loaded[name].image, o)
	}
	if now := c.loaded[name]; b.modules[name].Image() != now.image {
		c.loaded[name] = b.loaded[name]
		b.releaseCode(now)
		b.codes.retire(name, now)
	}
	if err != nil {
		return []ActorChange{{Path: "/user", Did: "restarted", Err: fmt.Errorf("module %s: %w", name, err)}}
	}
	for i := range r.Actors {
		a := &r.Actors[i]
		top, _, _ := strings.Cut(strings.TrimPrefix(a.Path, "/user/"), "/")
		if slices.ContainsFunc(steps, func(t step) bool { return t.name == top }) || a.Why == upgrade.Above {
			continue
		}
		x := ActorChange{Path: a.Path, Did: a.Did, Why: "module " + name, Module: name}
		switch a.Did {
		case upgrade.Upgraded:
			x.Why += ", its state is kept"
		case upgrade.Restarted:
			x.Why += ", its state is lost: " + a.Why
		default:
			x.Err = errors.New(a.Why)
		}
		done = append(done, x)
	}
	return done
}

// reloadPatience is how long a reload waits for an actor that waits for answers, before it restarts it.
const reloadPatience = 200 * time.Millisecond

// gone returns steps for the top-level actors that have ended: they are started again if their
// entry or their code has changed.
func (c *Change) gone(sys *host.System, codes map[string]bool) (steps []step) {
	for i := range c.Manifest.Actors {
		a := &c.Manifest.Actors[i]
		planned := slices.IndexFunc(c.plan.steps, func(t step) bool { return t.name == a.Name })
		if _, err := sys.Lookup("/user/" + a.Name); err == nil {
			continue
		}
		switch {
		case planned >= 0 && c.plan.steps[planned].action == restarts:
			c.plan.steps[planned].action = added
		case planned < 0 && uses(a, codes):
			steps = append(steps, step{a.Name, added, "it had ended"})
		}
	}
	return steps
}

// uses reports whether an actor, or one below it, is of one of the modules.
func uses(a *Actor, modules map[string]bool) bool {
	return modules[a.Module] || slices.ContainsFunc(a.Children, func(c Actor) bool { return uses(&c, modules) })
}

// stopFirst stops the actors that go, all together, and waits until they have gone.
func (c *Change) stopFirst(ctx context.Context, sys *host.System, steps []step) {
	var wait sync.WaitGroup
	for _, t := range steps {
		if t.action != removed && t.action != replaced {
			continue
		}
		ref, err := sys.Lookup("/user/" + t.name)
		if err != nil {
			continue
		}
		ended, err := sys.Ended(ref)
		if err != nil {
			continue
		}
		sys.Stop(ref)
		wait.Go(func() {
			select {
			case <-ended:
			case <-ctx.Done():
			}
		})
	}
	wait.Wait()
}

// take gives the bundle another manifest and its modules.
func (b *Bundle) take(m *Manifest, l map[string]*loaded) {
	b.Manifest, b.loaded = m, l
	b.codes.set(l)
	b.Images, b.Builds = map[string]*runtime.Image{}, map[string]*buildResult{}
	for name, x := range l {
		b.Images[name] = x.image
		if x.built != nil {
			b.Builds[name] = x.built
		}
	}
}

func modulesOf(l map[string]*loaded) map[string]*host.Module {
	modules := map[string]*host.Module{}
	for name, x := range l {
		modules[name] = host.NewModule(x.image)
	}
	return modules
}

// loadModules builds and loads the modules that are not in l, several at a time, and checks
// the types of the actors. The error has all that is wrong, in the order of the file.
func loadModules(ctx context.Context, engine *runtime.Engine, m *Manifest, o Options, l map[string]*loaded) error {
	var mu sync.Mutex
	errs := make([]error, len(m.Modules))
	todo := make([]bool, len(m.Modules))
	for i, mod := range m.Modules {
		todo[i] = l[mod.Name] == nil
	}
	err := inOrder(ctx, o.Parallel, len(m.Modules), func(ctx context.Context, i int) error {
		mod := m.Modules[i]
		if !todo[i] {
			return nil
		}
		x, err := openModule(ctx, engine, mod.pinned(), o)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs[i] = m.ModuleError(mod, err)
			return nil // go on with the others
		}
		x.spec = mod
		l[mod.Name] = x
		return nil
	})
	return errors.Join(append(errs, err, checkTypes(m, l))...)
}

func hashOf(code []byte) string { return hexOf(sha256.Sum256(code)) }

func hexOf(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }
