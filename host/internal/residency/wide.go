package residency

import (
	"runtime"
	"time"
)

// A guest that may run holds room for all that it could touch, which is many times what it has touched. It keeps that
// room for a while after its run, so that one which runs often does not get it each time, and gives it back when it has
// not run for a time, or when others need the room.

// slimAfter is how often those are asked for the room that have not run since they were last asked.
const slimAfter = 10 * time.Second

// Widen notes that a guest holds room for what it could touch.
func (l *List) Widen(n *Node) {
	s := &l.shards[n.shard]
	s.mu.Lock()
	if n.wide.Listed() {
		s.mu.Unlock()
		return
	}
	s.wide.PushBack(&n.wide)
	s.many++
	if t := n.tree; t != nil {
		t.mu.Lock()
		t.wide.PushBack(&n.spread)
		t.mu.Unlock()
	}
	l.wide.Add(1)
	s.mu.Unlock()
	if l.slims.CompareAndSwap(false, true) {
		l.armSlim()
	}
}

// Narrow notes that it does not any more.
func (l *List) Narrow(n *Node) {
	s := &l.shards[n.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !n.wide.Listed() {
		return
	}
	s.wide.Remove(&n.wide)
	s.many--
	if t := n.tree; t != nil {
		t.mu.Lock()
		t.wide.Remove(&n.spread)
		t.mu.Unlock()
	}
	l.wide.Add(-1)
}

// SlimOne has one guest give back the room that it does not use, for a newcomer that finds none; false if there is
// none that could, among some hundred.
func (l *List) SlimOne(newcomer *Node) bool {
	for i := 0; i < tries && l.wide.Load() > 0; i++ {
		if l.shards[l.next.Add(1)%shards].slim(newcomer) {
			return true
		}
	}
	return false
}

// slim has the one that was asked longest ago give its room back, or one of those behind it.
func (s *shard) slim(newcomer *Node) bool {
	const looks = 16
	for range looks {
		s.mu.Lock()
		n := turn(&s.wide)
		s.mu.Unlock()
		if n == nil {
			return false
		}
		if n != newcomer && n.sleeper.Slim(true) {
			return true
		}
	}
	return false
}

func (l *List) armSlim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.slimmer = l.clock.AfterFunc(slimAfter, l.slimAll)
	}
}

// slimAll asks every guest. A list without reserved memory has no timer.
func (l *List) slimAll() {
	var some [16]*Node
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		left := s.many
		s.mu.Unlock()
		for left > 0 {
			s.mu.Lock()
			asked := some[:min(len(some), left, s.many)]
			for i := range asked {
				asked[i] = turn(&s.wide)
			}
			s.mu.Unlock()
			for _, n := range asked {
				n.sleeper.Slim(false)
			}
			if left -= len(asked); len(asked) == 0 {
				break
			}
			runtime.Gosched()
		}
	}
	l.slims.Store(false) // before the look: who comes after it arms
	if l.wide.Load() > 0 && l.slims.CompareAndSwap(false, true) {
		l.armSlim()
	}
}
