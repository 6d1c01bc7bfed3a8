package mailbox

import "github.com/wasmactors/wasmactors/host"

// item is an envelope in its place: of two, the one with the lower number came first, or was
// put back.
type item struct {
	e  *host.Envelope
	at int64
}

// level is a queue of equally urgent envelopes, sorted by their numbers: a ring that grows.
type level struct {
	ring  []item // its length is 0 or a power of two
	head  int
	n     int
	bytes int64
}

// leastRing is the initial length of a ring. An empty ring longer than keptRing is
// released.
const (
	leastRing = 8
	keptRing  = 64
)

func (l *level) front() *item {
	if l.n == 0 {
		return nil
	}
	return &l.ring[l.head]
}

func (l *level) pushBack(i item) {
	l.grow()
	l.ring[(l.head+l.n)&(len(l.ring)-1)] = i
	l.n++
	l.bytes += int64(i.e.Size())
}

func (l *level) pushFront(i item) {
	l.grow()
	l.head = (l.head - 1) & (len(l.ring) - 1)
	l.ring[l.head] = i
	l.n++
	l.bytes += int64(i.e.Size())
}

func (l *level) popFront() item {
	i := l.ring[l.head]
	l.ring[l.head] = item{}
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.n--
	l.bytes -= int64(i.e.Size())
	if l.n == 0 {
		l.head = 0
		if len(l.ring) > keptRing {
			l.ring = nil
		}
	}
	return i
}

func (l *level) grow() {
	if l.n < len(l.ring) {
		return
	}
	next := make([]item, max(leastRing, 2*len(l.ring)))
	n := copy(next, l.ring[l.head:])
	copy(next[n:], l.ring[:l.head])
	l.ring, l.head = next, 0
}
