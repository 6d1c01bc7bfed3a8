package bundle

import (
	"slices"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// Cluster says what a bundle is in a cluster. Without it a bundle cannot join one.
type Cluster struct {
	Roles   []string // sorted
	Zone    string   // "": none
	Listen  string   // where a node that keeps the directory listens; "": at its address
	Control bool     // actors of other nodes may stop those here
	Accept  *Accept  // what they may start here; nil: nothing
	Journal uint64   // bytes that the log of its keys has at most; 0: as many as the keepers give
}

// maxRoles bounds the roles of a node.
const maxRoles = 32

var clusterShape = object("the bundle may join a cluster, with run --join",
	optional("roles", list("what its nodes are for; others choose nodes by them", pattern(none, "a role", nameWhat, nameRule))),
	optional("zone", pattern(none, "where the nodes are: copies of the same are kept apart by it", nameWhat, nameRule)),
	optional("listen", text(service.ReachListen, "host:port where a node that keeps the directory listens, and at the port after it; default: its address in the cluster")),
	optional("accept", acceptShape),
	optional("journal", object("the log of its keys' events",
		optional("size", sizeIn("bytes of it, of what the keepers of the cluster give a bundle; default: all of that, 2GiB", cluster.LeastLog, cluster.MostLog)),
	)),
	optional("control", boolean("actors of other nodes may stop and kill those of this one; default: false")),
)

// cluster reads the key cluster.
func (c *checker) cluster(m *Manifest, v view, base limits) *Cluster {
	if !v.given() {
		return nil
	}
	k := &Cluster{Zone: v.text("zone"), Listen: v.text("listen"), Control: v.flag("control", false)}
	if k.Listen != "" {
		if _, _, err := cluster.HostPort(k.Listen); err != nil {
			c.At(v.get("listen").n, "cluster.listen: %v", err)
		}
	}
	k.Journal = v.object("journal").size("size", 0)
	k.Accept = c.accept(m, v.object("accept"), base)
	k.Roles = v.texts("roles")
	slices.Sort(k.Roles)
	if len(slices.Compact(slices.Clone(k.Roles))) != len(k.Roles) {
		c.At(v.get("roles").n, "cluster.roles names a role twice")
	}
	if len(k.Roles) > maxRoles {
		c.At(v.get("roles").n, "cluster.roles has %d roles, at most %d", len(k.Roles), maxRoles)
	}
	return k
}
