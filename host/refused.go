package host

import (
	"errors"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
)

// spawnRefused publishes an event; the actor itself gets a message.
func (g *guest) spawnRefused(cmd *abi.Command, err error) {
	a := g.actor
	if a.sys.bus.Quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &Refusal{
		What: "spawn", Type: strings.Clone(string(cmd.Type)), Name: strings.Clone(string(cmd.Name)),
		Reason: strings.TrimPrefix(err.Error(), "host: "), Denied: errors.Is(err, ErrDenied), Key: errs.KeyOf(err, ""),
	}
	e.Refused.Limit = e.Refused.Key != ""
	a.sys.bus.Publish(e)
}

// Refused publishes that a service has refused an actor something: an event of
// [EventRefused] about the actor. It does nothing if the actor has ended. Each call is an
// event, so a service must bound how often a guest can cause one. Any goroutine may call it.
func (s *System) Refused(ref Ref, r Refusal) {
	a := s.here(ref.UID())
	if a == nil || s.bus.Quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &r
	s.bus.Publish(e)
}

// memoryRefused publishes that there is no room for what an actor needs.
func memoryRefused(a *actor, what string, err error) {
	if a.sys.bus.Quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &Refusal{What: what, Reason: strings.TrimPrefix(err.Error(), "host: "), Limit: true, Key: errs.KeyOf(err, "")}
	a.sys.bus.Publish(e)
}
