package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// Guests ask who is there. To a guest, actors that it may not send to do not exist: neither
// the content of the answer, nor its time, nor its price depends on them.

// mostIdentities bounds the answer to an ask for a path with patterns, in bytes.
const mostIdentities = 32 << 10

// identities lists actors for a guest, as many as there is room for, in bytes.
func (s *System) identities(found []*actor, room int) (out []abi.Identity) {
	room -= abi.IdentitiesHead
	for _, t := range found {
		path := strings.TrimPrefix(t.path, s.root)
		room -= abi.IdentitySize(len(path))
		if room < 0 || len(out) == abi.MaxIdentities {
			break
		}
		out = append(out, abi.Identity{Ref: t.uid, Path: path})
	}
	return out
}
