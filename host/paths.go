package host

import "strings"

// pathGlob is a compiled pattern for paths: an element each, "**" at the end for
// everything below.
type pathGlob struct {
	elements []string
	rest     bool
}

func compileGlob(pattern string) pathGlob {
	elements := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	g := pathGlob{elements: elements}
	if n := len(elements); n > 0 && elements[n-1] == "**" {
		g.elements, g.rest = elements[:n-1], true
	}
	return g
}

func compileGlobs(patterns []string) []pathGlob {
	var out []pathGlob
	for _, p := range patterns {
		out = append(out, compileGlob(p))
	}
	return out
}

func (g pathGlob) match(elements []string) bool {
	if len(elements) < len(g.elements) || len(elements) > len(g.elements) && !g.rest {
		return false
	}
	for i, e := range g.elements {
		if !matchElement(e, elements[i]) {
			return false
		}
	}
	return true
}

func matchAny(globs []pathGlob, elements []string) bool {
	for _, g := range globs {
		if g.match(elements) {
			return true
		}
	}
	return false
}

// matchElement is a glob with '*' and '?' over one element.
func matchElement(pattern, s string) bool {
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

// relative resolves a path as an actor writes it: "./a" below it, "../a" beside
// it, "/a" from the root. child reports that it begins with "./" and so needs no
// capability.
func relative(self []string, path string) (elements []string, child, ok bool) {
	switch {
	case strings.HasPrefix(path, "./"):
		elements, child = append(append([]string(nil), self...), strings.Split(path[2:], "/")...), true
	case strings.HasPrefix(path, "../"):
		base := self
		for strings.HasPrefix(path, "../") {
			if len(base) == 0 {
				return nil, false, false
			}
			base, path = base[:len(base)-1], path[3:]
		}
		elements = append(append([]string(nil), base...), strings.Split(path, "/")...)
	default:
		return nil, false, false
	}
	for _, e := range elements {
		if e == ".." || e == "." || e == "" {
			return nil, false, false
		}
	}
	return elements, child, true
}
