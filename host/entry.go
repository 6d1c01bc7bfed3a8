package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/host/internal/price"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How the commands of a guest's turns are read and checked, see execute.

// heldCommands is about how many commands are kept. An entry with more of them is read in parts, each of
// whole turns, and once more when it is carried out.
const heldCommands = 4096

// usualCommands is about how many commands a turn has, and its end.
const usualCommands = 4

// read takes the commands of the next turns into the scratch, checks them and makes them
// pay. base is the number of turns that were read before; more says that there are further
// ones. f is the failure of the turn after those n; nothing follows it.
func (g *guest) read(scr *scratch, x *sandbox.Instance, base int) (n int, more bool, f *abi.Failure) {
	scr.cmds, scr.ends = scr.cmds[:0], scr.ends[:0]
	if scr.res.Failure == nil && x.OneSend(&scr.cmds) { // as most have
		scr.ends = append(scr.ends, 1)
		return 1, false, nil
	}
	g.judged = false
	for len(scr.cmds) < heldCommands {
		from := len(scr.cmds)
		if cap(scr.cmds)-from < usualCommands {
			scr.cmds = slices.Grow(scr.cmds, usualCommands)
		}
		at, cmds, ok, err := x.NextTurn(scr.cmds[from:])
		switch {
		case err != nil:
			return n, false, errs.AsFailure(abi.FailureABIViolation, err)
		case !ok:
			return n, false, nil
		}
		if g.costly = false; !x.Plain() {
			if g.costly, f = turn.Examine(cmds, at, &scr.res, (*speaker)(g)); f != nil {
				return n, false, f
			}
		}
		if g.costly {
			if f = price.Charge[*actor]((*buyer)(g), x, cmds, scr.batch[base+n].Size()); f != nil {
				g.judged = true
				return n, false, f
			}
		}
		if len(cmds) < cap(scr.cmds)-from { // there was room, so they are there already
			scr.cmds = scr.cmds[:from+len(cmds)]
		} else {
			scr.cmds = append(scr.cmds[:from], cmds...)
		}
		scr.ends = append(scr.ends, len(scr.cmds))
		n++
		if at+1 == scr.res.Turns {
			return n, false, nil
		}
	}
	return n, true, nil
}

// readAgain is read of turns that were checked before. It returns how many it has taken.
func (s *scratch) readAgain(x *sandbox.Instance) (n int) {
	s.cmds, s.ends = s.cmds[:0], s.ends[:0]
	for len(s.cmds) < heldCommands {
		_, cmds, ok, err := x.NextTurn(nil)
		if !ok || err != nil {
			return n
		}
		s.cmds = append(s.cmds, cmds...)
		s.ends = append(s.ends, len(s.cmds))
		n++
	}
	return n
}

// turn returns the commands of one of the turns that were read.
func (s *scratch) turn(i int) []abi.Command {
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.cmds[from:s.ends[i]]
}

// speaker is a guest as turn.Examine sees it.
type speaker guest

// Self implements turn.Speaker.
func (g *speaker) Self() abi.Ref { return g.actor.uid }

// Persists implements turn.Speaker.
func (g *speaker) Persists() bool { return keepsEvents(g.actor) }

// NextChild implements turn.Speaker.
func (g *speaker) NextChild() abi.Ref {
	ref := abi.ChildRef(g.keys.Child(secretFor(g.actor), g.actor.uid), g.actor.uid.Node(), g.ahead)
	g.ahead++
	return ref
}

// buyer is a guest as package price sees it.
type buyer guest

// Place implements price.Guest.
func (g *buyer) Place(path string) (paths.Place, bool) { return g.actor.parsePath(path) }

// MaySend implements price.Guest.
func (g *buyer) MaySend() []glob.Path { return g.actor.rules.Load().compiled.send }

// Search implements price.Guest.
func (g *buyer) Search(at paths.Place, toll paths.Toll) ([]*actor, *abi.Failure) {
	return g.actor.sys.nodes.Reachable(at, g.actor.rules.Load().compiled.send, toll)
}

// PathOf implements price.Guest.
func (g *buyer) PathOf(t *actor) string { return t.path }

// Watched implements price.Guest.
func (g *buyer) Watched() int { return g.actor.work.Watch.Len() }

// Born implements price.Guest.
func (g *buyer) Born(name string) (own, others uint64) {
	return g.actor.sys.lookouts.Cost(g.actor.tree, g.actor.elements, name)
}
