package bundle

import (
	"github.com/wasmactors/wasmactors/host/service"
)

// ReachKey is a key of manifests whose texts name something outside of the bundle.
type ReachKey struct {
	Key     string // * stands for a name, [] for an element of a list
	Kind    service.Reach
	OrWrite bool // another key may make it ReachWrite
	Doc     string
}

// ReachKeys are all of them, in manifests that may use these services, in the order of the grammar. Keys of an
// actor are listed once: its children have the same.
func ReachKeys(kinds ...service.Kind) (keys []ReachKey) {
	root, _ := grammarOf(kinds)
	eachText(root, "", nil, func(key string, s *shape, reach service.Reach) {
		if reach != none {
			keys = append(keys, ReachKey{key, reach, s.writes != nil, s.doc})
		}
	})
	return keys
}

// eachText calls f for all free texts of a shape, keys of mappings included. Nothing is followed into itself.
func eachText(s *shape, key string, above []*shape, f func(key string, s *shape, reach service.Reach)) {
	s = s.resolved()
	for _, x := range above {
		if x == s {
			return
		}
	}
	above = append(above, s)
	switch s.kind {
	case kindText:
		if s.enum == nil || s.reach != "" {
			f(key, s, s.reach)
		}
	case kindList:
		if s.reach != "" {
			f(key, s, s.reach)
		}
		eachText(s.of, key+"[]", above, f)
	case kindMapping:
		f(below(key, "*"), s, s.keys)
		eachText(s.of, below(key, "*"), above, f)
	case kindObject:
		for _, x := range s.fields {
			eachText(x.shape, below(key, x.name), above, f)
		}
	}
}
