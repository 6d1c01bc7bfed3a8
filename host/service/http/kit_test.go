package httpclient_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
)

// world is an internet of its own: names with addresses, and addresses with servers. What is
// dialled is what net/http dials; only the last step goes to this machine.
type world struct {
	t  testing.TB
	mu sync.Mutex
	// names are the answers of the resolver, one a look, the last one for ever.
	names   map[string][]string
	servers map[string]string // address:port to a listener of this machine
	dialled []string
	pem     bytes.Buffer
}

func newWorld(t testing.TB) *world {
	return &world{t: t, names: map[string][]string{}, servers: map[string]string{}}
}

func (w *world) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[name] = answers[1:]
	}
	var addrs []netip.Addr
	for s := range strings.FieldsSeq(answers[0]) {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

func (w *world) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to.String())
	address, ok := w.servers[to.String()]
	w.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// name gives a name addresses.
func (w *world) name(name string, answers ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = answers
}

func (w *world) put(to string, listener net.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[to] = listener.String()
}

// serve puts a server at an address and port.
func (w *world) serve(to string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	w.put(to, s.Listener.Addr())
	return s
}

// serveTLS is serve with TLS, for names of example.com.
func (w *world) serveTLS(to string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	w.t.Cleanup(s.Close)
	w.put(to, s.Listener.Addr())
	if w.pem.Len() == 0 {
		_ = pem.Encode(&w.pem, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	return s
}

func (w *world) dials() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.dialled, " ")
}

// fixture is a system with the service.
type fixture struct {
	t       testing.TB
	sys     *host.System
	kind    *service.Service[httpclient.Settings, httpclient.Grant]
	running *service.Running
	clock   *host.VirtualClock // of the service's own times
	events  *host.Subscription
}

func start(t *testing.T, w *world, s *httpclient.Settings) *fixture {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	f := startWith(t, w, s, host.NewConfig("test").WithClock(clock))
	f.clock = clock
	return f
}

// startReal is start with the machine's clock.
func startReal(t *testing.T, w *world, s *httpclient.Settings) *fixture {
	t.Helper()
	return startWith(t, w, s, host.NewConfig("test"))
}

func startWith(t testing.TB, w *world, s *httpclient.Settings, c host.Config) *fixture {
	t.Helper()
	f := &fixture{t: t, kind: httpclient.New(httpclient.Options{Resolver: w, Connect: w.connect})}
	if s == nil {
		s = &httpclient.Settings{}
	}
	if s.Roots == "" && w.pem.Len() > 0 {
		s.Roots = filepath.Join(t.TempDir(), "roots.pem")
		if err := os.WriteFile(s.Roots, w.pem.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sys, err := host.New(c)
	if err != nil {
		t.Fatal(err)
	}
	f.sys = sys
	f.events = sys.Subscribe(1000, func(e *host.Event) bool { return e.Kind == host.EventRefused })
	if f.running, err = f.kind.Start(sys, nil, s); err != nil {
		_ = sys.Close(context.Background())
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

func (f *fixture) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = f.sys.Close(ctx)
	if err := f.running.Wait(ctx); err != nil {
		f.t.Error(err)
	}
}

// actor is one in Go that does what it is told: it asks whom it is told and answers with what it
// gets.
type actor struct {
	*fixture
	ref host.Ref
}

type receiver func(*host.Context, host.Message) error

func (r receiver) Receive(ctx *host.Context, m host.Message) error { return r(ctx, m) }

type order struct {
	To      uint64 `cbor:"to"` // 0: the service
	Op      string `cbor:"op"`
	Args    any    `cbor:"args"`
	Tell    bool   `cbor:"tell"`
	Timeout int64  `cbor:"timeout"`
}

func (f *fixture) actor(g httpclient.Grant, b service.Bounds) *actor {
	f.t.Helper()
	return f.with(func(p host.Props) host.Props { return p.WithGrant(httpclient.Name, f.kind.Grant(g, b)) })
}

func (f *fixture) with(change func(host.Props) host.Props) *actor {
	f.t.Helper()
	props := host.Native(func() host.Actor {
		open, n := map[uint64]*host.Reply{}, uint64(0)
		return receiver(func(ctx *host.Context, m host.Message) error {
			if r, ok := open[m.Correlation]; ok && m.Kind != abi.KindMessage {
				delete(open, m.Correlation)
				if err := m.Err(); err != nil {
					var said *host.ReplyError
					if errors.As(err, &said) {
						return r.Fail(said.Reason)
					}
					return r.Fail("?: " + err.Error())
				}
				return r.Send(host.Raw(m.Payload))
			}
			var o order
			if err := m.Decode(&o); err != nil {
				return err
			}
			to := f.running.Ref()
			if o.To != 0 {
				if to = f.find(abi.Ref(o.To)); to.IsZero() {
					return ctx.ReplyError("no such actor")
				}
			}
			if o.Tell {
				return ctx.Tell(to, []any{o.Op, o.Args})
			}
			r, err := ctx.Later()
			if err != nil {
				return err
			}
			n++
			open[n] = r
			timeout := time.Duration(o.Timeout)
			if timeout == 0 {
				timeout = time.Hour
			}
			return ctx.Ask(to, []any{o.Op, o.Args}, n, timeout)
		})
	}).WithLimits(host.Limits{Replies: 200_000, Asks: 200_000, Mailbox: 200_000, MailboxBytes: 1 << 30})
	ref, err := f.sys.Spawn("", change(props))
	if err != nil {
		f.t.Fatal(err)
	}
	return &actor{f, ref}
}

// find is the actor of a ref that was in an answer.
func (f *fixture) find(uid abi.Ref) host.Ref {
	for _, info := range f.sys.View().AppendInfo(nil) {
		if info.Ref.UID() == uid {
			return info.Ref
		}
	}
	return host.Ref{}
}

// noStreams waits until all streams are over.
func (f *fixture) noStreams() {
	f.t.Helper()
	eventually(f.t, "the streams have ended", func() bool {
		for _, info := range f.sys.View().AppendInfo(nil) {
			if strings.HasPrefix(info.Ref.Path(), "/system/http/") {
				return false
			}
		}
		return true
	})
}

// result is an answer of do.
type result struct {
	Status  int         `cbor:"status"`
	Headers [][2]string `cbor:"headers"`
	URL     string      `cbor:"url"`
	Body    []byte      `cbor:"body"`
	Stream  uint64      `cbor:"stream"`
	Length  *uint64     `cbor:"length"`
}

func (r *result) header(name string) string {
	for _, h := range r.Headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

type args = map[string]any

func (a *actor) order(o order) (host.Message, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	defer cancel()
	return a.sys.Ask(ctx, a.ref, o)
}

// do is an ask of the service.
func (a *actor) do(in args) (*result, error) {
	m, err := a.order(order{Op: "do", Args: in})
	if err != nil {
		return nil, a.reason(err)
	}
	r := &result{}
	if err := m.Decode(r); err != nil {
		return nil, err
	}
	return r, nil
}

// reason is what the service has said.
func (a *actor) reason(err error) error {
	var said *host.ReplyError
	if errors.As(err, &said) {
		return errors.New(said.Reason)
	}
	return err
}

// get is a do that is expected to succeed.
func (a *actor) get(url string) *result {
	a.t.Helper()
	r, err := a.do(args{"url": url})
	if err != nil {
		a.t.Fatalf("%s: %v", url, err)
	}
	return r
}

// fails is a do that is expected to be answered with a code, and a text that has something.
func (a *actor) fails(in args, code service.Code, text string) {
	a.t.Helper()
	r, err := a.do(in)
	if err == nil {
		a.t.Errorf("%v: %d %q, want %s", in, r.Status, r.Body, code)
	} else if !strings.HasPrefix(err.Error(), string(code)+": ") || !strings.Contains(err.Error(), text) {
		a.t.Errorf("%v: %v, want %s: ... %s", in, err, code, text)
	}
}

// read reads a stream to its end.
func (a *actor) read(stream uint64) (string, error) {
	var all strings.Builder
	for {
		m, err := a.order(order{To: stream, Op: "read", Args: args{"max": 10_000}})
		if err != nil {
			return all.String(), a.reason(err)
		}
		var part []byte
		if err := m.Decode(&part); err != nil {
			return all.String(), err
		}
		if part == nil {
			return all.String(), nil
		}
		all.Write(part)
	}
}

// eventually waits for something that happens in other goroutines.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, r.URL)
}

func noChange(p host.Props) host.Props { return p }

// for is the actor for another test.
func (a *actor) in(t *testing.T) *actor {
	f := *a.fixture
	f.t = t
	return &actor{&f, a.ref}
}
