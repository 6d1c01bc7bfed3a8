package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zone is a resolver whose answers change: the n-th look at a name gets the n-th answer, the last
// one from then on.
type zone struct {
	mu    sync.Mutex
	names map[string][]string
}

func (z *zone) LookupNetIP(_ context.Context, network, name string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if network != "ip" {
		return nil, errors.New("which network?")
	}
	answers := z.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(answers) > 1 {
		z.names[name] = answers[1:]
	}
	var addrs []netip.Addr
	for s := range strings.FieldsSeq(answers[0]) {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

// recorder connects to nothing and remembers where to.
type recorder struct {
	mu   sync.Mutex
	to   []netip.AddrPort
	fail map[string]error
	wait map[string]bool // hangs until the context ends
}

func (r *recorder) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	r.mu.Lock()
	r.to = append(r.to, to)
	err, hang := r.fail[to.Addr().String()], r.wait[to.Addr().String()]
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	far.Close()
	return near, nil
}

func (r *recorder) dialled() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, to := range r.to {
		all = append(all, to.String())
	}
	return strings.Join(all, " ")
}

func named(t *testing.T, list ...string) Networks {
	t.Helper()
	var all Networks
	for _, s := range list {
		n, err := ParseNetwork(s)
		if err != nil {
			t.Fatal(err)
		}
		all = all.And(n)
	}
	return all
}

func TestDial(t *testing.T) {
	for _, row := range []struct {
		name, host string
		answers    []string
		named      []string
		dialled    string
		refused    Class
	}{
		{name: "public", host: "a.example", answers: []string{"93.184.216.34"}, dialled: "93.184.216.34:443"},
		{name: "private", host: "a.example", answers: []string{"10.0.0.1"}, refused: Private},
		{name: "private that is named", host: "a.example", answers: []string{"10.0.0.1"}, named: []string{"10.0.0.0/24"}, dialled: "10.0.0.1:443"},
		{name: "another network is named", host: "a.example", answers: []string{"10.0.1.1"}, named: []string{"10.0.0.0/24"}, refused: Private},
		{name: "of several only the public one", host: "a.example", answers: []string{"10.0.0.1 93.184.216.34 ::1"}, dialled: "93.184.216.34:443"},
		{name: "none of several", host: "a.example", answers: []string{"::1 10.0.0.1"}, refused: Loopback},
		{name: "an address", host: "169.254.169.254", refused: Metadata},
		{name: "an address as IPv6", host: "::ffff:127.0.0.1", refused: Loopback},
		{name: "mapped is dialled as what it is", host: "a.example", answers: []string{"::ffff:93.184.216.34"}, dialled: "93.184.216.34:443"},
		{name: "a zone", host: "a.example", answers: []string{"fe80::1%eth0"}, named: []string{"link-local"}, refused: Invalid},
		{name: "metadata, though its network is named", host: "a.example", answers: []string{"169.254.169.254"}, named: []string{"link-local"}, refused: Metadata},
		{name: "6to4", host: "a.example", answers: []string{"2002:7f00:1::"}, refused: Tunnel},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{}
			d := Dialer{Resolver: &zone{names: map[string][]string{"a.example": row.answers}}, Connect: r.connect}
			conn, err := d.Dial(t.Context(), row.host, 443, named(t, row.named...))
			if conn != nil {
				conn.Close()
			}
			var refused *RefusedError
			if errors.As(err, &refused) != (row.refused != Public) || refused != nil && refused.Class != row.refused {
				t.Errorf("%v", err)
			}
			if refused != nil && strings.Contains(err.Error(), refused.Address.String()) && row.answers != nil {
				t.Errorf("the address is told: %v", err)
			}
			if row.refused == Public && err != nil {
				t.Error(err)
			}
			if got := r.dialled(); got != row.dialled {
				t.Errorf("dialled %q", got)
			}
		})
	}
}

// A name that changes its mind between two dials is judged anew each time, and a dial looks once.
func TestRebinding(t *testing.T) {
	r := &recorder{}
	z := &zone{names: map[string][]string{"a.example": {"93.184.216.34", "127.0.0.1", "93.184.216.34"}}}
	d := Dialer{Resolver: z, Connect: r.connect}
	for i, ok := range []bool{true, false, true} {
		conn, err := d.Dial(t.Context(), "a.example", 80, Networks{})
		if (err == nil) != ok {
			t.Errorf("dial %d: %v", i, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
	if got := r.dialled(); got != "93.184.216.34:80 93.184.216.34:80" {
		t.Errorf("dialled %q", got)
	}
}

// The socket is judged again where it connects, also if what stands before were wrong.
func TestSocketIsJudged(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	to := netip.MustParseAddrPort(listener.Addr().String())
	var d Dialer
	var refused *RefusedError
	if _, err := d.connect(t.Context(), to, Networks{}); !errors.As(err, &refused) || refused.Class != Loopback {
		t.Errorf("%v", err)
	}
	conn, err := d.connect(t.Context(), to, named(t, "loopback"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// The next address has its turn when the one before has failed, or hangs.
func TestRace(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(0, 0))
	r := &recorder{fail: map[string]error{"1.1.1.1": errors.New("refused")}, wait: map[string]bool{"2.2.2.2": true}}
	d := Dialer{Resolver: &zone{names: map[string][]string{"a.example": {"1.1.1.1 2.2.2.2 3.3.3.3"}}}, Connect: r.connect, Clock: clock}
	done := make(chan error, 1)
	go func() {
		conn, err := d.Dial(t.Context(), "a.example", 80, Networks{})
		if conn != nil {
			conn.Close()
		}
		done <- err
	}()
	waitFor(t, func() bool { return r.dialled() == "1.1.1.1:80 2.2.2.2:80" })
	select {
	case err := <-done:
		t.Fatal("it has not waited", err)
	default:
	}
	waitFor(t, func() bool { clock.Advance(Stagger); return len(done) == 1 })
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := r.dialled(); got != "1.1.1.1:80 2.2.2.2:80 3.3.3.3:80" {
		t.Errorf("dialled %q", got)
	}
}

func TestAllFail(t *testing.T) {
	r := &recorder{fail: map[string]error{"1.1.1.1": errors.New("first"), "2606::1": errors.New("second")}}
	d := Dialer{Resolver: &zone{names: map[string][]string{"a.example": {"1.1.1.1 2606::1"}}}, Connect: r.connect, Budget: NewBudget(1, nil)}
	for range 3 { // a place that was not given back would show
		if _, err := d.Dial(t.Context(), "a.example", 80, Networks{}); err == nil || err.Error() != "first" {
			t.Errorf("%v", err)
		}
	}
	if _, err := d.Dial(t.Context(), "b.example", 80, Networks{}); !strings.Contains(fmt.Sprint(err), "no such host") {
		t.Errorf("%v", err)
	}
}

func TestManyAddresses(t *testing.T) {
	var list []string
	r := &recorder{fail: map[string]error{}}
	for i := range 50 {
		a := fmt.Sprintf("1.1.1.%d", i)
		list = append(list, a)
		r.fail[a] = errors.New("refused")
	}
	d := Dialer{Resolver: &zone{names: map[string][]string{"a.example": {strings.Join(list, " ")}}}, Connect: r.connect}
	_, _ = d.Dial(t.Context(), "a.example", 80, Networks{})
	if n := len(r.to); n != MaxAddresses {
		t.Errorf("%d were tried", n)
	}
}

func TestAlternate(t *testing.T) {
	var addrs []netip.Addr
	for s := range strings.FieldsSeq("2606::1 2606::2 2606::3 1.1.1.1") {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	if got := fmt.Sprint(alternate(addrs)); got != "[2606::1 1.1.1.1 2606::2 2606::3]" {
		t.Error(got)
	}
}

func TestConnectTimeout(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(0, 0))
	r := &recorder{wait: map[string]bool{"1.1.1.1": true}}
	d := Dialer{Connect: r.connect, Clock: clock, Timeout: time.Second}
	done := make(chan error, 1)
	go func() {
		_, err := d.Dial(t.Context(), "1.1.1.1", 80, Networks{})
		done <- err
	}()
	waitFor(t, func() bool { return r.dialled() != "" })
	clock.Advance(time.Second)
	if err := <-done; !errors.Is(err, ErrConnectTimeout) {
		t.Errorf("%v", err)
	}
}

func TestBudget(t *testing.T) {
	var kept net.Conn
	r := &recorder{}
	reclaimed := 0
	d := Dialer{Connect: r.connect, Budget: NewBudget(1, func() {
		if reclaimed++; reclaimed > 1 {
			kept.Close()
		}
	})}
	var err error
	if kept, err = d.Dial(t.Context(), "1.1.1.1", 80, Networks{}); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(over, "1.1.1.1", 80, Networks{}); !errors.Is(err, ErrConnections) {
		t.Errorf("%v", err)
	}
	conn, err := d.Dial(t.Context(), "1.1.1.1", 80, Networks{}) // what reclaim closes
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	conn.Close() // once is enough
	if !d.Budget.sem.TryAcquire(1) || d.Budget.sem.TryAcquire(1) {
		t.Error("the budget is not what it was")
	}
}

// proxyServer tunnels whatever CONNECT asks for to one place, and remembers what was asked.
type proxyServer struct {
	mu     sync.Mutex
	asked  []string
	auth   string
	answer string // instead
}

func (p *proxyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.auth = r.Header.Get("Proxy-Authorization")
	p.mu.Unlock()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	answer := p.answer
	if answer == "" {
		answer = "HTTP/1.1 200 OK\r\n\r\n"
	}
	_, _ = io.WriteString(conn, answer)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil {
		_, _ = io.WriteString(conn, "echo "+line)
	}
}

func TestProxy(t *testing.T) {
	p := &proxyServer{}
	server := httptest.NewTLSServer(p)
	defer server.Close()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	u, _ := url.Parse(server.URL)
	u.Host = "127.0.0.1:" + u.Port()
	u.User = url.UserPassword("me", "secret")
	proxy, err := NewProxy(u, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	d := Dialer{
		Resolver: &zone{names: map[string][]string{"a.example": {"93.184.216.34"}, "in.example": {"10.0.0.1"}, "near.example": {"10.9.0.1"}}},
		Proxy:    proxy, Direct: named(t, "10.9.0.0/16"), Connect: r.connect, Timeout: 10 * time.Second,
	}
	conn, err := d.Dial(t.Context(), "a.example", 443, Networks{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	conn.Close()
	// The address is judged also where a proxy would connect to it.
	var refused *RefusedError
	if _, err := d.Dial(t.Context(), "in.example", 443, Networks{}); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	conn, err = d.Dial(t.Context(), "near.example", 443, named(t, "private"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := strings.Join(p.asked, ","); got != "CONNECT 93.184.216.34:443" || p.auth != "Basic bWU6c2VjcmV0" || r.dialled() != "10.9.0.1:443" {
		t.Errorf("%s with %s, and straight to %s", got, p.auth, r.dialled())
	}
}

func TestProxyRefuses(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 407 Who are you\r\n\r\n":                                            "it said 407",
		"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello":                         "before it was asked",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxProxyAnswer) + "\r\n\r\n": "too large",
		"nonsense\r\n\r\n": "malformed",
	} {
		server := httptest.NewServer(&proxyServer{answer: answer})
		u, _ := url.Parse(server.URL)
		proxy, err := NewProxy(u, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := Dialer{Proxy: proxy, Timeout: 10 * time.Second}
		if _, err := d.Dial(t.Context(), "93.184.216.34", 443, Networks{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", answer, err)
		}
		server.Close()
	}
}

// A proxy that never answers ends with the time of the dial.
func TestProxyHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			accepted <- conn
		}
	}()
	proxy, err := NewProxy(&url.URL{Scheme: "http", Host: listener.Addr().String()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clock := host.NewVirtualClock(time.Unix(0, 0))
	d := Dialer{Proxy: proxy, Clock: clock, Timeout: time.Second}
	done := make(chan error, 1)
	go func() {
		_, err := d.Dial(t.Context(), "93.184.216.34", 443, Networks{})
		done <- err
	}()
	conn := <-accepted
	defer conn.Close()
	clock.Advance(time.Second)
	if err := <-done; !errors.Is(err, ErrConnectTimeout) {
		t.Errorf("%v", err)
	}
}

func TestBadProxies(t *testing.T) {
	for _, s := range []string{"socks5://a:1", "http://", "http://a/path", "http://a?x", "//a"} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewProxy(u, nil); err == nil {
			t.Errorf("%s is one", s)
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(time.Millisecond)
	}
}
