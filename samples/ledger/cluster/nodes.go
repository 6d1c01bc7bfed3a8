package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// nodes are the processes of the cluster.
type nodes struct {
	command, bundle string
	all             []*node
	next            atomic.Uint64 // who is asked
}

// node is one of them; it is started again after it was killed.
type node struct {
	name, folder string
	log          *os.File

	mu    sync.Mutex
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines int
	open  map[int]chan line
	over  chan struct{}
}

type line struct {
	Line   int             `json:"line"`
	Kind   string          `json:"kind"`
	Reason string          `json:"reason"`
	Reply  json.RawMessage `json:"reply"`
}

// answerIn bounds the wait for an answer, after which a question is asked again.
const answerIn = 3 * time.Second

// found makes a cluster of three nodes that keep the directory, and starts them.
func found(command, bundle, folder string) (*nodes, error) {
	n := &nodes{command: command, bundle: bundle}
	var flags []string
	for i := range 3 {
		address, err := free(flags)
		if err != nil {
			return nil, err
		}
		name := string(rune('a' + i))
		log, err := os.Create(filepath.Join(folder, name+".log"))
		if err != nil {
			return nil, err
		}
		n.all = append(n.all, &node{name: name, folder: filepath.Join(folder, name), log: log})
		flags = append(flags, "--keeper", name+"="+address)
	}
	first := n.all[0]
	if _, err := n.run(append([]string{"cluster", "init", first.folder, "--node", first.name, "--name", "ledger"}, flags...)...); err != nil {
		return nil, err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(n.all))
	for i, x := range n.all {
		var more []string
		if i > 0 {
			token, err := n.run("cluster", "token", first.folder, "--node", x.name)
			if err != nil {
				return nil, err
			}
			file := filepath.Join(folder, x.name+".token")
			if err := os.WriteFile(file, token, 0o600); err != nil {
				return nil, err
			}
			more = []string{"--join-token", file}
		}
		wait.Go(func() { errs[i] = n.start(x, more...) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// free is an address of this machine of which the port after it is free, too, and not among those that were given.
func free(given []string) (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		after, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		_ = l.Close()
		if err != nil {
			continue
		}
		_ = after.Close()
		near := false
		for d := -1; d <= 1; d++ {
			near = near || strings.Contains(strings.Join(given, " ")+" ", fmt.Sprintf(":%d ", port+d))
		}
		if !near {
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no two ports are free")
}

func (n *nodes) run(args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(n.command, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args[:2], " "), err, errs.String())
	}
	return out.Bytes(), nil
}

// start starts a node and waits until it is up.
func (n *nodes) start(x *node, more ...string) error {
	args := append([]string{"run", n.bundle, "--join", x.folder, "--allow", "cluster=ledger", "--input", "-", "--timeout", answerIn.String(), "--state", "none", "--admin", "off"}, more...)
	cmd := exec.Command(n.command, args...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3, cmd.Start()); err != nil {
		return err
	}
	up, over := make(chan struct{}), make(chan struct{})
	x.mu.Lock()
	x.cmd, x.in, x.lines, x.open, x.over = cmd, in, 0, map[int]chan line{}, over
	x.mu.Unlock()
	var read sync.WaitGroup
	read.Go(func() {
		s := bufio.NewScanner(errs)
		for told := false; s.Scan(); {
			fmt.Fprintln(x.log, time.Now().Format("15:04:05.000"), s.Text())
			if !told && strings.Contains(s.Text(), " is up") {
				told = true
				close(up)
			}
		}
	})
	read.Go(func() { x.read(out) })
	go func() {
		read.Wait()
		_ = cmd.Wait()
		x.mu.Lock()
		for _, c := range x.open {
			close(c)
		}
		x.open = nil
		x.mu.Unlock()
		close(over)
	}()
	select {
	case <-up:
		return nil
	case <-over:
		return fmt.Errorf("node %s has ended; %s says why", x.name, x.log.Name())
	case <-time.After(2 * patience):
		return fmt.Errorf("node %s does not come up; %s says why", x.name, x.log.Name())
	}
}

// read gives answers to those who have asked.
func (x *node) read(out io.Reader) {
	s := bufio.NewScanner(out)
	for s.Scan() {
		var l line
		if json.Unmarshal(s.Bytes(), &l) != nil {
			continue
		}
		x.mu.Lock()
		if c := x.open[l.Line]; c != nil {
			delete(x.open, l.Line)
			c <- l
		}
		x.mu.Unlock()
	}
}

// kill ends a node as a power failure would.
func (x *node) kill() error {
	x.mu.Lock()
	cmd, over := x.cmd, x.over
	x.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("node %s has ended by itself; %s says why", x.name, x.log.Name())
	}
	<-over
	return nil
}

var errGone = errors.New("the node is gone")

// ask asks by one node after the other.
func (n *nodes) ask(to string, message, answer any) error {
	x := n.all[n.next.Add(1)%uint64(len(n.all))]
	b, err := json.Marshal(map[string]any{"to": to, "message": message})
	if err != nil {
		return err
	}
	c := make(chan line, 1)
	x.mu.Lock()
	if x.open == nil {
		x.mu.Unlock()
		return errGone
	}
	x.lines++
	x.open[x.lines] = c
	_, err = x.in.Write(append(b, '\n'))
	x.mu.Unlock()
	if err != nil {
		return errGone
	}
	l, ok := <-c
	switch {
	case !ok:
		return errGone
	case l.Kind != "reply":
		return fmt.Errorf("%s: %s", l.Kind, l.Reason)
	}
	return json.Unmarshal(l.Reply, answer)
}

func (n *nodes) close() {
	for _, x := range n.all {
		_ = x.kill()
		_ = x.log.Close()
	}
}
