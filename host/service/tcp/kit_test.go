package tcp

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	servicetest.Close()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// world is a system with the service.
type world struct {
	t   testing.TB
	sys *host.System
	svc *service.Running
	env *service.Env
}

func newWorld(t testing.TB, o Options, s *Settings) *world {
	t.Helper()
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sys: sys, env: &service.Env{Base: t.TempDir()}}
	if w.svc, err = New(o).Start(sys, w.env, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	return w
}

func (w *world) end() {
	_ = w.sys.Close(context.Background())
	if err := w.svc.Wait(context.Background()); err != nil {
		w.t.Error(err)
	}
}

// puppet is an actor that does what a test says, and shows it what comes.
type puppet struct {
	w    *world
	ref  host.Ref
	do   chan func(*host.Context) error
	got  chan host.Message
	last uint64
}

// usual is a grant for this machine.
func usual() Grant {
	return Grant{Connect: []string{"127.0.0.1:*"}, Listen: []string{"127.0.0.1:*", "unix:here.sock"}}
}

func (w *world) puppet(name string, g Grant) *puppet {
	w.t.Helper()
	return w.puppetWith(name, Service.Grant(g, service.Bounds{}), host.Limits{})
}

func (w *world) puppetWith(name string, grant any, l host.Limits) *puppet {
	w.t.Helper()
	p := &puppet{w: w, do: make(chan func(*host.Context) error, 1000), got: make(chan host.Message, 100_000)}
	ref, err := w.sys.Spawn(name, host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage && m.Sender.IsZero() {
			return (<-p.do)(ctx)
		}
		p.got <- m.Clone()
		return nil
	}).WithGrant(Name, grant).WithLimits(l))
	if err != nil {
		w.t.Fatal(err)
	}
	p.ref = ref
	return p
}

// run runs f in a turn of the puppet, soon.
func (p *puppet) run(f func(*host.Context) error) {
	p.w.t.Helper()
	p.do <- f
	if err := p.w.sys.Tell(p.ref, host.Raw{0xf6}); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *puppet) tell(to host.Ref, op string, args any) {
	p.w.t.Helper()
	p.run(func(ctx *host.Context) error { return ctx.Tell(to, []any{op, args}) })
}

// message is what a puppet has got.
type message struct {
	host.Message
	word string
	body cbor.RawMessage
}

func (p *puppet) next() message {
	p.w.t.Helper()
	select {
	case m := <-p.got:
		out := message{Message: m}
		if m.Kind == abi.KindMessage {
			var pair []cbor.RawMessage
			if err := cbor.Unmarshal(m.Payload, &pair); err != nil || len(pair) != 2 || cbor.Unmarshal(pair[0], &out.word) != nil {
				p.w.t.Fatalf("%x: %v", m.Payload, err)
			}
			out.body = pair[1]
		}
		return out
	case <-time.After(2 * time.Minute):
		p.w.t.Fatal("nothing has come")
		panic("unreachable")
	}
}

// expect is the next message, which has to be of a word.
func (p *puppet) expect(word string) message {
	p.w.t.Helper()
	m := p.next()
	if m.word != word {
		p.w.t.Fatalf("%v %q %x, want %s", m.Kind, m.word, m.Payload, word)
	}
	return m
}

func (m *message) data(t testing.TB) string {
	t.Helper()
	var b []byte
	if err := cbor.Unmarshal(m.body, &b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// closed is the next message, which has to be the last of a connection.
func (p *puppet) closed(how string) (text string) {
	p.w.t.Helper()
	m := p.expect(Closed)
	var end struct {
		How   string `cbor:"how"`
		Error string `cbor:"error"`
	}
	if err := cbor.Unmarshal(m.body, &end); err != nil || end.How != how {
		p.w.t.Fatalf("%+v %v, want %s", end, err, how)
	}
	return end.Error
}

// ask asks, and returns the answer or the text of the error.
func (p *puppet) ask(to host.Ref, op string, args any) (payload []byte, failed string) {
	p.w.t.Helper()
	p.last++
	n := p.last
	p.run(func(ctx *host.Context) error { return ctx.Ask(to, []any{op, args}, n, time.Minute) })
	var others []host.Message
	defer func() {
		for _, m := range others {
			p.got <- m
		}
	}()
	for {
		m := p.next()
		switch {
		case m.Correlation == n && m.Kind == abi.KindReply:
			return m.Payload, ""
		case m.Correlation == n && m.Kind == abi.KindReplyError:
			return nil, abi.NewReader(m.Payload).Text()
		}
		others = append(others, m.Message)
	}
}

// opened is what an actor is told of a connection.
type opened struct {
	Conn     uint64 `cbor:"conn"`
	Listener uint64 `cbor:"listener"`
	Local    string `cbor:"local"`
	Remote   string `cbor:"remote"`
	Resumed  bool   `cbor:"resumed"`
	State    any    `cbor:"state"`
	TLS      struct {
		Version    string   `cbor:"version"`
		ALPN       string   `cbor:"alpn"`
		ServerName string   `cbor:"server_name"`
		Peer       string   `cbor:"peer"`
		Names      []string `cbor:"names"`
	} `cbor:"tls"`
	ref host.Ref
}

func (w *world) refOf(uid uint64) host.Ref {
	w.t.Helper()
	ref, err := w.sys.RefOf(abi.Ref(uid), host.Ref{})
	if err != nil {
		w.t.Fatal(err)
	}
	return ref
}

func (p *puppet) connected() opened {
	p.w.t.Helper()
	m := p.expect(Connected)
	var o opened
	if err := cbor.Unmarshal(m.body, &o); err != nil {
		p.w.t.Fatal(err)
	}
	o.ref = m.Sender
	return o
}

type args map[string]any

// listen opens a listener on this machine.
func (p *puppet) listen(more args) (ref host.Ref, address string) {
	p.w.t.Helper()
	a := args{"address": "127.0.0.1:0"}
	for k, v := range more {
		a[k] = v
	}
	payload, failed := p.ask(p.w.svc.Ref(), "listen", a)
	if failed != "" {
		p.w.t.Fatal(failed)
	}
	var bound struct {
		Listener uint64 `cbor:"listener"`
		Address  string `cbor:"address"`
	}
	if err := cbor.Unmarshal(payload, &bound); err != nil {
		p.w.t.Fatal(err)
	}
	return p.w.refOf(bound.Listener), bound.Address
}

// accept is a connection between a peer in Go and the puppet.
func (p *puppet) accept(address string) (net.Conn, host.Ref) {
	p.w.t.Helper()
	nc := p.w.dial(address)
	o := p.connected()
	p.tell(o.ref, "register", nil)
	return nc, o.ref
}

func (w *world) dial(address string) net.Conn {
	w.t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(2 * time.Minute))
	return nc
}

// connect makes a connection to a listener of the test's.
func (p *puppet) connect(l net.Listener, more args) (net.Conn, host.Ref) {
	p.w.t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			accepted <- nc
		}
		close(accepted)
	}()
	a := args{"address": l.Addr().String()}
	for k, v := range more {
		a[k] = v
	}
	payload, failed := p.ask(p.w.svc.Ref(), "connect", a)
	if failed != "" {
		p.w.t.Fatal(failed)
	}
	var o opened
	if err := cbor.Unmarshal(payload, &o); err != nil {
		p.w.t.Fatal(err)
	}
	ref := p.w.refOf(o.Conn)
	p.tell(ref, "register", nil)
	nc := <-accepted
	p.w.t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(2 * time.Minute))
	return nc, ref
}

func server(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func read(t testing.TB, nc net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	for at := 0; at < n; {
		m, err := nc.Read(b[at:])
		if err != nil {
			t.Fatalf("%q, %v", b[:at], err)
		}
		at += m
	}
	return string(b)
}

func send(t testing.TB, nc net.Conn, text string) {
	t.Helper()
	if _, err := nc.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
