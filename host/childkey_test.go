package host

import "github.com/wasmactors/wasmactors/abi"

// childKeyOf is the key of the refs of a guest's children.
func childKeyOf(g *guest) abi.RefKey { return g.keys.Child(secretFor(g.actor), g.actor.uid) }
