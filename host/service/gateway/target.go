package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi/keyed"
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
	if strings.Contains(r.To.Path, "{") {
		k, _ := parseKeeper(r.To.Path, r.wild) // it was checked
		k.g, k.value = g, r.wild[k.wild].name
		return k
	}
	return &member{g: g, path: r.To.Path}
}

// kept is the actor of a key that stands in the request's path. Its keeper starts it if it is not there.
type kept struct {
	g             *Gateway
	keeper        string // its path
	before, after string // of the key
	wild          int    // index of the wildcard
	value         string // its name
}

// parseKeeper reads /user/carts/{id} for the wildcards of a pattern.
func parseKeeper(path string, wild []wildcard) (*kept, error) {
	at := strings.LastIndexByte(path, '/')
	if at <= 0 || strings.ContainsAny(path[:at], "{}") {
		return nil, fmt.Errorf("%q: the {name} is in the last element, behind the path of a keyed actor: write /user/carts/{id}", path)
	}
	if path[:at] == "/user" {
		return nil, fmt.Errorf("%s has a {name} directly below /user: that is for actors on demand, and needs make; a keyed actor's is /user/carts/{id}", path)
	}
	k := &kept{keeper: path[:at]}
	before, rest, open := strings.Cut(path[at+1:], "{")
	wanted, after, closed := strings.Cut(rest, "}")
	if !open || !closed || strings.ContainsAny(after, "{}") {
		return nil, fmt.Errorf("%q needs one {name} of the pattern in it", path)
	}
	k.before, k.after = before, after
	if k.wild = slices.IndexFunc(wild, func(w wildcard) bool { return w.name == wanted }); k.wild < 0 {
		return nil, fmt.Errorf("the pattern has no wildcard {%s}", wanted)
	}
	return k, nil
}

func (k *kept) choose(x *exchange) (lease, problem) {
	name, ok := keyed.Name(k.before + x.r.PathValue(k.value) + k.after)
	if !ok {
		return lease{}, problem{status: http.StatusNotFound, text: "there is no such page"}
	}
	at, err := k.g.sys.AddressOf(k.keeper + "/" + name)
	if err != nil {
		return lease{}, k.g.problemOf(err, host.Ref{})
	}
	if !at.Kept() { // an actor that somebody has spawned there is not for anybody outside
		return lease{}, k.g.problemOf(fmt.Errorf("%w: %s is not a keyed actor", host.ErrUnknown, k.keeper), host.Ref{})
	}
	return lease{to: at}, problem{}
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
	info, err := p.g.sys.View().Info(ref)
	return err != nil || info.State == host.StateDelayed || info.State == host.StateStopping
}

// unavailable is a problem that passes.
func unavailable(text string) problem {
	return problem{status: http.StatusServiceUnavailable, text: text, retry: time.Second}
}
