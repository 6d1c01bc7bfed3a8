package main

import (
	"io"
	"os"
	"sync/atomic"
)

// nodeKey is the variable that tells a run that dev has started it as one of several nodes.
const nodeKey = "WASMACTORS_DEV_NODE"

// nodeOfDev is a run as a node of a dev; a nil one is none. Its standard input has the lines of input, if it gets some, and ends when
// all nodes are to end, whether dev ends in order or is killed.
type nodeOfDev struct{ over atomic.Bool }

// asNode reads the variable, which nothing that the run starts is to inherit.
func asNode() *nodeOfDev {
	if os.Getenv(nodeKey) == "" {
		return nil
	}
	_ = os.Unsetenv(nodeKey)
	return &nodeOfDev{}
}

// ending reports whether all nodes end.
func (n *nodeOfDev) ending() bool { return n != nil && n.over.Load() }

// attend calls end when all nodes are to end. It returns the lines of input; nil: the node gets none.
func (n *nodeOfDev) attend(stdin, input io.Reader, end func()) io.Reader {
	if n == nil {
		return input
	}
	l := &lifeline{stdin, func() { n.over.Store(true); end() }}
	if input != nil {
		return l
	}
	go func() { _, _ = io.Copy(io.Discard, l) }()
	return nil
}

// lifeline tells of the end of a reader.
type lifeline struct {
	io.Reader
	end func()
}

func (l *lifeline) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if err != nil {
		l.end()
	}
	return n, err
}
