package main

import (
	"io"
	"os"
	"sync"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// openInput opens the lines of input: "" for none, "-" for standard input.
func openInput(env *environment, name string) (io.Reader, func() error, error) {
	nothing := func() error { return nil }
	switch name {
	case "":
		return nil, nothing, nil
	case "-":
		return env.stdin, nothing, nil
	}
	info, err := os.Stat(name)
	if err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0 {
		p := &pipe{name: name}
		return p, p.Close, nil
	}
	f, err := regular.Open(name)
	if err != nil {
		return nil, nothing, usage("--input: %v", err)
	}
	return f, f.Close, nil
}

// pipe is a FIFO or a terminal that the user has named. Opening a FIFO waits for its other
// end, so the first Read does it, which runs in the background of a feed.
type pipe struct {
	name string

	mu     sync.Mutex
	file   *os.File
	closed bool
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	f := p.file
	p.mu.Unlock()
	if f == nil {
		opened, err := os.Open(p.name)
		if err != nil {
			return 0, err
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			_ = opened.Close()
			return 0, os.ErrClosed
		}
		p.file, f = opened, opened
		p.mu.Unlock()
	}
	return f.Read(b)
}

func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
