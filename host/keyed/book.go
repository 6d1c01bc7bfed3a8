package keyed

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/linked"
)

// state is the state of a key that the keeper knows of.
type state uint8

const (
	awake   state = iota // its actor is there
	leaving              // its actor was asked to end, or is about to; messages wait
	waiting              // it waits for a place that another key has; messages wait
	granted              // there is a place for it, and its messages are about to be handled
	failed               // its actor was stopped for a failure, and may not be started again yet
)

// entry is what the keeper knows of a key.
type entry struct {
	name     string
	ref      host.Ref
	maker    abi.Ref // the actor that it counts for; 0: Go code
	state    state
	failures int32 // in a row
	pos      int32 // in due; -1: it is not there
	held     int32 // messages that wait, and their bytes
	bytes    int64
	started  int64 // ns since 1970, as are:
	when     int64 // when to look at it
	until    int64 // failed: when it may be started again
	used     linked.Link[*entry]
}

// timeOf is a time of an entry.
func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// book is what the keeper knows: which keys there are, when each was used, and which wait for a place.
type book struct {
	entries map[string]*entry
	byRef   map[abi.Ref]*entry
	due     dueHeap
	used    linked.List[*entry] // of those with an actor, the one used least recently first
	alive   int                 // actors
	grants  int                 // places promised to keys
	ending  int                 // actors that are leaving
	queue   []*entry            // those that wait for a place
	made    map[abi.Ref]int
	failing int // keys that have failed
	waits   int // messages that wait, and their bytes
	weight  int64
}

func newBook() book {
	return book{entries: map[string]*entry{}, byRef: map[abi.Ref]*entry{}, made: map[abi.Ref]int{}}
}

// taken is how many places are taken or promised.
func (b *book) taken() int { return b.alive + b.grants + len(b.queue) }

// begun notes the actor of a key.
func (b *book) begun(e *entry, ref host.Ref, now time.Time, look time.Time) {
	switch e.state {
	case granted:
		b.grants--
	case failed:
		b.failing--
	}
	e.state, e.ref, e.started = awake, ref, now.UnixNano()
	b.entries[e.name], b.byRef[ref.UID()] = e, e
	b.alive++
	e.used.Of = e
	b.used.PushBack(&e.used)
	b.lookAt(e, look)
}

// claim counts a key for the actor whose message begins it, while it waits for its place and while it has one.
// unclaim ends that.
func (b *book) claim(e *entry, maker abi.Ref) {
	if e.maker = maker; maker != 0 {
		b.made[maker]++
	}
}

func (b *book) unclaim(e *entry) {
	if e.maker == 0 {
		return
	}
	if b.made[e.maker]--; b.made[e.maker] == 0 {
		delete(b.made, e.maker)
	}
	e.maker = 0
}

// ended notes the end of a key's actor.
func (b *book) ended(e *entry) {
	if e.state == leaving {
		b.ending--
	}
	b.alive--
	delete(b.byRef, e.ref.UID())
	b.unclaim(e)
	b.used.Remove(&e.used)
	b.noLook(e)
}

// forget drops a key that has no actor.
func (b *book) forget(e *entry) {
	switch e.state {
	case granted:
		b.grants--
	case failed:
		b.failing--
	}
	b.unclaim(e)
	b.noLook(e)
	delete(b.entries, e.name)
}

// touch notes that a key was used.
func (b *book) touch(e *entry) {
	b.used.Remove(&e.used)
	b.used.PushBack(&e.used)
}

// leave and stay note that an actor was asked to end, and that it does not.
func (b *book) leave(e *entry) {
	e.state = leaving
	b.ending++
	b.noLook(e)
}

func (b *book) stay(e *entry, look time.Time) {
	e.state = awake
	b.ending--
	b.lookAt(e, look)
}

// hold and released note that a message waits, and that none of a key waits any more.
func (b *book) hold(e *entry, size int64) {
	e.held++
	e.bytes += size
	b.waits++
	b.weight += size
}

func (b *book) released(e *entry) {
	b.waits -= int(e.held)
	b.weight -= e.bytes
	e.held, e.bytes = 0, 0
}

// line puts a key at the end of those that wait for a place.
func (b *book) line(e *entry) {
	if e.state == failed {
		b.failing--
	}
	b.noLook(e)
	e.state = waiting
	b.entries[e.name] = e
	b.queue = append(b.queue, e)
}

// next takes the key that has waited longest out of the line.
func (b *book) next() *entry {
	e := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	return e
}

// drop forgets the key that has waited least: there is no place for it.
func (b *book) drop() *entry {
	n := len(b.queue) - 1
	e := b.queue[n]
	b.queue[n] = nil
	b.queue = b.queue[:n]
	b.unclaim(e)
	delete(b.entries, e.name)
	return e
}

// lookAt says when a key is to be looked at.
func (b *book) lookAt(e *entry, when time.Time) {
	b.noLook(e)
	e.when = when.UnixNano()
	heap.Push(&b.due, e)
}

func (b *book) noLook(e *entry) {
	if e.pos >= 0 && int(e.pos) < len(b.due) && b.due[e.pos] == e {
		heap.Remove(&b.due, int(e.pos))
	}
	e.pos = -1
}

// dueHeap is a heap by when, then by name, so that nothing depends on the order of maps.
type dueHeap []*entry

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].when != h[j].when {
		return h[i].when < h[j].when
	}
	return h[i].name < h[j].name
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = int32(i), int32(j)
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.pos = int32(len(*h))
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	n := len(*h) - 1
	e := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	e.pos = -1
	return e
}

// past are the last keys whose actors have ended.
type past struct {
	most  int
	order list.List
	at    map[string]*list.Element
}

type gone struct {
	name  string
	since time.Time
}

func newPast(most int) past { return past{most: most, at: map[string]*list.Element{}} }

func (p *past) add(name string, now time.Time) {
	p.drop(name)
	if p.most <= 0 {
		return
	}
	if p.order.Len() >= p.most {
		p.drop(p.order.Front().Value.(gone).name)
	}
	p.at[name] = p.order.PushBack(gone{name, now})
}

func (p *past) drop(name string) {
	if x := p.at[name]; x != nil {
		p.order.Remove(x)
		delete(p.at, name)
	}
}
