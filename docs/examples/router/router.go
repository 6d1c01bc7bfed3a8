// Package router spreads messages over workers.
package router

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// RoundRobin is the props of an actor that forwards what it receives to its children, n
// actors made by worker, one after the other. Who has asked gets the worker's answer. A
// worker that fails is restarted alone; one that has stopped gets nothing more. Without
// workers a question is answered at once, with an error.
func RoundRobin(n int, worker host.Props) host.Props {
	return host.Behave("round-robin", func() host.Behaviour { return &roundRobin{n: n, worker: worker} })
}

type roundRobin struct {
	n       int
	worker  host.Props
	workers []host.Ref
	next    int
}

// Start implements host.Behaviour.
func (r *roundRobin) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	r.workers, r.next = nil, 0
	for i := range r.n {
		ref, err := ctx.Spawn("worker-"+strconv.Itoa(i), r.worker)
		if err == nil {
			err = ctx.Watch(ref)
		}
		if err != nil {
			return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
		}
		r.workers = append(r.workers, ref)
	}
	return nil
}

// Handle implements host.Behaviour.
func (r *roundRobin) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		switch {
		case !ok:
			return nil
		case m.Kind == abi.KindTerminated:
			r.remove(m.Sender)
		case len(r.workers) == 0:
			_ = ctx.ReplyError("there are no workers")
		default:
			r.next %= len(r.workers)
			_ = ctx.Forward(r.workers[r.next])
			r.next++
		}
	}
}

// remove forgets a worker that has stopped; the others keep their order.
func (r *roundRobin) remove(gone host.Ref) {
	for i, w := range r.workers {
		if w.UID() == gone.UID() {
			r.workers = append(r.workers[:i], r.workers[i+1:]...)
			if i < r.next {
				r.next--
			}
			return
		}
	}
}

// Decide implements host.Behaviour: the strategy decides about workers.
func (r *roundRobin) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour: a turn that fails has changed nothing.
func (r *roundRobin) CannotRewind() string { return "" }

// Rewind implements host.Behaviour.
func (r *roundRobin) Rewind(*host.Context) bool { return true }

// End implements host.Behaviour: there is nothing to give back.
func (r *roundRobin) End(*host.Context, host.End) {}
