package observe

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// waits estimates how long the oldest message of each actor has waited, from what earlier looks have
// seen: nothing is noted when a message is sent. A look that finds n messages after t turns
// knows that all messages up to number t+n were there. While fewer turns than that are done,
// the oldest message has waited at least since that look.
type waits struct {
	byRef map[abi.Ref]*marks
	round uint64
}

// mark is a look: messages up to this number were there.
type mark struct {
	at   int64 // ns
	upto uint64
}

// marks are the looks at one actor that are still useful, oldest first.
type marks struct {
	n     int
	list  [4]mark
	round uint64 // of the last look
}

// update adds a walk and appends the age of each actor's oldest message.
func (w *waits) update(ages []int64, infos []host.Info, now time.Time) []int64 {
	at := now.UnixNano()
	w.round++
	for i := range infos {
		x := &infos[i]
		ages = append(ages, w.look(x, at))
	}
	for ref, m := range w.byRef {
		if m.round != w.round {
			delete(w.byRef, ref)
		}
	}
	return ages
}

// look adds a look at one actor and returns the age of its oldest message.
func (w *waits) look(x *host.Info, at int64) int64 {
	if x.Mailbox == 0 {
		return 0
	}
	if w.byRef == nil {
		w.byRef = map[abi.Ref]*marks{}
	}
	m := w.byRef[x.Ref.UID()]
	if m == nil {
		m = &marks{}
		w.byRef[x.Ref.UID()] = m
	}
	m.round = w.round
	if x.Came > 0 { // messages do not leave in the order in which they have come
		return m.look(mark{at, x.Came}, x.Before)
	}
	return m.look(mark{at, x.Turns + uint64(x.Mailbox)}, x.Turns)
}

// look adds a reading, after done turns, and returns the age of the oldest message.
func (m *marks) look(now mark, done uint64) int64 {
	gone := 0
	for gone < m.n && done >= m.list[gone].upto {
		gone++
	}
	m.n = copy(m.list[:], m.list[gone:m.n])
	if m.n == len(m.list) { // forget the one whose neighbours are closest
		least, at := int64(0), 1
		for i := 1; i < m.n; i++ {
			next := now.at
			if i+1 < m.n {
				next = m.list[i+1].at
			}
			if gap := next - m.list[i-1].at; i == 1 || gap < least {
				least, at = gap, i
			}
		}
		m.n = at + copy(m.list[at:], m.list[at+1:m.n])
	}
	m.list[m.n] = now
	m.n++
	return now.at - m.list[0].at
}
