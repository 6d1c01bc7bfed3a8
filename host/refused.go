package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/host/internal/errs"
)

// Refused publishes that a service has refused an actor something: an event of
// [EventRefused] about the actor. It does nothing if the actor has ended. Each call is an
// event, so a service must bound how often a guest can cause one. Any goroutine may call it.
func (s *System) Refused(ref Ref, r Refusal) {
	if a := s.here(ref.UID()); a != nil {
		s.seen.Refused(a, &r)
	}
}

// memoryRefused publishes that there is no room for what an actor needs.
func memoryRefused(a *actor, what string, err error) {
	a.sys.seen.Refused(a, &Refusal{What: what, Reason: strings.TrimPrefix(err.Error(), "host: "), Limit: true, Key: errs.KeyOf(err, "")})
}
