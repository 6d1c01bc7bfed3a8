package bundle

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"go.yaml.in/yaml/v3"
)

// The functions of this file read nodes that were checked against the grammar,
// so that what remains can go wrong only between keys.

// at finds the value of a key, nil if it is absent.
func at(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func str(n *yaml.Node, key string) string {
	if v := at(n, key); v != nil {
		return v.Value
	}
	return ""
}

func flag(n *yaml.Node, key string, def bool) bool {
	if v := at(n, key); v != nil {
		return v.Value == "true" || v.Value == "True" || v.Value == "TRUE"
	}
	return def
}

func whole(n *yaml.Node, key string, def int) int {
	if v := at(n, key); v != nil {
		i, _ := strconv.Atoi(v.Value)
		return i
	}
	return def
}

func real(n *yaml.Node, key string) float64 {
	f, _ := strconv.ParseFloat(str(n, key), 64)
	return f
}

func bytesOf(n *yaml.Node, key string, def uint64) uint64 {
	if v := at(n, key); v != nil {
		u, _ := parseSize(v.Value)
		return u
	}
	return def
}

func countOf(n *yaml.Node, key string, def uint64) uint64 {
	if v := at(n, key); v != nil {
		u, _ := parseCount(v.Value)
		return u
	}
	return def
}

func durationOf(n *yaml.Node, key string, def time.Duration) time.Duration {
	if v := at(n, key); v != nil {
		d, _ := parseDuration(v.Value)
		return d
	}
	return def
}

func strs(n *yaml.Node, key string) []string {
	var out []string
	if v := at(n, key); v != nil {
		for _, item := range v.Content {
			out = append(out, item.Value)
		}
	}
	return out
}

// pairs calls f for each entry of a mapping, in the order of the file.
func pairs(n *yaml.Node, f func(key, value *yaml.Node)) {
	if n == nil {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i], n.Content[i+1])
	}
}

func (c *checker) manifest(root *yaml.Node) *Manifest {
	dir, err := filepath.Abs(filepath.Dir(c.file))
	if err != nil {
		dir = filepath.Dir(c.file)
	}
	m := &Manifest{File: c.file, Dir: dir, Name: str(root, "name"), Description: str(root, "description"), Main: str(at(root, "run"), "main")}
	pairs(at(root, "modules"), func(k, v *yaml.Node) { m.Modules = append(m.Modules, c.module(m, k, v)) })
	if len(m.Modules) == 0 {
		c.at(at(root, "modules"), "modules must name one module at least")
	}
	m.Supervision = c.supervision(at(root, "supervision"))
	m.IdleAfter = durationOf(at(root, "idle"), "after", host.DefaultIdleAfter)
	m.MostAwake = int(countOf(at(root, "idle"), "awake", 0))
	base := limits{Limits: host.Limits{Deadline: defaultDeadline}}
	base = c.limits(at(root, "limits"), base)
	m.Actors = c.actors(m, at(root, "actors"), base)
	if len(m.Actors) == 0 {
		c.at(at(root, "actors"), "actors must name one actor at least")
	}
	if main := at(at(root, "run"), "main"); main != nil {
		var names []string
		for _, a := range m.Actors {
			names = append(names, a.Name)
		}
		if !slices.Contains(names, main.Value) {
			c.at(main, "run.main: there is no top-level actor %q%s", main.Value, suggestion(main.Value, names))
		}
	}
	c.dangling(m, root)
	return m
}

func (c *checker) module(m *Manifest, key, n *yaml.Node) Module {
	mod := Module{Name: key.Value, Compiler: str(n, "compiler"), Freeze: flag(n, "freeze", true)}
	abs := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(m.Dir, p)
	}
	goNode, wasmNode := at(n, "go"), at(n, "wasm")
	switch {
	case goNode != nil && wasmNode != nil:
		c.at(n, "modules.%s: either go or wasm, not both", key.Value)
	case goNode != nil:
		mod.Go = abs(goNode.Value)
	case wasmNode != nil:
		mod.Wasm = abs(wasmNode.Value)
		if at(n, "compiler") != nil {
			c.at(at(n, "compiler"), "modules.%s.compiler has no meaning for a .wasm file", key.Value)
		}
	default:
		c.at(n, "modules.%s: either go (a folder to build) or wasm (a file) is needed", key.Value)
	}
	if mod.Compiler == "" {
		mod.Compiler = "auto"
	}
	pairs(at(n, "env"), func(k, v *yaml.Node) { mod.Env = append(mod.Env, k.Value+"="+v.Value) })
	slices.Sort(mod.Env)
	if dirs := at(n, "dirs"); dirs != nil {
		for _, d := range dirs.Content {
			mod.Dirs = append(mod.Dirs, runtime.Dir{Host: abs(str(d, "host")), Guest: str(d, "guest"), ReadOnly: str(d, "mode") != "rw"})
		}
	}
	c.moduleLimits(at(n, "limits"), &mod)
	return mod
}

func (c *checker) actors(m *Manifest, n *yaml.Node, base limits) []Actor {
	var out []Actor
	pairs(n, func(k, v *yaml.Node) {
		l := c.limits(at(v, "limits"), base)
		a := Actor{Name: k.Value, Limits: l.Limits, Stack: l.stack, Table: l.table, line: k.Line, column: k.Column}
		a.Module, a.Type = c.actorType(m, at(v, "type"))
		a.Args = c.value(at(v, "args"))
		caps := at(v, "capabilities")
		a.Capabilities = host.Capabilities{Send: strs(caps, "send"), Stop: strs(caps, "stop"), Spawn: strs(caps, "spawn")}
		a.Supervision = c.supervision(at(v, "supervision"))
		a.Lifetime, _ = supervision.ParseLifetime(str(v, "lifetime"))
		a.Significant = flag(v, "significant", false)
		a.Crashed = crashed(str(v, "crashed-message"))
		a.Resend = c.resend(at(v, "resend"))
		if a.Resend != nil && at(v, "children") != nil {
			c.at(at(v, "children"), "children do not go with resend: the actor is begun anew and not restarted")
		}
		a.Children = c.actors(m, at(v, "children"), base)
		c.share(m, &a, at(v, "limits"))
		out = append(out, a)
	})
	return out
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
			c.at(n, "there is no module %q%s", module, suggestion(module, names))
			return "", typ
		}
		// With one module a type's own name may hold a slash; say so if it was meant
		// as a module.
		if near, ok := nearest(module, names); ok {
			c.at(n, "there is no module %q; did you mean %q?", module, near+"/"+typ)
			return near, typ
		}
	}
	if len(names) != 1 {
		c.at(n, "%q does not say which module: write module/type, with one of %s", n.Value, strings.Join(names, ", "))
		return "", n.Value
	}
	return names[0], n.Value
}

// value turns any node into what CBOR can hold.
func (c *checker) value(n *yaml.Node) any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		pairs(n, func(k, v *yaml.Node) { m[k.Value] = c.value(v) })
		return m
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			l = append(l, c.value(item))
		}
		return l
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
		var u uint64
		if n.Decode(&u) == nil {
			return u
		}
		c.at(n, "%s does not fit 64 bits", n.Value)
		return nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil {
			c.at(n, "%s is not a number", n.Value)
		}
		return f
	case "!!binary":
		c.at(n, "binary values are not supported in args")
	}
	return n.Value
}
