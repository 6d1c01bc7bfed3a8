package stream

// buffer is a queue of bytes. It has memory only while it holds something.
type buffer struct {
	b    []byte
	from int
}

// kept is what an empty buffer may keep.
const kept = 1 << 10

func (q *buffer) len() int { return len(q.b) - q.from }

func (q *buffer) push(p []byte) {
	if q.from > 0 && len(q.b)+len(p) > cap(q.b) {
		q.b = q.b[:copy(q.b, q.b[q.from:])]
		q.from = 0
	}
	q.b = append(q.b, p...)
}

// front is what is next, at most n bytes, valid until the next call.
func (q *buffer) front(n int) []byte { return q.b[q.from : q.from+min(n, q.len())] }

// drop takes n bytes out.
func (q *buffer) drop(n int) {
	if q.from += n; q.from < len(q.b) {
		return
	}
	q.from = 0
	if q.b = q.b[:0]; cap(q.b) > kept {
		q.b = nil
	}
}

func (q *buffer) clear() { *q = buffer{} }
