package host

import (
	"errors"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Refusal is something that an actor has asked the host for and did not get. Refused
// messages are dead letters instead.
type Refusal struct {
	What   string // spawn, memory: growth of a guest's, instance: one for an actor that sleeps, start: one for an incarnation, or the name of a service
	Type   string // spawn: of the actor to be spawned
	Name   string // spawn: its name
	Reason string // why
	Denied bool   // a capability is missing
	Limit  bool   // a bound is reached
	Key    string // the manifest's key for that bound
}

// spawnRefused publishes an event; the actor itself gets a message.
func (g *guest) spawnRefused(cmd *abi.Command, err error) {
	a := g.actor
	if a.sys.bus.quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &Refusal{
		What: "spawn", Type: strings.Clone(string(cmd.Type)), Name: strings.Clone(string(cmd.Name)),
		Reason: strings.TrimPrefix(err.Error(), "host: "), Denied: errors.Is(err, ErrDenied), Key: keyOf(err, ""),
	}
	e.Refused.Limit = e.Refused.Key != ""
	a.sys.bus.publish(e)
}

// Refused publishes that a service has refused an actor something: an event of
// [EventRefused] about the actor. It does nothing if the actor has ended. Each call is an
// event, so a service must bound how often a guest can cause one. Any goroutine may call it.
func (s *System) Refused(ref Ref, r Refusal) {
	a := s.here(ref.UID())
	if a == nil || s.bus.quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &r
	s.bus.publish(e)
}

// memoryRefused publishes that there is no room for what an actor needs.
func (g *guest) memoryRefused(what string, err error) {
	a := g.actor
	if a.sys.bus.quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &Refusal{What: what, Reason: strings.TrimPrefix(err.Error(), "host: "), Limit: true, Key: keyOf(err, "")}
	a.sys.bus.publish(e)
}

// keyOf is the manifest's key for the bound that an error is about.
func keyOf(err error, otherwise string) string {
	var bound *account.Error
	var full *fullError
	var other interface{ ManifestKey() string }
	switch {
	case errors.As(err, &bound):
		return bound.Key
	case errors.As(err, &full):
		return full.key
	case errors.As(err, &other):
		return other.ManifestKey()
	case errors.Is(err, ErrTooLarge):
		return "limits.message"
	case errors.Is(err, ErrTooManyChildren):
		return "limits.children"
	case errors.Is(err, sandbox.ErrTooManyInstances):
		return "modules.NAME.limits.instances"
	}
	return otherwise
}
