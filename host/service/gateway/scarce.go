package gateway

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// scarce is a listener of a process that may run out of file descriptors. It leaves a reserve of them to all
// else: the sockets of the admin endpoint, the files of services. When connections come as far as that, and
// when there are no descriptors at all, idle connections are closed, and new ones refused at once.
type scarce struct {
	net.Listener
	limit, reserve uint64 // of descriptors; 0: not known
	keepAlive      func(bool)
	log            *slog.Logger
	now            func() time.Time
	pause          func(time.Duration)

	mu     sync.Mutex
	until  time.Time // no connection is kept alive
	warned time.Time
}

const (
	shortageLasts = time.Second // after the last sign of it
	warnEvery     = 10 * time.Second
	againAfter    = 20 * time.Millisecond
)

// reserveOf is how many descriptors connections leave of a limit.
func reserveOf(limit uint64) uint64 { return min(max(limit/16, 16), 256, limit/2) }

// Accept takes the next connection for which there is a descriptor.
func (l *scarce) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil && !l.last(c):
			l.relax()
			return c, nil
		case err == nil:
			_ = c.Close()
			l.shortage(nil)
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			l.shortage(err)
			l.pause(againAfter)
		default:
			return nil, err
		}
	}
}

// last reports whether a connection has one of the last descriptors: the system gives the lowest that is free.
func (l *scarce) last(c net.Conn) bool {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // of package tls
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok || l.limit == 0 {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	last := false
	err = raw.Control(func(fd uintptr) { last = uint64(fd) >= l.limit-l.reserve })
	return err == nil && last
}

// shortage closes idle connections, and those that become idle for a while.
func (l *scarce) shortage(cause error) {
	now := l.now()
	l.mu.Lock()
	l.until = now.Add(shortageLasts)
	warn := l.warned.IsZero() || now.Sub(l.warned) >= warnEvery
	if warn {
		l.warned = now
	}
	l.mu.Unlock()
	l.keepAlive(false)
	if warn {
		l.log.Warn("the process is out of file descriptors: idle connections are closed, new ones refused; raise the limit (ulimit -n, LimitNOFILE=), or bound the clients (limits.at-once, client)",
			"address", l.Addr().String(), "limit", l.limit, "reserve", l.reserve, "error", cause)
	}
}

// relax keeps connections alive again when the shortage is over.
func (l *scarce) relax() {
	l.mu.Lock()
	over := !l.until.IsZero() && l.now().After(l.until)
	if over {
		l.until = time.Time{}
	}
	l.mu.Unlock()
	if over {
		l.keepAlive(true)
	}
}
