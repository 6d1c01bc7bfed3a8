package kv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// request is a request of an actor.
type request = service.Request[Grant]

// provider answers requests.
type provider struct {
	env        *service.Env
	store      keeping
	durability Durability
	quota      int64 // of a grant that does not say
	order      order
	watchers   watchers
}

func newProvider(env *service.Env) *provider {
	return &provider{env: env, quota: DefaultQuota, order: order{clock: env.Clock, tails: map[host.Ref]*ticket{}, tickets: map[*request]*ticket{}}, watchers: watchers{of: map[watchKey]*watcher{}}}
}

// Accepted implements service.Sequencer: an actor's requests are carried out in the order in
// which they were sent.
func (p *provider) Accepted(r *request) { p.order.enter(r) }

// Serve implements service.Provider.
func (p *provider) Serve(ctx context.Context, r *request) (any, error) {
	t := p.order.take(r)
	defer p.order.leave(r.Sender, t)
	switch r.Op {
	case "get", "list", "usage", "watch":
		return p.read(ctx, r, t)
	case "put":
		var a putArgs
		if err := r.Decode(&a); err != nil {
			return nil, err
		}
		if a.Value == nil {
			return nil, service.Errorf(service.BadRequest, "put needs value, a byte string")
		}
		res, _, err := p.one(ctx, r, t, &a.keyArgs, Op{Kind: OpPut, Value: a.Value, TTL: a.TTL})
		return wireVersion{res.Version}, err
	case "delete":
		var a keyArgs
		if err := r.Decode(&a); err != nil {
			return nil, err
		}
		res, _, err := p.one(ctx, r, t, &a, Op{Kind: OpDelete})
		return wireExisted{res.Existed}, err
	case "add":
		var a addArgs
		if err := r.Decode(&a); err != nil {
			return nil, err
		}
		res, _, err := p.one(ctx, r, t, &a.keyArgs, Op{Kind: OpAdd, Delta: a.Delta, TTL: a.TTL})
		return wireCount{res.Count, res.Version}, err
	case "batch":
		return p.batch(ctx, r, t)
	}
	return nil, r.Unknown()
}

// read answers a request that changes nothing, after the earlier requests of its sender.
func (p *provider) read(ctx context.Context, r *request, t *ticket) (any, error) {
	switch r.Op {
	case "get":
		var a getArgs
		if err := r.Decode(&a); err != nil {
			return nil, err
		}
		s, err := space(r.Grant, a.Namespace)
		if err == nil {
			err = asError(checkKey(a.Key))
		}
		if err == nil {
			err = t.turn(ctx)
		}
		if err != nil {
			return nil, err
		}
		e, err := p.store.read(ctx, s.Namespace, a.Key)
		if err != nil {
			return nil, err
		}
		w := e.wire(true)
		w.Key = ""
		return w, nil
	case "list":
		var a listArgs
		if err := r.Decode(&a); err != nil {
			return nil, err
		}
		return p.list(ctx, r, t, &a)
	case "usage":
		var a usageArgs
		if err := r.Decode(&a); err != nil {
			return nil, err
		}
		s, err := space(r.Grant, a.Namespace)
		if err == nil {
			err = t.turn(ctx)
		}
		if err != nil {
			return nil, err
		}
		u, err := p.store.used(ctx, s.Namespace)
		q := s.quota(p.quota)
		return wireUsage{u.Keys, u.Bytes, q.Keys, q.Bytes}, err
	}
	return p.watch(ctx, r, t)
}

func (p *provider) list(ctx context.Context, r *request, t *ticket, a *listArgs) (any, error) {
	s, err := space(r.Grant, a.Namespace)
	if err == nil {
		err = asError(checkPrefix(a.Prefix))
	}
	if err == nil && (a.Limit < 0 || a.Limit > PageEntries) {
		err = service.Errorf(service.BadRequest, "limit is %d, which is not between 1 and %d", a.Limit, PageEntries)
	}
	if err == nil {
		err = t.turn(ctx)
	}
	if err != nil {
		return nil, err
	}
	page, cursor, err := p.store.page(ctx, listing{s.Namespace, a.Prefix, a.Cursor, a.Limit, a.Values, a.Reverse})
	if err != nil {
		return nil, err
	}
	out := wirePage{Entries: make([]wireEntry, len(page)), Cursor: cursor}
	for i := range page {
		out.Entries[i] = page[i].wire(a.Values)
	}
	return out, nil
}

func (p *provider) batch(ctx context.Context, r *request, t *ticket) (any, error) {
	var a batchArgs
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if len(a.Ops) > MaxOps {
		return nil, service.Errorf(service.TooLarge, "ops has %d operations, at most %d", len(a.Ops), MaxOps)
	}
	ops := make([]Op, len(a.Ops))
	for i := range a.Ops {
		var err *service.Error
		if ops[i], err = a.Ops[i].op(); err != nil {
			return nil, within(fmt.Sprintf("ops[%d]", i), err)
		}
	}
	results, version, err := p.write(ctx, r, t, a.Namespace, a.Durability, ops)
	if err != nil {
		return nil, err
	}
	out := wireBatch{Version: version, Results: make([]wireResult, len(ops))}
	for i, res := range results {
		w := &out.Results[i]
		w.Version = res.Version
		switch ops[i].Kind {
		case OpAdd:
			w.Count = &results[i].Count
		case OpDelete:
			w.Existed = &results[i].Existed
		}
	}
	return out, nil
}

// one carries out an operation that stands alone.
func (p *provider) one(ctx context.Context, r *request, t *ticket, a *keyArgs, op Op) (Result, uint64, error) {
	op.Key, op.If = a.Key, a.IfVersion
	if err := op.check(); err != nil {
		return Result{}, 0, err
	}
	results, version, err := p.write(ctx, r, t, a.Namespace, a.Durability, []Op{op})
	if err != nil {
		return Result{}, 0, err
	}
	return results[0], version, nil
}

func (p *provider) write(ctx context.Context, r *request, t *ticket, namespace, durability string, ops []Op) ([]Result, uint64, error) {
	s, err := space(r.Grant, namespace)
	if err != nil {
		return nil, 0, err
	}
	if s.Mode != "rw" {
		return nil, 0, service.Errorf(service.ReadOnly, "%s changes namespace %s, which is granted for reading; capabilities.kv.mode: rw would allow it", r.Op, s.Namespace)
	}
	if err := asError(checkOps(ops)); err != nil {
		return nil, 0, err
	}
	d, _ := parseDurability(s.Durability, p.durability)
	d, ok := parseDurability(durability, d)
	if !ok {
		return nil, 0, service.Errorf(service.BadRequest, "durability is %.20q, and none of disk, os, memory", durability)
	}
	if err := t.turn(ctx); err != nil {
		return nil, 0, err
	}
	return p.store.changeOnce(ctx, s.Namespace, s.quota(p.quota), ops, d, t.pass, once.Of(r.Sender, r.Effect))
}

// space finds the namespace of a request among those of the grant.
func space(g *Grant, name string) (*Space, error) {
	all := g.all()
	if name == "" {
		if len(all) == 1 {
			return &all[0], nil
		}
		return nil, service.Errorf(service.BadRequest, "namespace must be one of %s", names(all))
	}
	for i := range all {
		if all[i].Namespace == name {
			return &all[i], nil
		}
	}
	return nil, service.Deny("namespace", "namespace %.63q is not granted, but %s", name, names(all))
}

func names(all []Space) string {
	list := make([]string, len(all))
	for i := range all {
		list[i] = all[i].Namespace
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// asError avoids a non-nil interface of a nil error.
func asError(err *service.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// order carries out the requests of each actor in order: the next one begins when the previous
// one is visible, though perhaps not yet durable.
type order struct {
	clock   host.Clock
	mu      sync.Mutex
	tails   map[host.Ref]*ticket // of the last request of an actor
	tickets map[*request]*ticket // of those that Serve has not begun
}

// ticket is a place in the order.
type ticket struct {
	clock  host.Clock
	before <-chan struct{} // closed when the previous one has passed; nil: there is none
	passed chan struct{}
	once   sync.Once
}

func (o *order) enter(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := &ticket{clock: o.clock, passed: make(chan struct{})}
	if last := o.tails[r.Sender]; last != nil {
		t.before = last.passed
	}
	o.tails[r.Sender], o.tickets[r] = t, t
}

func (o *order) take(r *request) *ticket {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tickets[r]
	delete(o.tickets, r)
	return t
}

func (o *order) leave(sender host.Ref, t *ticket) {
	t.pass()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tails[sender] == t {
		delete(o.tails, sender)
	}
}

// turn waits for earlier requests.
func (t *ticket) turn(ctx context.Context) error {
	if t.before == nil {
		return nil
	}
	if _, which := executor.Take(t.clock, t.before, ctx.Done()); which == 1 {
		return late(ctx, "it was not begun")
	}
	return nil
}

// pass lets the next one begin.
func (t *ticket) pass() { t.once.Do(func() { close(t.passed) }) }
