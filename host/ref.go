package host

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Ref is an immutable handle of one incarnation of an actor; the zero value is
// nobody. Refs compare with ==: they are equal if they name the same incarnation.
type Ref struct {
	uid  abi.Ref
	path string // wasm://system/user/a/b
}

// UID is the number that guests know the actor by; 0 if there is none.
func (r Ref) UID() abi.Ref { return r.uid }

// IsZero reports whether r is nobody.
func (r Ref) IsZero() bool { return r.uid == 0 }

// Path is the place in the tree, such as /user/a/b. Incarnations share it.
func (r Ref) Path() string {
	if rest, ok := strings.CutPrefix(r.path, scheme); ok {
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

const scheme = "wasm://"

// tempPath is the path of receivers that are no actors.
func (s *System) tempPath() string { return s.temp }

// isTempPath reports whether a path is tempPath of any system.
func isTempPath(path string) bool {
	name, ok := strings.CutSuffix(path, "/temp")
	return ok && strings.Count(name, "/") == strings.Count(scheme, "/")
}

// refOf is the full ref of a living actor; the path of any other is tempPath.
func (s *System) refOf(uid abi.Ref) Ref {
	if uid == 0 {
		return Ref{}
	}
	if a := s.table.Get(uid); a != nil {
		return a.ref()
	}
	return Ref{uid, s.temp}
}

// sender is the sender of an envelope, even if it has stopped since.
func (s *System) sender(e *mailbox.Envelope) Ref {
	if e.SenderPath != "" {
		return Ref{e.Sender, e.SenderPath}
	}
	return s.refOf(e.Sender)
}

// splitRef splits the text form of a ref, or a path: elements are those
// after the system's name, uid is 0 if none is given.
func splitRef(system, text string) (elements []string, uid abi.Ref, ok bool) {
	if rest, found := strings.CutPrefix(text, scheme); found {
		name, path, found := strings.Cut(rest, "/")
		if !found || name != system {
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
