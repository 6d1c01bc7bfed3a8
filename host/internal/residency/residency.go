// Package residency decides which guests keep their instances. An idle guest gives its
// instance back and keeps what differs from its image, some hundred bytes; the
// next message brings it back. Guests sleep when nothing has come for a while, and
// earlier when more are awake than there should be.
package residency

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/linked"
)

// Sleeper is a guest that can give its instance back, which ends with a call of Remove.
type Sleeper interface {
	// AskToSleep asks the guest to give its instance back when it is idle. It must not wait.
	AskToSleep()
	// PutAway gives the guest's instance back at once, and says so. Not if it is running or
	// about to; nor if its state cannot be kept, which ends with a call of Hold.
	PutAway() bool
	// SleepNext makes the guest, which is running, give its instance back at the end of its run.
	SleepNext()
}

// Node is a guest's place among those that are awake. The zero value is not among them.
type Node struct {
	sleeper Sleeper
	shard   uint8
	place   linked.Link[*Node] // the shard's
	counted bool               // it has an instance, listed or not; under the shard's lock
	tree    *Tree              // nil: it is in none
	among   linked.Link[*Node] // the tree's; listed with place
	used    atomic.Bool        // since somebody looked
}

// Init says whose node it is, and of which tree; key spreads guests over the shards.
func (n *Node) Init(s Sleeper, key uint64, tree *Tree) {
	n.sleeper, n.shard, n.place.Of, n.tree, n.among.Of = s, uint8(key%shards), n, tree, n
}

// Tree is those of a list that pay for their memory together. So whoever looks for room there finds
// it, or that there is none, whatever the number of all others, and touches nobody else. The zero
// value is empty.
type Tree struct {
	mu   sync.Mutex // behind that of a shard
	list linked.List[*Node]
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

// Used reports whether the guest was used since it was last looked at.
func (n *Node) Used() bool { return n.used.Load() }

// List is the guests of a system that are awake, in the order in which they got their
// instances; those that cannot sleep are only counted. Make one with New; all methods are for any goroutine. More than most are awake only
// for as long as those are running that could not put anybody else away, so there are at most as
// many beyond it as runs are under way.
type List struct {
	after  time.Duration // 0: never
	most   int64         // 0: no bound
	clock  clock.Clock
	count  atomic.Int64
	armed  atomic.Bool
	next   atomic.Uint64 // shard to evict from
	shards [shards]shard

	mu    sync.Mutex
	timer clock.Timer
	ended bool
}

const shards = 16

type shard struct {
	mu   sync.Mutex
	list linked.List[*Node] // the oldest first
	_    [64]byte           // a cache line between neighbours
}

// New makes a list: guests sleep when they were idle for after (0: never), and earlier
// when more than most are awake (0: no bound).
func New(c clock.Clock, after time.Duration, most int) *List {
	return &List{clock: c, after: after, most: int64(most)}
}

// Use notes that a guest has an instance and uses it. If there are too many, another one
// is put away before Use returns, or else this one will be after its run. It costs a load
// if the guest is in the list already.
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

// tries is how many guests are looked at to find one that can be put away. Two rounds of all
// shards find an idle one of a few; where thousands are awake and all are busy, further
// looking would be useless.
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

// Hold notes that a guest has an instance which it cannot give back for now: it counts, and is left alone until
// it is used again.
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

// Count is Hold for a guest that has just got its instance: others make room for it.
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

// unlist takes a node out of the lists, if it is in them: it is in again when it is used. s is locked.
func (s *shard) unlist(n *Node) {
	n.used.Store(false)
	if n.place.Listed() {
		s.list.Remove(&n.place)
		n.tree.remove(n)
	}
}

// MakeRoom puts one for which fits says so away for a newcomer that gets no instance; false if there
// is none that could be, among some hundred of the oldest: other ones are looked at the next time.
func (l *List) MakeRoom(newcomer *Node, fits func(Sleeper) bool) bool {
	for range tries {
		if l.evict(newcomer, fits) {
			return true
		}
	}
	return false
}

// MakeRoom is List.MakeRoom among the tree's guests alone, of which it looks at 32 at most: at first
// for one that was not used since it was last looked at, then for any that is idle.
func (t *Tree) MakeRoom(newcomer *Node, fits func(Sleeper) bool) bool {
	for i := range tries {
		n := t.next()
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

// next is the one that was looked at longest ago; nil if there is none.
func (t *Tree) next() *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.list.First()
	if first == nil {
		return nil
	}
	t.list.Remove(first)
	t.list.PushBack(first)
	return first.Of
}

func anybody(Sleeper) bool { return true }

// evict puts one of the oldest guests away if it is idle, trying one shard after the other; never the
// newcomer that needs the room.
func (l *List) evict(newcomer *Node, fits func(Sleeper) bool) bool {
	n := l.shards[l.next.Add(1)%shards].victim(newcomer, fits)
	return n != nil && n.sleeper.PutAway()
}

// victim is the oldest of some nodes that was not used since it was last looked at, or else the
// oldest. It moves to the end of the list: if it cannot be put away, others are next.
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

// anyListed reports whether there is anybody to sweep.
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
	if l.timer != nil {
		l.timer.Stop()
	}
}
