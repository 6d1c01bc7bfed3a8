package flow

import (
	"errors"
	"sync/atomic"

	rules "github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host/service"
)

// counts are of all streams of actors in Go in this process.
type counts struct {
	open                   atomic.Int64
	started, failed, given atomic.Uint64
	taken                  atomic.Uint64
}

var counted counts

var errStopped = errors.New("flow: the actor has stopped")

func (c *counts) end(err error) {
	c.open.Add(-1)
	if err != nil {
		c.failed.Add(1)
	}
}

// moved counts what has moved since it was last called, and returns what has by now.
func (c *counts) moved(was, now rules.Moved) rules.Moved {
	if now.Given != was.Given {
		c.given.Add(now.Given - was.Given)
	}
	if now.Taken != was.Taken {
		c.taken.Add(now.Taken - was.Taken)
	}
	return now
}

// Figures are those of all streams that this package runs in the process: how many run now, how many were started and have failed or
// been stopped, and the elements that they have given to other actors and taken from them. A restart of an actor starts its stream
// anew. Any goroutine may call it; metrics show them by metrics.Options.WithFigures("flow", flow.Figures).
func Figures() []service.Figure {
	c := &counted
	return []service.Figure{
		{Name: "streams_open", Value: float64(c.open.Load())},
		{Name: "streams_started_total", Value: float64(c.started.Load())},
		{Name: "streams_failed_total", Value: float64(c.failed.Load())},
		{Name: "given_elements_total", Value: float64(c.given.Load())},
		{Name: "taken_elements_total", Value: float64(c.taken.Load())},
	}
}
