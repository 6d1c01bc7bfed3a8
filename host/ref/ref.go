// Package ref has the handles of actors: values that say who is meant, and do nothing.
package ref

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// Ref is an immutable handle of one incarnation of an actor; the zero value names no actor. Refs are equal if their numbers
// are: see Equal. == also compares the paths, so it tells refs of one actor apart of which one was made when its path was
// not known (by System.RefOf, after its end or on another node).
type Ref struct {
	uid  abi.Ref
	path string // wasm://system/user/a/b
}

// Of is the ref of a number and a full path: Scheme, the system, the place in its tree. It is for the engine, and for
// code that has got both from a Ref.
func Of(uid abi.Ref, uri string) Ref { return Ref{uid, uri} }

// URI is the full path, with the scheme and the system: wasm://system/user/a/b.
func (r Ref) URI() string { return r.path }

// UID is the number that guests know the actor by; 0 for the zero Ref.
func (r Ref) UID() abi.Ref { return r.uid }

// Equal reports whether two refs name the same actor or other receiver: whether they have the same UID.
func (r Ref) Equal(other Ref) bool { return r.uid == other.uid }

// IsZero reports whether r is the zero Ref, which names no actor.
func (r Ref) IsZero() bool { return r.uid == 0 }

// Path is the place in the tree, such as /user/a/b. Incarnations share it.
func (r Ref) Path() string {
	if rest, ok := strings.CutPrefix(r.path, Scheme); ok {
		if j := strings.IndexByte(rest, '/'); j >= 0 {
			return rest[j:]
		}
	}
	return r.path
}

// Compare orders two refs of a system: by their paths, and for the same path by their
// numbers.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(strings.Compare(r.path, other.path), cmp.Compare(r.uid, other.uid))
}

// Name is the last element of the path.
func (r Ref) Name() string { return r.path[strings.LastIndexByte(r.path, '/')+1:] }

// String is the ref as text: wasm://system/user/a/b#uid.
func (r Ref) String() string {
	if r.uid == 0 {
		return "nobody"
	}
	var digits [20]byte
	return r.path + "#" + string(strconv.AppendUint(digits[:0], uint64(r.uid), 10))
}

// Scheme begins the text of every ref.
const Scheme = "wasm://"

// Root is what the full paths of a system begin with: the name, and the node unless that is 0 (wasm://name@3).
func Root(system string, node uint16) string {
	if node == 0 {
		return Scheme + system
	}
	return Scheme + system + "@" + strconv.Itoa(int(node))
}

// Far splits the text of a ref, or the full path, of an actor on a node. ok is false if it says no node.
func Far(text string) (node uint16, elements []string, uid abi.Ref, ok bool) {
	rest, full := strings.CutPrefix(text, Scheme)
	if !full {
		return 0, nil, 0, false
	}
	name, _, _ := strings.Cut(rest, "/")
	if elements, uid, ok = Split(name, text); !ok {
		return 0, nil, 0, false
	}
	if _, number, found := strings.Cut(name, "@"); found {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n > abi.MaxNode || number[0] == '0' {
			return 0, nil, 0, false
		}
		node = uint16(n)
	}
	switch {
	case node == 0:
		node = uid.Node()
	case uid != 0 && uid.Node() != node:
		return 0, nil, 0, false
	}
	return node, elements, uid, node != 0
}

// IsTemp reports whether a path is that of receivers that are no actors, of any system.
func IsTemp(path string) bool {
	name, ok := strings.CutSuffix(path, "/temp")
	return ok && strings.Count(name, "/") == strings.Count(Scheme, "/")
}

// Split splits the text form of a ref, or a path: elements are those after the system's name, uid is 0 if none is given.
// A system on a node ("name@3") is also meant by its name alone.
func Split(system, text string) (elements []string, uid abi.Ref, ok bool) {
	if rest, found := strings.CutPrefix(text, Scheme); found {
		name, path, found := strings.Cut(rest, "/")
		if alone, _, _ := strings.Cut(system, "@"); !found || name != system && name != alone {
			return nil, 0, false
		}
		text = "/" + path
	}
	if path, id, found := strings.Cut(text, "#"); found {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil || n == 0 {
			return nil, 0, false
		}
		text, uid = path, abi.Ref(n)
	}
	if !strings.HasPrefix(text, "/") {
		return nil, 0, false
	}
	if text == "/" {
		return nil, uid, true
	}
	return strings.Split(text[1:], "/"), uid, true
}
