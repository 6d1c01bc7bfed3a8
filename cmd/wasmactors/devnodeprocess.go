package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/bundle"
)

// devNode is a node of a dev.
type devNode struct {
	*devNodes
	number int
	name   string
	folder string // of its place in the cluster

	mu     sync.Mutex
	run    *nodeRun // nil: it does not run
	code   int      // that it has ended with
	again  *time.Timer
	tries  int  // how often it was started again, without having run for long
	halted bool // it was stopped, and must not start until it is allowed to
}

// nodeRun is a process that runs as a node.
type nodeRun struct {
	node    *devNode
	bundle  *bundle.Manifest
	cmd     *exec.Cmd
	socket  string
	began   time.Time
	input   io.WriteCloser
	fed     int // lines; one feed at a time counts them
	answers *answers
	over    chan struct{} // closed when it has ended
}

// running is the process of the node; nil: none.
func (n *devNode) running() *nodeRun {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

// errNotNeeded is why a node is not started.
var errNotNeeded = errors.New("it runs, or was stopped")

// allow lets a node start that was stopped.
func (n *devNode) allow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.halted = false
}

// launch starts the process, unless there is one, or the node was stopped.
func (n *devNode) launch(m *bundle.Manifest) (*nodeRun, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	state, err := stateOfNode(n.c, m, n.number)
	if err != nil {
		return nil, err
	}
	args := append([]string{os.Args[0], "run", n.path, "--join=" + n.folder, "--state=" + state, "--admin=" + n.admin()}, flagsOfNode(n.c, n.number)...)
	n.devNodes.mu.Lock()
	args = append(args, n.allowed...)
	n.devNodes.mu.Unlock()
	if n.number == 1 && n.c.String("input") != "" {
		args = append(args, "--input=-")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run != nil || n.halted {
		return nil, errNotNeeded
	}
	cmd := &exec.Cmd{Path: self, Args: args, Env: append(os.Environ(), nodeKey+"=1")}
	aside(cmd)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	said, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	r := &nodeRun{node: n, bundle: m, cmd: cmd, began: time.Now(), input: in, over: make(chan struct{}), answers: &answers{to: n.env.stdout}}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", err)
	}
	if r.socket, err = endpoint.Path(cmd.Process.Pid, m.Name); err != nil {
		_ = cmd.Process.Kill()
		return nil, errors.Join(err, cmd.Wait())
	}
	n.run = r
	var read sync.WaitGroup
	read.Go(func() {
		if _, err := io.Copy(r.answers, out); r.answers.broken() {
			n.console.cannotAnswer(err)
			_, _ = io.Copy(io.Discard, out) // so that it can end
		}
	})
	read.Go(func() { n.relay(said) })
	go func() {
		read.Wait()
		_ = cmd.Wait()
		n.hasEnded(r)
	}()
	return r, nil
}

// admin is how the node can be reached.
func (n *devNode) admin() string {
	switch text := ofNode(n.c.String("admin"), n.number); {
	case text != "":
		return text
	case n.c.Bool("open") && n.number == 1:
		return "tcp:127.0.0.1:0"
	}
	return "unix"
}

// up waits until the node is ready.
func (r *nodeRun) up(ctx context.Context) error {
	c := client.Dial(r.socket)
	defer c.Close()
	const every = 20 * time.Millisecond
	for {
		if _, err := c.Raw(ctx, http.MethodGet, "/readyz", nil, nil); err == nil {
			return nil
		}
		select {
		case <-r.over:
			return fmt.Errorf("it has ended before it was up, with exit code %d", r.cmd.ProcessState.ExitCode())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// The wait before a node that was killed starts again doubles with each time, and begins anew when it has run for a while.
const (
	firstAgain = time.Second
	mostAgain  = 30 * time.Second
)

// hasEnded sees to a node whose process has ended.
func (n *devNode) hasEnded(r *nodeRun) {
	p, state := n.devNodes, r.cmd.ProcessState
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	n.mu.Lock()
	code := state.ExitCode()
	again := code < 0 && !stopped && !n.halted // it was killed, by a signal
	if n.run == r {
		n.run, n.code = nil, code
		if code < 0 && !again {
			n.code = exitFailed
		}
	}
	if time.Since(r.began) > mostAgain {
		n.tries = 0
	}
	after := min(firstAgain<<min(n.tries, 10), mostAgain)
	if again {
		n.tries++
		n.again = time.AfterFunc(after, func() { n.startAgain(r.bundle) })
	}
	n.mu.Unlock()
	close(r.over)
	switch {
	case stopped:
	case again:
		p.tell(n, "was killed ("+state.String()+")", "it starts again in "+after.String())
	default:
		p.tell(n, fmt.Sprintf("has ended with exit code %d", code), "the next change starts it again")
		p.noneLeft()
	}
}

// startAgain starts a node that was killed.
func (n *devNode) startAgain(m *bundle.Manifest) {
	n.devNodes.mu.Lock()
	stopped := n.devNodes.stopped
	n.devNodes.mu.Unlock()
	if stopped {
		return
	}
	if _, err := n.launch(m); err != nil && !errors.Is(err, errNotNeeded) {
		n.mu.Lock()
		n.code = exitFailed // it starts again by itself no more
		n.mu.Unlock()
		n.tell(n, "cannot start again: "+oneLine(err.Error()), "the next change tries again")
		n.noneLeft()
	}
}

// noneLeft notes that no node runs any more, nor starts again by itself.
func (p *devNodes) noneLeft() {
	worst := 0
	for _, n := range p.nodes {
		n.mu.Lock()
		live := n.run != nil || n.code < 0
		worst = max(worst, n.code)
		n.mu.Unlock()
		if live {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
	default:
		if worst != 0 {
			p.cause = fmt.Errorf("its nodes have ended, with exit code %d at worst", worst)
		}
		close(p.ended)
	}
}

// nodeGrace bounds the wait for a node that ends in order.
const nodeGrace = 2 * stopGrace

// stop ends the node's process, if it runs.
func (n *devNode) stop() {
	n.mu.Lock()
	r := n.run
	n.halted = true
	if n.again != nil {
		n.again.Stop()
	}
	n.mu.Unlock()
	if r == nil {
		return
	}
	_ = r.input.Close()
	select {
	case <-r.over:
	case <-time.After(nodeGrace):
		_ = r.cmd.Process.Kill()
		<-r.over
	}
}
