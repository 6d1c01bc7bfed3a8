package natscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// What services share is in streams of their own. Keepers make them when they start, in the account to which no other node connects: those
// ask a keeper, see valuesserve.go. On a NATS that exists the first node that needs one makes it, and all use it.

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

// shared are the stores of services.
type shared struct {
	of map[string]*opening[*store]

	until  context.Context // ends with the cluster's place; nil of one that only observes
	stop   context.CancelFunc
	making sync.WaitGroup
}

func (x *shared) begins() {
	x.until, x.stop = context.WithCancel(context.Background())
	x.of = map[string]*opening[*store]{}
	for _, name := range sharing {
		x.of[name] = newOpening[*store]()
	}
}

// makeAgain is how long a keeper waits before it looks again at a stream that is not what it should be.
const makeAgain = 5 * time.Second

// makeShared makes the streams of all services, and tries until the node leaves. Other nodes are answered when each was tried, so that none
// asks a keeper in vain while another one could answer.
func (c *Cluster) makeShared() {
	var tried sync.WaitGroup
	for _, name := range sharing {
		first := sync.OnceFunc(tried.Done)
		tried.Add(1)
		c.shared.making.Go(func() {
			defer first()
			for {
				_, err := c.ownShared(c.shared.until, name)
				if err == nil {
					return
				}
				first()
				select { // what is wrong is told by an event, and to those that use it
				case <-c.shared.until.Done():
					return
				case <-time.After(makeAgain):
				}
			}
		})
	}
	c.shared.making.Go(func() {
		tried.Wait()
		if c.shared.until.Err() != nil {
			return
		}
		if err := c.serves.serve(c.id.subjectOfValues()); err != nil {
			c.event(cluster.Event{Kind: cluster.EventSilent, Text: "this keeper does not answer for what services share: " + err.Error()})
		}
	})
}

func (c *Cluster) sharedStore(name string) *store {
	return &store{
		nc: c.keys, what: whatShared(name), stream: c.id.streamShared(name), prefix: c.id.subjectShared(name), told: c.id.subjectSharedTold(name),
		keys: maxSharedKey, size: maxSharing, ends: true, trouble: func(error) {}, why: c.why, over: make(chan struct{}),
	}
}

func whatShared(name string) string { return "what the service " + name + " shares" }

// ownShared opens the store of a service where its stream is.
func (c *Cluster) ownShared(ctx context.Context, name string) (*store, error) {
	what := whatShared(name)
	return c.shared.of[name].get(ctx, what, func() (*store, error) {
		if c.shared.until.Err() != nil {
			return nil, errShut
		}
		s := c.sharedStore(name)
		s.aside = c.server != nil
		return s, c.makeShares(ctx, s)
	})
}

// Shared opens what a service shares of a bundle, and waits for a majority of the keepers until ctx ends. It implements service.Sharing for
// the bundle: keys begin with its name, see service.AppendSharedName. On a keeper, and on a NATS that exists, a watch tells of all bundles.
func (c *Cluster) Shared(ctx context.Context, name, bundle string) (service.Shared, error) {
	switch {
	case !slices.Contains(sharing, name):
		return nil, fmt.Errorf("natscluster: the service %s shares nothing", name)
	case !abi.ValidName([]byte(bundle)):
		return nil, fmt.Errorf("natscluster: %q is no name of a bundle", bundle)
	case c.keys == nil:
		return c.askedShared(ctx, name, bundle)
	}
	s, err := c.ownShared(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Shared{s, c.id.Lease}, nil
}

func (x *shared) close() {
	if x.stop != nil {
		x.stop()
	}
	x.making.Wait()
	for _, name := range sharing {
		if o := x.of[name]; o != nil {
			o.turn <- struct{}{} // nobody opens it any more
			if s, ok := o.opened(); ok {
				s.close()
			}
		}
	}
}

// Shared are the values that a service of all nodes shares, where their stream is; see service.Shared. Its methods may be called by any goroutine.
type Shared struct {
	s     *store
	lease time.Duration
}

// Lease is the cluster's.
func (x *Shared) Lease() time.Duration { return x.lease }

// Put replaces a value if it was last changed at the revision; nil removes it. It is forgotten after stay seconds, unless that is 0.
func (x *Shared) Put(key string, value []byte, revision uint64, stay int64, done func(at uint64, ok bool, err error)) {
	if wrong := x.s.wrong.Load(); wrong != nil {
		go done(0, false, *wrong)
		return
	}
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
	wrong := x.s.wrong.Load()
	switch {
	case wrong != nil:
		go done(nil, 0, *wrong)
		return
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
