package bundle

import (
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
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
			keys = append(keys, ReachKey{key, reach, s.Writes != nil, s.Doc})
		}
	})
	return keys
}

// eachText calls f for all free texts of a shape, keys of mappings included. Nothing is followed into itself.
func eachText(s *shape, key string, above []*shape, f func(key string, s *shape, reach service.Reach)) {
	s = s.Resolved()
	for _, x := range above {
		if x == s {
			return
		}
	}
	above = append(above, s)
	switch s.Kind {
	case grammar.Text:
		if s.Enum == nil || s.Reach != "" {
			f(key, s, s.Reach)
		}
	case grammar.List:
		if s.Reach != "" {
			f(key, s, s.Reach)
		}
		eachText(s.Of, key+"[]", above, f)
	case grammar.Mapping:
		f(below(key, "*"), s, s.KeyReach)
		eachText(s.Of, below(key, "*"), above, f)
	case grammar.Object:
		for _, x := range s.Fields {
			eachText(x.Shape, below(key, x.Name), above, f)
		}
	}
}
