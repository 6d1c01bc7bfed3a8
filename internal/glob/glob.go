// Package glob is the one place that knows what a pattern matches: '*' stands for any
// run of bytes, '?' for one. A pattern of a path is matched element by element, and
// "**" as its last element stands for everything below.
package glob

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// HasMeta reports whether a text is a pattern and not only a name.
func HasMeta(s string) bool { return strings.IndexByte(s, '*') >= 0 || strings.IndexByte(s, '?') >= 0 }

// Match reports whether a pattern matches a whole text. It takes time proportional to
// the product of their lengths at the worst, and allocates nothing.
func Match(pattern, s string) bool {
	p, n := 0, 0
	star, mark := -1, 0
	for n < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// MatchAny reports whether one of the patterns matches.
func MatchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if Match(p, s) {
			return true
		}
	}
	return false
}

// Overlap reports whether a text may match both patterns. It is never false if there is such a text;
// of two patterns that both have a '*' or a '?' it compares only what comes before the first and behind the
// last of them.
func Overlap(p, q string) bool {
	if !HasMeta(p) {
		return Match(q, p)
	}
	if !HasMeta(q) {
		return Match(p, q)
	}
	const meta = "*?"
	head := func(s string) string { return s[:strings.IndexAny(s, meta)] }
	tail := func(s string) string { return s[strings.LastIndexAny(s, meta)+1:] }
	hp, hq, tp, tq := head(p), head(q), tail(p), tail(q)
	return (strings.HasPrefix(hp, hq) || strings.HasPrefix(hq, hp)) && (strings.HasSuffix(tp, tq) || strings.HasSuffix(tq, tp))
}

// Path is a compiled pattern for paths.
type Path struct {
	elements []string
	below    bool // "**" at the end
}

// CheckPath says what is wrong with a pattern of paths that a user has written: it has at most so many bytes and wildcards.
func CheckPath(p string, most, wildcards int) error {
	elements := strings.Split(p, "/")
	switch {
	case len(p) > most:
		return fmt.Errorf("the pattern %.40q... has %d bytes, at most %d", p, len(p), most)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("the pattern %q is not a text", p)
	case elements[0] != "" || len(elements) < 2:
		return fmt.Errorf("the pattern %q does not begin with /, as in /user/shop or /user/shop/**", p)
	case strings.Count(p, "*")+strings.Count(p, "?") > wildcards:
		return fmt.Errorf("the pattern %q has more than %d wildcards", p, wildcards)
	}
	for i, e := range elements[1:] {
		switch {
		case e == "":
			return fmt.Errorf("the pattern %q has an empty element", p)
		case e != "**" && strings.Contains(e, "**"), e == "**" && i+2 < len(elements):
			return fmt.Errorf("the pattern %q: ** is allowed only as the last element", p)
		}
	}
	return nil
}

// CompilePath makes a Path of a text such as /user/workers/* or /user/**.
func CompilePath(pattern string) Path {
	elements := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if n := len(elements); elements[n-1] == "**" {
		return Path{elements[:n-1], true}
	}
	return Path{elements: elements}
}

// SelectPath makes a Path of the elements of a selection, where "**" is an element like '*'.
func SelectPath(elements []string) Path { return Path{elements: elements} }

// CompilePaths makes a Path of each pattern.
func CompilePaths(patterns []string) []Path {
	var out []Path
	for _, p := range patterns {
		out = append(out, CompilePath(p))
	}
	return out
}

// At is the pattern of the i-th element of the paths that match; false if they have none.
func (g Path) At(i int) (pattern string, ok bool) {
	switch {
	case i < len(g.elements):
		return g.elements[i], true
	case g.below:
		return "*", true
	}
	return "", false
}

// EndsAt reports whether a path of n elements may match.
func (g Path) EndsAt(n int) bool { return n == len(g.elements) || g.below && n > len(g.elements) }

// Overlap reports whether a path may match that a selection of these elements names, see [Overlap].
func (g Path) Overlap(elements []string) bool {
	if !g.EndsAt(len(elements)) {
		return false
	}
	for i, e := range g.elements {
		if !Overlap(e, elements[i]) {
			return false
		}
	}
	return true
}

// Match reports whether the pattern matches a path, given as its elements.
func (g Path) Match(elements []string) bool {
	if len(elements) < len(g.elements) || len(elements) > len(g.elements) && !g.below {
		return false
	}
	for i, e := range g.elements {
		if e != elements[i] && !Match(e, elements[i]) {
			return false
		}
	}
	return true
}

// MatchAnyPath reports whether one of the patterns matches.
func MatchAnyPath(patterns []Path, elements []string) bool {
	for _, p := range patterns {
		if p.Match(elements) {
			return true
		}
	}
	return false
}
