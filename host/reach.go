package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// The actors that a guest's pattern selects: those that match it and that the guest may send to. Nothing may
// reveal any other, neither what the guest is told nor what it pays. So what a search costs in
// fuel depends on the pattern, the capabilities, and the actors that these reach. Where a capability
// names an element the search looks only there; where it has a pattern the search passes actors
// that it must not reveal, and the cost of that is a fixed price and the guest's time, see passes.

// toll is how a search charges whoever pays for it. Each of the two may be nil, and ends the search with a
// failure.
type toll struct {
	// visit is told, before actors are visited, how many they are and which pattern they are compared with.
	visit func(visits int, pattern string) *abi.Failure
	// pass is told how many actors were passed that the searcher must not know of.
	pass func(visits int) *abi.Failure
}

func (t toll) visited(n int, pattern string) *abi.Failure {
	if t.visit == nil || n == 0 {
		return nil
	}
	return t.visit(n, pattern)
}

func (t toll) passed(n int) *abi.Failure {
	if t.pass == nil || n == 0 {
		return nil
	}
	return t.pass(n)
}

// reached is a place that a search has come to.
type reached struct {
	a    *actor      // nil if no actor is there
	caps []glob.Path // those that reach this far, and overlap with the selection
	// named: reached only by names in capabilities, whether or not an actor is there.
	named bool
}

// reachable is [System.search] limited to actors that an actor may send to.
func (a *actor) reachable(p place, t toll) (found []*actor, f *abi.Failure) {
	if p.child { // its own: nothing is hidden
		found, f = a.sys.search(p.elements, t.visit)
	} else {
		found, f = a.sys.searchWithin(p.elements, a.caps.send, t)
	}
	if p.uid != 0 {
		found = slices.DeleteFunc(found, func(t *actor) bool { return t.uid != p.uid })
	}
	return found, f
}

func (s *System) searchWithin(elements []string, allowed []glob.Path, t toll) (found []*actor, f *abi.Failure) {
	if allowed = overlapping(allowed, elements); len(allowed) == 0 {
		return nil, nil
	}
	var at []reached
	for _, root := range []*actor{s.user, s.services} {
		if caps := within(allowed, 0, root.elements[0]); len(caps) > 0 && glob.Match(elements[0], root.elements[0]) {
			at = append(at, reached{root, caps, true})
		}
	}
	for i, e := range elements[1:] {
		var next []reached
		for _, r := range at {
			if next, f = r.below(next, i+1, e, t); f != nil {
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
func (r reached) below(to []reached, i int, pattern string, t toll) ([]reached, *abi.Failure) {
	names, all := []string{pattern}, false
	if glob.HasMeta(pattern) {
		if names, all = namesAt(r.caps, i); all {
			return r.children(to, i, pattern, t)
		}
	}
	var f *abi.Failure
	if r.named {
		f = t.visited(1+len(names), pattern)
	} else {
		f = t.passed(1 + len(names))
	}
	if f != nil {
		return to, f
	}
	for _, name := range names {
		caps := within(r.caps, i, name)
		if len(caps) == 0 || !glob.Match(pattern, name) {
			continue
		}
		k := reached{nil, caps, r.named}
		if r.a != nil {
			k.a = r.a.child(name)
		}
		if !r.named {
			if k.a == nil {
				continue
			}
			if reaches(caps, i) {
				if f := t.visited(1, pattern); f != nil {
					return to, f
				}
			}
		}
		to = append(to, k)
	}
	return to, nil
}

// mostPassed is how many actors a search passes before it reports them to toll.pass.
const mostPassed = 64

// children is below for capabilities with patterns.
func (r reached) children(to []reached, i int, pattern string, t toll) ([]reached, *abi.Failure) {
	if r.named {
		if f := t.visited(1, pattern); f != nil {
			return to, f
		}
	}
	if r.a == nil {
		return to, nil
	}
	each, passed := 1+len(r.caps), 0
	for _, k := range r.a.kids() {
		caps := within(r.caps, i, k.Name())
		if reaches(caps, i) { // even if the pattern does not match: the searcher may know of this actor
			if f := t.visited(each, pattern); f != nil {
				return to, f
			}
		} else if passed += each; passed >= mostPassed {
			if f := t.passed(passed); f != nil {
				return to, f
			}
			passed = 0
		}
		if len(caps) > 0 && glob.Match(pattern, k.Name()) {
			to = append(to, reached{k, caps, false})
		}
	}
	return to, t.passed(passed)
}

// passes reports whether a search may pass actors that the searcher must not know of. It depends only on the
// selection and the capabilities.
func passes(elements []string, allowed []glob.Path) bool {
	allowed = overlapping(allowed, elements)
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

// overlapping are the capabilities that may reach an actor of a selection.
func overlapping(caps []glob.Path, elements []string) (out []glob.Path) {
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
