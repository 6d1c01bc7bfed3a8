// Package paths has the paths of actors: how they are written, and which actors they name. An element of a path may be a
// pattern: '*' stands for any run of characters, '?' for one.
package paths

import (
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Place is a path that was parsed. It names the actor that is there when it is looked up, not an incarnation.
type Place struct {
	Elements []string // behind the system's name
	UID      abi.Ref  // 0: any incarnation
	Child    bool     // it was written as "./name", a child of the writer
}

// Absolute is a path that was written, from the root: a dead letter is read, and delivered again, by
// actors for which a relative one would lead elsewhere or nowhere. What would be read as something else
// then, since there is a '#' in a name, stays as it is: no actor can have it.
func (p Place) Absolute(written string) string {
	if len(p.Elements) == 0 || !strings.HasPrefix(written, ".") || strings.Contains(written, "#") {
		return written
	}
	return "/" + strings.Join(p.Elements, "/")
}

// Relative resolves "./a" and "../a" as written by the actor whose path is self; false if path is neither.
func Relative(self []string, path string) (p Place, ok bool) {
	var elements []string
	switch {
	case strings.HasPrefix(path, "./"):
		elements, p.Child = append(append([]string(nil), self...), strings.Split(path[2:], "/")...), true
	case strings.HasPrefix(path, "../"):
		base := self
		for strings.HasPrefix(path, "../") {
			if len(base) == 0 {
				return Place{}, false
			}
			base, path = base[:len(base)-1], path[3:]
		}
		elements = append(append([]string(nil), base...), strings.Split(path, "/")...)
	default:
		return Place{}, false
	}
	for _, e := range elements {
		if e == ".." || e == "." || e == "" {
			return Place{}, false
		}
	}
	p.Elements = elements
	return p, true
}

// Nodes says what is known of the nodes of a tree.
type Nodes[N comparable] struct {
	UID      func(N) abi.Ref
	Name     func(N) string
	Elements func(N) []string // of its path
	Child    func(n N, name string) N
	Children func(N) []N // in the order of their start
	Count    func(N) int // of its children, without a list of them
}

// Tree is the tree of a system's actors. The zero value of N is no node. Any goroutine may search it if the functions of Of
// may be called by any.
type Tree[N comparable] struct {
	Of    Nodes[N]
	Roots []N
}

// Find is the node at a path without patterns, or the zero value.
func (t *Tree[N]) Find(elements []string) (n N) {
	var none N
	if len(elements) == 0 {
		return none
	}
	for _, root := range t.Roots {
		if t.Of.Elements(root)[0] == elements[0] {
			n = root
		}
	}
	for _, e := range elements[1:] {
		if n == none {
			return none
		}
		n = t.Of.Child(n, e)
	}
	return n
}

// Match returns every node that a path with patterns names, in the order of their start.
func (t *Tree[N]) Match(elements []string) []N {
	found, _ := t.Search(elements, nil)
	return found
}

// Search is Match. pay, which may be nil, is told before nodes are visited how many there
// are and which pattern they are compared with; a failure of it ends the search.
func (t *Tree[N]) Search(elements []string, pay func(visits int, pattern string) *abi.Failure) ([]N, *abi.Failure) {
	if len(elements) == 0 {
		return nil, nil
	}
	var at []N
	for _, root := range t.Roots {
		if glob.Match(elements[0], t.Of.Elements(root)[0]) {
			at = append(at, root)
		}
	}
	var none N
	for _, e := range elements[1:] {
		var next []N
		meta := glob.HasMeta(e)
		for _, n := range at {
			visits := 1
			if meta {
				visits += t.Of.Count(n)
			}
			if pay != nil {
				if f := pay(visits, e); f != nil {
					return nil, f
				}
			}
			if !meta {
				if k := t.Of.Child(n, e); k != none {
					next = append(next, k)
				}
				continue
			}
			for _, k := range t.Of.Children(n) {
				if glob.Match(e, t.Of.Name(k)) {
					next = append(next, k)
				}
			}
		}
		at = next
	}
	return at, nil
}

// Selected returns every node that a place names; none, if there is nobody.
func (t *Tree[N]) Selected(p Place) []N {
	at := t.Match(p.Elements)
	if p.UID != 0 {
		at = slices.DeleteFunc(at, func(n N) bool { return t.Of.UID(n) != p.UID })
	}
	return at
}

// Future begins the path of a guest's watch that also covers actors which are started later.
const Future = "+"

// IsMany reports whether the path of a guest's watch has patterns, or covers future actors.
func IsMany(written []byte) bool {
	return written != nil && (written[0] == Future[0] || glob.HasMeta(string(written)))
}

// IsIdentify reports whether the path of a guest's ask is that of an Identify, for the host.
func IsIdentify(written []byte) bool { return written[0] == abi.IdentifySign[0] }
