package service

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/wasmactors/wasmactors/host"
)

// ErrNoState is the error of [Env.StateDir] if nothing of the run is to be kept.
var ErrNoState = errors.New("service: nothing of this run is kept: there is no folder for its state")

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
