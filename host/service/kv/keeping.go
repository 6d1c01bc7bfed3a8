package kv

import (
	"context"

	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// keeping is where the entries are: a store of this process, or one that all nodes of a cluster have. Its methods may be called
// concurrently.
type keeping interface {
	// read finds an entry; NotFound: there is none.
	read(ctx context.Context, ns, key string) (*Entry, error)
	// page is a page of a list, and the cursor of the next one.
	page(ctx context.Context, l listing) ([]Entry, []byte, error)
	// used is how much a namespace holds.
	used(ctx context.Context, ns string) (Usage, error)
	// namespaces are those that are not empty, in order.
	namespaces() ([]Info, error)
	// changeThen carries out operations, all or none, and calls visible when others can see it, or when it is refused.
	changeThen(ctx context.Context, ns string, q Quota, ops []Op, d Durability, visible func()) ([]Result, uint64, error)
	// changeOnce is changeThen for a request that has a key, or none (nil). Where keys can be kept it has no second effect.
	changeOnce(ctx context.Context, ns string, q Quota, ops []Op, d Durability, visible func(), r *once.Request) ([]Result, uint64, error)
	// told tells watchers.
	told() *hub
	close() error
}

func (s *store) read(_ context.Context, ns, key string) (*Entry, error) { return s.get(ns, key) }

func (s *store) page(_ context.Context, l listing) ([]Entry, []byte, error) { return s.list(l) }

func (s *store) told() *hub { return &s.hub }
