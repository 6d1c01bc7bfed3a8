package gateway

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scripted is a listener whose connections have the descriptors that it is told, 0 for none.
type scripted struct {
	net.Listener
	fds    []uintptr
	closed []uintptr
}

func (s *scripted) Addr() net.Addr { return &net.TCPAddr{} }

func (s *scripted) Accept() (net.Conn, error) {
	if len(s.fds) == 0 {
		return nil, net.ErrClosed
	}
	fd := s.fds[0]
	s.fds = s.fds[1:]
	if fd == 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return &numbered{of: s, fd: fd}, nil
}

type numbered struct {
	net.Conn
	of *scripted
	fd uintptr
}

func (n *numbered) Close() error                          { n.of.closed = append(n.of.closed, n.fd); return nil }
func (n *numbered) SyscallConn() (syscall.RawConn, error) { return rawConn{fd: n.fd}, nil }

type rawConn struct {
	syscall.RawConn
	fd uintptr
}

func (r rawConn) Control(f func(uintptr)) error { f(r.fd); return nil }

// TestOutOfDescriptors: connections leave a reserve; without descriptors idle connections are closed and it is
// said, once; nobody is left to hang.
func TestOutOfDescriptors(t *testing.T) {
	if got := []uint64{reserveOf(20), reserveOf(128), reserveOf(1024), reserveOf(1 << 20)}; got[0] != 10 || got[1] != 16 || got[2] != 64 || got[3] != 256 {
		t.Error(got)
	}
	s := &scripted{fds: []uintptr{10, 83, 84, 99, 0, 0, 11, 0, 12, 13}}
	now := time.Unix(1000, 0)
	var b bytes.Buffer
	var kept []bool
	pauses := 0
	l := &scarce{Listener: s, limit: 100, reserve: 16, log: slog.New(slog.NewTextHandler(&b, nil)), now: func() time.Time { return now },
		keepAlive: func(on bool) { kept = append(kept, on) }, pause: func(time.Duration) { pauses++ }}
	for _, want := range []uintptr{10, 83, 11} {
		c, err := l.Accept()
		if err != nil || c.(*numbered).fd != want {
			t.Fatalf("%v, %v, want %d", c, err, want)
		}
	}
	if len(s.closed) != 2 || s.closed[0] != 84 || s.closed[1] != 99 || len(kept) != 4 || kept[0] || kept[3] || pauses != 2 {
		t.Error(s.closed, kept, pauses)
	}
	if text := b.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "ulimit -n") || !strings.Contains(text, "limit=100") {
		t.Error(text)
	}
	now = now.Add(warnEvery)
	for _, want := range []uintptr{12, 13} { // one more shortage, and then it is over
		if c, err := l.Accept(); err != nil || c.(*numbered).fd != want {
			t.Fatal(c, err)
		}
		now = now.Add(shortageLasts + 1)
	}
	if strings.Count(b.String(), "level=WARN") != 2 || len(kept) != 6 || kept[4] || !kept[5] {
		t.Error(b.String(), kept)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
