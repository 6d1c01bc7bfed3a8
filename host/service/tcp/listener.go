package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
	"github.com/wasmactors/wasmactors/supervision"
)

// listener is a listener as an actor. A goroutine accepts, as long as there is credit and room for another connection.
type listener struct {
	p       *provider
	h       *holder
	l       net.Listener
	o       options
	cfg     *tls.Config // nil: no TLS
	handler host.Ref
	spawn   spawner
	limited bool // connections are accepted by credit
	wake    chan struct{}
	ctx     context.Context // of accepting
	cancel  context.CancelFunc

	mu     sync.Mutex
	ref    host.Ref
	credit uint64
	over   bool
	final  host.Raw
	tries  int
}

// maxCredit bounds how many connections an actor may ask for in advance.
const maxCredit = 1 << 32

// listenFor opens a listener.
func (p *provider) listenFor(_ context.Context, h *holder, r *service.Request[Grant]) (any, error) {
	var in listenArgs
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.Options.check(&h.grant); err != nil {
		return nil, err
	}
	at, err := h.permits.Listen(in.Address)
	if err != nil {
		return nil, err
	}
	cfg, err := h.serverTLS(in.TLS)
	if err != nil {
		return nil, err
	}
	if !h.another() {
		return nil, service.Errorf(service.Busy, "the grant has %d listeners, which is the limit; listeners of the grant raises it", h.grant.Listeners)
	}
	network, address := "tcp", at.Address
	if at.Unix != "" {
		network = "unix"
		address, err = endpoint.Path(p.env.Base, at.Unix)
	}
	var nl net.Listener
	if p.deaf {
		nl = deaf{address}
	} else if err == nil {
		nl, err = p.listen(network, address)
	}
	if err != nil {
		h.oneLess()
		return nil, &service.Error{Code: service.Failed, Text: "listening on " + in.Address + ": " + plain(err), Err: err}
	}
	l := &listener{p: p, h: h, l: nl, o: in.Options, cfg: cfg, handler: r.Sender, spawn: r, limited: in.Accept != nil, wake: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	if in.Accept != nil {
		l.credit = min(*in.Accept, maxCredit)
	}
	props := host.Behave("listener", func() host.Behaviour { return listenerActor{l} }).WithLifetime(supervision.Temporary).
		WithLimits(host.Limits{Mailbox: 64, MailboxBytes: 16 << 10, Replies: 1, Watches: 2, Asks: 1, Timers: 1, Children: 1, Stash: 1})
	l.mu.Lock()
	ref, err := r.Spawn(props)
	l.ref = ref
	l.mu.Unlock()
	if err == nil && !p.enter(l) {
		p.env.System.Stop(ref)
		err = errClosing
	}
	if err != nil {
		l.cancel()
		_ = nl.Close()
		h.oneLess()
		return nil, err
	}
	w := abi.NewWriter(nil)
	w.Map(2)
	w.Text("listener")
	w.Ref(ref.UID())
	w.Text("address")
	if at.Unix != "" {
		w.Text(in.Address)
	} else {
		w.Text(nl.Addr().String())
	}
	if !p.deaf {
		p.do(l.accept)
	}
	return host.Raw(w.Bytes()), nil
}

// deaf is a listener, and its address, that nobody can reach.
type deaf struct{ address string }

func (d deaf) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (d deaf) Close() error              { return nil }
func (d deaf) Addr() net.Addr            { return d }
func (d deaf) Network() string           { return "tcp" }
func (d deaf) String() string            { return d.address }

func (h *holder) another() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners >= h.grant.Listeners {
		return false
	}
	h.listeners++
	return true
}

func (h *holder) oneLess() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners--
}

const (
	retryAccept = 20 * time.Millisecond // after an error that may pass, such as too few file descriptors
	slowAccept  = time.Second
)

// accept accepts connections until the listener ends.
func (l *listener) accept() {
	pause := retryAccept
	for {
		if !l.wanted() {
			return
		}
		var nc net.Conn
		var err error
		if l.p.outside(func() { nc, err = l.l.Accept() }); err != nil {
			if errors.Is(err, net.ErrClosed) || l.ctx.Err() != nil {
				l.end("failed: the listener was closed")
				return
			}
			l.p.env.Log.Warn("a connection cannot be accepted", "error", err)
			if executor.Pause(l.p.env.Clock, pause, l.ctx.Done()); pause < slowAccept {
				pause *= 2
			}
			continue
		}
		pause = retryAccept
		var room *slot
		if l.p.outside(func() { room, err = l.p.wait(l.ctx, l.h, l.handler.UID()) }); err != nil {
			_ = nc.Close()
			return
		}
		l.took()
		l.p.counts.accepted.Add(1)
		if l.cfg == nil {
			l.take(room, nc)
			continue
		}
		l.p.do(func() {
			t := tls.Server(nc, l.cfg)
			ctx, stop := l.p.env.WithTimeout(l.ctx, time.Duration(l.o.Connect))
			defer stop()
			var err error
			if l.p.outside(func() { err = t.HandshakeContext(ctx) }); err != nil {
				l.p.counts.failed.Add(1)
				_ = nc.Close()
				room.free()
				l.again(1)
				return
			}
			l.take(room, t)
		})
	}
}

// take makes an actor of a connection, and announces it.
func (l *listener) take(room *slot, nc net.Conn) {
	c := newConn(l.p, l.h, room, l.o, nc, l.handler)
	c.from = l.self()
	if c.spawn(l.spawn) != nil {
		return
	}
	c.mu.Lock()
	c.tellConnected()
	c.mu.Unlock()
	c.begin()
}

func (l *listener) self() host.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ref
}

// wanted waits until a connection is wanted; false: the listener has ended.
func (l *listener) wanted() bool {
	for {
		l.mu.Lock()
		over, ok := l.over, !l.limited || l.credit > 0
		l.mu.Unlock()
		if over || ok {
			return !over
		}
		executor.Take(l.p.env.Clock, l.wake, l.ctx.Done())
		if l.ctx.Err() != nil {
			return false
		}
	}
}

func (l *listener) took() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limited && l.credit > 0 {
		l.credit--
	}
}

// again adds to the credit: n more are asked for, or one whose handshake has failed was none.
func (l *listener) again(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.credit = min(l.credit+min(n, maxCredit), maxCredit)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// end closes the listener; its connections stay.
func (l *listener) end(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	l.cancel()
	_ = l.l.Close()
	l.h.oneLess()
	l.p.leave(l)
	l.final = endMessage(Unbound, "", text)
	l.tellEnd()
}

// tellEnd tells the actor, again if its mailbox is full, and then the listener's own actor stops. It is called with the lock.
func (l *listener) tellEnd() {
	err := l.p.env.System.TellFrom(l.ref, l.handler, l.final)
	if l.tries++; l.tries < mostTries && (errors.Is(err, host.ErrMailboxFull) || errors.Is(err, host.ErrRestarting)) {
		l.p.env.After(againIn, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.tellEnd()
		})
		return
	}
	l.p.env.System.Stop(l.ref)
}

func (l *listener) drain()         { l.end("") }
func (l *listener) cut(why string) { l.end(why) }

// listenerActor is the actor's side of a listener.
type listenerActor struct{ l *listener }

// Start implements host.Behaviour.
func (a listenerActor) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	if err := ctx.Watch(a.l.handler); err != nil {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	return nil
}

// Handle implements host.Behaviour.
func (a listenerActor) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		switch m.Kind {
		case abi.KindMessage:
			err := a.take(m)
			switch {
			case m.Correlation == 0 || m.Sender.IsZero():
			case err != nil:
				_ = ctx.ReplyError(err.Error())
			default:
				_ = ctx.Reply(nil)
			}
		case abi.KindTerminated:
			if m.Sender.UID() == a.l.handler.UID() {
				a.l.end("the actor has ended")
			}
		}
	}
}

// take does what the actor says. Nobody else may.
func (a listenerActor) take(m host.Message) error {
	if m.Sender.UID() != a.l.handler.UID() {
		return service.Errorf(service.Denied, "the listener is another actor's")
	}
	r := abi.NewReader(m.Payload)
	if r.Array() == 2 && r.Peek() == abi.TypeText {
		switch string(r.TextBytes()) {
		case "accept":
			if n := r.Uint(); r.Done() == nil {
				a.l.again(n)
				return nil
			}
		case "close":
			if r.Null(); r.Done() == nil {
				a.l.end("")
				return nil
			}
		}
	}
	return service.Errorf(service.BadRequest, `a listener takes ["accept", n] and ["close", null]`)
}

// Decide implements host.Behaviour.
func (a listenerActor) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour.
func (a listenerActor) CannotRewind() string { return "a listener cannot be resumed" }

// Rewind implements host.Behaviour.
func (a listenerActor) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour.
func (a listenerActor) End(*host.Context, host.End) { a.l.end("the listener's actor was stopped") }
