package bundle

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// dangling reports capabilities whose patterns match no actor of the bundle. Patterns that
// may match actors which guests spawn are not reported: those are not in the manifest.
func (c *checker) dangling(m *Manifest, root view) {
	paths, spawners := m.paths()
	var visit func(actors view)
	visit = func(actors view) {
		actors.pairs(func(_ *yaml.Node, actor view) {
			caps := actor.object("capabilities")
			for _, key := range []string{"send", "stop"} {
				for _, p := range caps.items(key) {
					c.danglingPath(p.n, key, paths, spawners)
				}
			}
			c.danglingRoutees(actor, paths, spawners)
			c.danglingReceivers(actor, paths, spawners)
			visit(actor.mapping("children"))
		})
	}
	if len(m.Actors) > 0 {
		visit(root.mapping("actors"))
	}
}

func (c *checker) danglingPath(n *yaml.Node, key string, paths []string, spawners map[string]bool) {
	c.danglingAt(n, "capabilities."+key, paths, spawners)
}

func (c *checker) danglingAt(n *yaml.Node, key string, paths []string, spawners map[string]bool) {
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
	c.At(n, "%s: no actor of the bundle has the path %s%s", key, n.Value, grammar.Suggest(n.Value, paths))
}
