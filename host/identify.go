package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Guests ask who is there. To a guest, actors that it may not send to do not exist: neither
// the content of the answer, nor its time, nor its price depends on them.

// mostIdentities bounds the answer to an ask for a path with patterns, in bytes.
const mostIdentities = 32 << 10

// isIdentify reports whether a guest's ask is an Identify, for the host.
func isIdentify(cmd *abi.Command) bool { return cmd.ToPath[0] == abi.IdentifySign[0] }

// identify carries out an Identify. Only the host may answer it: ask has no answerer.
func (g *guest) identify(scr *scratch, cmd *abi.Command, ask *asks.Ask) {
	one := abi.Command{Op: cmd.Op, ToPath: cmd.ToPath[1:], Correlation: cmd.Correlation}
	if glob.HasMeta(string(one.ToPath)) {
		g.identifyMany(scr, &one)
		return
	}
	at, ok := g.place(scr, &one, g.actor.caps.send, nil)
	if ok {
		if t := g.actor.sys.find(at.elements); t != nil && (at.uid == 0 || t.uid == at.uid) {
			e := newIdentify(g.actor.uid, cmd.Correlation)
			e.SetHeaders(ask.Trace)
			_ = g.actor.sys.deliverTo(scr, t, e) // refused, it is answered, too
			return
		}
	}
	g.tellRefusal(scr, hostReply(scr, 0, cmd.Correlation, abi.NoSuchActor))
}

// identifyMany answers at once who is at a path with patterns.
func (g *guest) identifyMany(scr *scratch, cmd *abi.Command) {
	a, path := g.actor, string(cmd.ToPath)
	at, ok := a.parsePath(path)
	switch {
	case !ok:
		g.refused(scr, DeadUnknown, 0, path, cmd, nil)
	case !at.child && len(a.caps.send) == 0:
		g.refused(scr, DeadDenied, 0, at.absolute(path), cmd, nil)
	}
	var found []*actor
	if ok {
		found, _ = a.reachable(at, g.walks(scr))
	}
	e := scr.newEnvelope()
	e.Kind, e.Flags, e.Correlation = abi.KindReply, mark.Ours, cmd.Correlation
	scr.trace.Stamp(e)
	room := mostIdentities
	if most := int(a.props.limits.Message); most > 0 {
		room = min(room, most-e.Size())
	}
	e.Payload = abi.AppendIdentities(e.Payload, len(found), a.sys.identities(found, room))
	g.carry(scr, len(e.Payload))
	if reason, err := a.accept(scr, e); err != nil {
		scr.cache.Free(e)
		g.tellRefusal(scr, hostReply(scr, 0, cmd.Correlation, "the answer was not delivered: "+reason.String()))
	}
}

// identities lists actors for a guest, as many as there is room for, in bytes.
func (s *System) identities(found []*actor, room int) (out []abi.Identity) {
	room -= abi.IdentitiesHead
	for _, t := range found {
		path := strings.TrimPrefix(t.path, ref.Scheme+s.cfg.name)
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
