package paths

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// node is a node of a test's tree.
type node struct {
	uid  abi.Ref
	path []string
	kids []*node
}

func (n *node) child(name string) *node {
	for _, k := range n.kids {
		if k.path[len(k.path)-1] == name {
			return k
		}
	}
	return nil
}

// planted is a tree with these paths; the nodes above them are made.
func planted(paths ...string) *Tree[*node] {
	t := &Tree[*node]{Of: Nodes[*node]{
		UID: func(n *node) abi.Ref { return n.uid }, Name: func(n *node) string { return n.path[len(n.path)-1] },
		Elements: func(n *node) []string { return n.path }, Child: (*node).child,
		Children: func(n *node) []*node { return n.kids }, Count: func(n *node) int { return len(n.kids) },
	}}
	uid := abi.Ref(0)
	made := func(path []string) *node { uid++; return &node{uid: uid, path: slices.Clone(path)} }
	for _, path := range paths {
		elements := strings.Split(path, "/")
		at := t.Find(elements[:1])
		if at == nil {
			at = made(elements[:1])
			t.Roots = append(t.Roots, at)
		}
		for i := 2; i <= len(elements); i++ {
			k := at.child(elements[i-1])
			if k == nil {
				k = made(elements[:i])
				at.kids = append(at.kids, k)
			}
			at = k
		}
	}
	return t
}

func texts(found []*node) string {
	var all []string
	for _, n := range found {
		all = append(all, strings.Join(n.path, "/"))
	}
	return strings.Join(all, " ")
}

func TestWhichNodesAPathNames(t *testing.T) {
	tree := planted("user/a/x", "user/ab/x", "user/b", "system/a")
	for path, want := range map[string]string{
		"user": "user", "user/a": "user/a", "user/a*": "user/a user/ab", "user/*/x": "user/a/x user/ab/x", "*/a": "user/a system/a",
		"user/?": "user/a user/b", "user/c": "", "other/*": "", "user/b/x": "",
	} {
		elements := strings.Split(path, "/")
		if got := texts(tree.Match(elements)); got != want {
			t.Errorf("%s names %q, want %q", path, got, want)
		}
		if strings.ContainsAny(path, "*?") {
			continue
		}
		var got []*node
		if n := tree.Find(elements); n != nil {
			got = append(got, n)
		}
		if texts(got) != want {
			t.Errorf("at %s is %q, want %q", path, texts(got), want)
		}
	}
	b := tree.Find([]string{"user", "b"})
	if got := tree.Selected(Place{Elements: []string{"user", "*"}, UID: b.uid}); len(got) != 1 || got[0] != b {
		t.Errorf("with a ref: %q", texts(got))
	}
	if tree.Find(nil) != nil || tree.Match(nil) != nil {
		t.Error("no path names somebody")
	}
}

func TestRelativePaths(t *testing.T) {
	self := []string{"user", "a", "b"}
	for path, want := range map[string]string{
		"./c": "user/a/b/c child", "../c": "user/a/c", "../../c": "user/c", "../../../c": "c", "../../../../c": "no", "/user": "no", "./": "no",
		"./../c": "no", "../c/../d": "no", ".": "no",
	} {
		p, ok := Relative(self, path)
		got := strings.Join(p.Elements, "/")
		if p.Child {
			got += " child"
		}
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	p, _ := Relative(self, "../c")
	for written, want := range map[string]string{"../c": "/user/a/c", "/user/x": "/user/x", "../c#7": "../c#7"} {
		if got := p.Absolute(written); got != want {
			t.Errorf("%s from the root is %s, want %s", written, got, want)
		}
	}
}

// A search finds what is allowed, and what it pays does not depend on nodes that it must not reveal.
func TestASearchRevealsNothing(t *testing.T) {
	few, many := planted("user/a", "user/hidden"), planted("user/a", "user/hidden", "user/hidden2", "user/h3/x", "user/h4")
	for _, c := range []struct{ allowed, path, found string }{
		{"/user/a", "user/*", "user/a"}, {"/user/a*", "user/*", "user/a"}, {"/user/b", "user/*", ""}, {"/user/a", "user/a", "user/a"}, {"/user/a", "user/hidden", ""},
	} {
		allowed := []glob.Path{glob.SelectPath(strings.Split(c.allowed[1:], "/"))}
		var paid [2]int
		for i, tree := range []*Tree[*node]{few, many} {
			found, f := tree.Reachable(Place{Elements: strings.Split(c.path, "/")}, allowed, Toll{Visit: func(n int, _ string) *abi.Failure { paid[i] += n; return nil }})
			if f != nil || texts(found) != c.found {
				t.Errorf("%s with %s: %q, %v, want %q", c.path, c.allowed, texts(found), f, c.found)
			}
		}
		if paid[0] != paid[1] {
			t.Errorf("%s with %s: pays %d visits, and %d where more is hidden", c.path, c.allowed, paid[0], paid[1])
		}
	}
	broke := &abi.Failure{}
	all := []glob.Path{glob.SelectPath([]string{"user", "*"})}
	if _, f := many.Reachable(Place{Elements: []string{"user", "*"}}, all, Toll{Pass: func(int) *abi.Failure { return broke }, Visit: func(int, string) *abi.Failure { return broke }}); f != broke {
		t.Error("a search that cannot be paid for goes on")
	}
}
