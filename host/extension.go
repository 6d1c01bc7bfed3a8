package host

import (
	"context"

	"github.com/wasmactors/wasmactors/host/extension"
	"github.com/wasmactors/wasmactors/host/internal/extensions"
)

// Extension is something that a system has once, and that code in Go shares: a pool of
// connections, settings, a client. Its value is made when it is first asked for, or when the
// system starts ([Config.WithExtensions]), and closed with the system. An Extension itself is
// usually a package variable; it is immutable, and may be used by any goroutine and any number of systems.
//
// For guests use a service (host/service), which has an actor, grants and bounds. Package
// extension has its methods.
type Extension[T any] = extension.Extension[*System, T]

// NewExtension makes an extension: a name for errors, what makes its value for a system, and what
// closes the value again, which may be nil. A panic of close is an error of [System.Close]. Open may get other extensions of the system, and start
// actors. Close is called when all actors have ended, before extensions that were there first.
func NewExtension[T any](name string, open func(*System) (T, error), close func(context.Context, T) error) *Extension[T] {
	return extension.New(name, open, close, func(s *System) (*extensions.Set, <-chan struct{}) { return &s.extensions, s.done })
}

// AnyExtension is an [Extension] of any type.
type AnyExtension = extension.Any[*System]
