package bundle

import (
	"context"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/service"
)

// Join says which node of a cluster the bundle's systems are on that are started from now on; nil: they are alone, and all actors
// are there. The system must have the node's number, see host.Config.WithNode.
func (b *Bundle) Join(node shard.Node) { b.node = node }

// Share says how services reach what all nodes of the cluster share; nil: the services of each node have their own. It counts for
// systems that are started from now on, and only after Join.
func (b *Bundle) Share(f service.Sharing) { b.sharing = f }

// Spread are the names of the actors whose keys, or whose one place, are spread over the nodes, in the order of the manifest. Their
// regions are below /user. It is empty if the bundle has joined none.
func (b *Bundle) Spread() (all []string) {
	for i := range b.Manifest.Actors {
		if a := &b.Manifest.Actors[i]; b.node != nil && a.spread() {
			all = append(all, a.Name)
		}
	}
	return all
}

// shared is what services of the next system get: a node that must not act writes nothing.
func (b *Bundle) shared() service.Sharing {
	node, open := b.node, b.sharing
	if node == nil || open == nil {
		return nil
	}
	return func(ctx context.Context, name string) (service.Shared, error) {
		at, err := open(ctx, name)
		if err != nil {
			return nil, err
		}
		return &fenced{at, node}, nil
	}
}

// nodes are those of the cluster, for services; nil: there is none.
func (b *Bundle) nodes() service.Nodes {
	if b.node == nil {
		return nil
	}
	return peers{b.node}
}

// peers implements service.Nodes.
type peers struct{ node shard.Node }

func (p peers) Self() uint16                   { return p.node.Self().Number }
func (p peers) Acting() bool                   { return p.node.Acting() }
func (p peers) Changes(f func()) (stop func()) { return p.node.Changes(f) }

func (p peers) Others() (all []uint16) {
	self := p.Self()
	for _, m := range p.node.Members() {
		if m.Number != self {
			all = append(all, m.Number)
		}
	}
	return all
}

// fenced is what is shared, for a node that may be lost: then it neither reads nor writes.
type fenced struct {
	service.Shared
	node shard.Node
}

func (f *fenced) Put(key string, value []byte, revision uint64, stay int64, done func(uint64, bool, error)) {
	if !f.node.Acting() {
		go done(0, false, host.ErrNodeLost)
		return
	}
	f.Shared.Put(key, value, revision, stay, done)
}

func (f *fenced) Get(key string, done func([]byte, uint64, error)) {
	if !f.node.Acting() {
		go done(nil, 0, host.ErrNodeLost)
		return
	}
	f.Shared.Get(key, done)
}
