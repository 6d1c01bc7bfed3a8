package scenario

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// pipe is one end of a connection in memory. Writing does not wait for a reader.
type pipe struct {
	exec    *executor.Sim
	in, out *half
}

// half is one direction of a connection.
type half struct {
	mu     sync.Mutex
	ready  *sync.Cond
	data   []byte
	closed bool
}

func newPipe(exec *executor.Sim) (a, b net.Conn) {
	one, two := &half{}, &half{}
	one.ready, two.ready = sync.NewCond(&one.mu), sync.NewCond(&two.mu)
	return &pipe{exec: exec, in: one, out: two}, &pipe{exec: exec, in: two, out: one}
}

// Read implements net.Conn.
func (p *pipe) Read(b []byte) (int, error) {
	h := p.in
	executor.Await(p.exec, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.closed || len(h.data) > 0
	}, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for !h.closed && len(h.data) == 0 {
			h.ready.Wait()
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	n := copy(b, h.data)
	if h.data = h.data[n:]; n == 0 && h.closed && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (p *pipe) Write(b []byte) (int, error) {
	h := p.out
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return 0, io.ErrClosedPipe
	case len(h.data)+len(b) > mostHeld:
		return 0, os.ErrDeadlineExceeded // nobody reads
	}
	h.data = append(h.data, b...)
	h.ready.Broadcast()
	return len(b), nil
}

// Close implements net.Conn: what was written can still be read.
func (p *pipe) Close() error {
	for _, h := range []*half{p.in, p.out} {
		h.mu.Lock()
		h.closed = true
		h.ready.Broadcast()
		h.mu.Unlock()
	}
	return nil
}

// Nobody sets deadlines of a connection in memory: contexts end reads, by closing it.
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

func (p *pipe) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *pipe) RemoteAddr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
