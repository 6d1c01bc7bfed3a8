package host

import (
	"errors"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// Refusal is something that an actor has asked the host for and did not get. Messages
// that are refused are dead letters instead.
type Refusal struct {
	What   string // spawn
	Type   string // of the actor that was to be
	Name   string // its name
	Reason string // why
	Denied bool   // a capability is missing
	Limit  bool   // the limit of children is reached
}

// spawnRefused tells whoever watches; the actor itself gets a message.
func (g *guest) spawnRefused(cmd *abi.Command, err error) {
	a := g.actor
	if a.sys.bus.quiet() {
		return
	}
	e := a.event(EventRefused)
	e.Refused = &Refusal{
		What: "spawn", Type: strings.Clone(string(cmd.Type)), Name: strings.Clone(string(cmd.Name)),
		Reason: strings.TrimPrefix(err.Error(), "host: "), Denied: errors.Is(err, ErrDenied), Limit: errors.Is(err, ErrTooManyChildren),
	}
	a.sys.bus.publish(e)
}
