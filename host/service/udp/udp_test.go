package udp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	t     testing.TB
	sys   *host.System
	svc   *service.Running
	clock *host.VirtualClock
}

func newWorld(t testing.TB, o Options) *world { return newWorldWith(t, o, nil) }

func newWorldWith(t testing.TB, o Options, settings *Settings) *world {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(0, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sys: sys, clock: clock}
	if w.svc, err = New(o).Start(sys, nil, settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sys.Close(context.Background())
		if err := w.svc.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// puppet is an actor that asks what a test says, and shows it what comes.
type puppet struct {
	w    *world
	ref  host.Ref
	got  chan host.Message
	asks chan func(*host.Context) error
	n    uint64
}

func usual() Grant {
	return Grant{Connect: []string{"127.0.0.1:*"}, Listen: []string{"127.0.0.1:*"}}
}

func (w *world) puppet(name string, g Grant) *puppet {
	w.t.Helper()
	p := &puppet{w: w, got: make(chan host.Message, 10_000), asks: make(chan func(*host.Context) error, 100)}
	ref, err := w.sys.Spawn(name, host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage && m.Sender.IsZero() {
			return (<-p.asks)(ctx)
		}
		p.got <- m.Clone()
		return nil
	}).WithGrant(Name, Service.Grant(g, service.Bounds{})))
	if err != nil {
		w.t.Fatal(err)
	}
	p.ref = ref
	return p
}

func (p *puppet) ask(to host.Ref, op string, args any) (payload []byte, failed string) {
	p.w.t.Helper()
	p.n++
	n := p.n
	p.asks <- func(ctx *host.Context) error { return ctx.Ask(to, []any{op, args}, n, time.Hour) }
	if err := p.w.sys.Tell(p.ref, nil); err != nil {
		p.w.t.Fatal(err)
	}
	var others []host.Message
	for {
		m := p.next()
		if m.Correlation == n && m.Kind != abi.KindMessage {
			for _, m := range others {
				p.got <- m
			}
			if m.Kind == abi.KindReplyError {
				return nil, abi.NewReader(m.Payload).Text()
			}
			return m.Payload, ""
		}
		others = append(others, m)
	}
}

func (p *puppet) tell(to host.Ref, op string, args any) {
	p.w.t.Helper()
	p.asks <- func(ctx *host.Context) error { return ctx.Tell(to, []any{op, args}) }
	if err := p.w.sys.Tell(p.ref, nil); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *puppet) next() host.Message {
	p.w.t.Helper()
	select {
	case m := <-p.got:
		return m
	case <-time.After(30 * time.Second):
		p.w.t.Fatal("nothing has come")
		panic("unreachable")
	}
}

type datagramIn struct {
	From    string `cbor:"from"`
	Data    []byte `cbor:"data"`
	Dropped uint64 `cbor:"dropped"`
}

func (p *puppet) received() (d datagramIn) {
	p.w.t.Helper()
	m := p.next()
	var pair []cbor.RawMessage
	if err := cbor.Unmarshal(m.Payload, &pair); err != nil || len(pair) != 2 || string(pair[0][1:]) != Received || cbor.Unmarshal(pair[1], &d) != nil {
		p.w.t.Fatalf("%x %v", m.Payload, err)
	}
	return d
}

func (p *puppet) must(to host.Ref, op string, args any) {
	p.w.t.Helper()
	if _, failed := p.ask(to, op, args); failed != "" {
		p.w.t.Fatalf("%s: %s", op, failed)
	}
}

func (p *puppet) fails(to host.Ref, op string, args any, want string) {
	p.w.t.Helper()
	if _, failed := p.ask(to, op, args); !strings.HasPrefix(failed, want) {
		p.w.t.Fatalf("%s %v: %q, want %s", op, args, failed, want)
	}
}

// open opens a socket and registers it.
func (p *puppet) open(op, address string, more map[string]any) (host.Ref, *net.UDPAddr) {
	p.w.t.Helper()
	args := map[string]any{"address": address}
	for k, v := range more {
		args[k] = v
	}
	payload, failed := p.ask(p.w.svc.Ref(), op, args)
	if failed != "" {
		p.w.t.Fatal(failed)
	}
	var got struct {
		Socket  uint64 `cbor:"socket"`
		Address string `cbor:"address"`
	}
	if err := cbor.Unmarshal(payload, &got); err != nil {
		p.w.t.Fatal(err)
	}
	ref, err := p.w.sys.RefOf(abi.Ref(got.Socket), host.Ref{})
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.must(ref, "register", nil)
	return ref, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(got.Address))
}

func peer(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func heardBy(t testing.TB, c *net.UDPConn) (string, *net.UDPAddr) {
	t.Helper()
	b := make([]byte, 1<<16)
	n, from, err := c.ReadFromUDP(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n]), from
}

// M07: single datagrams, sockets that are bound, and connected ones.
func TestM07_UDP(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.puppet("p", usual())
	out := peer(t)
	to := out.LocalAddr().String()
	p.must(w.svc.Ref(), "send", map[string]any{"to": to, "data": []byte("alone")})
	if text, _ := heardBy(t, out); text != "alone" {
		t.Fatal(text)
	}

	bound, at := p.open("bind", "127.0.0.1:0", nil)
	if _, err := out.WriteToUDP([]byte("hello"), at); err != nil {
		t.Fatal(err)
	}
	if d := p.received(); d.From != to || string(d.Data) != "hello" || d.Dropped != 0 {
		t.Fatalf("%+v", d)
	}
	p.must(bound, "send", map[string]any{"to": to, "data": []byte("there")})
	if text, from := heardBy(t, out); text != "there" || from.String() != at.String() {
		t.Fatal(text, from)
	}

	connected, mine := p.open("connect", to, nil)
	p.must(connected, "write", []byte("mine"))
	if text, from := heardBy(t, out); text != "mine" || from.String() != mine.String() {
		t.Fatal(text, from)
	}
	if _, err := peer(t).WriteToUDP([]byte("of somebody else"), mine); err != nil {
		t.Fatal(err)
	}
	if _, err := out.WriteToUDP([]byte("of the peer"), mine); err != nil {
		t.Fatal(err)
	}
	if d := p.received(); string(d.Data) != "of the peer" {
		t.Fatalf("%+v", d)
	}
	p.must(connected, "close", nil)
	if m := p.next(); m.Sender.UID() != connected.UID() {
		t.Fatal(m)
	}
}

// What comes beyond the window is dropped and counted; an acknowledgement, or the patience with an actor that has failed,
// opens it again.
func TestDatagramsBeyondTheWindow(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.puppet("p", usual())
	bound, at := p.open("bind", "127.0.0.1:0", map[string]any{"window": 2*(400+Overhead) + 100})
	out := peer(t)
	figure := func(name string) float64 {
		for _, f := range w.svc.Figures() {
			if f.Name == name {
				return f.Value
			}
		}
		t.Fatal(name)
		return 0
	}
	send := func(n int, size int) {
		t.Helper()
		seen := figure("received_dropped_total") + figure("received_datagrams_total")
		for range n {
			if _, err := out.WriteToUDP(make([]byte, size), at); err != nil {
				t.Fatal(err)
			}
			seen++
			for figure("received_dropped_total")+figure("received_datagrams_total") < seen { // one at a time: the kernel drops, too
				runtime.Gosched()
			}
		}
	}
	send(5, 400)
	p.received()
	p.received()
	if n := figure("received_dropped_total"); n != 3 {
		t.Fatal(n)
	}
	p.must(bound, "more", uint64(1)<<63)
	send(1, 400)
	if d := p.received(); d.Dropped != 3 {
		t.Fatalf("%+v", d)
	}
	send(1, MaxReceived+1)
	send(2, 400)
	if d := p.received(); d.Dropped != 1 {
		t.Fatalf("%+v", d)
	}
	w.clock.Advance(Patience + time.Millisecond)
	send(1, 400)
	if d := p.received(); d.Dropped != 1 {
		t.Fatalf("%+v", d)
	}
}

func TestUDPRefusals(t *testing.T) {
	w := newWorld(t, Options{})
	p, stranger := w.puppet("p", Grant{Connect: []string{"127.0.0.1:9"}, Listen: []string{"127.0.0.1:0"}, Sockets: 2, Outbox: 2000}), w.puppet("stranger", usual())
	svc := w.svc.Ref()
	data := map[string]any{"to": "10.0.0.1:9", "data": []byte("x")}
	p.fails(svc, "send", data, "denied: ")
	p.fails(svc, "connect", map[string]any{"address": "127.0.0.1:10"}, "denied: ")
	p.fails(svc, "bind", map[string]any{"address": "127.0.0.1:7"}, "denied: ")
	p.fails(svc, "bind", map[string]any{"address": "127.0.0.1:0", "window": uint64(1) << 63}, "too_large: ")
	p.fails(svc, "bind", map[string]any{"address": "unix:x"}, "denied: ")
	p.fails(svc, "x", nil, "bad_request: ")
	p.fails(svc, "send", map[string]any{"to": "127.0.0.1:9", "data": make([]byte, MaxSent+1)}, "too_large: ")
	bound, at := p.open("bind", "127.0.0.1:0", nil)
	for _, args := range []any{nil, map[string]any{"to": "127.0.0.1:9"}, map[string]any{"to": "a:9", "data": []byte("x")}, map[string]any{"to": "127.0.0.1:9", "data": []byte("x"), "z": 1}} {
		p.fails(bound, "send", args, "bad_request: ")
	}
	p.fails(bound, "write", []byte("x"), "bad_request: ")
	p.fails(bound, "more", -1, "bad_request: ")
	p.fails(bound, "x", nil, "bad_request: ")
	p.fails(bound, "send", map[string]any{"to": "127.0.0.1:9", "data": make([]byte, 5000)}, "busy: ")
	stranger.fails(bound, "close", nil, "denied: ")
	stranger.fails(bound, "register", nil, "denied: ")
	// Only who has sent something is answered without a grant.
	out := peer(t)
	answer := map[string]any{"to": out.LocalAddr().String(), "data": []byte("answer")}
	p.fails(bound, "send", answer, "denied: ")
	if _, err := out.WriteToUDP([]byte("question"), at); err != nil {
		t.Fatal(err)
	}
	p.received()
	p.must(bound, "send", answer)
	if text, _ := heardBy(t, out); text != "answer" {
		t.Fatal(text)
	}
	p.open("bind", "127.0.0.1:0", nil)
	p.fails(svc, "bind", map[string]any{"address": "127.0.0.1:0"}, "busy: ")
}

// resolver gives every name one address.
type resolver netip.Addr

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.Addr(r)}, nil
}

func TestUDPForbiddenAddresses(t *testing.T) {
	w := newWorld(t, Options{Resolver: resolver(netip.MustParseAddr("10.0.0.7"))})
	p := w.puppet("p", Grant{Connect: []string{"dns.example.com:53", "*:123"}})
	for op, args := range map[string]any{
		"send": map[string]any{"to": "dns.example.com:53", "data": []byte("x")}, "connect": map[string]any{"address": "dns.example.com:53"}, "resolve": map[string]any{"address": "dns.example.com:53"},
	} {
		if _, failed := p.ask(w.svc.Ref(), op, args); !strings.HasPrefix(failed, "denied: ") || strings.Contains(failed, "10.0.0.7") {
			t.Fatalf("%s: %q", op, failed)
		}
	}
	p.fails(w.svc.Ref(), "send", map[string]any{"to": "169.254.169.254:123", "data": []byte("x")}, "denied: ")
	q := w.puppet("q", Grant{Connect: []string{"dns.example.com:53"}, Private: []string{"private"}})
	payload, failed := q.ask(w.svc.Ref(), "resolve", map[string]any{"address": "dns.example.com:53"})
	var got []string
	if failed != "" || cbor.Unmarshal(payload, &got) != nil || len(got) != 1 || got[0] != "10.0.0.7:53" {
		t.Fatal(failed, got)
	}
}

// A socket ends with its actor, and when that does not register it.
func TestUDPEnds(t *testing.T) {
	w := newWorld(t, Options{})
	p, q := w.puppet("p", usual()), w.puppet("q", usual())
	bound, _ := p.open("bind", "127.0.0.1:0", nil)
	ended, err := w.sys.Ended(bound)
	if err != nil {
		t.Fatal(err)
	}
	w.sys.Stop(p.ref)
	<-ended
	if _, failed := q.ask(w.svc.Ref(), "bind", map[string]any{"address": "127.0.0.1:0"}); failed != "" {
		t.Fatal(failed)
	}
	w.clock.Advance(RegisterTimeout + time.Millisecond)
	if m := q.next(); !strings.Contains(string(m.Payload), "not registered") {
		t.Fatalf("%q", m.Payload)
	}
}

func (w *world) figures() map[string]float64 {
	all := map[string]float64{}
	for _, f := range w.svc.Figures() {
		all[f.Name] = f.Value
	}
	return all
}

// closedFor is the next message, which has to be the last of a socket, and the reason.
func (p *puppet) closedFor(ref host.Ref) string {
	p.w.t.Helper()
	m := p.next()
	var pair []cbor.RawMessage
	var body struct {
		Error string `cbor:"error"`
	}
	if err := cbor.Unmarshal(m.Payload, &pair); err != nil || m.Sender.UID() != ref.UID() || len(pair) != 2 || string(pair[0][1:]) != Closed || cbor.Unmarshal(pair[1], &body) != nil {
		p.w.t.Fatalf("%x from %v: %v", m.Payload, m.Sender, err)
	}
	return body.Error
}

// A socket that is closed tells why, frees its place, of the grant and of all, and obeys no more. One whose actor on this side is
// stopped ends, too.
func TestSocketsAreFreed(t *testing.T) {
	w := newWorldWith(t, Options{}, &Settings{Sockets: 2})
	g := usual()
	g.Sockets = 1
	p, q := w.puppet("p", g), w.puppet("q", usual())
	for i := range 3 {
		bound, at := p.open("bind", "127.0.0.1:0", nil)
		p.fails(w.svc.Ref(), "bind", map[string]any{"address": "127.0.0.1:0"}, "busy: the grant has 1 sockets")
		if n := w.figures()["sockets_open"]; n != 1 {
			t.Fatal(n)
		}
		reason := ""
		switch i {
		case 0:
			p.must(bound, "close", nil)
		case 1:
			w.sys.Stop(bound)
			reason = "the socket's actor was stopped"
		case 2:
			p.tell(bound, "close", nil)
			p.tell(bound, "close", nil) // twice
		}
		if got := p.closedFor(bound); got != reason {
			t.Fatalf("%q, want %q", got, reason)
		}
		again, err := net.ListenUDP("udp", at) // the port is free
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
	}
	p.open("bind", "127.0.0.1:0", nil)
	first, _ := q.open("bind", "127.0.0.1:0", nil)
	q.fails(w.svc.Ref(), "bind", map[string]any{"address": "127.0.0.1:0"}, "busy: all actors together have 2 sockets")
	q.must(first, "close", nil)
	q.closedFor(first)
	q.open("bind", "127.0.0.1:0", nil)
}

// What is sent is counted, and so is what cannot be: beyond the outbox, to the byte, and what the system refuses.
func TestSentDatagramsAreCounted(t *testing.T) {
	w := newWorld(t, Options{})
	to := peer(t)
	h := &held{conn: peer(t), pass: make(chan error, 100)}
	s := &socket{p: w.svc.Provider().(*provider), h: &holder{grant: Grant{Outbox: 1000}}, nc: h}
	send := func(size int, want string) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		err := s.send(to.LocalAddr().(*net.UDPAddr).AddrPort(), make([]byte, size))
		if err != nil && !strings.HasPrefix(err.Error(), want) || (err == nil) != (want == "") {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	const half = 500 - Overhead
	send(half, "")
	send(half, "")
	send(half, "busy: 1000 bytes wait")
	if n := w.figures()["sent_dropped_total"]; n != 1 {
		t.Fatal(n)
	}
	h.pass <- nil
	h.pass <- net.ErrClosed
	heardBy(t, to)
	w.untilEmpty(s)
	if f := w.figures(); f["sent_datagrams_total"] != 1 || f["sent_dropped_total"] != 2 {
		t.Fatal(f)
	}
	h.pass <- nil
	send(half, "") // there is room again, and it goes on
	heardBy(t, to)
	w.untilEmpty(s)
	send(1000-Overhead+1, "busy: ")
	h.pass <- nil
	send(1000-Overhead, "")
	heardBy(t, to)
	w.untilEmpty(s)
	if f := w.figures(); f["sent_datagrams_total"] != 3 {
		t.Fatal(f)
	}
}

// held is a socket that sends only when the test lets it.
type held struct {
	conn
	pass chan error
}

func (h *held) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if err := <-h.pass; err != nil {
		return 0, err
	}
	return h.conn.WriteToUDPAddrPort(b, to)
}

// only is the socket that is open.
func (w *world) only() *socket {
	p := w.svc.Provider().(*provider)
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.open {
		return s
	}
	w.t.Fatal("no socket is open")
	return nil
}

func (w *world) until(f func(map[string]float64) bool) {
	w.t.Helper()
	for begun := time.Now(); !f(w.figures()); runtime.Gosched() {
		if time.Since(begun) > 30*time.Second {
			w.t.Fatal(w.figures())
		}
	}
}

func (w *world) untilEmpty(s *socket) {
	w.t.Helper()
	w.until(func(map[string]float64) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.sending && s.bytes == 0
	})
}

// The peers that are answered without a grant are the last 1024 at least, and 2048 at most.
func TestPeersThatAreAnswered(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.puppet("p", Grant{Listen: []string{"127.0.0.1:0"}})
	bound, _ := p.open("bind", "127.0.0.1:0", nil)
	s := w.only()
	from := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i >> 8)}), uint16(1000+i))
	}
	known := func(i int) bool {
		_, failed := p.ask(bound, "send", map[string]any{"to": from(i).String(), "data": []byte("x")})
		return !strings.HasPrefix(failed, "denied: ")
	}
	const n = 3000
	for i := range n {
		s.take(from(i), nil)
		p.received()
		p.must(bound, "more", Overhead)
	}
	s.mu.Lock()
	all := len(s.young) + len(s.old)
	s.mu.Unlock()
	if all < heard || all > 2*heard {
		t.Errorf("%d peers are known", all)
	}
	if known(0) || known(n-2*heard-1) || !known(n-heard) || !known(n-1) {
		t.Error(known(0), known(n-2*heard-1), known(n-heard), known(n-1))
	}
}

// When the service closes its sockets end, and that of single datagrams with them; what comes later is refused.
func TestTheEndClosesSockets(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.puppet("p", usual())
	p.must(w.svc.Ref(), "send", map[string]any{"to": peer(t).LocalAddr().String(), "data": []byte("x")})
	bound, _ := p.open("bind", "127.0.0.1:0", nil)
	v := w.svc.Provider().(*provider)
	v.mu.Lock()
	var single *socket
	for _, h := range v.holders {
		single = h.simple
	}
	v.mu.Unlock()
	if single == nil {
		t.Fatal("single datagrams have no socket of their own")
	}
	if err := v.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.closedFor(bound); got != "the service is closing" {
		t.Fatal(got)
	}
	if _, err := single.nc.Write(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the socket of single datagrams is open: %v", err)
	}
	p.fails(w.svc.Ref(), "bind", map[string]any{"address": "127.0.0.1:0"}, "unavailable: ")
	p.fails(w.svc.Ref(), "send", map[string]any{"to": "127.0.0.1:9", "data": []byte("x")}, "unavailable: ")
}

// Bounds to the byte.
func TestBoundsOfDatagrams(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.puppet("p", usual())
	for window, want := range map[int]string{MinWindow: "", MinWindow - 1: "too_large: ", DefaultMost: "", DefaultMost + 1: "too_large: "} {
		_, failed := p.ask(w.svc.Ref(), "bind", map[string]any{"address": "127.0.0.1:0", "window": window})
		if !strings.HasPrefix(failed, want) || want == "" && failed != "" {
			t.Errorf("a window of %d: %q", window, failed)
		}
	}
	w2 := newWorld(t, Options{})
	q := w2.puppet("q", usual())
	bound, _ := q.open("bind", "127.0.0.1:0", nil)
	s := w2.only()
	from := netip.MustParseAddrPort("192.0.2.1:5")
	s.take(from, make([]byte, MaxReceived+1)) // too large for an actor
	s.take(from, make([]byte, MaxReceived))
	if d := q.received(); len(d.Data) != MaxReceived || d.Dropped != 1 || d.From != from.String() {
		t.Errorf("%d bytes, %d dropped, from %s", len(d.Data), d.Dropped, d.From)
	}
	left := DefaultWindow - MaxReceived - Overhead
	s.take(from, make([]byte, left-Overhead+1)) // more than the window has left
	s.take(from, make([]byte, left-Overhead))
	if d := q.received(); len(d.Data) != left-Overhead || d.Dropped != 1 {
		t.Errorf("%d bytes, %d dropped", len(d.Data), d.Dropped)
	}
	s.take(from, nil)
	w2.clock.Advance(Patience) // not yet
	s.take(from, nil)
	w2.clock.Advance(1)
	s.take(from, nil)
	if d := q.received(); d.Dropped != 2 {
		t.Errorf("%d dropped", d.Dropped)
	}
	q.fails(bound, "send", map[string]any{"to": "127.0.0.1:9", "data": make([]byte, MaxSent+1)}, "too_large: ")
	q.must(bound, "send", map[string]any{"to": "127.0.0.1:9", "data": make([]byte, MaxSent)})
	q.must(bound, "send", map[string]any{"to": "[::ffff:127.0.0.1]:9", "data": []byte{}}) // the same address in another spelling
}
