package main

import (
	"context"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
)

// Lines of input on a node that may be lost, and begin anew.

// present is the system of the run, after the node has joined again if it was lost.
func (l *live) present(ctx context.Context) (*host.System, error) {
	for {
		if s := l.seen.Load(); s != nil {
			select {
			case <-s.sys.Terminated(): // it was lost, and is about to be replaced, or the run ends
			default:
				return s.sys, nil
			}
		}
		if l.apart.Load() {
			return nil, host.ErrClosed
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// checked shows an answer that came while the node must not act as none: the actor that has given it may act elsewhere by now.
func (x *membership) checked(show func(bundle.Answer)) func(bundle.Answer) {
	return func(a bundle.Answer) {
		x.mu.Lock()
		n := x.node
		x.mu.Unlock()
		var bad *bundle.InputError
		if n != nil && !n.Acting() && !errors.As(a.Err, &bad) {
			a.Payload, a.Err = nil, host.ErrNodeLost
		}
		show(a)
	}
}

// settleTime bounds the wait for what has left and is not confirmed, at the end of a run.
const settleTime = 3 * time.Second

// settle waits until other nodes have what was sent to them.
func (x *membership) settle() {
	if x == nil {
		return
	}
	x.mu.Lock()
	n := x.node
	x.mu.Unlock()
	if n == nil || x.dev.ending() {
		return
	}
	for end := time.Now().Add(settleTime); time.Now().Before(end) && n.Acting(); time.Sleep(time.Millisecond) {
		left := 0
		for _, m := range n.Members() {
			left += n.Waiting(m.Number)
		}
		if left == 0 {
			return
		}
	}
}
