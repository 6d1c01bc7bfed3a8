package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
)

// provider implements service.Provider.
type provider struct {
	env    *service.Env
	listen func(network, address string) (net.Listener, error)
	dialer egress.Dialer // without Timeout
	deaf   bool
	most   int
	inAll  *semaphore.Weighted
	counts counts
	ctx    context.Context // of all that goes on
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	holders map[uint64]*holder
	open    map[ending]struct{}
	closing bool
	left    chan struct{} // closed when it closes and nothing is open
	returns returns
}

// ending is a connection or a listener.
type ending interface {
	// drain closes it in order, once what waits for the peer is written.
	drain()
	// cut ends it at once.
	cut(why string)
}

var errClosing = service.Errorf(service.Unavailable, "the service is closing")

// holder is the service's state of a grant.
type holder struct {
	grant   Grant
	permits *endpoint.Permits
	inAll   *semaphore.Weighted
	tls     tlsFiles

	mu        sync.Mutex
	actors    map[abi.Ref]*share
	listeners int
}

// share is what an actor has open; n are those that have it in their hands.
type share struct {
	n    int
	room *semaphore.Weighted
}

func (p *provider) holder(id uint64, g *Grant) (*holder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.holders[id]; h != nil {
		return h, nil
	}
	permits, err := endpoint.Compile(g.Connect, g.Listen, g.Private, true)
	if err != nil {
		return nil, err
	}
	h := &holder{grant: g.withDefaults(), permits: permits, actors: map[abi.Ref]*share{}}
	h.inAll = semaphore.NewWeighted(int64(h.grant.Connections))
	h.tls.load = sync.OnceValue(func() error { return h.tls.read(p.env.Base, &h.grant.TLS) })
	p.holders[id] = h
	return h, nil
}

// of is the share of an actor, which has to be given back.
func (h *holder) of(uid abi.Ref) (s *share, back func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s = h.actors[uid]; s == nil {
		s = &share{room: semaphore.NewWeighted(int64(h.grant.PerActor))}
		h.actors[uid] = s
	}
	s.n++
	return s, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.n--; s.n == 0 {
			delete(h.actors, uid)
		}
	}
}

// slot is the room of one connection: of its actor, of the grant and in all.
type slot struct {
	p    *provider
	h    *holder
	s    *share
	back func()
	once sync.Once
}

// take takes room for a connection if there is some.
func (p *provider) take(h *holder, uid abi.Ref) (*slot, error) {
	s, back := h.of(uid)
	full := func(format string, args ...any) (*slot, error) {
		back()
		return nil, service.Errorf(service.Busy, format, args...)
	}
	if !s.room.TryAcquire(1) {
		return full("the actor has %d connections, which is the limit; connections-per-actor of the grant raises it", h.grant.PerActor)
	}
	if !h.inAll.TryAcquire(1) {
		s.room.Release(1)
		return full("the grant has %d connections, which is the limit; connections of the grant raises it", h.grant.Connections)
	}
	if !p.inAll.TryAcquire(1) {
		s.room.Release(1)
		h.inAll.Release(1)
		return full("all actors together have %d connections, which is the limit; services.tcp.connections raises it", p.most)
	}
	return &slot{p: p, h: h, s: s, back: back}, nil
}

// wait takes room for a connection, and waits for it.
func (p *provider) wait(ctx context.Context, h *holder, uid abi.Ref) (*slot, error) {
	s, back := h.of(uid)
	var got []*semaphore.Weighted
	for _, room := range []*semaphore.Weighted{s.room, h.inAll, p.inAll} {
		if err := room.Acquire(ctx, 1); err != nil {
			for _, r := range got {
				r.Release(1)
			}
			back()
			return nil, err
		}
		got = append(got, room)
	}
	return &slot{p: p, h: h, s: s, back: back}, nil
}

func (s *slot) free() {
	s.once.Do(func() {
		s.s.room.Release(1)
		s.h.inAll.Release(1)
		s.p.inAll.Release(1)
		s.back()
	})
}

// enter notes something that is open; false: the service closes.
func (p *provider) enter(e ending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closing {
		p.open[e] = struct{}{}
	}
	return !p.closing
}

func (p *provider) leave(e ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, e)
	if p.left != nil && len(p.open) == 0 {
		close(p.left)
		p.left = nil
	}
}

// do runs f in a goroutine that Close waits for.
func (p *provider) do(f func()) {
	p.tasks.Add(1)
	p.env.Go(func() {
		defer p.tasks.Done()
		f()
	})
}

// Serve implements service.Provider.
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	h, err := p.holder(r.GrantID(), r.Grant)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "connect":
		return p.connect(ctx, h, r)
	case "listen":
		return p.listenFor(ctx, h, r)
	}
	return nil, r.Unknown()
}

// connect makes a connection.
func (p *provider) connect(ctx context.Context, h *holder, r *service.Request[Grant]) (any, error) {
	var in connectArgs
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.Options.check(&h.grant); err != nil {
		return nil, err
	}
	to, err := h.permits.Connect(in.Address)
	if err != nil {
		return nil, err
	}
	cfg, err := h.clientTLS(in.TLS, to)
	if err != nil {
		return nil, err
	}
	if p.deaf {
		return nil, service.Errorf(service.Failed, "%s: nothing can be reached here", to)
	}
	room, err := p.take(h, r.Sender.UID())
	if err != nil {
		return nil, err
	}
	ctx, end := endpoint.Span(ctx, p.env.Clock, "connect", "tcp", to)
	nc, err := p.dial(ctx, h, to, cfg, time.Duration(in.Options.Connect))
	if err != nil {
		err = explain(ctx, to.String(), err)
	}
	end(err)
	if err != nil {
		room.free()
		p.counts.failed.Add(1)
		return nil, err
	}
	p.counts.dialled.Add(1)
	c := newConn(p, h, room, in.Options, nc, r.Sender)
	if err := c.spawn(r); err != nil {
		return nil, err
	}
	answer := c.opening()
	c.begin()
	return answer, nil
}

// dial connects, with TLS if there is a configuration.
func (p *provider) dial(ctx context.Context, h *holder, to endpoint.Target, cfg *tls.Config, limit time.Duration) (nc net.Conn, err error) {
	ctx, stop := p.env.WithTimeout(ctx, limit)
	defer stop()
	if to.Unix != "" {
		path, err := endpoint.Path(p.env.Base, to.Unix)
		if err != nil {
			return nil, service.Errorf(service.Failed, "%s: there is no such socket in the bundle's folder", to)
		}
		var d net.Dialer
		nc, err = d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
	} else if nc, err = p.dialer.Dial(ctx, to.Host, to.Port, to.Named); err != nil {
		return nil, err
	}
	if cfg == nil {
		return nc, nil
	}
	t := tls.Client(nc, cfg)
	if executor.Outside(p.env.Clock, func() { err = t.HandshakeContext(ctx) }); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return t, nil
}

// Drain implements service.Drainer: listeners close, and connections once what waits for their peers is written.
func (p *provider) Drain(ctx context.Context) {
	left := p.shut(func(e ending) { e.drain() })
	executor.Take(p.env.Clock, left, ctx.Done())
}

// shut begins the end of everything; left is closed when nothing is open.
func (p *provider) shut(f func(ending)) (left <-chan struct{}) {
	p.mu.Lock()
	p.closing = true
	all := make([]ending, 0, len(p.open))
	for e := range p.open {
		all = append(all, e)
	}
	if p.left == nil {
		p.left = make(chan struct{})
	}
	ch := p.left
	if len(p.open) == 0 {
		close(p.left)
		p.left = nil
	}
	p.mu.Unlock()
	for _, e := range all {
		f(e)
	}
	return ch
}

// Close implements service.Provider.
func (p *provider) Close(context.Context) error {
	p.shut(func(e ending) { e.cut("the service is closing") })
	p.cancel(errClosing)
	p.returns.close(p.env.Clock)
	executor.Join(p.env.Clock, &p.tasks)
	return nil
}

// returns makes connections announce themselves again when their actor has failed.
type returns struct {
	mu     sync.Mutex
	of     map[abi.Ref]map[*conn]struct{}
	events *host.Subscription // nil: there were no connections yet
	done   chan struct{}
}

// move notes that a connection has another actor; the zero Ref is none.
func (s *returns) move(c *conn, from, to host.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if some := s.of[from.UID()]; some != nil {
		if delete(some, c); len(some) == 0 {
			delete(s.of, from.UID())
		}
	}
	if to.IsZero() {
		return
	}
	if s.of == nil {
		s.of = map[abi.Ref]map[*conn]struct{}{}
		s.events = c.p.env.System.Subscribe(1024, func(e *host.Event) bool { return e.Kind == host.EventRestarted || e.Kind == host.EventResumed })
		s.done = make(chan struct{})
		events, done := s.events, s.done
		c.p.env.Go(func() { s.listen(c.p.env.Clock, events, done) })
	}
	if s.of[to.UID()] == nil {
		s.of[to.UID()] = map[*conn]struct{}{}
	}
	s.of[to.UID()][c] = struct{}{}
}

// listen handles failures of actors: what was on its way to one that was resumed is not acknowledged, either. If some were missed all actors count: an actor that knows its connection accepts it again.
func (s *returns) listen(clock host.Clock, events *host.Subscription, done chan struct{}) {
	defer close(done)
	missed := uint64(0)
	for {
		e, which := executor.Take(clock, events.C())
		if which != 0 {
			return
		}
		all := events.Dropped() != missed
		missed = events.Dropped()
		var those []*conn
		s.mu.Lock()
		for uid, some := range s.of {
			if all || uid == e.Ref.UID() {
				for c := range some {
					those = append(those, c)
				}
			}
		}
		s.mu.Unlock()
		for _, c := range those {
			c.announce()
		}
	}
}

func (s *returns) close(clock host.Clock) {
	s.mu.Lock()
	events, done := s.events, s.done
	s.mu.Unlock()
	if events != nil {
		events.Close()
		executor.Take(clock, done)
	}
}

// explain turns an error of connecting into the guest's. Addresses of the local network are left out.
func explain(ctx context.Context, to string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the frame knows what has ended its context
	}
	var known *service.Error
	var refused *egress.RefusedError
	var n net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		e := service.Deny("private", "%s", refused)
		e.Err = err
		return e
	case tlsError(err) != "":
		return &service.Error{Code: service.Failed, Text: to + ": " + tlsError(err), Err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return &service.Error{Code: service.Timeout, Text: to + " was not reached in time", Err: err}
	}
	return &service.Error{Code: service.Failed, Text: to + ": " + plain(err), Err: err}
}

// plain is the text of an error of a socket, without addresses.
func plain(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		if dns.IsNotFound {
			return "there is no such host"
		}
		return "its name could not be resolved"
	}
	var op *net.OpError
	for errors.As(err, &op) && op.Err != nil {
		err = op.Err
		op = nil
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err
	}
	text := err.Error()
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return text
}
