package scenario

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Fits reports, as bundle.Diagnostics, names in a file that its bundle does not have: actors that cannot exist, unused
// probes, services without a grant.
func (f *File) Fits(m *bundle.Manifest) error {
	c := checkerOf(f.Path)
	actors := map[string]*bundle.Actor{}
	var paths []string
	m.Walk(func(path string, a *bundle.Actor) { actors[path] = a; paths = append(paths, path) })
	for _, s := range f.Scenarios {
		x := fitting{checker: c, Scenario: s, actors: actors, paths: slices.Concat(paths, s.standIns), probes: s.probes()}
		x.services(m)
		x.stands()
		if n := s.settings["nodes"]; n != nil && m.Cluster == nil {
			x.At(n, "nodes are for bundles that may join a cluster, and the manifest has no cluster")
		}
		for i := range s.steps {
			x.fits(&s.steps[i])
		}
	}
	if len(c.Found) == 0 {
		return nil
	}
	return c.Found
}

// fitting compares one scenario with its bundle.
type fitting struct {
	*checker
	*Scenario
	actors map[string]*bundle.Actor
	paths  []string
	probes []string // those that are no stand-ins
}

// services reports settings for services that no actor uses.
func (x *fitting) services(m *bundle.Manifest) {
	uses := func(name string) bool {
		return slices.ContainsFunc(m.Services, func(u bundle.Use) bool { return u.Kind.Name() == name })
	}
	for _, key := range []string{"config", "secrets", "http"} {
		name := key
		if key == "secrets" {
			name = "config"
		}
		if n := x.settings[key]; n != nil && !uses(name) {
			x.At(n, "%s is for the service %s, which no actor of the bundle is granted", key, name)
		}
	}
	for i := range x.steps {
		s := &x.steps[i]
		if s.outside() {
			if m.HTTP == nil {
				x.At(s.n, "%s is for the routes of the bundle, and its manifest has no http", s.verb.name)
			}
			continue
		}
		if (s.verb.name == "http" || s.verb.name == "expect-request") && !uses("http") {
			x.At(s.n, "%s is for the service http, which no actor of the bundle is granted", s.verb.name)
		}
	}
}

// stands reports stand-ins for actors that do not exist.
func (x *fitting) stands() {
	n := x.settings["stand-ins"]
	if n == nil {
		return
	}
	for _, one := range n.Content {
		path := pathOf(one.Value)
		if x.actors[path] == nil && strings.Count(path, "/") > 2 {
			x.At(one, "%s is not an actor of the manifest: stand-ins are such actors, or are at the top", path)
		}
	}
}

// probes are the names by which the steps refer to probes.
func (s *Scenario) probes() (names []string) {
	note := func(name string) {
		if !slices.Contains(s.standIns, pathOf(name)) && !slices.Contains(names, name) && !strings.HasPrefix(name, "/") {
			names = append(names, name)
		}
	}
	for i := range s.steps {
		if x := &s.steps[i]; x.verb.name == "send" && x.has("from") {
			note(x.text("from"))
		}
		eachRef(grammar.At(s.steps[i].n, "message"), func(n *yaml.Node) { note(n.Value) })
	}
	return names
}

// eachRef calls f for every node tagged with !ref.
func eachRef(n *yaml.Node, f func(*yaml.Node)) {
	if n == nil {
		return
	}
	if n.Tag == "!ref" {
		f(n)
	}
	for _, x := range n.Content {
		eachRef(x, f)
	}
}

func (x *fitting) fits(s *step) {
	target := grammar.At(s.n, s.verb.name)
	if s.verb.about && s.verb.name == "pause" && slices.ContainsFunc(x.nodes, func(o nodeOf) bool { return o.name == target.Value }) && x.actors[pathOf(target.Value)] == nil {
		x.At(target, "pause: the node %s needs for, which says how long it stands still", target.Value)
		return
	}
	if s.verb.about {
		x.actor(target)
	}
	switch s.verb.name {
	case "expect", "expect-none":
		x.probe(target)
	case "reply":
		if !slices.Contains(x.standIns, pathOf(target.Value)) {
			x.At(target, "only a stand-in is asked anything: name %q in stand-ins", target.Value)
		}
	case "send":
		if from := grammar.At(s.n, "from"); from != nil && strings.HasPrefix(from.Value, "/") && !slices.Contains(x.standIns, from.Value) {
			x.At(from, "from: %q is not a stand-in; a probe has a name and no path", from.Value)
		}
	case "drop", "delay", "duplicate", "reorder":
		x.faulty(target, false)
	case "crash":
		if s.has("on-message") {
			x.faulty(target, true)
		}
	}
}

// actor reports an actor that cannot exist: actors below one of the manifest may be started later.
func (x *fitting) actor(n *yaml.Node) {
	path := pathOf(n.Value)
	switch {
	case !validPath(path):
		x.At(n, "%q is neither the name of an actor nor a path such as /user/a/b", n.Value)
	case !slices.ContainsFunc(x.paths, func(p string) bool { return p == path || strings.HasPrefix(path, p+"/") }):
		near := grammar.Suggest(path, x.paths)
		if !strings.HasPrefix(n.Value, "/") {
			near = strings.ReplaceAll(near, "/user/", "")
		}
		x.At(n, "there is no actor %q%s", n.Value, near)
	}
}

func (x *fitting) probe(n *yaml.Node) {
	if slices.Contains(x.standIns, pathOf(n.Value)) || slices.Contains(x.probes, n.Value) {
		return
	}
	all := slices.Clone(x.probes)
	for _, p := range x.standIns {
		all = append(all, strings.TrimPrefix(p, "/user/"))
	}
	x.At(n, "no step sends from a probe %q, and it is not a stand-in%s", n.Value, grammar.Suggest(n.Value, all))
}

// faulty reports actors that cannot have faults.
func (x *fitting) faulty(n *yaml.Node, crash bool) {
	path := pathOf(n.Value)
	a := x.actors[path]
	if above, _ := keeperOf(path); a == nil && x.actors[above] != nil && x.actors[above].Keyed != nil {
		if crash {
			x.At(n, "on-message is not for the actor of a key, whose messages come by its keeper: %s", n.Value)
		}
		a, crash = x.actors[above], false
	}
	switch {
	case slices.Contains(x.standIns, path):
		x.At(n, "%s is a stand-in, which the scenario plays itself", n.Value)
	case a == nil:
		x.At(n, "faults apply to messages to actors of the manifest, and %s is not one", n.Value)
	case !a.Mailbox.IsHosted():
		x.At(n, "faults cannot apply to messages to an actor with a mailbox of an embedder, %s: %s", a.Mailbox, n.Value)
	case a.Routing != nil:
		x.At(n, "faults cannot apply to messages to a router: %s", n.Value)
	case crash && a.Resend != nil:
		x.At(n, "on-message is not for an actor with resend, whose messages come by a resender: %s", n.Value)
	}
}
