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
	to   host.Address
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
func (x *exchange) choose() (host.Address, problem) {
	if x.lease.from != nil {
		return x.lease.to, problem{}
	}
	var p problem
	x.lease, p = x.route.target.choose(x)
	return x.lease.to, p
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

// member is an actor with a path. One that a keeper stands for is started by the request if it is
// not there.
type member struct {
	g     *Gateway
	path  string
	at    atomic.Pointer[host.Address]
	under atomic.Int64
}

func (m *member) choose(*exchange) (lease, problem) {
	at := m.at.Load()
	if at == nil {
		found, err := m.g.sys.AddressOf(m.path)
		if err != nil {
			return lease{}, m.g.problemOf(err, host.Ref{})
		}
		at = &found
		m.at.Store(at)
	}
	m.under.Add(1)
	return lease{to: *at, from: m}, problem{}
}

func (m *member) release(*lease) { m.under.Add(-1) }

func (m *member) forget(l *lease, _ int) {
	if at := m.at.Load(); at != nil && *at == l.to {
		m.at.CompareAndSwap(at, nil)
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
	if problem.status == 0 && !p.waits(l.to) {
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
		if problem.status != 0 || !p.waits(other.to) {
			l.release()
			return other, bad
		}
		other.release()
	}
	return l, problem
}

// waits reports whether an actor is between two incarnations. One that its keeper only has to start
// does not wait.
func (p *pool) waits(to host.Address) bool {
	ref, there := p.g.sys.Find(to)
	if !there {
		ref = to.To
	}
	info, err := p.g.sys.Info(ref)
	return err != nil || info.State == host.StateDelayed || info.State == host.StateStopping
}

// unavailable is a problem that passes.
func unavailable(text string) problem {
	return problem{status: http.StatusServiceUnavailable, text: text, retry: time.Second}
}
