package topic

import (
	"cmp"
	"slices"
	"strings"
)

// Index finds which of many patterns match a topic: a tree of tokens, before it a cache of answers. The
// time that it takes grows with the tokens and with what matches, not with how many patterns there
// are, unless they are made of many *. The zero value is empty. It is not safe for concurrent use.
type Index[T any] struct {
	root  node[T]
	last  uint64
	count int

	cache  map[string][]T
	cached int // values in cache
}

// Bounds of the cache: topics, and values under all of them. It is emptied when they are
// reached, and when a pattern comes or goes.
const (
	cacheTopics = 4096
	cacheValues = 1 << 16
)

// node is what the tokens so far lead to.
type node[T any] struct {
	tokens map[string]*node[T]
	any    *node[T]   // *
	rest   []entry[T] // >
	here   []entry[T]
}

type entry[T any] struct {
	id    uint64
	value T
}

// Add adds a value under a valid pattern. The id is for [Index.Remove].
func (x *Index[T]) Add(pattern string, v T) (id uint64) {
	x.last++
	x.count++
	x.forget()
	e := entry[T]{x.last, v}
	n := &x.root
	for rest, more := pattern, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		if token == ">" {
			n.rest = append(n.rest, e)
			return e.id
		}
		n = n.child(token)
	}
	n.here = append(n.here, e)
	return e.id
}

// child is where a token leads to; it is made if need be.
func (n *node[T]) child(token string) *node[T] {
	if token == "*" {
		if n.any == nil {
			n.any = &node[T]{}
		}
		return n.any
	}
	next := n.tokens[token]
	if next == nil {
		if n.tokens == nil {
			n.tokens = map[string]*node[T]{}
		}
		next = &node[T]{}
		n.tokens[strings.Clone(token)] = next
	}
	return next
}

// Remove takes out what Add has put under the pattern with this id, and reports whether it was there.
func (x *Index[T]) Remove(pattern string, id uint64) bool {
	if !x.root.remove(pattern, id) {
		return false
	}
	x.count--
	x.forget()
	return true
}

func (n *node[T]) remove(pattern string, id uint64) bool {
	token, rest, more := strings.Cut(pattern, ".")
	if token == ">" {
		return without(&n.rest, id)
	}
	next := n.any
	if token != "*" {
		next = n.tokens[token]
	}
	if next == nil || more && !next.remove(rest, id) || !more && !without(&next.here, id) {
		return false
	}
	if len(next.tokens) == 0 && next.any == nil && len(next.rest) == 0 && len(next.here) == 0 {
		if token == "*" {
			n.any = nil
		} else {
			delete(n.tokens, token)
		}
	}
	return true
}

func without[T any](list *[]entry[T], id uint64) bool {
	i := slices.IndexFunc(*list, func(e entry[T]) bool { return e.id == id })
	if i < 0 {
		return false
	}
	if *list = slices.Delete(*list, i, i+1); len(*list) == 0 {
		*list = nil
	}
	return true
}

// Len is the number of values.
func (x *Index[T]) Len() int { return x.count }

// Match returns the values whose patterns match a valid topic, in the order in which they were
// added. The result must not be changed; it stays as it is.
func (x *Index[T]) Match(topic string) []T {
	if found, ok := x.cache[topic]; ok {
		return found
	}
	entries := x.root.match(topic, nil)
	slices.SortFunc(entries, func(a, b entry[T]) int { return cmp.Compare(a.id, b.id) })
	found := make([]T, len(entries))
	for i, e := range entries {
		found[i] = e.value
	}
	if x.cached+len(found) > cacheValues || len(x.cache) >= cacheTopics {
		x.forget()
	}
	if len(found) <= cacheValues {
		if x.cache == nil {
			x.cache = map[string][]T{}
		}
		x.cache[strings.Clone(topic)] = found
		x.cached += len(found)
	}
	return found
}

func (n *node[T]) match(topic string, found []entry[T]) []entry[T] {
	found = append(found, n.rest...)
	token, rest, more := strings.Cut(topic, ".")
	for _, next := range []*node[T]{n.tokens[token], n.any} {
		switch {
		case next == nil:
		case more:
			found = next.match(rest, found)
		default:
			found = append(found, next.here...)
		}
	}
	return found
}

// forget empties the cache.
func (x *Index[T]) forget() {
	if len(x.cache) > 0 {
		clear(x.cache)
	}
	x.cached = 0
}
