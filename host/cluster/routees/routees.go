// Package routees gives routers (package host/router) routees on the nodes of a cluster: those of a group are the actors at the same paths
// on each node, those of a pool run on several nodes by package remote. They follow the nodes that come and go.
package routees

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/router"
)

// Node is what is needed of a node of the cluster; *cluster.Node is one.
type Node interface {
	Self() cluster.Member
	// Members are the nodes that are there, by their numbers.
	Members() []cluster.Member
	// Changes has f called when members come and go.
	Changes(f func()) (stop func())
}

// Group are the routees of a group: the actors at the paths (such as /user/a) on each node with the role, this one included; with ""
// on all nodes. A node's routees are called PATH@NAME by its name: consistent
// hashing gives them the same keys after it has come back.
func Group(node Node, role string, paths ...string) router.Elsewhere {
	return &group{nodes{node, role}, slices.Clone(paths)}
}

// Pool are the nodes with the role, or with "" all, for the routees of a pool. worker makes the props of a routee on the node of this
// name, to be spawned as a child of parent: see package remote. Pools with different paths begin with different nodes.
func Pool(node Node, role, path string, worker func(parent host.Ref, node string) (host.Props, error)) router.Nodes {
	return &pool{nodes{node, role}, path, worker}
}

// nodes are those with a role.
type nodes struct {
	node Node
	role string
}

// Watch implements router.Elsewhere and router.Nodes.
func (n nodes) Watch(changed func()) (stop func()) { return n.node.Changes(changed) }

// members are the nodes by their names.
func (n nodes) members() []cluster.Member {
	all := slices.DeleteFunc(n.node.Members(), func(m cluster.Member) bool { return n.role != "" && !m.HasRole(n.role) })
	slices.SortFunc(all, func(a, b cluster.Member) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

type group struct {
	nodes
	paths []string
}

// Routees implements router.Elsewhere: path by path, so that what goes round visits all nodes before it comes to one again.
func (g *group) Routees(system string) (all []router.Far) {
	members, self := g.members(), g.node.Self().Number
	for _, p := range g.paths {
		for _, m := range members {
			f := router.Far{Name: p + "@" + m.Name, Path: p}
			if m.Number != self {
				f.Path = ref.Root(system, m.Number) + p
			}
			all = append(all, f)
		}
	}
	return all
}

type pool struct {
	nodes
	path   string
	worker func(parent host.Ref, node string) (host.Props, error)
}

// Spots implements router.Nodes, in an order that follows from path and names alone.
func (p *pool) Spots() (all []router.Spot) {
	for _, m := range p.members() {
		all = append(all, router.Spot{Node: m.Name, Zone: m.Zone})
	}
	slices.SortStableFunc(all, func(a, b router.Spot) int {
		return cmp.Compare(cluster.Hash(b.Node, "\x00", p.path), cluster.Hash(a.Node, "\x00", p.path))
	})
	return all
}

// Worker implements router.Nodes.
func (p *pool) Worker(parent host.Ref, node string) (host.Props, error) {
	return p.worker(parent, node)
}
