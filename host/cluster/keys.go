package cluster

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// MaxKeys is how many keys a page of [Log].List has at most.
const MaxKeys = 256

// KeyID is a key of a kind in a log: the name is that of its actor.
type KeyID struct{ Kind, Name string }

// Before reports whether a key comes before another one in a list: by kind, and then by name, byte by byte.
func (k KeyID) Before(other KeyID) bool {
	if k.Kind != other.Kind {
		return k.Kind < other.Kind
	}
	return k.Name < other.Name
}

// KeyQuery says which keys of a log are listed.
type KeyQuery struct {
	Kind   string // "": all kinds
	Prefix string // of their names
	After  KeyID  // those behind this one; zero: from the first one on
	Most   int    // 1 to MaxKeys
}

// Valid reports whether the query is one.
func (q *KeyQuery) Valid() bool {
	part := func(s string) bool { return s == "" || abi.ValidName([]byte(s)) }
	return part(q.Kind) && part(q.Prefix) && part(q.After.Kind) && part(q.After.Name) && (q.After.Kind == "") == (q.After.Name == "") && q.Most >= 1 && q.Most <= MaxKeys
}

// wants reports whether a key is one of those that are asked for, whatever its number. What has a name that no actor has is no key.
func (q *KeyQuery) wants(k KeyID) bool {
	return (q.Kind == "" || k.Kind == q.Kind) && strings.HasPrefix(k.Name, q.Prefix) && q.After.Before(k) && abi.ValidName([]byte(k.Kind)) && abi.ValidName([]byte(k.Name))
}

// KeyInfo is what a log has of a key.
type KeyInfo struct {
	KeyID
	Records int
	Bytes   int64
	Last    int64 // when the last record was stored, ns since 1970 by the log's clock
}

// KeyPage are keys in order.
type KeyPage struct {
	Keys []KeyInfo
	More bool // there are others behind the last one
}

// FirstKeys finds the first keys of a query among many that come in any order. It keeps no more than a page of them.
type FirstKeys struct {
	q    KeyQuery
	keys lastFirst
	more bool
}

// NewFirstKeys is one for a query, which must be valid.
func NewFirstKeys(q KeyQuery) *FirstKeys { return &FirstKeys{q: q} }

// Add looks at a key, which must come once.
func (f *FirstKeys) Add(k KeyID) {
	switch {
	case !f.q.wants(k):
	case len(f.keys) < f.q.Most:
		heap.Push(&f.keys, k)
	default:
		f.more = true
		if k.Before(f.keys[0]) {
			f.keys[0] = k
			heap.Fix(&f.keys, 0)
		}
	}
}

// Keys are the first ones, in order, and whether there are more.
func (f *FirstKeys) Keys() (keys []KeyID, more bool) {
	keys = slices.Clone(f.keys)
	slices.SortFunc(keys, func(a, b KeyID) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return keys, f.more
}

// lastFirst is a heap with the last key at its top.
type lastFirst []KeyID

func (l lastFirst) Len() int           { return len(l) }
func (l lastFirst) Less(i, k int) bool { return l[k].Before(l[i]) }
func (l lastFirst) Swap(i, k int)      { l[i], l[k] = l[k], l[i] }
func (l *lastFirst) Push(x any)        { *l = append(*l, x.(KeyID)) }
func (l *lastFirst) Pop() (x any) {
	x = (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return x
}
