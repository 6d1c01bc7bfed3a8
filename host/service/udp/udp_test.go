package udp

import (
	"context"
	"net"
	"net/netip"
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

func newWorld(t testing.TB, o Options) *world {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(0, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sys: sys, clock: clock}
	if w.svc, err = New(o).Start(sys, nil, nil); err != nil {
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
				time.Sleep(100 * time.Microsecond)
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
