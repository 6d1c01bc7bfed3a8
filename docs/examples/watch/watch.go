// Package watch has the pieces of docs/guide/events.md for programs in Go.
package watch

import (
	"strings"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/eventbus"
)

// Failures are the failures below a path, as many as fit into the buffer of whoever reads them.
func Failures(sys *host.System, below string) *host.Subscription {
	return sys.Subscribe(256, func(e *host.Event) bool {
		return e.Kind == host.EventFailed && strings.HasPrefix(e.Ref.Path(), below)
	})
}

// Alert is something that a person should see.
type Alert struct {
	Topic string // payments.declined
	Text  string
}

// Alerts are a bus of a program's own: who subscribes to payments gets payments.declined, too.
func Alerts(page func(Alert, string)) *eventbus.Subchannel[Alert, string] {
	return eventbus.NewSubchannel(func(a Alert) string { return a.Topic }, page, 1000)
}

// Move is an event about an actor.
type Move struct {
	Player host.Ref
	To     string
}

// Moves are a bus whose subscribers are actors, each of which follows a player; players and followers that end
// are removed.
func Moves(sys *host.System) (*eventbus.Actors[Move], error) {
	return eventbus.NewActors(sys, func(m Move) host.Ref { return m.Player }, func(m Move) any { return m.To }, 10_000)
}
