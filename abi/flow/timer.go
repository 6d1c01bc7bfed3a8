package flow

import (
	"container/heap"
	"time"
)

// timers are those of a graph, the earliest first. A runner needs one timer of its actor for all of them.
type timers struct{ heap timerHeap }

// timer calls f once when it is due. Setting it again moves it.
type timer struct {
	at     time.Time
	serial uint64 // of those due at the same time, the one set first rings first
	index  int    // in the heap; -1: not set
	f      func()
}

func newTimer(f func()) *timer { return &timer{index: -1, f: f} }

func (g *Graph) set(t *timer, d time.Duration) {
	t.at = g.now.Add(max(d, 0))
	g.timers.heap.serial++
	t.serial = g.timers.heap.serial
	if t.index >= 0 {
		heap.Fix(&g.timers.heap, t.index)
	} else {
		heap.Push(&g.timers.heap, t)
	}
}

func (g *Graph) unset(t *timer) {
	if t != nil && t.index >= 0 {
		heap.Remove(&g.timers.heap, t.index)
	}
}

func (ts *timers) next() (time.Time, bool) {
	if len(ts.heap.all) == 0 {
		return time.Time{}, false
	}
	return ts.heap.all[0].at, true
}

// ring calls those that are due and were set before.
func (ts *timers) ring(now time.Time) {
	last := ts.heap.serial
	for len(ts.heap.all) > 0 && !ts.heap.all[0].at.After(now) && ts.heap.all[0].serial <= last {
		heap.Pop(&ts.heap).(*timer).f()
	}
}

type timerHeap struct {
	all    []*timer
	serial uint64
}

// Len implements heap.Interface.
func (h *timerHeap) Len() int { return len(h.all) }

// Less implements heap.Interface.
func (h *timerHeap) Less(i, j int) bool {
	a, b := h.all[i], h.all[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.serial < b.serial
}

// Swap implements heap.Interface.
func (h *timerHeap) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].index, h.all[j].index = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(h.all)
	h.all = append(h.all, t)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	t := h.all[len(h.all)-1]
	h.all[len(h.all)-1] = nil
	h.all = h.all[:len(h.all)-1]
	t.index = -1
	return t
}
