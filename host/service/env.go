package service

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// ErrNoState is the error of [Env.StateDir] if nothing of the run is to be kept.
var ErrNoState = errors.New("service: no state folder; this run stores nothing")

// Env is what a service gets from the code that starts it.
type Env struct {
	System *host.System // set by Start
	Clock  host.Clock   // nil: the system's
	// Rand fills its argument with random bytes; nil: the operating system's. It is
	// for any goroutine.
	Rand func([]byte)
	Log  *slog.Logger // nil: nothing is logged
	// Base is the folder to which relative paths of settings refer: that of the manifest.
	Base string
	// StateDir returns the folder for the state of this service, created with mode 0700 if need be, or
	// ErrNoState; nil: always ErrNoState.
	StateDir func() (string, error)
	Getenv   func(string) (string, bool) // nil: os.LookupEnv
	// Bundle is the name of the bundle that uses the service, "" if there is none. Its author has chosen it.
	Bundle string
	// Shared opens what the nodes of a cluster share; nil: the system is in none.
	Shared Sharing
	// Nodes are those of the cluster; nil: the system is in none.
	Nodes Nodes
}

// Go runs f in a goroutine of its own: the only way to one for code of services. A simulation, such as a scenario of a
// bundle, knows what goes on in it: time does not pass until f has returned, or waits by [Env.Await] or [Receive].
func (e *Env) Go(f func()) { executor.Go(e.Clock, f) }

// After runs f in a goroutine of its own, once d has passed on the service's clock: the only way to time for code of
// services, beside [Env.WithTimeout].
func (e *Env) After(d time.Duration, f func()) interface{ Stop() bool } {
	return e.Clock.AfterFunc(d, f)
}

// WithTimeout is ctx that ends after a time of the service's clock, with the cause [context.DeadlineExceeded]. Cancel
// has to be called.
func (e *Env) WithTimeout(ctx context.Context, d time.Duration) (_ context.Context, cancel func()) {
	return executor.WithTimeout(e.Clock, ctx, d)
}

// Await waits for something that time or actors have to do: the next message of a stream, an answer, a timer. In a
// simulation it returns when try is true, which must not block and may take what it has found; otherwise it
// calls block. What waits in another way counts as work.
func (e *Env) Await(try func() bool, block func()) { executor.Await(e.Clock, try, block) }

// Receive is [Env.Await] for a channel: it receives from ch, unless one of over, at most four, is closed first. Which
// is 0 for ch, -1 if it is closed, and the number of the one of over otherwise, from 1.
func Receive[T any](e *Env, ch <-chan T, over ...<-chan struct{}) (v T, which int) {
	return executor.Take(e.Clock, ch, over...)
}

// complete is a copy without nils.
func (e *Env) complete(sys *host.System) *Env {
	c := Env{}
	if e != nil {
		c = *e
	}
	c.System = sys
	if c.Clock == nil {
		c.Clock = sys.Clock()
	}
	if c.Rand == nil {
		c.Rand = func(b []byte) { _, _ = rand.Read(b) } // never fails
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.StateDir == nil {
		c.StateDir = func() (string, error) { return "", ErrNoState }
	}
	if c.Getenv == nil {
		c.Getenv = os.LookupEnv
	}
	return &c
}
