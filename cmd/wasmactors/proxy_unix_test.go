//go:build unix

package main

import (
	"net"
	"sync"
	"testing"
)

// proxy passes connections on, and while it is cut lets nothing through, in neither direction, as a network does that is parted.
type proxy struct {
	target string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func proxyOf(t *testing.T, address, target string) *proxy {
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, conns: map[net.Conn]bool{}}
	var wait sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		p.set(false)
		p.drop()
		wait.Wait()
	})
	wait.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", target)
			if err != nil {
				_ = a.Close()
				continue
			}
			p.mu.Lock()
			p.conns[a], p.conns[b] = true, true
			p.mu.Unlock()
			wait.Go(func() { p.pass(a, b) })
			wait.Go(func() { p.pass(b, a) })
		}
	})
	return p
}

// pass copies; what comes while it is cut is swallowed.
func (p *proxy) pass(from, to net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		cut := p.cut
		p.mu.Unlock()
		if !cut && err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	p.mu.Lock()
	delete(p.conns, from)
	delete(p.conns, to)
	p.mu.Unlock()
}

// set cuts the connection, or heals it: those that have lost something are broken then.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	healed := p.cut && !cut
	p.cut = cut
	p.mu.Unlock()
	if healed {
		p.drop()
	}
}

func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}
