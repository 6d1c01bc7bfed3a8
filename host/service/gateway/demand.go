package gateway

import (
	"net/http"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/supervision"
)

// demand makes actors when requests need them, one for each value of a wildcard, and
// ends them when they have had no request for a while.
type demand struct {
	g     *Gateway
	make  Make
	tmpl  template
	value string // name of the wildcard

	mu    sync.Mutex
	made  map[string]*made
	sweep interface{ Stop() bool }
}

// made is an actor that was made, or is being made.
type made struct {
	ref   host.Ref
	busy  int       // requests that use it
	used  time.Time // when the last one has ended
	ready chan struct{}
	err   error
}

func newDemand(g *Gateway, r *route) *demand {
	d := &demand{g: g, make: *r.To.Make, made: map[string]*made{}}
	d.tmpl, _ = parseTemplate(r.To.Path, r.wild) // it was checked
	d.value = r.wild[d.tmpl.value].name
	d.make.Props = d.make.Props.WithLifetime(supervision.Transient)
	return d
}

func (d *demand) choose(x *exchange) (lease, problem) {
	name, ok := d.tmpl.fill(x.r.PathValue(d.value))
	if !ok {
		return lease{}, problem{status: http.StatusNotFound, text: "there is no such page"}
	}
	d.mu.Lock()
	m := d.made[name]
	if m == nil {
		if len(d.made) >= d.make.Most {
			d.mu.Unlock()
			return lease{}, unavailable("the limit of actors is reached")
		}
		m = &made{busy: 1, ready: make(chan struct{})}
		d.made[name] = m
		d.mu.Unlock()
		d.begin(x, name, m)
	} else {
		m.busy++
		d.mu.Unlock()
	}
	if _, which := executor.Take(d.g.clock, m.ready, x.r.Context().Done()); which == 1 {
		d.mu.Lock()
		m.busy--
		d.mu.Unlock()
		return lease{}, problem{status: statusGone, text: "the client has disconnected"}
	}
	if m.err != nil {
		return lease{}, d.g.problemOf(m.err, host.Ref{})
	}
	return lease{to: host.Address{To: m.ref}, from: d, data: m}, problem{}
}

// begin makes an actor.
func (d *demand) begin(x *exchange, name string, m *made) {
	ctx, cancel := d.g.bound(x.r.Context(), x.route.Handler)
	defer cancel()
	ref, _, err := d.g.sys.GetOrSpawn(ctx, name, d.make.Props)
	d.mu.Lock()
	m.ref, m.err = ref, err
	if err != nil {
		delete(d.made, name)
	} else {
		d.arm()
	}
	d.mu.Unlock()
	close(m.ready)
	if err == nil {
		d.g.own.do(func(ctx *host.Context) { _ = ctx.Watch(ref) })
	}
}

func (d *demand) release(l *lease) {
	now := d.g.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	m := l.data.(*made)
	m.busy--
	m.used = now
}

func (d *demand) forget(l *lease, _ int) { d.ended(l.to.To) }

// ended forgets an actor that has ended.
func (d *demand) ended(ref host.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.made[ref.Name()]; m != nil && m.ref.Equal(ref) {
		delete(d.made, ref.Name())
	}
}

// arm schedules the search for idle actors; the caller holds the lock.
func (d *demand) arm() {
	if d.sweep == nil && len(d.made) > 0 && state(d.g.state.Load()) < draining {
		d.sweep = d.g.clock.AfterFunc(max(d.make.Idle/4, time.Millisecond), d.endIdle)
	}
}

// endIdle ends the actors that have had no request for a while. What others have sent them
// is handled first.
func (d *demand) endIdle() {
	now := d.g.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep = nil
	for name, m := range d.made {
		if m.busy > 0 || m.ref.IsZero() || now.Sub(m.used) < d.make.Idle {
			continue
		}
		delete(d.made, name)
		_ = d.g.sys.PoisonPill(m.ref)
	}
	d.arm()
}

// close stops the ending of actors.
func (d *demand) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sweep != nil {
		d.sweep.Stop()
		d.sweep = nil
	}
}
