package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/secret"
)

// Secret is the source of all refs, of the randomness of all actors and of the jitter of all delays of a system. Knowing it
// is enough to compute every ref, so protect it like a password. See [System.Secret].
type Secret = secret.Secret

// Secret is what the system's refs are derived from: with it given to [Config.WithSecret],
// actors that are restored from a snapshot keep their refs and their randomness.
func (s *System) Secret() Secret { return *s.secret }

// nextHostRef is the ref of the next child that the host starts here. Any goroutine may
// call it.
func (a *actor) nextHostRef() abi.Ref {
	key, n := a.super.Family.NextHostRef(func() abi.RefKey { return secretFor(a).RefKey(secret.ForOwnChildren, a.uid) })
	return abi.ChildRef(key, a.uid.Node(), n)
}

// secretOf is what the refs and the randomness of the actor, and of what it starts, are derived from.
func secretFor(a *actor) *Secret {
	if d := a.sys.durable; d != nil && (!a.durable || a.parent == nil) {
		return d.fresh
	}
	return a.sys.secret
}
