// Package residency decides which guests keep their instances. An idle guest releases its instance and keeps what differs
// from its image, some kilobytes. The next message wakes it. Guests sleep after a time without messages, and earlier when
// too many are awake.
package residency

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/linked"
)

// Sleeper is a guest that can release its instance. Once it has, it calls Remove.
type Sleeper interface {
	// AskToSleep asks the guest to release its instance when it is idle. It must not wait.
	AskToSleep()
	// PutAway releases the guest's instance at once and reports whether it did. It does not if the guest is running or about
	// to run, nor if its state cannot be kept; then it calls Hold.
	PutAway() bool
	// SleepNext makes the running guest release its instance at the end of its run.
	SleepNext()
	// Slim releases the memory reserved for pages that the guest could touch, and reports whether it did. It does not if the
	// guest is running or about to run, nor, unless now is set, if the guest has run since the last call.
	Slim(now bool) bool
}

// Node is a guest's place in the list of awake guests. The zero value is not listed.
type Node struct {
	sleeper Sleeper
	shard   uint8
	place   linked.Link[*Node] // the shard's
	counted bool               // it has an instance, listed or not; under the shard's lock
	wide    linked.Link[*Node] // the shard's: it has reserved memory for pages that it could touch
	tree    *Tree              // nil: it is in none
	among   linked.Link[*Node] // the tree's; listed with place
	spread  linked.Link[*Node] // the tree's; listed with wide
	used    atomic.Bool        // since the last check
}

// Init sets the node's guest and tree. key spreads guests over the shards.
func (n *Node) Init(s Sleeper, key uint64, tree *Tree) {
	n.sleeper, n.shard, n.place.Of, n.tree, n.among.Of = s, uint8(key%shards), n, tree, n
	n.wide.Of, n.spread.Of = n, n
}

// Tree lists the guests of a subtree that share a memory limit. A search for room in it takes no longer when other subtrees
// have many guests, and does not touch them. The zero value is empty.
type Tree struct {
	mu   sync.Mutex // behind that of a shard
	list linked.List[*Node]
	wide linked.List[*Node]
}

func (t *Tree) add(n *Node) {
	if t != nil {
		t.mu.Lock()
		t.list.PushBack(&n.among)
		t.mu.Unlock()
	}
}

func (t *Tree) remove(n *Node) {
	if t != nil {
		t.mu.Lock()
		t.list.Remove(&n.among)
		t.mu.Unlock()
	}
}

// Used reports whether the guest was used since the last check.
func (n *Node) Used() bool { return n.used.Load() }

// List holds the awake guests of a system in the order in which they got their instances. Guests that cannot sleep are only
// counted. Make a List with New; any goroutine may call its methods. The count may exceed most only while runs are in
// progress that found no other guest to put away, so by at most the number of such runs.
type List struct {
	after  time.Duration // 0: never
	most   int64         // 0: no bound
	clock  clock.Clock
	count  atomic.Int64
	wide   atomic.Int64
	slims  atomic.Bool // a timer for that is set
	armed  atomic.Bool
	next   atomic.Uint64 // shard to evict from
	shards [shards]shard

	mu      sync.Mutex
	timer   clock.Timer
	slimmer clock.Timer
	ended   bool
}

const shards = 16

type shard struct {
	mu   sync.Mutex
	list linked.List[*Node] // oldest first
	wide linked.List[*Node] // the one asked longest ago first
	many int                // of wide
	_    [64]byte           // a cache line between neighbours
}

// New makes a list. Guests sleep after being idle for after (0: never), and earlier when more than most are awake (0: no
// limit).
func New(c clock.Clock, after time.Duration, most int) *List {
	return &List{clock: c, after: after, most: int64(most)}
}

// Use notes that a guest has an instance and uses it. If too many guests are awake, it puts another one away before it
// returns. If it finds none, this guest sleeps after its run. For a guest that is listed already it costs one load.
func (l *List) Use(n *Node) {
	if !n.used.Load() {
		n.used.Store(true)
		l.add(n)
	}
}

// add adds a node, if it is not in the list.
func (l *List) add(n *Node) {
	if l.after == 0 && l.most == 0 {
		return
	}
	s := &l.shards[n.shard]
	s.mu.Lock()
	if n.place.Listed() {
		s.mu.Unlock()
		return
	}
	s.list.PushBack(&n.place)
	n.tree.add(n)
	l.counts(n)
	s.mu.Unlock()
	for i := 0; l.Over(); i++ {
		if i == tries {
			n.sleeper.SleepNext()
			break
		}
		l.evict(n, anybody)
	}
	if l.after > 0 && l.armed.CompareAndSwap(false, true) {
		l.arm()
	}
}

// tries is how many guests are checked to find one that can be put away. Two rounds of all shards find an idle guest among a
// few. Where thousands are awake and busy, checking more would be useless.
const tries = 2 * shards

// Over reports whether more guests are awake than may be.
func (l *List) Over() bool { return l.most > 0 && l.count.Load() > l.most }

// counts counts a node once. Its shard is locked.
func (l *List) counts(n *Node) {
	if !n.counted {
		n.counted = true
		l.count.Add(1)
	}
}

// Hold notes that a guest has an instance that it cannot release for now. The guest counts, and is left alone until it is
// used again.
func (l *List) Hold(n *Node) {
	if l.after == 0 && l.most == 0 {
		return
	}
	s := &l.shards[n.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlist(n)
	l.counts(n)
}

// Count is Hold for a guest that has just got its instance. It puts others away to make room.
func (l *List) Count(n *Node) {
	l.Hold(n)
	for i := 0; l.Over() && i < tries; i++ {
		l.evict(n, anybody)
	}
}

// Remove notes that a guest has no instance any more.
func (l *List) Remove(n *Node) {
	s := &l.shards[n.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlist(n)
	if n.counted {
		n.counted = false
		l.count.Add(-1)
	}
}

// unlist removes a node from the lists, if it is listed. Its next use lists it again. s is locked.
func (s *shard) unlist(n *Node) {
	n.used.Store(false)
	if n.place.Listed() {
		s.list.Remove(&n.place)
		n.tree.remove(n)
	}
}

// MakeRoom puts away one guest that fits accepts, for a newcomer that gets no instance otherwise. It returns false if none
// of the oldest that it checked can be put away; the next call checks others.
func (l *List) MakeRoom(newcomer *Node, fits func(Sleeper) bool) bool {
	for range tries {
		if l.evict(newcomer, fits) {
			return true
		}
	}
	return false
}

// MakeRoom makes one of the tree's guests release reserved memory, as List.SlimOne does, or else puts one away, as
// List.MakeRoom does. It checks at most 32 guests for each. When it looks for a guest to put away, it first skips those used
// since the last check, then takes any idle one.
func (t *Tree) MakeRoom(newcomer *Node, fits func(Sleeper) bool) bool {
	for range tries {
		n := t.next(&t.wide)
		if n == nil {
			break
		}
		if n != newcomer && fits(n.sleeper) && n.sleeper.Slim(true) {
			return true
		}
	}
	for i := range tries {
		n := t.next(&t.list)
		switch {
		case n == nil:
			return false
		case n == newcomer || !fits(n.sleeper) || n.used.Swap(false) && i < tries/2:
		case n.sleeper.PutAway():
			return true
		}
	}
	return false
}

// next returns the guest that was checked longest ago, or nil.
func (t *Tree) next(l *linked.List[*Node]) *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return turn(l)
}

// turn moves the first node of a list to the end and returns it, or nil.
func turn(l *linked.List[*Node]) *Node {
	first := l.First()
	if first == nil {
		return nil
	}
	l.Remove(first)
	l.PushBack(first)
	return first.Of
}

func anybody(Sleeper) bool { return true }

// evict puts away one of the oldest guests of the next shard if it is idle, but never the newcomer that needs the room.
func (l *List) evict(newcomer *Node, fits func(Sleeper) bool) bool {
	n := l.shards[l.next.Add(1)%shards].victim(newcomer, fits)
	return n != nil && n.sleeper.PutAway()
}

// victim returns, of the first 16 nodes, the oldest one not used since the last check, or else the oldest. It moves to the
// end of the list, so that others come next if it cannot be put away.
func (s *shard) victim(newcomer *Node, fits func(Sleeper) bool) (oldest *Node) {
	const looks = 16
	s.mu.Lock()
	defer s.mu.Unlock()
	for range looks {
		first := s.list.First()
		if first == nil {
			return nil
		}
		n := first.Of
		s.list.Remove(&n.place)
		s.list.PushBack(&n.place)
		switch {
		case n == newcomer || !fits(n.sleeper):
		case !n.used.Swap(false):
			return n
		case oldest == nil:
			oldest = n
		}
	}
	return oldest
}

// arm sweeps after the time that a guest may be idle.
func (l *List) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.timer = l.clock.AfterFunc(l.after, l.sweep)
	}
}

// sweep asks the guests to sleep that were not used since the last sweep. A list without
// guests has no timer.
func (l *List) sweep() {
	for i := range l.shards {
		for _, n := range l.shards[i].idle() {
			n.sleeper.AskToSleep()
		}
	}
	l.armed.Store(false) // before the look: who comes after it arms
	if l.anyListed() && l.armed.CompareAndSwap(false, true) {
		l.arm()
	}
}

// anyListed reports whether any guest is listed.
func (l *List) anyListed() bool {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		first := s.list.First()
		s.mu.Unlock()
		if first != nil {
			return true
		}
	}
	return false
}

// idle takes out those that were not used since it was last called; they count until they sleep.
func (s *shard) idle() (out []*Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for place := s.list.First(); place != nil; {
		n, next := place.Of, place.Next()
		if !n.used.Swap(false) {
			s.list.Remove(place)
			n.tree.remove(n)
			out = append(out, n)
		}
		place = next
	}
	return out
}

// Close stops the sweeps.
func (l *List) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, t := range []clock.Timer{l.timer, l.slimmer} {
		if t != nil {
			t.Stop()
		}
	}
}
