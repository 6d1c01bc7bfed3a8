package eventbus

import "sync/atomic"

// members is a set in the order in which its values came. Its list can be read while it changes: a reader does
// not read beyond the length that it has seen, and values that have left are marked.
type members[T comparable] struct {
	at   map[T]*member[T]
	list []*member[T]
}

type member[T comparable] struct {
	value T
	gone  atomic.Bool
}

// add reports whether the value was not there.
func (m *members[T]) add(v T) bool {
	if m.at[v] != nil {
		return false
	}
	if m.at == nil {
		m.at = map[T]*member[T]{}
	}
	x := &member[T]{value: v}
	m.at[v] = x
	m.list = append(m.list, x)
	return true
}

// remove reports whether the value was there. The list is copied when half of its values have left, so that the cost
// of a removal does not depend on how many there are.
func (m *members[T]) remove(v T) bool {
	x := m.at[v]
	if x == nil {
		return false
	}
	x.gone.Store(true)
	delete(m.at, v)
	if len(m.at) >= len(m.list)/2 {
		return true
	}
	left := make([]*member[T], 0, len(m.at))
	for _, y := range m.list {
		if !y.gone.Load() {
			left = append(left, y)
		}
	}
	m.list = left
	return true
}
