package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/printable"
)

// progress shows what is going on while modules are built: in one line that is redrawn on a
// terminal, in plain lines elsewhere.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	start    time.Time
	text     string
	drawn    bool
	done     chan struct{}
	stopped  sync.WaitGroup
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, terminal: drawable(w), start: time.Now(), done: make(chan struct{})}
	if p.terminal {
		p.stopped.Add(1)
		go p.animate()
	}
	return p
}

// say shows a step of a module.
func (p *progress) say(module, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = printable.Line(module+": "+text, 200)
	if !p.terminal {
		fmt.Fprintf(p.w, "%5.1fs  %s\n", time.Since(p.start).Seconds(), p.text)
		return
	}
	p.draw()
}

func (p *progress) draw() {
	if p.text != "" {
		p.drawn = true
		fmt.Fprintf(p.w, "\r\x1b[K%5.1fs  %s", time.Since(p.start).Seconds(), p.text)
	}
}

func (p *progress) animate() {
	defer p.stopped.Done()
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-t.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// end removes the line.
func (p *progress) end() {
	close(p.done)
	p.stopped.Wait()
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
