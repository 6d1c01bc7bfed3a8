package gateway

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// target chooses the actor of a request.
type target interface {
	choose(x *exchange) (lease, problem)
}

// lease is an actor that a request has; it is given back when the request ends.
type lease struct {
	ref  host.Ref
	from leaser // nil: nothing was taken
	data any
}

// leaser takes back what a lease has taken.
type leaser interface {
	// release: the request has ended.
	release(l *lease)
	// forget: the actor was not there.
	forget(l *lease, try int)
}

func (l *lease) release() {
	if l.from != nil {
		l.from.release(l)
		*l = lease{}
	}
}

func (l *lease) forget(try int) {
	if l.from != nil {
		l.from.forget(l, try)
	}
}

// choose is the actor that answers, which the exchange has until it ends.
func (x *exchange) choose() (host.Ref, problem) {
	if x.lease.from != nil {
		return x.lease.ref, problem{}
	}
	var p problem
	x.lease, p = x.route.target.choose(x)
	return x.lease.ref, p
}

func newTarget(g *Gateway, r *route) target {
	switch {
	case r.To.Make != nil:
		return newDemand(g, r)
	case len(r.To.Pool) > 0:
		p := &pool{g: g, busiest: r.To.Pick != "least-busy"}
		for _, path := range r.To.Pool {
			p.members = append(p.members, &member{g: g, path: path})
		}
		return p
	}
	return &member{g: g, path: r.To.Path}
}

// member is an actor with a path.
type member struct {
	g     *Gateway
	path  string
	ref   atomic.Pointer[host.Ref]
	under atomic.Int64
}

func (m *member) choose(*exchange) (lease, problem) {
	ref := m.ref.Load()
	if ref == nil {
		found, err := m.g.sys.Lookup(m.path)
		if err != nil {
			return lease{}, m.g.problemOf(err, host.Ref{})
		}
		ref = &found
		m.ref.Store(ref)
	}
	m.under.Add(1)
	return lease{ref: *ref, from: m}, problem{}
}

func (m *member) release(*lease) { m.under.Add(-1) }

func (m *member) forget(l *lease, _ int) {
	if ref := m.ref.Load(); ref != nil && *ref == l.ref {
		m.ref.CompareAndSwap(ref, nil)
	}
}

// pool is several actors that do the same.
type pool struct {
	g       *Gateway
	members []*member
	busiest bool // they take turns, however busy they are
	next    atomic.Uint64
}

// choose takes the next one, or the one with the fewest requests under way. One that is not
// there, or waits for its restart, is passed over.
func (p *pool) choose(x *exchange) (lease, problem) {
	n := uint64(len(p.members))
	from := p.next.Add(1)
	best := p.members[from%n]
	if !p.busiest {
		for i := uint64(1); i < n; i++ {
			if m := p.members[(from+i)%n]; m.under.Load() < best.under.Load() {
				best = m
			}
		}
	}
	l, problem := best.choose(x)
	if problem.status == 0 && !p.waits(l.ref) {
		return l, problem
	}
	for i := range n {
		m := p.members[(from+i)%n]
		if m == best {
			continue
		}
		other, bad := m.choose(x)
		if bad.status != 0 {
			continue
		}
		if problem.status != 0 || !p.waits(other.ref) {
			l.release()
			return other, bad
		}
		other.release()
	}
	return l, problem
}

// waits reports whether an actor is between two incarnations.
func (p *pool) waits(ref host.Ref) bool {
	info, err := p.g.sys.Info(ref)
	return err != nil || info.State == host.StateDelayed || info.State == host.StateStopping
}

// unavailable is a problem that passes.
func unavailable(text string) problem {
	return problem{status: http.StatusServiceUnavailable, text: text, retry: time.Second}
}
