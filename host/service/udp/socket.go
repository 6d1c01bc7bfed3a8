package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/supervision"
)

// socket is a socket as an actor. A goroutine receives, and drops what the actor has no room for; another one sends while something
// waits to be sent.
type socket struct {
	p         *provider
	h         *holder
	nc        conn
	window    int64
	connected bool

	mu         sync.Mutex
	ref        host.Ref
	handler    host.Ref
	registered bool
	timer      interface{ Stop() bool }
	over       bool
	credit     int64
	acked      time.Time
	missed     uint64 // since the last message
	young, old map[netip.AddrPort]struct{}
	out        []datagram
	bytes      int
	sending    bool
}

// conn is what a socket uses of a net.UDPConn.
type conn interface {
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
	Write([]byte) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// deaf is a socket, and its address, that nobody can reach.
type deaf struct{ address string }

func (d deaf) ReadFromUDPAddrPort([]byte) (n int, a netip.AddrPort, err error) {
	return n, a, net.ErrClosed
}
func (d deaf) WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error) { return 0, net.ErrClosed }
func (d deaf) Write([]byte) (int, error)                              { return 0, net.ErrClosed }
func (d deaf) LocalAddr() net.Addr                                    { return d }
func (d deaf) Close() error                                           { return nil }
func (d deaf) Network() string                                        { return "udp" }
func (d deaf) String() string                                         { return d.address }

type datagram struct {
	to   netip.AddrPort
	data []byte
}

func (s *socket) props() host.Props {
	return host.Native(func() host.Actor { return socketActor{s} }).WithLifetime(supervision.Temporary).
		WithLimits(host.Limits{Mailbox: 1024, MailboxBytes: int64(s.h.grant.Outbox) + 64<<10, Replies: 1, Watches: 2, Asks: 1, Timers: 1, Children: 1, Stash: 1})
}

// arm ends a socket that its actor does not register.
func (s *socket) arm() {
	s.timer = s.p.env.Clock.AfterFunc(RegisterTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.registered {
			s.finish("the actor has not registered within " + RegisterTimeout.String())
		}
	})
}

// finish ends the socket; it is called with the lock. Only the first call counts.
func (s *socket) finish(text string) {
	if s.over {
		return
	}
	s.over, s.out = true, nil
	_ = s.nc.Close()
	if s.window == 0 { // for single datagrams
		return
	}
	s.timer.Stop()
	s.p.leave(s)
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text(Closed)
	if text == "" {
		w.Map(0)
	} else {
		w.Map(1)
		w.Text("error")
		w.Text(text)
	}
	_ = s.p.env.System.TellFrom(s.ref, s.handler, host.Raw(w.Bytes()))
	s.p.env.System.Stop(s.ref)
}

// read receives until the socket is over.
func (s *socket) read() {
	buf := make([]byte, MaxSent+1)
	for {
		var n int
		var from netip.AddrPort
		var err error
		executor.Outside(s.p.env.Clock, func() { n, from, err = s.nc.ReadFromUDPAddrPort(buf) })
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as that nobody listens there: not of this datagram
			executor.Pause(s.p.env.Clock, time.Millisecond, nil)
			continue
		}
		s.take(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), buf[:n])
	}
}

// take tells the actor of a datagram, or drops it.
func (s *socket) take(from netip.AddrPort, data []byte) {
	cost := int64(len(data)) + Overhead
	now := s.p.env.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered && s.credit < cost && now.Sub(s.acked) > Patience {
		s.credit, s.acked = s.window, now // the actor has failed, and acknowledges nothing of it
	}
	if s.over || !s.registered || s.credit < cost || len(data) > MaxReceived || !s.tell(from, data) {
		s.missed++
		s.p.droppedIn.Add(1)
		return
	}
	if s.credit -= cost; s.missed > 0 {
		s.missed = 0
	}
	s.p.received.Add(1)
	if s.connected {
		return
	}
	if s.young == nil || len(s.young) >= heard {
		s.young, s.old = map[netip.AddrPort]struct{}{}, s.young
	}
	s.young[from] = struct{}{}
}

func (s *socket) tell(from netip.AddrPort, data []byte) bool {
	w := abi.NewWriter(make([]byte, 0, len(data)+96))
	w.Array(2)
	w.Text(Received)
	if s.missed > 0 {
		w.Map(3)
		w.Text("dropped")
		w.Uint(s.missed)
	} else {
		w.Map(2)
	}
	w.Text("from")
	w.Text(from.String())
	w.Text("data")
	w.ByteString(data)
	return s.p.env.System.TellFrom(s.ref, s.handler, host.Raw(w.Bytes())) == nil
}

// send puts a datagram into the outbox, or drops it. It is called with the lock.
func (s *socket) send(to netip.AddrPort, data []byte) error {
	if s.over {
		return service.Errorf(service.Unavailable, "the socket is closed")
	}
	if s.bytes+len(data)+Overhead > int(s.h.grant.Outbox) {
		s.p.droppedOut.Add(1)
		return service.Errorf(service.Busy, "%d bytes wait to be sent: the datagram was dropped", s.bytes)
	}
	s.out = append(s.out, datagram{to, append([]byte(nil), data...)})
	if s.bytes += len(data) + Overhead; !s.sending {
		s.sending = true
		s.p.tasks.Add(1)
		s.p.env.Go(func() { defer s.p.tasks.Done(); s.empty() })
	}
	return nil
}

// empty sends what is in the outbox.
func (s *socket) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.out) > 0 {
		some := s.out
		s.out = nil
		s.mu.Unlock()
		sent, bytes := uint64(0), 0
		for _, d := range some {
			var err error
			executor.Outside(s.p.env.Clock, func() {
				if s.connected {
					_, err = s.nc.Write(d.data)
				} else {
					_, err = s.nc.WriteToUDPAddrPort(d.data, d.to)
				}
			})
			if bytes += len(d.data) + Overhead; err == nil {
				sent++
			}
		}
		s.p.sent.Add(sent)
		s.p.droppedOut.Add(uint64(len(some)) - sent)
		s.mu.Lock()
		s.bytes -= bytes
	}
	s.sending = false
}

// socketActor is the actor's side of a socket.
type socketActor struct{ s *socket }

// Started implements host.Starter.
func (a socketActor) Started(ctx *host.Context) error { return ctx.Watch(a.s.handler) }

// Stopped implements host.Stopper.
func (a socketActor) Stopped(*host.Context) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.finish("the socket's actor was stopped")
}

// Receive implements host.Actor.
func (a socketActor) Receive(ctx *host.Context, m host.Message) error {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Kind == abi.KindTerminated:
		s.finish("the actor has ended")
		return nil
	case m.Kind != abi.KindMessage:
		return host.ErrUnhandled
	}
	err := s.obey(m)
	switch {
	case m.Correlation == 0 || m.Sender.IsZero():
	case err != nil:
		return ctx.ReplyError(err.Error())
	default:
		return ctx.Reply(nil)
	}
	return nil
}

var errOrder = service.Errorf(service.BadRequest, `a socket takes ["register", null], ["send", {"to", "data"}], ["write", bytes] if it is connected, ["more", bytes] and ["close", null]`)

// obey does what the actor says. Nobody else may.
func (s *socket) obey(m host.Message) error {
	if m.Sender.UID() != s.handler.UID() {
		return service.Errorf(service.Denied, "the socket is another actor's")
	}
	r := abi.NewReader(m.Payload)
	if r.Array() != 2 || r.Peek() != abi.TypeText {
		return errOrder
	}
	switch op := string(r.TextBytes()); op {
	case "register", "close":
		if r.Null(); r.Done() != nil {
			return errOrder
		}
		if op == "close" {
			s.finish("")
		} else if !s.registered {
			s.registered, s.credit, s.acked = true, s.window, s.p.env.Clock.Now()
		}
	case "more":
		n := r.Uint()
		if r.Done() != nil {
			return errOrder
		}
		s.credit, s.acked = min(s.credit+int64(min(n, uint64(s.window))), s.window), s.p.env.Clock.Now()
	case "write":
		b := r.ByteString()
		if r.Done() != nil || !s.connected {
			return errOrder
		}
		if err := tooLarge(b); err != nil {
			return err
		}
		return s.send(netip.AddrPort{}, b)
	case "send":
		to, data, ok := readSend(r)
		if !ok || s.connected {
			return errOrder
		}
		return s.sendTo(to, data)
	default:
		return errOrder
	}
	return nil
}

// readSend reads {"to", "data"}.
func readSend(r *abi.Reader) (to string, data []byte, ok bool) {
	seen := 0
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "to":
			to = r.Text()
			seen |= 1
		case "data":
			data = r.ByteString()
			seen |= 2
		default:
			return "", nil, false
		}
	}
	return to, data, r.Done() == nil && seen == 3
}

// sendTo sends to an address that the grant covers, or from which something has come.
func (s *socket) sendTo(address string, data []byte) error {
	if err := tooLarge(data); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil || to.Addr().Zone() != "" {
		return service.Errorf(service.BadRequest, "%.80q is not an address and a port; resolve finds those of a name", address)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	_, young := s.young[to]
	if _, old := s.old[to]; !young && !old {
		t, err := s.h.permits.Connect(to.String())
		if err != nil {
			return err
		}
		if err := s.p.dialer.Check(to.Addr(), t.Named); err != nil {
			return service.Deny("private", "%v", err)
		}
	}
	return s.send(to, data)
}
