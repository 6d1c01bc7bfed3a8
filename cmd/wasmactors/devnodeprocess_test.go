package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
)

// A node has one process at most, and none after it was stopped; when one that was killed cannot start again, none is left.
func TestANodeOfDevStartsOnce(t *testing.T) {
	var said bytes.Buffer
	env := &environment{stderr: &said, terminal: &said}
	set := flag.NewFlagSet("dev", flag.ContinueOnError)
	set.String("state", "", "")
	p := &devNodes{c: cli.NewContext(cli.NewApp(), set, nil), env: env, console: newConsole(env, false, false, 1, "first"), ended: make(chan struct{})}
	n := &devNode{devNodes: p, number: 1, name: "n1"}
	p.nodes = []*devNode{n}
	m := &bundle.Manifest{Name: "b"}

	n.run = &nodeRun{node: n}
	if _, err := n.launch(m); !errors.Is(err, errNotNeeded) {
		t.Errorf("it runs, and is started: %v", err)
	}
	n.run = nil
	n.stop() // as while a timer to start it again fires
	if _, err := n.launch(m); !errors.Is(err, errNotNeeded) {
		t.Errorf("it was stopped, and is started: %v", err)
	}
	if n.startAgain(m); said.Len() > 0 {
		t.Errorf("%s", &said)
	}

	n.allow()
	n.code = -1
	p.path = "bad\x00path" // no process has such an argument
	n.startAgain(m)
	if !strings.Contains(said.String(), "cannot start again") {
		t.Errorf("%s", &said)
	}
	select {
	case <-p.ended:
	default:
		t.Error("no node is left, and the bundle goes on")
	}
}
