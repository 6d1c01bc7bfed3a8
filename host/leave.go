package host

import "errors"

// Leave has the actor stop at the end of the turn, as a stop of itself does, but for the reason that its watchers are told. It
// is for actors that stand for others.
func (h Head) Leave(reason string) { h.ctx.stage(change{kind: actorLeaves, name: reason}) }

// NotSpawned tells the parent, at the end of the turn, that this child could not be spawned after all, and has the actor stop. A guest
// gets a message of [abi.KindSpawnFailed], as for a spawn that is refused at once. typ is what was to be spawned.
func (h Head) NotSpawned(typ string, err error) {
	a := h.ctx.actor
	if a.parent != nil && !a.sys.seen.Quiet() {
		a.sys.seen.Refused(a.parent, &Refusal{What: "spawn", Type: typ, Name: a.elements[len(a.elements)-1], Reason: err.Error(), Denied: errors.Is(err, ErrDenied)})
	}
	h.ctx.stage(change{kind: childMissing, name: err.Error()})
	h.Leave("not spawned")
}
