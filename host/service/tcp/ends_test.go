package tcp

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

func (w *world) figures() map[string]float64 {
	all := map[string]float64{}
	for _, f := range w.svc.Figures() {
		all[f.Name] = f.Value
	}
	return all
}

func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	for begun := time.Now(); !f(); runtime.Gosched() {
		if time.Since(begun) > time.Minute {
			w.t.Fatal(what, w.figures())
		}
	}
}

// holders are the grants' states, for what is left in them.
func (w *world) holders() (all []*holder) {
	p := w.svc.Provider().(*provider)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holders {
		all = append(all, h)
	}
	return all
}

// What ends is counted by how, and nothing of it is left: no place, no share of an actor, no listener.
func TestEndsAreCounted(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	g := usual()
	g.Listeners, g.PerActor = 1, 2
	p := w.puppet("p", g)
	for range 3 {
		l, address := p.listen(nil)
		nc := w.dial(address)
		o := p.connected()
		if o.Listener != uint64(l.UID()) || o.Remote != nc.LocalAddr().String() || o.Local != address {
			t.Fatalf("%+v", o)
		}
		p.tell(o.ref, "register", nil)
		other, _ := p.accept(address)
		_ = other
		if _, failed := p.ask(w.svc.Ref(), "connect", args{"address": address}); !strings.HasPrefix(failed, "busy: the actor has 2") {
			t.Fatal(failed)
		}
		p.tell(o.ref, "close", "flush")
		if _, err := io.ReadAll(nc); err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
		p.closed(HowClosed)
		_ = other.(*net.TCPConn).SetLinger(0)
		_ = other.Close()
		p.closed(HowError)
		p.tell(l, "close", nil)
		p.expect(Unbound)
	}
	nobody := server(t)
	_ = nobody.Close()
	if _, failed := p.ask(w.svc.Ref(), "connect", args{"address": nobody.Addr().String()}); failed != "failed: "+nobody.Addr().String()+": connection refused" {
		t.Fatal(failed)
	}
	want := map[string]float64{"connections_open": 0, "connections_accepted_total": 6, "connections_dialled_total": 0, "connections_failed_total": 1, "connections_closed_total": 3, "connections_broken_total": 3}
	w.until("figures", func() bool {
		got := w.figures()
		for name, n := range want {
			if got[name] != n {
				return false
			}
		}
		return true
	})
	w.until("left", func() bool {
		for _, h := range w.holders() {
			h.mu.Lock()
			left := len(h.actors) + h.listeners
			h.mu.Unlock()
			if left != 0 {
				return false
			}
		}
		return true
	})
}

// A connection whose own actor is stopped from outside is reset, and its actor is told; a listener as well.
func TestStoppedFromOutside(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	l, address := p.listen(nil)
	nc, conn := p.accept(address)
	w.sys.Stop(conn)
	if text := p.closed(HowError); text != "the connection's actor was stopped" {
		t.Fatal(text)
	}
	if _, err := io.ReadAll(nc); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	w.sys.Stop(l)
	if m := p.expect(Unbound); !strings.Contains(string(m.body), "stopped") {
		t.Fatalf("%s", m.body)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Fatal("it still listens")
	}
}

// An actor whose mailbox is full is told of the end later. It is not forgotten.
func TestEndsComeThroughFullMailboxes(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(0, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sys: sys, env: &service.Env{}}
	if w.svc, err = Service.Start(sys, w.env, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	p := w.puppetWith("p", Service.Grant(usual(), service.Bounds{}), host.Limits{Mailbox: 4})
	l, address := p.listen(nil)
	_, conn := p.accept(address)
	entered, hold := make(chan struct{}), make(chan struct{})
	p.run(func(*host.Context) error { close(entered); <-hold; return nil })
	<-entered
	for sys.TellFrom(host.Ref{}, p.ref, host.Raw{0x82, 0x61, 'x', 0xf6}) == nil { // until it is full
		p.do <- func(*host.Context) error { return nil }
	}
	ended, err := sys.Ended(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []host.Ref{conn, l} {
		order := []any{"close", "reset"}
		if ref == l {
			order[1] = nil
		}
		if err := sys.TellFrom(p.ref, ref, order); err != nil {
			t.Fatal(err)
		}
	}
	w.until("ends", func() bool { return w.figures()["connections_open"] == 0 && w.holders()[0].none() })
	clock.Advance(3 * againIn)
	select {
	case <-ended:
		t.Fatal("the end was not told, and it has stopped")
	default:
	}
	close(hold)
	seen := map[string]bool{}
	for !seen[Closed] || !seen[Unbound] {
		clock.Advance(againIn)
		select {
		case m := <-p.got:
			if m.Kind == abi.KindMessage {
				r := abi.NewReader(m.Payload)
				r.Array()
				seen[r.Text()] = true
			}
		default:
			runtime.Gosched()
		}
	}
	<-ended
}

func (h *holder) none() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners == 0
}

// A connection that was given away is announced to its new actor when that is restarted, and no more to the old one.
func TestGivenConnectionsFollow(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p, q := w.puppet("p", usual()), w.puppet("q", usual())
	_, address := p.listen(nil)
	nc := w.dial(address)
	o := p.connected()
	p.tell(o.ref, "give", uint64(q.ref.UID()))
	given := q.connected()
	if _, failed := q.ask(given.ref, "register", nil); failed != "" { // q must not fail before it is registered
		t.Fatal(failed)
	}
	p.run(func(*host.Context) error { panic("on purpose") })
	q.run(func(*host.Context) error { panic("on purpose") })
	if again := q.connected(); !again.Resumed {
		t.Fatalf("%+v", again)
	}
	q.tell(given.ref, "register", nil)
	send(t, nc, "x")
	q.expect(Data)
	if _, failed := p.ask(o.ref, "register", nil); !strings.HasPrefix(failed, "denied: ") || len(p.got) != 0 {
		t.Fatal(failed, len(p.got))
	}
	w.sys.Stop(p.ref)
	send(t, nc, "y")
	q.expect(Data)
}

// A peer whose handshake fails takes nothing of the credit for connections: the next one is accepted.
func TestHandshakesAndCredit(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	a := newAuthority(t, w.env.Base)
	g := usual()
	g.TLS = TLS{Certificates: []Certificate{a.issue("one.test")}}
	p := w.puppet("p", g)
	_, address := p.listen(args{"tls": args{}, "accept": 1})
	for range 3 {
		nc := w.dial(address)
		send(t, nc, "GET / HTTP/1.0\r\n\r\n") // no hello
		if _, err := io.ReadAll(nc); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
	}
	nc, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p.connected()
	if n := w.figures()["connections_failed_total"]; n != 3 {
		t.Fatal(n)
	}
}

// The writes that wait for their acknowledgement are 64 at most; each gets one, in order.
func TestAcknowledgementsAreBounded(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	g := usual()
	g.Outbox = 4 << 20
	p := w.puppet("p", g)
	nc, conn := p.connect(server(t), nil)
	for { // until the socket takes no more, and something waits
		p.tell(conn, "write", make([]byte, 32<<10))
		if _, failed := p.ask(conn, "state", nil); failed != "" {
			t.Fatal(failed)
		}
		if waiting(w) > 0 {
			break
		}
	}
	p.run(func(ctx *host.Context) error {
		for i := range uint64(mostAcks + 1) {
			if err := ctx.Ask(conn, []any{"write", []byte("x")}, 1000+i, time.Minute); err != nil {
				return err
			}
		}
		return nil
	})
	m := p.next()
	if m.Correlation != 1000+mostAcks || m.Kind != abi.KindReplyError || !strings.Contains(string(m.Payload), "busy: 64 writes") {
		t.Fatalf("%v %d %s", m.Kind, m.Correlation, m.Payload)
	}
	go func() { _, _ = io.Copy(io.Discard, nc) }()
	for i := range uint64(mostAcks) {
		if m := p.next(); m.Correlation != 1000+i || m.Kind != abi.KindReply {
			t.Fatalf("%d: %v %d", i, m.Kind, m.Correlation)
		}
	}
}

// waiting is how many bytes wait for peers.
func waiting(w *world) (n int) {
	p := w.svc.Provider().(*provider)
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := range p.open {
		if c, ok := e.(*conn); ok {
			c.mu.Lock()
			n += len(c.out)
			c.mu.Unlock()
		}
	}
	return n
}
