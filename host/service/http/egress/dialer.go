package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// Resolver finds the addresses of names. [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP is asked with the network "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Bounds of a dial.
const (
	MaxAddresses = 8                      // of a name that are tried
	Stagger      = 250 * time.Millisecond // between two attempts that run at once, RFC 8305
)

// Dialer makes connections to addresses that are public or named. Its fields are set before
// the first use; then it is safe for concurrent use.
type Dialer struct {
	Resolver Resolver      // nil: net.DefaultResolver
	Judge    Judge         //
	Clock    host.Clock    // nil: the machine's
	Timeout  time.Duration // of a dial, including resolving and the proxy's answer; 0: only the context's
	Proxy    *Proxy        // nil: direct
	Direct   Networks      // reached without the proxy
	Budget   *Budget       // nil: no bound

	// Connect makes the connection to a checked address; nil: TCP, where the address is checked
	// again as the socket connects.
	Connect Connect
}

// Connect makes a connection to an address.
type Connect = func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

// RefusedError says that a dial was refused because of its addresses.
type RefusedError struct {
	Host    string
	Class   Class        // class of the first refused address
	Address netip.Addr   // the first refused address
	All     []netip.Addr // all addresses of the name
}

// Error does not contain the address: guests must not learn what names in the local network
// resolve to.
func (e *RefusedError) Error() string {
	if e.Class == Metadata {
		return fmt.Sprintf("%s is at an address of a cloud's metadata service, which must be named alone", e.Host)
	}
	return fmt.Sprintf("%s is at an address that is not public but %s", e.Host, e.Class)
}

// ErrConnections says that there were no connections left in time.
var ErrConnections = errors.New("no connection was free")

// Dial connects to a host (a name or an address) and port; addresses in named may be dialled
// although they are not public. Errors are *[RefusedError], *[net.DNSError], [ErrConnections],
// and those of connecting.
func (d *Dialer) Dial(ctx context.Context, hostname string, port uint16, named Networks) (net.Conn, error) {
	if d.Timeout > 0 {
		var stop func()
		ctx, stop = withTimeout(ctx, d.clock(), d.Timeout)
		defer stop()
	}
	conn, err := d.dial(ctx, hostname, port, named)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrConnections) {
		err = context.Cause(ctx)
	}
	return conn, err
}

func (d *Dialer) dial(ctx context.Context, hostname string, port uint16, named Networks) (net.Conn, error) {
	addrs, err := d.Addresses(ctx, hostname, named)
	if err != nil {
		return nil, err
	}
	if err := d.Budget.take(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnections, context.Cause(ctx))
	}
	conn, err := d.race(ctx, addrs, port, named)
	if err != nil {
		d.Budget.give()
		return nil, err
	}
	if d.Budget == nil {
		return conn, nil
	}
	return &counted{Conn: conn, budget: d.Budget}, nil
}

func (d *Dialer) clock() host.Clock {
	if d.Clock != nil {
		return d.Clock
	}
	return host.RealClock()
}

// Addresses returns the addresses of a host that may be dialled, in the order in which they are
// tried, at most MaxAddresses.
func (d *Dialer) Addresses(ctx context.Context, hostname string, named Networks) ([]netip.Addr, error) {
	all, err := d.resolve(ctx, hostname)
	if err != nil {
		return nil, err
	}
	var ok []netip.Addr
	var refused *RefusedError
	for _, a := range all {
		a = a.Unmap()
		if err := d.check(hostname, a, named); err == nil {
			ok = append(ok, a)
		} else if refused == nil {
			refused = err
		}
	}
	switch {
	case len(ok) == 0 && refused == nil:
		return nil, &net.DNSError{Err: "no addresses", Name: hostname, IsNotFound: true}
	case len(ok) == 0:
		refused.All = all
		return nil, refused
	}
	ok = alternate(ok)
	return ok[:min(len(ok), MaxAddresses)], nil
}

func (d *Dialer) resolve(ctx context.Context, hostname string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(hostname); err == nil {
		return []netip.Addr{a}, nil
	}
	r := d.Resolver
	if r == nil {
		r = net.DefaultResolver
	}
	return r.LookupNetIP(ctx, "ip", hostname)
}

// Check checks an address that came from elsewhere than Addresses.
func (d *Dialer) Check(a netip.Addr, named Networks) error {
	if err := d.check(a.String(), a.Unmap(), named); err != nil {
		return err
	}
	return nil
}

// check checks an address; nil: it may be dialled.
func (d *Dialer) check(hostname string, a netip.Addr, named Networks) *RefusedError {
	c := d.Judge.Class(a)
	if c == Public || named.Names(a, c) {
		return nil
	}
	return &RefusedError{Host: hostname, Class: c, Address: a}
}

// alternate sorts addresses so that the families alternate, beginning with the first one's.
func alternate(addrs []netip.Addr) []netip.Addr {
	var lists [2][]netip.Addr
	for _, a := range addrs {
		i := 0
		if a.Is4() != addrs[0].Is4() {
			i = 1
		}
		lists[i] = append(lists[i], a)
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(lists[0]), len(lists[1])) {
		for _, l := range lists {
			if i < len(l) {
				out = append(out, l[i])
			}
		}
	}
	return out
}

// attempt is the result of one attempt to connect.
type attempt struct {
	conn net.Conn
	err  error
}

// race tries the addresses one after the other, the next one when one has failed or has
// taken longer than Stagger. The first connection wins, the others are closed.
func (d *Dialer) race(ctx context.Context, addrs []netip.Addr, port uint16, named Networks) (net.Conn, error) {
	if len(addrs) == 1 {
		return d.connect(ctx, netip.AddrPortFrom(addrs[0], port), named)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt, len(addrs))
	next := make(chan struct{}, 1)
	running, tried := 0, 0
	var mu sync.Mutex
	over := false
	defer func() { // the connections that come too late are closed
		mu.Lock()
		defer mu.Unlock()
		over = true
		for len(results) > 0 {
			if late := <-results; late.conn != nil {
				late.conn.Close()
			}
		}
	}()
	launch := func() interface{ Stop() bool } {
		to := netip.AddrPortFrom(addrs[tried], port)
		tried++
		running++
		executor.Go(d.clock(), func() {
			conn, err := d.connect(ctx, to, named)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !over:
				results <- attempt{conn, err}
			case conn != nil:
				conn.Close()
			}
		})
		return d.clock().AfterFunc(Stagger, func() {
			select {
			case next <- struct{}{}:
			default:
			}
		})
	}
	timer := launch()
	defer func() { timer.Stop() }()
	var first error
	for {
		var r attempt
		more, which := false, 0
		executor.Await(d.clock(), func() bool {
			select {
			case r = <-results:
				which = 1
			case <-next:
				which = 2
			case <-ctx.Done():
				which = 3
			default:
			}
			return which > 0
		}, func() {
			select {
			case r = <-results:
				which = 1
			case <-next:
				which = 2
			case <-ctx.Done():
				which = 3
			}
		})
		switch which {
		case 1:
			running--
			if r.err == nil {
				return r.conn, nil
			}
			if first == nil {
				first = r.err
			}
			more = true
		case 2:
			more = true
		default:
			return nil, context.Cause(ctx)
		}
		if more && tried < len(addrs) {
			timer.Stop()
			timer = launch()
		}
		if running == 0 {
			return nil, first
		}
	}
}

// connect makes one connection, directly or through the proxy.
func (d *Dialer) connect(ctx context.Context, to netip.AddrPort, named Networks) (net.Conn, error) {
	if d.Proxy != nil && !d.Direct.Names(to.Addr(), Public) {
		return d.Proxy.tunnel(ctx, to)
	}
	if d.Connect != nil {
		return d.Connect(ctx, to)
	}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("egress: the socket would connect to %q", address)
		}
		if err := d.check(at.Addr().String(), at.Addr(), named); err != nil {
			return err
		}
		return nil
	}}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(to.Addr().String(), strconv.Itoa(int(to.Port()))))
}

// ErrConnectTimeout is the cause when a dial has taken too long.
var ErrConnectTimeout = fmt.Errorf("connecting took too long: %w", context.DeadlineExceeded)

// withTimeout ends a context after a time of the clock.
func withTimeout(ctx context.Context, clock host.Clock, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := clock.AfterFunc(d, func() { cancel(ErrConnectTimeout) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}
