package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Guests ask who is there. To a guest, actors that it may not send to do not exist: neither
// the content of the answer, nor its time, nor its price depends on them.

// mostIdentities bounds the answer to an ask for a path with patterns, in bytes.
const mostIdentities = 32 << 10

// isIdentify reports whether a guest's ask is an Identify, for the host.
func isIdentify(cmd *abi.Command) bool { return cmd.ToPath[0] == abi.IdentifySign[0] }

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

// chargeIdentify makes a turn pay for an Identify, besides the price of an ask: for the search,
// which is made twice, and the answer.
func (g *guest) chargeIdentify(x *sandbox.Instance, path string) *abi.Failure {
	if f := x.Charge(sandbox.CostSend + costPathByte*uint64(len(path))); f != nil || !glob.HasMeta(path) {
		return f
	}
	found, f := g.chargeSearch(x, path)
	if f != nil {
		return f
	}
	units := uint64(0)
	for _, t := range found[:min(len(found), abi.MaxIdentities)] {
		units += sandbox.CostNode + uint64(len(t.path))/sandbox.CostBytes
	}
	return x.Charge(units)
}
