package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ergo.services/ergo"
	"ergo.services/ergo/act"
	"ergo.services/ergo/gen"
)

// Two nodes of ergo in two processes, over its own protocol and without TLS, which is its default: how many small messages go from one
// to the other.

func ergoNode(name string) (gen.Node, error) {
	o := gen.NodeOptions{}
	o.Network.Cookie = "bench"
	o.Log.Level = gen.LogLevelDisabled
	o.Log.DefaultLogger.Disable = true
	return ergo.StartNode(gen.Atom(name+"@localhost"), o)
}

// farErgo is an actor of the other node: it counts, and answers who it is and what all have counted.
type farErgo struct{ act.Actor }

var farCount atomic.Int64

func (a *farErgo) HandleMessage(gen.PID, any) error {
	farCount.Add(1)
	return nil
}

func (a *farErgo) HandleCall(_ gen.PID, _ gen.Ref, m any) (any, error) {
	if m == "who" {
		return a.PID(), nil
	}
	return farCount.Load(), nil
}

// ergoServe is the other process. It says when it is there, and ends with its input.
func ergoServe(name string) error {
	node, err := ergoNode(name)
	if err != nil {
		return err
	}
	for i := range nodeSenders + 1 {
		if _, err := node.SpawnRegister(gen.Atom(fmt.Sprint("sink", i)), func() gen.ProcessBehavior { return &farErgo{} }, gen.ProcessOptions{}); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	node.StopForce()
	return nil
}

// ergoRate is how many messages a second go from a node of ergo here to one in another process, each of another sender.
func ergoRate(long time.Duration) (float64, error) {
	name := fmt.Sprint("bench", os.Getpid())
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(exe, "ergoserve", name+"far")
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return 0, err
	}
	defer func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		return 0, fmt.Errorf("ergo's other process says %q: %w", line, err)
	}
	node, err := ergoNode(name)
	if err != nil {
		return 0, err
	}
	defer node.StopForce()
	far := gen.Atom(name + "far@localhost")
	hand, err := node.Spawn(newErgoHand, gen.ProcessOptions{})
	if err != nil {
		return 0, err
	}
	by := func(pid gen.PID, f func(*ergoHand) error) chan error {
		e := &errand{f, make(chan error, 1)}
		if err := node.Send(pid, e); err != nil {
			e.done <- err
		}
		return e.done
	}
	call := func(name string, m any) (answer any, err error) {
		err = <-by(hand, func(h *ergoHand) (err error) {
			answer, err = h.Call(gen.ProcessID{Name: gen.Atom(name), Node: far}, m)
			return err
		})
		return answer, err
	}
	payload := make([]byte, nodeBytes)
	var sent atomic.Int64
	var wait sync.WaitGroup
	var failed atomic.Pointer[error]
	start := make(chan struct{})
	var began time.Time
	for i := range nodeSenders {
		who, err := call(fmt.Sprint("sink", i), "who")
		if err != nil {
			return 0, err
		}
		to, ok := who.(gen.PID)
		if !ok {
			return 0, fmt.Errorf("ergo answers %v", who)
		}
		pid, err := node.Spawn(newErgoHand, gen.ProcessOptions{})
		if err != nil {
			return 0, err
		}
		wait.Go(func() {
			<-start
			if err := <-by(pid, func(h *ergoHand) error {
				for time.Since(began) < long {
					for range 64 {
						if err := h.Send(to, payload); err != nil {
							return err
						}
					}
					sent.Add(64)
				}
				return nil
			}); err != nil {
				failed.Store(&err)
			}
		})
	}
	began = time.Now()
	close(start)
	wait.Wait()
	if e := failed.Load(); e != nil {
		return 0, *e
	}
	for {
		got, err := call(fmt.Sprint("sink", nodeSenders), "count")
		if err != nil && time.Since(began) > long+30*time.Second {
			return 0, err
		}
		if n, _ := got.(int64); err == nil && n >= sent.Load() {
			return float64(n) / time.Since(began).Seconds(), nil
		}
		if time.Since(began) > long+30*time.Second {
			return 0, fmt.Errorf("%v of %d messages of ergo have come", got, sent.Load())
		}
	}
}
