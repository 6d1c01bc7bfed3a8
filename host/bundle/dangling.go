package bundle

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// dangling reports capabilities that name no actor of the bundle, as long as the
// pattern is one that could: actors that guests spawn are not in the manifest.
func (c *checker) dangling(m *Manifest, root *yaml.Node) {
	var paths []string
	spawners := map[string]bool{}
	m.Walk(func(p string, a *Actor) {
		paths = append(paths, p)
		if len(a.Capabilities.Spawn) > 0 {
			spawners[p] = true
		}
	})
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		pairs(n, func(_, actor *yaml.Node) {
			caps := at(actor, "capabilities")
			for _, key := range []string{"send", "stop"} {
				if l := at(caps, key); l != nil {
					for _, p := range l.Content {
						c.danglingPath(p, key, paths, spawners)
					}
				}
			}
			visit(at(actor, "children"))
		})
	}
	visit(at(root, "actors"))
}

func (c *checker) danglingPath(n *yaml.Node, key string, paths []string, spawners map[string]bool) {
	pattern := strings.TrimSuffix(n.Value, "/**")
	for _, p := range paths {
		if ok, err := path.Match(pattern, p); err == nil && ok {
			return
		}
	}
	for above := path.Dir(pattern); above != "/" && above != "."; above = path.Dir(above) {
		for p := range spawners {
			if ok, err := path.Match(above, p); err == nil && ok {
				return
			}
		}
	}
	c.at(n, "capabilities.%s: no actor of the bundle has the path %s%s", key, n.Value, suggestion(n.Value, paths))
}
