// Package price is what the commands of a guest's turn cost, and how others get to run while they are carried out.
//
// What a command costs by itself is charged while it is read. A few make the host work
// more than their own bytes say: a forward copies the message, a path with patterns visits
// actors and sends to all that match. They pay before any of the turn takes effect, so a
// turn that cannot pay has done nothing.
package price

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Guest is the actor whose turn pays. N are the actors that it finds.
type Guest[N any] interface {
	// Place is where a path leads that it has written.
	Place(path string) (paths.Place, bool)
	// MaySend are the paths that it may send to.
	MaySend() []glob.Path
	// Search finds the actors at a place that it may send to.
	Search(at paths.Place, toll paths.Toll) ([]N, *abi.Failure)
	// PathOf is the path of an actor that was found.
	PathOf(N) string
	// Watched is how many actors it watches.
	Watched() int
	// Born is what it takes to look who waits for a child of a name: of the patterns of its own tree, and of others.
	Born(name string) (own, others uint64)
}

// What commands cost besides sandbox.CostPath, sandbox.CostSend and so on, in units of fuel.
const (
	costPathByte = 8    // a byte of a path: it is split
	costWatched  = 1000 // comparing a watched actor with a pattern, besides a visit: its path is split, and the list is sorted
	costOption   = 3000 // a byte of a spawn's options: they are parsed like a manifest
)

// bill is what a turn pays.
type bill[N any] struct {
	g        Guest[N]
	x        *sandbox.Instance
	searches int
}

// Charge makes a turn pay for such commands. size is that of its message. The order is: is it allowed, what does it
// cost, and only then the work itself.
func Charge[N any](g Guest[N], x *sandbox.Instance, cmds []abi.Command, size int) *abi.Failure {
	b := bill[N]{g: g, x: x}
	watched := g.Watched() // when the command is carried out, at the most
	for i := range cmds {
		cmd := &cmds[i]
		copied := uint64(len(cmd.Payload)+len(cmd.Headers)) / sandbox.CostBytes
		if cmd.Op == abi.OpForward {
			copied = uint64(size) / sandbox.CostBytes
		}
		many := paths.IsMany(cmd.ToPath)
		var f *abi.Failure
		switch {
		case cmd.Op == abi.OpSpawn:
			f = b.spawn(cmd)
		case cmd.ToPath == nil:
			if cmd.Op == abi.OpForward {
				f = x.Charge(copied)
			}
		case cmd.Op == abi.OpUnwatch && many: // it looks at all that is watched, wherever that is
			f = x.Charge(costPathByte*uint64(len(cmd.ToPath)) + uint64(watched)*(costWatched+visit(string(cmd.ToPath))))
		case cmd.Op == abi.OpWatch && many:
			var found int
			found, f = b.pattern(strings.TrimPrefix(string(cmd.ToPath), paths.Future), sandbox.CostSend)
			watched += found
		case cmd.Op == abi.OpAsk && paths.IsIdentify(cmd.ToPath):
			f = b.identify(string(cmd.ToPath[1:]))
		case (cmd.Op == abi.OpSend || cmd.Op == abi.OpForward) && glob.HasMeta(string(cmd.ToPath)):
			var found int
			if found, f = b.pattern(string(cmd.ToPath), copied+sandbox.CostSend); f == nil && found == 0 && cmd.Op == abi.OpForward {
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
		if cmd.Op == abi.OpWatch && !many {
			watched++
		}
	}
	return nil
}

// spawn makes it pay for who waits for the child, and for the options.
func (b *bill[N]) spawn(cmd *abi.Command) (f *abi.Failure) {
	own, others := b.g.Born(string(cmd.Name))
	if units := own + costOption*uint64(len(cmd.Options)); units != 0 {
		f = b.x.Charge(units)
	}
	if f == nil && others != 0 { // which must not show in what it has spent
		f = b.x.Pass(others)
	}
	return f
}

// Prices of a search that may pass actors which the searcher must not know of, see paths.Passes. They do not depend on
// what is there. The first searches of a turn are cheap; each further one costs as much as a long one takes.
const (
	FewSearches = 16
	costSearch  = 2_000
	costFurther = 200_000
)

// search makes it pay for a search for those that it may send to.
// The search is made again when the turn takes effect: earlier commands of it may have
// made or stopped children. So a visit costs twice.
func (b *bill[N]) search(path string) (found []N, f *abi.Failure) {
	at, ok := b.g.Place(path)
	allowed := b.g.MaySend()
	if !ok || !at.Child && len(allowed) == 0 {
		return nil, nil
	}
	if !at.Child && paths.Passes(at.Elements, allowed) {
		units := uint64(costSearch)
		if b.searches++; b.searches > FewSearches {
			units = costFurther
		}
		if f := b.x.Charge(units); f != nil {
			return nil, f
		}
	}
	x := b.x // not b, which would be on the heap
	return b.g.Search(at, paths.Toll{
		Visit: func(visits int, pattern string) *abi.Failure {
			return x.Charge(uint64(visits) * 2 * visit(pattern))
		},
		Pass: func(visits int) *abi.Failure { return x.Pass(uint64(visits) * sandbox.CostNode) },
	})
}

// pattern makes it pay for a search, and for what is sent to each that it finds.
func (b *bill[N]) pattern(path string, each uint64) (n int, f *abi.Failure) {
	if f := b.x.Charge(costPathByte * uint64(len(path))); f != nil {
		return 0, f
	}
	found, f := b.search(path)
	if f != nil {
		return 0, f
	}
	for range found {
		if f := b.x.Charge(sandbox.CostNode + each); f != nil {
			return 0, f
		}
	}
	return len(found), nil
}

// identify makes it pay for an Identify, besides the price of an ask: for the search,
// which is made twice, and the answer.
func (b *bill[N]) identify(path string) *abi.Failure {
	if f := b.x.Charge(sandbox.CostSend + costPathByte*uint64(len(path))); f != nil || !glob.HasMeta(path) {
		return f
	}
	found, f := b.search(path)
	if f != nil {
		return f
	}
	units := uint64(0)
	for _, t := range found[:min(len(found), abi.MaxIdentities)] {
		units += sandbox.CostNode + uint64(len(b.g.PathOf(t)))/sandbox.CostBytes
	}
	return b.x.Charge(units)
}

// visit is what comparing an actor's name with a pattern costs. One '*' takes time in
// proportion to the pattern, several to its product with the name.
func visit(pattern string) uint64 {
	n := uint64(len(pattern))
	if strings.Count(pattern, "*") > 1 {
		n *= abi.MaxName
	}
	return sandbox.CostNode + n
}
