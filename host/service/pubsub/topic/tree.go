package topic

import (
	"maps"
	"slices"
	"strings"
)

// Tree holds a value for each of many topics and finds those that a pattern matches. The zero value
// is empty. It is not safe for concurrent use.
type Tree[T any] struct {
	root  leaf[T]
	count int
}

type leaf[T any] struct {
	tokens map[string]*leaf[T]
	value  *T
}

// Len is the number of topics.
func (x *Tree[T]) Len() int { return x.count }

// Get is the value of a topic, nil if it has none.
func (x *Tree[T]) Get(topic string) *T {
	n := &x.root
	for rest, more := topic, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		if n = n.tokens[token]; n == nil {
			return nil
		}
	}
	return n.value
}

// Put sets the value of a valid topic.
func (x *Tree[T]) Put(topic string, v T) {
	n := &x.root
	for rest, more := topic, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		next := n.tokens[token]
		if next == nil {
			if n.tokens == nil {
				n.tokens = map[string]*leaf[T]{}
			}
			next = &leaf[T]{}
			n.tokens[strings.Clone(token)] = next
		}
		n = next
	}
	if n.value == nil {
		x.count++
	}
	n.value = &v
}

// Delete takes a topic out, and reports whether it was there.
func (x *Tree[T]) Delete(topic string) bool {
	if !x.root.delete(topic) {
		return false
	}
	x.count--
	return true
}

func (n *leaf[T]) delete(topic string) bool {
	token, rest, more := strings.Cut(topic, ".")
	next := n.tokens[token]
	switch {
	case next == nil:
		return false
	case more:
		if !next.delete(rest) {
			return false
		}
	case next.value == nil:
		return false
	default:
		next.value = nil
	}
	if next.value == nil && len(next.tokens) == 0 {
		delete(n.tokens, token)
	}
	return true
}

// Match calls yield for the topics behind after, "" for all, that a valid pattern matches, until it returns
// false. The order is that of their tokens: a.b comes before a.b.c and before a-.b.
func (x *Tree[T]) Match(pattern, after string, yield func(topic string, v *T) bool) {
	x.root.match(make([]byte, 0, MaxBytes), pattern, after, after != "", yield)
}

// match looks below n, whose path is in at. With bound only what comes after the path after counts.
func (n *leaf[T]) match(at []byte, pattern, after string, bound bool, yield func(string, *T) bool) bool {
	token, rest, more := strings.Cut(pattern, ".")
	from, restAfter, moreAfter := strings.Cut(after, ".")
	visit := func(t string, next *leaf[T]) bool {
		if bound && t < from {
			return true
		}
		same := bound && t == from
		path := at
		if len(path) > 0 {
			path = append(path, '.')
		}
		path = append(path, t...)
		if next.value != nil && (token == ">" || !more) && !same && !yield(string(path), next.value) {
			return false
		}
		below := rest
		switch {
		case token == ">":
			below = ">"
		case !more:
			return true
		}
		return next.match(path, below, restAfter, same && moreAfter, yield)
	}
	if token != "*" && token != ">" {
		next := n.tokens[token]
		return next == nil || visit(token, next)
	}
	for _, t := range slices.Sorted(maps.Keys(n.tokens)) {
		if !visit(t, n.tokens[t]) {
			return false
		}
	}
	return true
}
