package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// What a command costs by itself is charged while it is read. A few make the host work
// more than their own bytes say: a forward copies the message, a path with patterns visits
// actors and sends to all that match. They pay before any of the turn takes effect, so a
// turn that cannot pay has done nothing.

// costPathByte is what a byte of a path costs, besides sandbox.CostPath: it is split.
const costPathByte = 8

// costWatched is the price of comparing a watched actor with a pattern, besides costVisit: its path
// is split, and the list of what is watched is sorted.
const costWatched = 1000

// charge makes a turn pay for such commands. The order is: is it allowed, what does it
// cost, and only then the work itself.
func (g *guest) charge(x *sandbox.Instance, cmds []abi.Command, current *mailbox.Envelope) *abi.Failure {
	watched := g.actor.work.Watch.Len() // when the command is carried out, at the most
	g.searches = 0
	for i := range cmds {
		cmd := &cmds[i]
		copied := uint64(len(cmd.Payload)+len(cmd.Headers)) / sandbox.CostBytes
		if cmd.Op == abi.OpForward {
			copied = uint64(current.Size()) / sandbox.CostBytes
		}
		var f *abi.Failure
		switch {
		case cmd.Op == abi.OpSpawn:
			own, others := g.actor.sys.lookouts.Cost(g.actor.tree, g.actor.elements, string(cmd.Name))
			if units := own + costOption*uint64(len(cmd.Options)); units != 0 {
				f = x.Charge(units)
			}
			if f == nil && others != 0 { // which must not show in what it has spent
				f = x.Pass(others)
			}
		case cmd.ToPath == nil:
			if cmd.Op == abi.OpForward {
				f = x.Charge(copied)
			}
		case cmd.Op == abi.OpUnwatch && isMany(cmd): // it looks at all that is watched, wherever that is
			f = x.Charge(costPathByte*uint64(len(cmd.ToPath)) + uint64(watched)*(costWatched+costVisit(string(cmd.ToPath))))
		case cmd.Op == abi.OpWatch && isMany(cmd):
			var found int
			found, f = g.chargePattern(x, strings.TrimPrefix(string(cmd.ToPath), futureSign), sandbox.CostSend)
			watched += found
		case cmd.Op == abi.OpAsk && isIdentify(cmd):
			f = g.chargeIdentify(x, string(cmd.ToPath[1:]))
		case (cmd.Op == abi.OpSend || cmd.Op == abi.OpForward) && glob.HasMeta(string(cmd.ToPath)):
			var found int
			if found, f = g.chargePattern(x, string(cmd.ToPath), copied+sandbox.CostSend); f == nil && found == 0 && cmd.Op == abi.OpForward {
				f = x.Charge(copied) // a dead letter keeps the message
			}
		default:
			if cmd.Op != abi.OpForward {
				copied = 0 // it was paid for with the command
			}
			f = x.Charge(costPathByte*uint64(len(cmd.ToPath)) + copied)
		}
		if f != nil {
			return f
		}
		if cmd.Op == abi.OpWatch && !isMany(cmd) {
			watched++
		}
	}
	return nil
}

// Prices of a search that may pass actors which the searcher must not know of, see passes. They do not depend on
// what is there. The first searches of a turn are cheap; each further one costs as much as a long one takes.
const (
	fewSearches = 16
	costSearch  = 2_000
	costFurther = 200_000
)

// chargeSearch makes a turn pay for a search for those that it may send to.
// The search is made again when the turn takes effect: earlier commands of it may have
// made or stopped children. So a visit costs twice.
func (g *guest) chargeSearch(x *sandbox.Instance, path string) (found []*actor, f *abi.Failure) {
	a := g.actor
	at, ok := a.parsePath(path)
	if !ok || !at.Child && len(a.caps.send) == 0 {
		return nil, nil
	}
	if !at.Child && paths.Passes(at.Elements, a.caps.send) {
		units := uint64(costSearch)
		if g.searches++; g.searches > fewSearches {
			units = costFurther
		}
		if f := x.Charge(units); f != nil {
			return nil, f
		}
	}
	return a.sys.nodes.Reachable(at, a.caps.send, paths.Toll{
		Visit: func(visits int, pattern string) *abi.Failure {
			return x.Charge(uint64(visits) * 2 * costVisit(pattern))
		},
		Pass: func(visits int) *abi.Failure { return x.Pass(uint64(visits) * sandbox.CostNode) },
	})
}

// chargePattern makes a turn pay for a search, and for what is sent to each that it finds.
func (g *guest) chargePattern(x *sandbox.Instance, path string, each uint64) (n int, f *abi.Failure) {
	if f := x.Charge(costPathByte * uint64(len(path))); f != nil {
		return 0, f
	}
	found, f := g.chargeSearch(x, path)
	if f != nil {
		return 0, f
	}
	for range found {
		if f := x.Charge(sandbox.CostNode + each); f != nil {
			return 0, f
		}
	}
	return len(found), nil
}

// walks lets others run during the search of a command that is carried out.
func (g *guest) walks(scr *scratch) paths.Toll {
	return paths.Toll{Pass: func(visits int) *abi.Failure {
		g.carry(scr, visits*walkedBytes)
		return nil
	}}
}

// walkedBytes is how many bytes that are copied take as long as passing an actor.
const walkedBytes = 128

// costVisit is what comparing an actor's name with a pattern costs. One '*' takes time in
// proportion to the pattern, several to its product with the name.
func costVisit(pattern string) uint64 {
	n := uint64(len(pattern))
	if strings.Count(pattern, "*") > 1 {
		n *= abi.MaxName
	}
	return sandbox.CostNode + n
}

// What is carried out before others get their turn: so many commands, or bytes.
const (
	carriedCommands = 256
	carriedBytes    = 4 << 10 // count as one command
	carriedOption   = 1 << 10 // so many bytes count as one of a spawn's options, which takes about 1.3 µs to read
)

// carry lets others run from time to time while commands are carried out.
func (g *guest) carry(scr *scratch, bytes int) {
	if g.carried += 1 + bytes/carriedBytes; g.carried >= carriedCommands {
		g.carried = 0
		scr.w.Yield()
	}
}
