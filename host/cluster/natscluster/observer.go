package natscluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// Observer reads the directory of a cluster, without being a node. Its methods may be called by any goroutine.
type Observer struct {
	c     *Cluster
	close func()
}

// Observe connects to a cluster by the folder of one of its nodes, which may run meanwhile. It ends with ctx.
func Observe(ctx context.Context, id *Identity) (*Observer, error) {
	c := &Cluster{id: id, event: func(cluster.Event) {}}
	o := &Observer{c, sync.OnceFunc(c.Close)}
	if err := o.open(ctx); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

func (o *Observer) open(ctx context.Context) (err error) {
	c := o.c
	if c.nodes, err = c.connect(accountDirectory); err != nil {
		return err
	}
	c.dir = c.newStore()
	js, err := jetstream.New(c.nodes)
	if err != nil {
		return err
	}
	for {
		once, cancel := context.WithTimeout(ctx, putTime)
		_, err := js.Stream(once, c.dir.stream)
		cancel()
		if err == nil {
			return c.checkDescription(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("natscluster: the directory does not answer: %s", c.waitsFor(err))
		case <-time.After(reconnect):
		}
	}
}

// Close leaves the cluster alone.
func (o *Observer) Close() { o.close() }

// Keeps reports whether the node of the name keeps the directory.
func (o *Observer) Keeps(node string) bool {
	_, ok := o.c.id.keeper(node)
	return ok
}

// Members are the nodes that hold a number, by their numbers. One that is lost is among them until its lease is over.
func (o *Observer) Members(ctx context.Context) ([]cluster.Member, error) {
	all, err := o.entries(ctx)
	if err != nil {
		return nil, err
	}
	var out []cluster.Member
	for _, m := range all {
		if !m.Gone {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Member) int { return int(a.Number) - int(b.Number) })
	return out, nil
}

// entries reads all entries of nodes.
func (o *Observer) entries(ctx context.Context) (map[string]cluster.Member, error) {
	all := map[string]cluster.Member{}
	w := &watch{store: o.c.dir, each: func(e cluster.Entry) {
		if m, err := cluster.DecodeMember(e); err == nil {
			all[e.Key] = m
		}
	}}
	for !w.read() {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("natscluster: the directory does not answer: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return all, nil
}

// Evict takes the number of a node away. The error is cluster.ErrNoMember if there is none of the name. The node may act until
// it is told, or its lease is over.
func (o *Observer) Evict(ctx context.Context, node string) (cluster.Member, error) {
	var last cluster.Member
	for {
		all, err := o.Members(ctx)
		if err != nil {
			return cluster.Member{}, err
		}
		i := slices.IndexFunc(all, func(m cluster.Member) bool { return m.Name == node })
		switch {
		case i >= 0:
		case last.Number != 0: // it took effect, and only the answer was lost
			return last, nil
		default:
			return cluster.Member{}, cluster.ErrNoMember
		}
		last = all[i]
		e := last.Evicted()
		_, err = o.c.dir.put(e.Key, e.Value, e.Revision, 0)
		switch {
		case err == nil:
			return last, nil
		case ctx.Err() != nil:
			return cluster.Member{}, err
		}
		// It has renewed its lease in between, or the directory does not answer: once more.
	}
}
