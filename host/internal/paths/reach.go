package paths

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// The actors that a guest's pattern selects: those that match it and that the guest may send to. Nothing may
// reveal any other, neither what the guest is told nor what it pays. So what a search costs in
// fuel depends on the pattern, the capabilities, and the actors that these reach. Where a capability
// names an element the search looks only there; where it has a pattern the search passes actors
// that it must not reveal, and the cost of that is a fixed price and the guest's time, see [Passes].

// Toll is how a search charges whoever pays for it. Each of the two may be nil, and ends the search with a
// failure.
type Toll struct {
	// Visit is told, before actors are visited, how many they are and which pattern they are compared with.
	Visit func(visits int, pattern string) *abi.Failure
	// Pass is told how many actors were passed that the searcher must not know of.
	Pass func(visits int) *abi.Failure
}

func (t Toll) visited(n int, pattern string) *abi.Failure {
	if t.Visit == nil || n == 0 {
		return nil
	}
	return t.Visit(n, pattern)
}

func (t Toll) passed(n int) *abi.Failure {
	if t.Pass == nil || n == 0 {
		return nil
	}
	return t.Pass(n)
}

// reached is a place that a search has come to.
type reached[N comparable] struct {
	n    N           // the zero value if no actor is there
	caps []glob.Path // those that reach this far, and overlap with the selection
	// named: reached only by names in capabilities, whether or not an actor is there.
	named bool
}

// Reachable are the actors of a place that allowed lets an actor send to. Its own children need no permission, and nothing of
// them is hidden.
func (t *Tree[N]) Reachable(p Place, allowed []glob.Path, toll Toll) (found []N, f *abi.Failure) {
	if p.Child {
		found, f = t.Search(p.Elements, toll.Visit)
	} else {
		found, f = t.searchWithin(p.Elements, allowed, toll)
	}
	if p.UID != 0 {
		found = slices.DeleteFunc(found, func(n N) bool { return t.Of.UID(n) != p.UID })
	}
	return found, f
}

func (t *Tree[N]) searchWithin(elements []string, allowed []glob.Path, toll Toll) (found []N, f *abi.Failure) {
	if allowed = Overlapping(allowed, elements); len(allowed) == 0 {
		return nil, nil
	}
	var at []reached[N]
	for _, root := range t.Roots {
		name := t.Of.Elements(root)[0]
		if caps := within(allowed, 0, name); len(caps) > 0 && glob.Match(elements[0], name) {
			at = append(at, reached[N]{root, caps, true})
		}
	}
	for i, e := range elements[1:] {
		var next []reached[N]
		for _, r := range at {
			if next, f = t.below(r, next, i+1, e, toll); f != nil {
				return nil, f
			}
		}
		at = next
	}
	var none N
	for _, r := range at {
		if r.n != none && glob.MatchAnyPath(r.caps, t.Of.Elements(r.n)) {
			found = append(found, r.n)
		}
	}
	return found, nil
}

// below appends the children whose names, the i-th elements of their paths, match a pattern.
func (t *Tree[N]) below(r reached[N], to []reached[N], i int, pattern string, toll Toll) ([]reached[N], *abi.Failure) {
	names, all := []string{pattern}, false
	if glob.HasMeta(pattern) {
		if names, all = namesAt(r.caps, i); all {
			return t.children(r, to, i, pattern, toll)
		}
	}
	var none N
	var f *abi.Failure
	if r.named {
		f = toll.visited(1+len(names), pattern)
	} else {
		f = toll.passed(1 + len(names))
	}
	if f != nil {
		return to, f
	}
	for _, name := range names {
		caps := within(r.caps, i, name)
		if len(caps) == 0 || !glob.Match(pattern, name) {
			continue
		}
		k := reached[N]{none, caps, r.named}
		if r.n != none {
			k.n = t.Of.Child(r.n, name)
		}
		if !r.named {
			if k.n == none {
				continue
			}
			if reaches(caps, i) {
				if f := toll.visited(1, pattern); f != nil {
					return to, f
				}
			}
		}
		to = append(to, k)
	}
	return to, nil
}

// MostPassed is how many actors a search passes before it reports them to Toll.Pass.
const MostPassed = 64

// children is below for capabilities with patterns.
func (t *Tree[N]) children(r reached[N], to []reached[N], i int, pattern string, toll Toll) ([]reached[N], *abi.Failure) {
	if r.named {
		if f := toll.visited(1, pattern); f != nil {
			return to, f
		}
	}
	var none N
	if r.n == none {
		return to, nil
	}
	each, passed := 1+len(r.caps), 0
	for _, k := range t.Of.Children(r.n) {
		caps := within(r.caps, i, t.Of.Name(k))
		if reaches(caps, i) { // even if the pattern does not match: the searcher may know of this actor
			if f := toll.visited(each, pattern); f != nil {
				return to, f
			}
		} else if passed += each; passed >= MostPassed {
			if f := toll.passed(passed); f != nil {
				return to, f
			}
			passed = 0
		}
		if len(caps) > 0 && glob.Match(pattern, t.Of.Name(k)) {
			to = append(to, reached[N]{k, caps, false})
		}
	}
	return to, toll.passed(passed)
}

// Passes reports whether a search may pass actors that the searcher must not know of. It depends only on the
// selection and the capabilities.
func Passes(elements []string, allowed []glob.Path) bool {
	allowed = Overlapping(allowed, elements)
	for i, e := range elements {
		if i == 0 || !glob.HasMeta(e) {
			continue // a lookup by name passes no actors
		}
		for _, c := range allowed {
			if p, ok := c.At(i); ok && glob.HasMeta(p) && !(p == "*" && c.EndsAt(i+1)) {
				return true
			}
		}
	}
	return false
}

// Overlapping are the capabilities that may reach an actor of a selection.
func Overlapping(caps []glob.Path, elements []string) (out []glob.Path) {
	for _, c := range caps {
		if c.Overlap(elements) {
			out = append(out, c)
		}
	}
	return out
}

// reaches reports whether one of the capabilities that reach the i-th element of a path ends there, so
// that an actor with this path may be sent to.
func reaches(caps []glob.Path, i int) bool {
	for _, c := range caps {
		if c.EndsAt(i + 1) {
			return true
		}
	}
	return false
}

// within are the capabilities that reach a path whose i-th element is name, given that they reach the
// elements before it.
func within(caps []glob.Path, i int, name string) (out []glob.Path) {
	for j, c := range caps {
		if p, ok := c.At(i); ok && glob.Match(p, name) {
			if out == nil {
				out = make([]glob.Path, 0, len(caps)-j)
			}
			out = append(out, c)
		}
	}
	return out
}

// namesAt are the names that capabilities have for the i-th element, each once; all: one of them has a
// pattern there.
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
