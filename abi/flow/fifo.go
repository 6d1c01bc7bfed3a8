package flow

// fifo is a queue in a ring.
type fifo[T any] struct {
	ring  []T
	at, n int
}

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		larger := make([]T, max(4, 2*len(q.ring)))
		for i := 0; i < q.n; i++ {
			larger[i] = q.ring[(q.at+i)%len(q.ring)]
		}
		q.ring, q.at = larger, 0
	}
	q.ring[(q.at+q.n)%len(q.ring)] = v
	q.n++
}

// pop takes the first one.
func (q *fifo[T]) pop() T {
	v := q.ring[q.at]
	var zero T
	q.ring[q.at] = zero
	q.at = (q.at + 1) % len(q.ring)
	q.n--
	return v
}

// cut takes the last one.
func (q *fifo[T]) cut() T {
	i := (q.at + q.n - 1) % len(q.ring)
	v := q.ring[i]
	var zero T
	q.ring[i] = zero
	q.n--
	return v
}

func (q *fifo[T]) clear() { *q = fifo[T]{} }
