package natscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// What services share is in streams of their own. Keepers make them when they start, so that no other node can make them otherwise. On a
// NATS that exists the first node that needs one makes it.

// sharing are the services that may share something.
var sharing = []string{"kv", "pubsub"}

// Bounds of a store.
const (
	maxDirectory = 1 << 30                    // bytes
	maxSharing   = 2 * service.MaxSharedTotal // bytes of what a service shares: services leave one half for removals
	maxSharedKey = service.MaxSharedKey
)

func (d *Description) streamShared(service string) string {
	return d.stream() + "_" + strings.ToUpper(service)
}
func (d *Description) subjectShared(service string) string {
	return d.subject() + ".s." + service + "."
}
func (d *Description) subjectSharedTold(service string) string {
	return d.subject() + ".u." + service + "."
}

// shared are the stores of services that are open.
type shared struct {
	opening sync.Mutex // held while one is made

	mu   sync.Mutex
	open map[string]*store
	over bool

	until  context.Context // ends with the cluster's place; nil of one that only observes
	stop   context.CancelFunc
	making sync.WaitGroup
}

// makeShared makes the streams of all services, and tries until the node leaves.
func (c *Cluster) makeShared() {
	for _, name := range sharing {
		of := c.sharedStore(name)
		of.aside = true
		c.shared.making.Go(func() { _ = c.makeStream(c.shared.until, of) }) // what is wrong is told by an event, and to those that use it
	}
}

func (c *Cluster) sharedStore(name string) *store {
	return &store{
		nc: c.nodes, what: "what the service " + name + " shares", stream: c.id.streamShared(name), prefix: c.id.subjectShared(name), told: c.id.subjectSharedTold(name),
		keys: maxSharedKey, size: maxSharing, ends: true, trouble: func(error) {}, why: c.why, over: make(chan struct{}),
	}
}

// Shared opens what a service shares, and waits for a majority of the keepers until ctx ends. It implements service.Sharing but
// for its result, whose methods are those of service.Shared.
func (c *Cluster) Shared(ctx context.Context, name string) (*Shared, error) {
	if !slices.Contains(sharing, name) {
		return nil, fmt.Errorf("natscluster: the service %s shares nothing", name)
	}
	c.shared.opening.Lock()
	defer c.shared.opening.Unlock()
	c.shared.mu.Lock()
	s, over := c.shared.open[name], c.shared.over
	c.shared.mu.Unlock()
	if over {
		return nil, errShut
	}
	if s != nil {
		return &Shared{s, c.id.Lease}, nil
	}
	s = c.sharedStore(name)
	if err := c.makeStream(ctx, s); err != nil {
		return nil, err
	}
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.shared.over {
		return nil, errShut
	}
	if c.shared.open == nil {
		c.shared.open = map[string]*store{}
	}
	c.shared.open[name] = s
	return &Shared{s, c.id.Lease}, nil
}

func (x *shared) close() {
	if x.stop != nil {
		x.stop()
	}
	x.making.Wait()
	x.mu.Lock()
	x.over = true
	var all []*store
	for _, name := range sharing {
		if s := x.open[name]; s != nil {
			all = append(all, s)
		}
	}
	x.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}

// Shared are the values that a service of all nodes shares; see service.Shared. Its methods may be called by any goroutine.
type Shared struct {
	s     *store
	lease time.Duration
}

// Lease is the cluster's.
func (x *Shared) Lease() time.Duration { return x.lease }

// Put replaces a value if it was last changed at the revision; nil removes it. It is forgotten after stay seconds, unless that is 0.
func (x *Shared) Put(key string, value []byte, revision uint64, stay int64, done func(at uint64, ok bool, err error)) {
	x.s.putFor(key, value, revision, stay, func(at uint64, err error) {
		if errors.Is(err, cluster.ErrConflict) {
			done(0, false, nil)
			return
		}
		done(at, err == nil, err)
	})
}

// Get reads what the stream's leader has.
func (x *Shared) Get(key string, done func(value []byte, revision uint64, err error)) {
	switch {
	case !x.s.validKey(key):
		go done(nil, 0, errValue)
		return
	case !x.s.begin():
		go done(nil, 0, errShut)
		return
	case x.s.under.Add(1) > mostPuts:
		x.s.under.Add(-1)
		x.s.wait.Done()
		go done(nil, 0, errBusy)
		return
	}
	go func() {
		defer x.s.wait.Done()
		value, at, err := x.s.get(context.Background(), key)
		x.s.under.Add(-1)
		done(value, at, err)
	}()
}

// Watch calls each for all that there is, then ready, and each for what changes from then on.
func (x *Shared) Watch(each func(key string, value []byte, revision uint64), ready func()) (stop func()) {
	return x.s.follow(func(e cluster.Entry) { each(e.Key, e.Value, e.Revision) }, ready)
}
