package asks

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Request is a question of a durable actor to a service. It is kept until the ask is over, so that the next process can send it
// again under its key.
type Request struct {
	To      abi.Ref // the service
	Number  uint64  // among those of the actor's life, from 1
	Key     [mailbox.EffectKey]byte
	Headers []byte
	Payload []byte

	correlation uint64
}

// Bytes is what it takes besides the ask.
func (r *Request) Bytes() int { return len(r.Headers) + len(r.Payload) }

// Requests are the requests of a table by the services that they are for, in the order of their numbers. Those in front are open.
type Requests struct {
	last uint64
	to   map[abi.Ref][]*Request
}

// Asked is the number of the last request of the actor's life.
func (t *Table) Asked() uint64 {
	if t.held == nil {
		return 0
	}
	return t.held.requests.last
}

// SetAsked is for a life that goes on.
func (t *Table) SetAsked(n uint64) {
	if n != t.Asked() {
		t.more().requests.last = n
	}
}

// Keep notes that an open ask is a request. Its number is behind those of all others.
func (t *Table) Keep(correlation uint64, r *Request) {
	a := t.open[correlation]
	r.correlation, a.Request = correlation, r
	t.add(r.Bytes())
	q := &t.more().requests
	q.last = max(q.last, r.Number)
	if q.to == nil {
		q.to = map[abi.Ref][]*Request{}
	}
	list := append(q.to[r.To], r)
	if len(list) >= 64 && len(list) >= 2*len(t.open) {
		list = slices.DeleteFunc(list, func(x *Request) bool { return !t.isOpen(x) })
	}
	q.to[r.To] = list
}

func (t *Table) isOpen(r *Request) bool {
	a := t.open[r.correlation]
	return a != nil && a.Request == r
}

// Settled is the lowest number of the requests to a service that are open: what the actor has learned of those before it is in its
// log, and they are never sent again. 0: none is open.
func (t *Table) Settled(to abi.Ref) uint64 {
	if t.held == nil {
		return 0
	}
	all := t.held.requests.to
	list := all[to]
	n := 0
	for n < len(list) && !t.isOpen(list[n]) {
		n++
	}
	if list = list[n:]; len(list) == 0 {
		delete(all, to)
		return 0
	}
	all[to] = list
	return list[0].Number
}

// Open are the open requests, in the order of their numbers.
func (t *Table) Open() (all []*Request) {
	for _, a := range t.open {
		if a.Request != nil {
			all = append(all, a.Request)
		}
	}
	slices.SortFunc(all, func(a, b *Request) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Correlation is that of the ask.
func (r *Request) Correlation() uint64 { return r.correlation }
