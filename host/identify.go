package host

import (
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Guests ask who is there. What they may not send to is for them as if it were not there: of it
// neither the answer tells, nor when it comes, nor what it costs.

// mostIdentities bounds the answer to an ask for a path with patterns, in bytes.
const mostIdentities = 32 << 10

// isIdentify reports whether a guest's ask is for the host.
func isIdentify(cmd *abi.Command) bool { return cmd.ToPath[0] == abi.IdentifySign[0] }

// identify carries out an ask for who is at a path. Only the host may answer it: ask has no answerer.
func (g *guest) identify(scr *scratch, cmd *abi.Command, ask *asks.Ask) {
	one := abi.Command{Op: cmd.Op, ToPath: cmd.ToPath[1:], Correlation: cmd.Correlation}
	if glob.HasMeta(string(one.ToPath)) {
		g.identifyMany(scr, &one)
		return
	}
	at, ok := g.place(scr, &one, g.actor.caps.send)
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
		g.refused(scr, DeadUnknown, 0, path, nil, nil)
	case !at.child && len(a.caps.send) == 0:
		g.refused(scr, DeadDenied, 0, path, nil, nil)
	}
	var found []*actor
	if ok {
		found, _ = a.reachable(at, nil)
	}
	e := scr.newEnvelope()
	e.Kind, e.Correlation, e.Value = abi.KindReply, cmd.Correlation, hostAnswer{}
	scr.trace.stamp(e)
	room := mostIdentities
	if a.props.largest > 0 {
		room = min(room, a.props.largest-overhead-e.Size())
	}
	e.Payload = abi.AppendIdentities(e.Payload, len(found), a.sys.identities(found, room))
	g.carry(scr, len(e.Payload))
	if reason, err := a.accept(scr, e); err != nil {
		scr.cache.Free(e)
		g.tellRefusal(scr, hostReply(scr, 0, cmd.Correlation, "the answer was not delivered: "+reason.String()))
	}
}

// identities are actors as they are told to guests, so many as there is room for, in bytes.
func (s *System) identities(found []*actor, room int) (out []abi.Identity) {
	room -= abi.IdentitiesHead
	for _, t := range found {
		path := strings.TrimPrefix(t.path, scheme+s.cfg.name)
		room -= abi.IdentitySize(len(path))
		if room < 0 || len(out) == abi.MaxIdentities {
			break
		}
		out = append(out, abi.Identity{Ref: t.uid, Path: path})
	}
	return out
}

// chargeIdentify makes a turn pay for an ask for who is at a path, besides the ask: for the search,
// which is made twice, and the answer.
func (g *guest) chargeIdentify(x *sandbox.Instance, path string) *abi.Failure {
	if f := x.Charge(sandbox.CostSend + costPathByte*uint64(len(path))); f != nil || !glob.HasMeta(path) {
		return f
	}
	at, ok := g.actor.parsePath(path)
	if !ok {
		return nil
	}
	found, f := g.actor.reachable(at, func(visits int, pattern string) *abi.Failure {
		return x.Charge(uint64(visits) * 2 * costVisit(pattern))
	})
	if f != nil {
		return f
	}
	units := uint64(0)
	for _, t := range found[:min(len(found), abi.MaxIdentities)] {
		units += sandbox.CostNode + uint64(len(t.path))/sandbox.CostBytes
	}
	return x.Charge(units)
}

// reached is a place that a search has come to: an actor, nil if none is there, and the
// capabilities that reach as far.
type reached struct {
	a    *actor
	caps []glob.Path
}

// reachable is [System.search] among those that an actor may send to. It looks at nobody else: where
// a capability names an element it looks there, whether somebody is there or not, and only where the
// capability has a pattern it compares all children with it.
func (a *actor) reachable(p place, pay func(visits int, pattern string) *abi.Failure) (found []*actor, f *abi.Failure) {
	if pay == nil {
		pay = func(int, string) *abi.Failure { return nil }
	}
	if p.child { // its own: nothing is hidden
		found, f = a.sys.search(p.elements, pay)
	} else {
		found, f = a.sys.searchWithin(p.elements, a.caps.send, pay)
	}
	if p.uid != 0 {
		found = slices.DeleteFunc(found, func(t *actor) bool { return t.uid != p.uid })
	}
	return found, f
}

func (s *System) searchWithin(elements []string, allowed []glob.Path, pay func(visits int, pattern string) *abi.Failure) (found []*actor, f *abi.Failure) {
	if len(elements) == 0 {
		return nil, nil
	}
	var at []reached
	for _, root := range []*actor{s.user, s.services} {
		if caps := within(allowed, 0, root.elements[0]); len(caps) > 0 && glob.Match(elements[0], root.elements[0]) {
			at = append(at, reached{root, caps})
		}
	}
	for i, e := range elements[1:] {
		var next []reached
		for _, r := range at {
			if next, f = r.below(next, i+1, e, pay); f != nil {
				return nil, f
			}
		}
		at = next
	}
	for _, r := range at {
		if r.a != nil && glob.MatchAnyPath(r.caps, r.a.elements) {
			found = append(found, r.a)
		}
	}
	return found, nil
}

// below appends the children whose names, the i-th elements of their paths, match a pattern.
func (r reached) below(to []reached, i int, pattern string, pay func(int, string) *abi.Failure) ([]reached, *abi.Failure) {
	names, all := []string{pattern}, false
	if glob.HasMeta(pattern) {
		if names, all = namesAt(r.caps, i); all {
			return r.children(to, i, pattern, pay)
		}
	}
	if f := pay(1+len(names), pattern); f != nil {
		return to, f
	}
	for _, name := range names {
		caps := within(r.caps, i, name)
		if len(caps) == 0 || !glob.Match(pattern, name) {
			continue
		}
		k := reached{nil, caps}
		if r.a != nil {
			k.a = r.a.child(name)
		}
		to = append(to, k)
	}
	return to, nil
}

// children is below for capabilities with patterns.
func (r reached) children(to []reached, i int, pattern string, pay func(int, string) *abi.Failure) ([]reached, *abi.Failure) {
	if r.a == nil {
		return to, pay(1, pattern)
	}
	if f := pay(1+r.a.super.Family.Len()*(1+len(r.caps)), pattern); f != nil {
		return to, f
	}
	for _, k := range r.a.kids() {
		if !glob.Match(pattern, k.Name()) {
			continue
		}
		if caps := within(r.caps, i, k.Name()); len(caps) > 0 {
			to = append(to, reached{k, caps})
		}
	}
	return to, nil
}

// within are the capabilities that reach a path whose i-th element has a name, if they reach the
// elements before it.
func within(caps []glob.Path, i int, name string) (out []glob.Path) {
	for _, c := range caps {
		if p, ok := c.At(i); ok && glob.Match(p, name) {
			out = append(out, c)
		}
	}
	return out
}

// namesAt are the names that capabilities have for the i-th element, each once; all: one of them has a
// pattern.
func namesAt(caps []glob.Path, i int) (names []string, all bool) {
	for _, c := range caps {
		switch p, ok := c.At(i); {
		case !ok:
		case glob.HasMeta(p):
			return nil, true
		case !slices.Contains(names, p):
			names = append(names, p)
		}
	}
	return names, false
}
