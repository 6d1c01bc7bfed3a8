package bundle

import (
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// The functions of this file read nodes that were checked against the grammar. What is left
// to check is how the keys go together.

func (c *checker) manifest(root view) *Manifest {
	m := c.empty()
	m.Name, m.Description, m.Main = root.text("name"), root.text("description"), root.object("run").text("main")
	root.whole("wasmactors", 0) // there is one version, and the grammar has compared it
	root.mapping("modules").pairs(func(k *yaml.Node, v view) { m.Modules = append(m.Modules, c.module(m, k, v)) })
	if len(m.Modules) == 0 {
		c.At(root.get("modules").n, "modules must name one module at least")
	}
	m.Supervision, m.supervision = c.supervision(root.object("supervision")), canonical(root.object("supervision").n)
	m.IdleAfter = root.object("idle").duration("after", host.DefaultIdleAfter)
	m.MostAwake = int(root.object("idle").count("awake", 0))
	base := limits{Limits: host.Limits{Deadline: defaultDeadline}}
	base = c.limits(root.object("limits"), base)
	if tree := root.object("limits").get("tree"); tree.given() {
		c.At(tree.n, "limits.tree is for one actor and all below it and is not inherited: write it into the limits of the actors that it is for; system bounds all actors together")
	}
	system := root.object("system")
	m.Memory, m.MostActors = int64(system.size("memory", 0)), int(system.count("actors", 0))
	if len(c.kinds) > 0 {
		m.Services = c.settings(root.object("services"))
	}
	m.Actors = c.actors(m, root.mapping("actors"), base, nil)
	m.Store = c.store(m, root.object("store"))
	m.Recorder = c.recorder(m, root.object("recorder"))
	m.Cluster = c.cluster(m, root.object("cluster"), base)
	c.durable(m, root.mapping("actors"))
	superviseKeys(m.Supervision, m.Actors)
	c.clustered(root, root.mapping("actors"), true)
	m.HTTP = c.http(m, root.object("http"), base)
	c.danglingRoutes(m, root.object("http"))
	c.used(m)
	if len(m.Actors) == 0 {
		c.At(root.get("actors").n, "actors must name one actor at least")
	}
	if main := root.object("run").get("main"); main.given() {
		var names []string
		for _, a := range m.Actors {
			names = append(names, a.Name)
		}
		if !slices.Contains(names, main.n.Value) {
			c.At(main.n, "run.main: there is no top-level actor %q%s", main.n.Value, grammar.Suggest(main.n.Value, names))
		}
	}
	c.dangling(m, root)
	c.circles(m)
	return m
}

// empty is a manifest with its path and nothing else.
func (c *checker) empty() *Manifest {
	dir, err := filepath.Abs(filepath.Dir(c.File))
	if err != nil {
		dir = filepath.Dir(c.File)
	}
	return &Manifest{File: c.File, Dir: dir}
}

func (c *checker) module(m *Manifest, key *yaml.Node, v view) Module {
	mod := Module{Name: key.Value, Compiler: v.text("compiler"), Freeze: v.flag("freeze", true), root: m.Dir, file: m.File, line: key.Line, column: key.Column}
	abs := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(m.Dir, p)
	}
	goNode, wasmNode := v.get("go"), v.get("wasm")
	switch {
	case goNode.given() && wasmNode.given():
		c.At(v.n, "modules.%s: either go or wasm, not both", key.Value)
	case goNode.given():
		mod.Go = abs(v.text("go"))
	case wasmNode.given():
		mod.Wasm = abs(v.text("wasm"))
	default:
		c.At(v.n, "modules.%s: either go (a folder to build) or wasm (a file) is needed", key.Value)
	}
	mod.Tags = v.texts("tags")
	mod.Flags = map[string][]string{"go": v.object("flags").texts("go"), "tinygo": v.object("flags").texts("tinygo")}
	for _, compiler := range []string{"go", "tinygo"} {
		for _, f := range v.object("flags").items(compiler) {
			if err := build.CheckFlag(compiler, f.n.Value); err != nil {
				c.At(f.n, "modules.%s.flags.%s: %v", key.Value, compiler, err)
			}
		}
	}
	for _, k := range []string{"compiler", "tags", "flags"} {
		if x := v.get(k); x.given() && wasmNode.given() {
			c.At(x.n, "modules.%s.%s has no meaning for a .wasm file", key.Value, k)
		}
	}
	if mod.Compiler == "" {
		mod.Compiler = "auto"
	}
	v.mapping("env").pairs(func(k *yaml.Node, value view) { mod.Env = append(mod.Env, k.Value+"="+value.n.Value) })
	slices.Sort(mod.Env)
	for _, d := range v.items("dirs") {
		dir := runtime.Dir{Host: abs(d.text("host")), Guest: d.text("guest"), ReadOnly: d.text("mode") != "rw"}
		bytes, files := d.size("bytes", defaultDirBytes), d.count("files", defaultDirFiles)
		if !dir.ReadOnly {
			dir.MaxBytes, dir.MaxFiles = bytes, files
		}
		for _, k := range []string{"bytes", "files"} {
			if x := d.get(k); x.given() && dir.ReadOnly {
				c.At(x.n, "modules.%s.dirs: %s needs mode: rw", key.Value, k)
			}
		}
		mod.Dirs = append(mod.Dirs, dir)
	}
	mod.Upgrade = c.ways(v)
	c.moduleLimits(v.object("limits"), &mod)
	return mod
}

func (c *checker) actors(m *Manifest, v view, base limits, above []*Grant) []Actor {
	var out []Actor
	v.pairs(func(k *yaml.Node, v view) {
		l := c.limits(v.object("limits"), base)
		box := c.mailbox(v.object("mailbox"), v.object("limits"), &l)
		a := Actor{Name: k.Value, Mailbox: box, Limits: l.Limits, Stack: l.stack, Table: l.table, line: k.Line, column: k.Column}
		a.Routing, a.routing = c.routing(k.Value, v), routingText(v)
		a.Keyed, a.keyed = c.keyed(k.Value, v), keyedText(v)
		v.text("type") // reads the key; the module is found with its place
		if typ := v.get("type"); typ.given() {
			a.Module, a.Type = c.actorType(m, typ.n)
		} else if !v.has("to") {
			c.At(v.n, "actor %s lacks the key \"type\" (module/type, or type alone if there is one module)", k.Value)
		}
		a.Args = c.value(v.get("args", grammar.Any).n)
		caps := v.object("capabilities")
		c.spawnRights(caps, v.object("supervision"))
		a.Capabilities = host.Capabilities{Send: caps.texts("send"), Stop: caps.texts("stop"), Spawn: caps.texts("spawn")}
		if a.Metrics = c.metrics(caps.mapping("metrics")); len(a.Metrics) > 0 {
			a.Capabilities.Send = append(a.Capabilities.Send, guests.Path)
		}
		a.Grants = c.grants(caps, above)
		if r := a.Routing; r != nil && r.Nodes != "" && len(a.Grants) > 0 {
			c.At(caps.n, "capabilities: routees on other nodes (routing.nodes) have no services")
		}
		a.Supervision, a.supervision = c.supervision(v.object("supervision")), canonical(v.object("supervision").n)
		a.Lifetime, _ = supervision.ParseLifetime(v.text("lifetime"))
		a.Significant = c.significant(v, a.Lifetime)
		a.Crashed = crashed(v.text("crashed-message"))
		a.Resend, a.resend = c.resend(v.object("resend")), canonical(v.object("resend").n)
		if a.Resend != nil && v.has("children") {
			c.At(v.get("children").n, "children cannot be combined with resend: the actor is started anew and not restarted")
		}
		if kind := v.object("mailbox").get("kind"); a.Resend != nil && !a.Mailbox.IsUsual() {
			c.At(kind.n, "mailbox.kind cannot be combined with resend: the resender holds the messages, in its own order")
		}
		a.Dispatcher = c.dispatcher(v.object("dispatcher"))
		a.Messages = c.messages(v.object("messages"))
		a.Upgrade = c.ways(v)
		a.mailbox = canonical(v.object("mailbox").n)
		a.Children = c.actors(m, v.mapping("children"), base, forTree(a.Grants))
		c.share(m, &a, v.object("limits"))
		out = append(out, a)
	})
	return out
}

// significant reads the key. It is refused for a permanent child, which never ends by itself.
func (c *checker) significant(v view, l supervision.Lifetime) bool {
	if !v.flag("significant", false) {
		return false
	}
	if l == supervision.Permanent {
		c.At(v.get("significant").n, "significant cannot be combined with lifetime: permanent: such an actor is always restarted")
	}
	return true
}

// actorType splits module/type.
func (c *checker) actorType(m *Manifest, n *yaml.Node) (module, typ string) {
	var names []string
	for _, mod := range m.Modules {
		names = append(names, mod.Name)
	}
	if module, typ, ok := strings.Cut(n.Value, "/"); ok {
		if slices.Contains(names, module) {
			return module, typ
		}
		if len(names) != 1 {
			c.At(n, "there is no module %q%s", module, grammar.Suggest(module, names))
			return "", typ
		}
		// With one module, the name of a type may contain a slash. Suggest a module if the
		// part before it is like one.
		if near := grammar.Nearest(module, names); near != "" {
			c.At(n, "there is no module %q; did you mean %q?", module, near+"/"+typ)
			return near, typ
		}
	}
	if len(names) != 1 {
		c.At(n, "%q does not say which module: write module/type, with one of %s", n.Value, strings.Join(names, ", "))
		return "", n.Value
	}
	return names[0], n.Value
}

// value converts a node to a value for CBOR.
func (c *checker) value(n *yaml.Node) any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = c.value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			l = append(l, c.value(item))
		}
		return l
	}
	v, err := grammar.Scalar(n)
	if err != nil {
		c.At(n, "%v", err)
	}
	return v
}
