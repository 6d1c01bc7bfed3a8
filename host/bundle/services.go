package bundle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/state"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Services are those that a manifest may grant: the keys of capabilities and of services come
// from the definitions of the services.

// Use is a service that a manifest uses: the manifest has its settings, or grants it.
type Use struct {
	Kind     service.Kind
	Settings any // as Kind.NewSettings makes them

	text string // see canonical
}

// Grant is what an actor may use of a service.
type Grant struct {
	Kind   service.Kind
	Value  any // as Kind.NewGrant makes them
	Bounds service.Bounds

	text  string // see canonical
	shown string
	tree  bool
}

// String is what the manifest says of it, in one line: kv: {namespace: orders, mode: rw}.
func (g *Grant) String() string { return g.Kind.Name() + ": " + g.shown }

// boundsShape are the keys that all grants have.
var boundsShape = service.ShapeOf(reflect.TypeFor[service.Bounds]())

const treeKey = "tree"

// ownCapabilities are keys of capabilities that no service can have as its name.
var ownCapabilities = []string{"send", "stop", "spawn", "metrics"}

// settingsFields are the keys of services.
func settingsFields(kinds []service.Kind) (out []field) {
	for _, k := range kinds {
		out = append(out, optional(k.Name(), k.SettingsShape()))
	}
	return out
}

// grantFields are keys of capabilities.
func grantFields(kinds []service.Kind) (out []field) {
	for _, k := range kinds {
		if slices.Contains(ownCapabilities, k.Name()) {
			panic(fmt.Sprintf("bundle: a service cannot be called %q", k.Name()))
		}
		s := *k.GrantShape()
		s.Fields = slices.Concat(s.Fields, boundsShape.Fields, []field{optional(treeKey, boolean("children in the manifest have it as well, those that have no grant of this name of their own"))})
		out = append(out, optional(k.Name(), &s))
	}
	return out
}

// fill puts the values of an object into the fields of a struct.
func fill(v view, s *service.Shape, dst reflect.Value) {
	for _, f := range s.Fields {
		if x := v.get(f.Name); x.given() {
			fillValue(x, f.Shape, dst.Field(f.Index))
		}
	}
}

func fillValue(v view, s *service.Shape, dst reflect.Value) {
	switch s.Kind {
	case service.ShapeText:
		dst.SetString(v.n.Value)
	case service.ShapeBool:
		dst.SetBool(strings.EqualFold(v.n.Value, "true"))
	case service.ShapeInt:
		i, _ := grammar.WholeOf(v.n)
		dst.SetInt(i)
	case service.ShapeNumber:
		x, _ := strconv.ParseFloat(v.n.Value, 64)
		dst.SetFloat(x)
	case service.ShapeSize:
		n, _ := grammar.ParseSize(v.n.Value)
		dst.SetInt(int64(n))
	case service.ShapeDuration:
		d, _ := grammar.ParseDuration(v.n.Value)
		dst.SetInt(int64(d))
	case service.ShapeList:
		out := reflect.MakeSlice(dst.Type(), len(v.n.Content), len(v.n.Content))
		for i, n := range v.n.Content {
			fillValue(view{n, v.s.Of, v.c}, s.Of, out.Index(i))
		}
		dst.Set(out)
	case service.ShapeMapping:
		out := reflect.MakeMap(dst.Type())
		v.pairs(func(key *yaml.Node, value view) {
			x := reflect.New(dst.Type().Elem()).Elem()
			fillValue(value, s.Of, x)
			out.SetMapIndex(reflect.ValueOf(key.Value).Convert(dst.Type().Key()), x)
		})
		dst.Set(out)
	case service.ShapeObject:
		fill(v, s, dst)
	}
}

// settings reads the key services: those that it names, in the order of the kinds.
func (c *checker) settings(v view) (out []Use) {
	for _, k := range c.kinds {
		x := v.get(k.Name())
		if !x.given() {
			continue
		}
		u := Use{Kind: k, Settings: k.NewSettings(), text: canonical(x.n)}
		fill(x, k.SettingsShape(), reflect.ValueOf(u.Settings).Elem())
		c.faulty(x.n, "services."+k.Name(), k.CheckSettings(u.Settings))
		out = append(out, u)
	}
	return out
}

// used adds the services that are granted and have no settings.
func (c *checker) used(m *Manifest) {
	granted := map[string]bool{}
	note := func(a *Actor) {
		for _, g := range a.Grants {
			granted[g.Kind.Name()] = true
		}
	}
	m.Walk(func(_ string, a *Actor) { note(a) })
	m.eachMade(note)
	var all []Use
	for _, k := range c.kinds {
		at := slices.IndexFunc(m.Services, func(u Use) bool { return u.Kind == k })
		switch {
		case at >= 0:
			all = append(all, m.Services[at])
		case granted[k.Name()]:
			u := Use{Kind: k, Settings: k.NewSettings()}
			c.faulty(c.root, "services."+k.Name(), k.CheckSettings(u.Settings))
			all = append(all, u)
		}
	}
	m.Services = all
}

// grants reads those of an actor; above are those of its parent that are for its tree.
func (c *checker) grants(caps view, above []*Grant) (out []*Grant) {
	for _, k := range c.kinds {
		x := caps.get(k.Name())
		if !x.given() {
			if i := slices.IndexFunc(above, func(g *Grant) bool { return g.Kind == k }); i >= 0 {
				out = append(out, above[i])
			}
			continue
		}
		g := &Grant{Kind: k, Value: k.NewGrant(), text: canonical(x.n), shown: oneLined(x.n), tree: x.flag(treeKey, false)}
		fill(x, k.GrantShape(), reflect.ValueOf(g.Value).Elem())
		fill(x, boundsShape, reflect.ValueOf(&g.Bounds).Elem())
		c.faulty(x.n, "capabilities."+k.Name(), k.CheckGrant(g.Value))
		out = append(out, g)
	}
	return out
}

// forTree are the grants that apply to children as well.
func forTree(grants []*Grant) (out []*Grant) {
	for _, g := range grants {
		if g.tree {
			out = append(out, g)
		}
	}
	return out
}

// faulty reports what a service finds wrong with a value, at the field that it names.
func (c *checker) faulty(n *yaml.Node, key string, err error) {
	if err == nil {
		return
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, one := range many.Unwrap() {
			c.faulty(n, key, one)
		}
		return
	}
	var at *service.FieldError
	if errors.As(err, &at) {
		n, key, err = nodeAt(n, at.Key), key+"."+at.Key, at.Err
	}
	c.At(n, "%s: %v", key, err)
}

// nodeAt follows a path of keys as far as it goes.
func nodeAt(n *yaml.Node, path string) *yaml.Node {
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		var next *yaml.Node
		if i, err := strconv.Atoi(part); err == nil && n.Kind == yaml.SequenceNode && i >= 0 && i < len(n.Content) {
			next = n.Content[i]
		} else {
			next = grammar.At(n, part)
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// sameGrants reports whether two entries have the same grants.
func sameGrants(a, b []*Grant) bool {
	return slices.EqualFunc(a, b, func(x, y *Grant) bool { return x.Kind == y.Kind && x.text == y.text })
}

// sameServices reports whether the same services run with the same settings.
func sameServices(a, b []Use) bool {
	return slices.EqualFunc(a, b, func(x, y Use) bool { return x.Kind == y.Kind && x.text == y.text })
}

// services are those of the system that was started last, and what they were granted.
type services struct {
	mu      sync.Mutex // for running
	running []*service.Running
	granted map[*Grant]any
	place   func(*Manifest) (string, error) // see Options.StateDir
	folder  *state.Folder                   // nil: not needed yet
}

// startServices starts what the manifest uses.
func (b *Bundle) startServices(sys *host.System) error {
	b.services.granted = map[*Grant]any{}
	if b.services.folder == nil && b.services.place != nil && len(b.Manifest.Services) > 0 {
		path, err := b.services.place(b.Manifest)
		if err != nil {
			return err
		}
		b.services.folder = state.At(path)
	}
	for _, u := range b.Manifest.Services {
		env := &service.Env{Bundle: b.Manifest.Name, Base: b.Manifest.Dir, Log: b.log, StateDir: func() (string, error) { return b.services.folder.Of(u.Kind.Name()) }, Shared: b.shared(), Nodes: b.nodes()}
		r, err := u.Kind.StartWith(sys, env, u.Settings)
		if err != nil {
			return err
		}
		b.services.mu.Lock()
		b.services.running = append(b.services.running, r)
		b.services.mu.Unlock()
	}
	return nil
}

// waitServices waits until the services of a system that has ended are closed.
func (b *Bundle) waitServices(ctx context.Context) error {
	var errs []error
	for _, r := range b.Services() {
		errs = append(errs, r.Wait(ctx))
	}
	b.services.mu.Lock()
	defer b.services.mu.Unlock()
	b.services.running = nil
	return errors.Join(errs...)
}

// Services are the services of the system that was started last, in the order in which they were
// started. Any goroutine may call it.
func (b *Bundle) Services() []*service.Running {
	b.services.mu.Lock()
	defer b.services.mu.Unlock()
	return slices.Clone(b.services.running)
}

// down names the services that are down; "" if all serve.
func (b *Bundle) down() string {
	var all []string
	for _, r := range b.Services() {
		if o, down := r.Outage(); down {
			all = append(all, fmt.Sprintf("%s is down since %s", o.Service, o.Since.UTC().Format(time.RFC3339)))
		}
	}
	return strings.Join(all, "\n")
}

// grantOf is a grant in the form for the host: one for all actors that share it.
func (b *Bundle) grantOf(g *Grant) any {
	v, ok := b.services.granted[g]
	if !ok {
		v = g.Kind.GrantOf(g.Value, g.Bounds)
		if b.services.granted == nil {
			b.services.granted = map[*Grant]any{}
		}
		b.services.granted[g] = v
	}
	return v
}

// discard is a log without a reader.
var discard = slog.New(slog.DiscardHandler)
