// Package linked is a doubly linked list whose links are parts of what is listed, so that
// listing something allocates nothing and taking it out needs no search. container/list
// allocates an element for each, and holds any.
package linked

// Link is a place in a list. A link belongs to one thing for good, and is in one list at
// a time. The zero value is in none.
type Link[T any] struct {
	Of         T // what is listed; whoever owns the link sets it
	prev, next *Link[T]
	listed     bool
}

// Listed reports whether the link is in a list.
func (l *Link[T]) Listed() bool { return l.listed }

// Next is the link behind this one, nil for the last.
func (l *Link[T]) Next() *Link[T] { return l.next }

// List is links in an order. The zero value is empty. It is for one goroutine at a time.
type List[T any] struct{ first, last *Link[T] }

// First is the first link, nil if there is none.
func (s *List[T]) First() *Link[T] { return s.first }

// PushBack puts a link that is in no list behind all others.
func (s *List[T]) PushBack(l *Link[T]) {
	l.prev, l.next, l.listed = s.last, nil, true
	if s.last == nil {
		s.first = l
	} else {
		s.last.next = l
	}
	s.last = l
}

// PushFront puts a link that is in no list before all others.
func (s *List[T]) PushFront(l *Link[T]) {
	l.prev, l.next, l.listed = nil, s.first, true
	if s.first == nil {
		s.last = l
	} else {
		s.first.prev = l
	}
	s.first = l
}

// Remove takes a link out of the list that it is in, which must be this one.
func (s *List[T]) Remove(l *Link[T]) {
	if l.prev == nil {
		s.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		s.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.prev, l.next, l.listed = nil, nil, false
}
