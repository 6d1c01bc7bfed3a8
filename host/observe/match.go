package observe

import (
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Bounds of a selection from outside.
const (
	maxPatterns = 100
	maxPattern  = 1024
	maxRefs     = 10_000
)

// pathGlob is a pattern of paths that matches without splitting paths.
type pathGlob struct {
	elements []string
	below    bool // "**" at the end: the actor there and all below
}

func compilePaths(patterns []string) ([]pathGlob, error) {
	if len(patterns) > maxPatterns {
		return nil, invalid("more than %d patterns", maxPatterns)
	}
	var out []pathGlob
	for _, p := range patterns {
		rest, ok := strings.CutPrefix(p, "/")
		if !ok || len(p) > maxPattern {
			return nil, invalid("a pattern of paths begins with / and has at most %d bytes, not %q", maxPattern, clip(p))
		}
		g := pathGlob{elements: strings.Split(rest, "/")}
		if n := len(g.elements); g.elements[n-1] == "**" {
			g.elements, g.below = g.elements[:n-1], true
		}
		if slices.Contains(g.elements, "") || slices.Contains(g.elements, "**") {
			return nil, invalid("the pattern %q has an empty element, or ** before its end", clip(p))
		}
		out = append(out, g)
	}
	return out, nil
}

// match reports whether the pattern matches a path such as /user/a/b.
func (g *pathGlob) match(path string) bool {
	rest := path
	for _, e := range g.elements {
		if len(rest) == 0 || rest[0] != '/' {
			return false
		}
		rest = rest[1:]
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		if !glob.Match(e, rest[:end]) {
			return false
		}
		rest = rest[end:]
	}
	return rest == "" || g.below
}

func matchAny(globs []pathGlob, path string) bool {
	for i := range globs {
		if globs[i].match(path) {
			return true
		}
	}
	return len(globs) == 0
}

// matcher is a compiled selection.
type matcher struct {
	paths  []pathGlob
	types  []string
	states [host.StateStopping + 1]bool
	any    bool // of the states
	refs   map[abi.Ref]bool
	search string
}

func (s Select) compile(search string) (*matcher, error) {
	m := &matcher{types: s.Types, any: len(s.States) == 0, search: search}
	var err error
	if m.paths, err = compilePaths(s.Paths); err != nil {
		return nil, err
	}
	if len(s.Types) > maxPatterns || len(search) > maxPattern {
		return nil, invalid("more than %d types, or a search of more than %d bytes", maxPatterns, maxPattern)
	}
	for _, t := range s.Types {
		if t == "" || len(t) > maxPattern {
			return nil, invalid("a type has 1 to %d bytes", maxPattern)
		}
	}
	for _, name := range s.States {
		i := -1
		for k := range m.states {
			if host.ActorState(k).String() == string(name) {
				i = k
			}
		}
		if i < 0 {
			return nil, invalid("there is no state %q; the states are %v", clip(string(name)), States())
		}
		m.states[i] = true
	}
	if len(s.Refs) > maxRefs {
		return nil, invalid("more than %d refs", maxRefs)
	}
	for _, r := range s.Refs {
		uid, err := parseRef(r)
		if err != nil {
			return nil, err
		}
		if m.refs == nil {
			m.refs = map[abi.Ref]bool{}
		}
		m.refs[uid] = true
	}
	return m, nil
}

func (m *matcher) match(i *host.Info) bool {
	if !m.any && !m.states[i.State] || m.refs != nil && !m.refs[i.Ref.UID()] {
		return false
	}
	if len(m.types) > 0 && !glob.MatchAny(m.types, i.Type) {
		return false
	}
	if len(m.paths) == 0 && m.search == "" {
		return true
	}
	path := i.Ref.Path()
	return matchAny(m.paths, path) && (m.search == "" || strings.Contains(path, m.search) || strings.Contains(i.Type, m.search))
}
