package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// M01, M02: the manager answers, each connection is an actor that announces itself and waits to be registered.
func TestM02_ConnectAndRegister(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	nc, conn := p.connect(server(t), nil)
	send(t, nc, "hello")
	m := p.expect(Data)
	if m.data(t) != "hello" || m.Sender.UID() != conn.UID() {
		t.Fatalf("%q from %v", m.data(t), m.Sender)
	}
	p.tell(conn, "write", []byte("there"))
	if got := read(t, nc, 5); got != "there" {
		t.Fatal(got)
	}
}

func TestM02_NotRegistered(t *testing.T) {
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
	p := w.puppet("p", usual())
	_, address := p.listen(nil)
	nc := w.dial(address)
	o := p.connected()
	send(t, nc, "nobody reads this yet")
	clock.Advance(RegisterTimeout - time.Millisecond)
	p.tell(o.ref, "state", "still there")
	if err := w.sys.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Millisecond)
	if text := p.closed(HowError); !strings.Contains(text, "not registered") {
		t.Fatal(text)
	}
	if _, err := nc.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Fatal("not reset:", err)
	}
}

// A connection refuses: connecting where nobody listens, commands that are not valid, of strangers, after the end.
func TestM02_CommandsRefused(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p, stranger := w.puppet("p", usual()), w.puppet("stranger", usual())
	l := server(t)
	nobody := server(t)
	_ = nobody.Close()
	fails := func(p *puppet, to host.Ref, op string, a any, want string) {
		t.Helper()
		if _, failed := p.ask(to, op, a); !strings.HasPrefix(failed, want) {
			t.Fatalf("%s: %q, want %s", op, failed, want)
		}
	}
	fails(p, w.svc.Ref(), "connect", args{"address": nobody.Addr().String()}, "failed: ")
	fails(p, w.svc.Ref(), "connect", args{"address": "10.0.0.1:80"}, "denied: ")
	fails(p, w.svc.Ref(), "listen", args{"address": ":7000"}, "denied: ")
	fails(p, w.svc.Ref(), "listen", args{"address": l.Addr().String()}, "failed: ")
	fails(p, w.svc.Ref(), "connect", args{"address": l.Addr().String(), "options": args{"window": uint64(1) << 63}}, "too_large: ")
	fails(p, w.svc.Ref(), "connect", args{"address": l.Addr().String(), "options": args{"idle": -1}}, "bad_request: ")
	fails(p, w.svc.Ref(), "connect", args{"address": l.Addr().String(), "x": 1}, "bad_request: ")
	fails(p, w.svc.Ref(), "no-such-op", nil, "bad_request: ")
	_, conn := p.connect(l, nil)
	for _, o := range []struct {
		op   string
		args any
	}{{"write", "text"}, {"write", nil}, {"more", -1}, {"more", nil}, {"close", "now"}, {"close", nil}, {"give", nil}, {"register", 1}, {"x", nil}, {"state", make([]byte, 5000)}} {
		_, failed := p.ask(conn, o.op, o.args)
		if !strings.HasPrefix(failed, "bad_request: ") && !strings.HasPrefix(failed, "too_large: ") && !strings.HasPrefix(failed, "not_found: ") {
			t.Fatalf("%v: %q", o, failed)
		}
	}
	// Somebody else's connection: nothing can be done with it.
	for _, op := range []string{"register", "suspend", "resume-writing"} {
		fails(stranger, conn, op, nil, "denied: ")
	}
	fails(stranger, conn, "write", []byte("x"), "denied: ")
	fails(stranger, conn, "close", "reset", "denied: ")
	fails(stranger, conn, "give", uint64(stranger.ref.UID()), "denied: ")
	// What was told is answered with a message.
	p.tell(conn, "write", "text")
	if m := p.expect(Refused); !strings.Contains(string(m.body), "bad_request") {
		t.Fatalf("%x", m.body)
	}
	// Closed twice.
	if _, failed := p.ask(conn, "close", "half"); failed != "" {
		t.Fatal(failed)
	}
	fails(p, conn, "close", "half", "unavailable: ")
	fails(p, conn, "write", []byte("late"), "unavailable: ")
}

// M03: port 0, the listener's own end and that of its actor; connections stay when the listener ends.
func TestM03_BindAndUnbind(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	l, address := p.listen(nil)
	nc, conn := p.accept(address)
	stranger := w.puppet("stranger", usual())
	if _, failed := stranger.ask(l, "close", nil); !strings.HasPrefix(failed, "denied: ") {
		t.Fatal(failed)
	}
	p.tell(l, "close", nil)
	p.expect(Unbound)
	if _, err := net.Dial("tcp", address); err == nil {
		t.Fatal("it still listens")
	}
	send(t, nc, "still here")
	if m := p.expect(Data); m.data(t) != "still here" {
		t.Fatal(m.data(t))
	}
	_ = conn

	_, address = p.listen(nil)
	w.sys.Stop(p.ref)
	for { // the actor's end is the listener's
		nc, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		_ = nc.Close()
	}
	if _, err := io.ReadAll(nc); err == nil {
		t.Fatal("the connection of an actor that has ended was not reset")
	}
}

// M03: connections are accepted by credit.
func TestM03_AcceptByCredit(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	l, address := p.listen(args{"accept": 1})
	first, second := w.dial(address), w.dial(address)
	_ = second
	a := p.connected()
	p.tell(a.ref, "register", nil)
	send(t, first, "1")
	p.expect(Data)
	select {
	case m := <-p.got:
		t.Fatalf("%x came without credit", m.Payload)
	default:
	}
	p.tell(l, "accept", uint64(1)<<63)
	p.connected()
	if _, failed := p.ask(l, "accept", -1); !strings.HasPrefix(failed, "bad_request: ") {
		t.Fatal(failed)
	}
}

// M04: the three ways to close, with their events on both sides.
func TestM04_Close(t *testing.T) {
	big := strings.Repeat("x", 200_000)
	for _, c := range []struct {
		name, how string
		f         func(t *testing.T, p *puppet, nc net.Conn, conn host.Ref)
	}{
		{"flushed", HowClosed, func(t *testing.T, p *puppet, nc net.Conn, conn host.Ref) {
			send(t, nc, "never read") // a socket with bytes that nobody has read would reset the connection
			p.tell(conn, "write", []byte(big))
			p.tell(conn, "close", "flush")
			if b, err := io.ReadAll(nc); string(b) != big || err != nil {
				t.Fatal(len(b), err)
			}
			_ = nc.Close()
		}},
		{"half", HowConfirmed, func(t *testing.T, p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			p.tell(conn, "write", []byte(big))
			p.tell(conn, "close", "half")
			if b, err := io.ReadAll(nc); string(b) != big || err != nil {
				t.Fatal(len(b), err)
			}
			send(t, nc, "the answer")
			if m := p.expect(Data); m.data(t) != "the answer" {
				t.Fatal(m.data(t))
			}
			_ = nc.Close()
		}},
		{"reset", HowAborted, func(t *testing.T, p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "close", "reset")
			if _, err := io.ReadAll(nc); !errors.Is(err, syscall.ECONNRESET) {
				t.Fatal(err)
			}
		}},
		{"by the peer", HowPeer, func(t *testing.T, p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			_ = nc.Close()
		}},
		{"reset by the peer", HowError, func(t *testing.T, p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			_ = nc.(*net.TCPConn).SetLinger(0)
			_ = nc.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{}, nil)
			p := w.puppet("p", usual())
			_, address := p.listen(nil)
			nc := w.dial(address)
			o := p.connected()
			ended, err := w.sys.Ended(o.ref)
			if err != nil {
				t.Fatal(err)
			}
			c.f(t, p, nc, o.ref)
			p.closed(c.how)
			<-ended
		})
	}
}

// M04: a connection that stays open when the peer has closed its half.
func TestM04_KeepOpen(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	_, address := p.listen(args{"options": args{"keep_open": true}})
	nc, conn := p.accept(address)
	send(t, nc, "the question")
	_ = nc.(*net.TCPConn).CloseWrite()
	p.expect(Data)
	p.expect(PeerClosed)
	p.tell(conn, "write", []byte("the answer"))
	p.tell(conn, "close", "flush")
	if b, err := io.ReadAll(nc); string(b) != "the answer" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	p.closed(HowClosed)
}

// M05, M06: writes are acknowledged when they are with the peer's system, refused without credit, and refused until writing is
// resumed.
func TestM06_Writes(t *testing.T) {
	g := usual()
	g.Outbox = 64 << 10
	fill := func(t *testing.T, p *puppet, conn host.Ref) (refused int) {
		t.Helper()
		for n := 0; ; n++ { // until the socket's buffers and the outbox are full
			if n > 10_000 {
				t.Fatal("nothing is ever refused")
			}
			p.tell(conn, "write", make([]byte, 32<<10))
			if _, failed := p.ask(conn, "state", nil); failed != "" {
				t.Fatal(failed)
			}
			select {
			case m := <-p.got:
				if !strings.Contains(string(m.Payload), Refused) {
					t.Fatalf("%x", m.Payload)
				}
				return n
			default:
			}
		}
	}
	t.Run("acknowledged", func(t *testing.T) {
		w := newWorld(t, Options{}, nil)
		p := w.puppet("p", g)
		nc, conn := p.connect(server(t), nil)
		if _, failed := p.ask(conn, "write", []byte("x")); failed != "" {
			t.Fatal(failed)
		}
		fill(t, p, conn)
		if _, failed := p.ask(conn, "write", make([]byte, 60<<10)); !strings.HasPrefix(failed, "busy: ") {
			t.Fatal(failed)
		}
		if _, failed := p.ask(conn, "write", make([]byte, 65<<10)); !strings.HasPrefix(failed, "too_large: ") {
			t.Fatal(failed)
		}
		go func() { _, _ = io.Copy(io.Discard, nc) }()
		for { // there is room again some time
			if _, failed := p.ask(conn, "write", make([]byte, 32<<10)); failed == "" {
				return
			}
		}
	})
	t.Run("suspended", func(t *testing.T) {
		w := newWorld(t, Options{}, nil)
		p := w.puppet("p", g)
		nc, conn := p.connect(server(t), args{"options": args{"suspend": true}})
		fill(t, p, conn)
		if _, failed := p.ask(conn, "write", []byte("x")); !strings.HasPrefix(failed, "busy: ") {
			t.Fatal("a write after a refused one:", failed)
		}
		p.tell(conn, "resume-writing", nil)
		go func() { _, _ = io.Copy(io.Discard, nc) }()
		p.expect(Writable)
		if _, failed := p.ask(conn, "write", []byte("x")); failed != "" {
			t.Fatal(failed)
		}
	})
}

// M06: a guest that reads slowly, or never, slows its peer by TCP: the host holds no more than the window.
func TestM06_ReadsByCredit(t *testing.T) {
	for _, pull := range []bool{true, false} {
		w := newWorld(t, Options{}, nil)
		p := w.puppet("p", usual())
		nc, conn := p.connect(server(t), args{"options": args{"pull": pull, "window": 4096}})
		stuck := make(chan int, 1)
		go func() {
			n := 0
			for {
				_ = nc.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
				m, err := nc.Write(make([]byte, 64<<10))
				if n += m; err != nil {
					stuck <- n
					return
				}
			}
		}()
		sent := <-stuck
		if _, failed := p.ask(conn, "state", nil); failed != "" {
			t.Fatal(failed)
		}
		came := 0
		for more := true; more; {
			select {
			case m := <-p.got:
				came += len(m.Payload)
			default:
				more = false
			}
		}
		if pull && came > 0 || came > 8192 || sent == 0 {
			t.Fatalf("pull %v: %d bytes came, %d were sent", pull, came, sent)
		}
		p.tell(conn, "more", uint64(1)<<63) // as much as the window
		p.expect(Data)
		p.tell(conn, "suspend", nil)
		if _, failed := p.ask(conn, "state", nil); failed != "" {
			t.Fatal(failed)
		}
		for len(p.got) > 0 {
			<-p.got
		}
		p.tell(conn, "more", 4096)
		p.tell(conn, "resume", nil)
		p.expect(Data)
	}
}

// An actor that was restarted gets its connections again, with what was not handled before in its order.
func TestRestartKeepsConnections(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	_, address := p.listen(nil)
	nc, conn := p.accept(address)
	p.tell(conn, "state", "remembered")
	if _, failed := p.ask(conn, "more", 0); failed != "" {
		t.Fatal(failed)
	}
	p.run(func(*host.Context) error { panic("on purpose") })
	o := p.connected()
	if !o.Resumed || o.State != "remembered" || o.ref.UID() != conn.UID() {
		t.Fatalf("%+v", o)
	}
	send(t, nc, "one")
	p.tell(conn, "register", nil)
	m := p.expect(Data)
	if m.data(t) != "one" {
		t.Fatal(m.data(t))
	}
	// What an actor does not know comes back, after it has registered again.
	p.tell(conn, "unknown", []byte("one"))
	o = p.connected()
	send(t, nc, "two")
	if !o.Resumed {
		t.Fatalf("%+v", o)
	}
	p.tell(conn, "register", nil)
	got := ""
	for got != "onetwo" {
		m := p.expect(Data)
		if got += m.data(t); !strings.HasPrefix("onetwo", got) {
			t.Fatal(got)
		}
	}
	// It needs nothing more of the peer for that.
	p.tell(conn, "unknown", []byte("three"))
	p.connected()
	p.tell(conn, "register", nil)
	if m := p.expect(Data); m.data(t) != "three" {
		t.Fatal(m.data(t))
	}
	// No more comes back than was sent.
	for i := 0; ; i++ {
		_, failed := p.ask(conn, "unknown", make([]byte, 32<<10))
		if strings.HasPrefix(failed, "bad_request: ") {
			return
		}
		if i > 10 || failed != "" {
			t.Fatal("a bounce without a bound:", failed)
		}
	}
}

func TestGive(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p, q := w.puppet("p", usual()), w.puppet("q", usual())
	_, address := p.listen(nil)
	nc := w.dial(address)
	o := p.connected()
	p.tell(o.ref, "give", uint64(q.ref.UID()))
	given := q.connected()
	q.tell(given.ref, "register", nil)
	send(t, nc, "for q")
	if m := q.expect(Data); m.data(t) != "for q" {
		t.Fatal(m.data(t))
	}
	if _, failed := p.ask(o.ref, "write", []byte("x")); !strings.HasPrefix(failed, "denied: ") {
		t.Fatal(failed)
	}
	w.sys.Stop(p.ref) // no longer its actor
	send(t, nc, "still")
	q.expect(Data)
	w.sys.Stop(q.ref)
	if _, err := io.ReadAll(nc); err == nil {
		t.Fatal("not reset")
	}
}

func TestBounds(t *testing.T) {
	w := newWorld(t, Options{}, &Settings{Connections: 3})
	g := usual()
	g.Connections, g.PerActor, g.Listeners = 2, 1, 1
	grant := Service.Grant(g, service.Bounds{})
	p, q := w.puppetWith("p", grant, host.Limits{}), w.puppetWith("q", grant, host.Limits{})
	l := server(t)
	a := args{"address": l.Addr().String()}
	fails := func(p *puppet, op, want string) {
		t.Helper()
		b := a
		if op == "listen" {
			b = args{"address": "127.0.0.1:0"}
		}
		if _, failed := p.ask(w.svc.Ref(), op, b); !strings.HasPrefix(failed, "busy: ") || !strings.Contains(failed, want) {
			t.Fatalf("%q, want %s", failed, want)
		}
	}
	_, first := p.connect(l, nil)
	fails(p, "connect", "connections-per-actor")
	_, second := q.connect(l, nil)
	r := w.puppetWith("r", grant, host.Limits{})
	fails(r, "connect", "connections of the grant")
	wide := w.puppet("wide", usual())
	wide.connect(l, nil)
	fails(wide, "connect", "services.tcp.connections")
	p.tell(first, "close", "reset")
	p.closed(HowAborted)
	_ = second
	p.connect(l, nil)
	p.listen(nil)
	fails(q, "listen", "listeners of the grant")
}

// A peer that is not accepted waits, and takes nothing of the actor's, until another connection has ended.
func TestBoundsOfAListener(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	g := usual()
	g.Connections = 1
	p := w.puppet("p", g)
	_, address := p.listen(nil)
	_, conn := p.accept(address)
	second := w.dial(address)
	send(t, second, "waits")
	p.tell(conn, "close", "reset")
	p.closed(HowAborted)
	o := p.connected()
	p.tell(o.ref, "register", nil)
	if m := p.expect(Data); m.data(t) != "waits" {
		t.Fatal(m.data(t))
	}
}

// Peers that send nothing, half a message, or take nothing are given up in time.
func TestTimeouts(t *testing.T) {
	lines := args{"kind": "lines"}
	for _, c := range []struct {
		name    string
		options args
		f       func(p *puppet, nc net.Conn, conn host.Ref)
		want    string
	}{
		{"silence", args{"idle": int64(50 * time.Millisecond)}, func(*puppet, net.Conn, host.Ref) {}, "nothing has come or gone"},
		{"silence, not asked for more", args{"idle": int64(50 * time.Millisecond), "pull": true}, func(*puppet, net.Conn, host.Ref) {}, "nothing has come or gone"},
		{"silence, closed half", args{"idle": int64(50 * time.Millisecond), "keep_open": true}, func(_ *puppet, nc net.Conn, _ host.Ref) {
			_ = nc.(*net.TCPConn).CloseWrite()
		}, "nothing has come or gone"},
		{"half a message", args{"framing": lines, "frame": int64(50 * time.Millisecond)}, func(p *puppet, nc net.Conn, _ host.Ref) {
			send(p.w.t, nc, "half")
		}, "not complete in time"},
		{"a byte now and then, for ever", args{"framing": lines, "frame": int64(100 * time.Millisecond)}, func(p *puppet, nc net.Conn, _ host.Ref) {
			go func() {
				for {
					if _, err := nc.Write([]byte("x")); err != nil {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}, "not complete in time"},
		{"takes nothing", args{"write": int64(100 * time.Millisecond)}, func(p *puppet, _ net.Conn, conn host.Ref) {
			go func() {
				for range 1000 { // until the socket's buffers are full
					if p.w.sys.TellFrom(p.ref, conn, []any{"write", make([]byte, 16<<10)}) != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
		}, "not taken what was written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{}, nil)
			p := w.puppet("p", usual())
			nc, conn := p.connect(server(t), args{"options": c.options})
			c.f(p, nc, conn)
			for {
				m := p.next()
				if m.word == PeerClosed || m.word == Refused {
					continue
				}
				if m.word != Closed || !strings.Contains(string(m.body), c.want) || !strings.Contains(string(m.body), "timeout: ") {
					t.Fatalf("%s %s", m.word, m.body)
				}
				return
			}
		})
	}
}

// An actor whose mailbox is full gets everything in the end, in order; its peer waits.
func TestFullMailbox(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppetWith("p", Service.Grant(usual(), service.Bounds{}), host.Limits{Mailbox: 4})
	l := server(t)
	nc, conn := p.connect(l, args{"options": args{"framing": args{"kind": "fixed", "size": 4}}})
	go func() {
		for i := range 200 {
			_, _ = nc.Write([]byte{byte(i >> 8), byte(i), 0, 0})
		}
	}()
	hold := make(chan struct{})
	p.run(func(*host.Context) error { <-hold; return nil })
	close(hold)
	for i := range 200 {
		m := p.expect(Data)
		if b := m.data(t); int(b[0])<<8|int(b[1]) != i {
			t.Fatalf("%d: %x", i, b)
		}
	}
	_ = conn
}

// What an actor tells a connection beyond all bounds breaks it off: what was lost would be a gap.
func TestFloodOfWrites(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	g := usual()
	g.Outbox = 4096
	p := w.puppet("p", g)
	_, conn := p.connect(server(t), nil)
	p.run(func(ctx *host.Context) error {
		for range 20_000 {
			_ = ctx.Tell(conn, []any{"write", []byte("x")})
		}
		return nil
	})
	for {
		if m := p.next(); m.word == Closed {
			if !strings.Contains(string(m.body), "too much") {
				t.Fatalf("%s", m.body)
			}
			return
		}
	}
}

func TestUnixSockets(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(w.env.Base, "out")); err != nil {
		t.Skip(err)
	}
	g := Grant{Listen: []string{"unix:here.sock", "unix:out/x.sock"}, Connect: []string{"unix:here.sock", "unix:out/x.sock"}}
	p := w.puppet("p", g)
	_, address := p.listen(args{"address": "unix:here.sock"})
	if address != "unix:here.sock" {
		t.Fatal(address)
	}
	payload, failed := p.ask(w.svc.Ref(), "connect", args{"address": "unix:here.sock"})
	if failed != "" {
		t.Fatal(failed)
	}
	var mine opened
	if err := cbor.Unmarshal(payload, &mine); err != nil {
		t.Fatal(err)
	}
	o := p.connected()
	p.tell(o.ref, "register", nil)
	p.tell(w.refOf(mine.Conn), "write", []byte("through a file"))
	if m := p.expect(Data); m.data(t) != "through a file" || m.Sender.UID() != o.ref.UID() {
		t.Fatal(m.data(t))
	}
	for _, op := range []string{"listen", "connect"} {
		if _, failed := p.ask(w.svc.Ref(), op, args{"address": "unix:out/x.sock"}); !strings.HasPrefix(failed, "failed: ") {
			t.Fatal(op, failed)
		}
		if _, failed := p.ask(w.svc.Ref(), op, args{"address": "unix:../x.sock"}); !strings.HasPrefix(failed, "bad_request: ") {
			t.Fatal(op, failed)
		}
	}
}

// resolver answers differently each time.
type resolver struct{ answers [][]netip.Addr }

func (r *resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	a := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	return a, nil
}

// Names that lead to addresses that are not granted are refused, also if they have led elsewhere before.
func TestForbiddenAddresses(t *testing.T) {
	public, private := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.0.0.7")
	l := server(t)
	var dialled []netip.AddrPort
	o := Options{
		Resolver: &resolver{[][]netip.Addr{{public}, {private}, {netip.MustParseAddr("169.254.169.254")}, {private}}},
		Connect: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			dialled = append(dialled, to)
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		},
	}
	w := newWorld(t, o, nil)
	p := w.puppet("p", Grant{Connect: []string{"db.example.com:5432", "169.254.0.0/16:5432"}})
	a := args{"address": "db.example.com:5432"}
	for i, want := range []string{"", "denied: ", "denied: ", "denied: "} {
		if _, failed := p.ask(w.svc.Ref(), "connect", a); !strings.HasPrefix(failed, want) || failed != "" && want == "" {
			t.Fatalf("%d: %q", i, failed)
		} else if strings.Contains(failed, "10.0") {
			t.Fatal("an address of the local network is shown:", failed)
		}
	}
	q := w.puppet("q", Grant{Connect: []string{"db.example.com:5432"}, Private: []string{"10.0.0.0/8"}})
	if _, failed := q.ask(w.svc.Ref(), "connect", a); failed != "" {
		t.Fatal(failed)
	}
	if len(dialled) != 2 || dialled[0].Addr() != public || dialled[1].Addr() != private {
		t.Fatal(dialled)
	}
}

func TestServiceEnds(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	_, address := p.listen(nil)
	nc, conn := p.accept(address)
	p.tell(conn, "write", []byte("the last"))
	if _, failed := p.ask(conn, "state", nil); failed != "" {
		t.Fatal(failed)
	}
	done := make(chan struct{})
	go func() { w.end(); close(done) }()
	if b, err := io.ReadAll(nc); string(b) != "the last" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	_ = nc.Close()
	<-done
}

func TestFigures(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	p := w.puppet("p", usual())
	nc, conn := p.connect(server(t), nil)
	send(t, nc, "abc")
	p.expect(Data)
	if _, failed := p.ask(conn, "write", []byte("defgh")); failed != "" {
		t.Fatal(failed)
	}
	got := map[string]float64{}
	for _, f := range w.svc.Figures() {
		got[f.Name] = f.Value
	}
	for name, want := range map[string]float64{"connections_open": 1, "connections_dialled_total": 1, "received_bytes_total": 3, "sent_bytes_total": 5} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
