package tracing

import (
	"strings"
	"sync"
	"time"
)

// A trace costs the host, and guests decide how long it goes on: two that answer each other
// for ever are one trace. So there is a bound for each trace, beyond which what it causes is
// no longer recorded, and a rate for all together, of which no tree of actors can take the
// last part from the others.

// Defaults of [Bounds].
const (
	DefaultSpans  = 1000
	DefaultRate   = 5000
	DefaultTraces = 4096
)

// Bounds of what is recorded. Zero fields mean the defaults.
type Bounds struct {
	Spans  int // of one trace. What it causes beyond them is not recorded
	Rate   int // spans a second, all traces together; as many may come at once
	Traces int // that are remembered as under way, some 100 bytes each
}

// Stats is what happened to spans.
type Stats struct {
	Recorded uint64
	Long     uint64 // not recorded: their trace had reached its bound
	Fast     uint64 // not recorded: there were too many in a second
	Traces   int    // remembered as under way
}

// share is the part of the rate that is reserved for trees that have had less than it.
const share = 16

// limits enforces the bounds.
type limits struct {
	Bounds
	mu     sync.Mutex
	traces map[[16]byte]int // spans so far
	order  [][16]byte       // a ring of the traces, in the order of their beginning
	next   int
	tokens float64
	at     time.Time
	second map[string]int // spans of each tree since tokens were last full, or a second
	since  time.Time
	stat   Stats
}

func (l *limits) init(b Bounds) {
	if b.Spans <= 0 {
		b.Spans = DefaultSpans
	}
	if b.Rate <= 0 {
		b.Rate = DefaultRate
	}
	if b.Traces <= 0 {
		b.Traces = DefaultTraces
	}
	l.Bounds, l.tokens = b, float64(b.Rate)
	l.traces, l.second = map[[16]byte]int{}, map[string]int{}
}

// take counts a span of a trace; false: it must not be recorded.
func (l *limits) take(id [16]byte, tree string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known := l.traces[id]
	if n >= l.Spans {
		l.stat.Long++
		return false
	}
	if !l.room(tree, now) {
		return false
	}
	if !known {
		l.remember(id)
	}
	l.traces[id] = n + 1
	l.spend(tree)
	return true
}

// mayBegin reports whether a trace may begin; begin counts its root.
func (l *limits) mayBegin(tree string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room(tree, now)
}

func (l *limits) begin(id [16]byte, tree string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(id)
	l.traces[id] = 1
	l.spend(tree)
}

// remember makes room for a trace: the oldest one is forgotten.
func (l *limits) remember(id [16]byte) {
	if len(l.order) < l.Traces {
		l.order = append(l.order, id)
		return
	}
	delete(l.traces, l.order[l.next])
	l.order[l.next] = id
	l.next = (l.next + 1) % len(l.order)
}

// room reports whether a tree may have another span now.
func (l *limits) room(tree string, now time.Time) bool {
	if passed := now.Sub(l.at); passed > 0 {
		if !l.at.IsZero() {
			l.tokens = min(float64(l.Rate), l.tokens+passed.Seconds()*float64(l.Rate))
		}
		l.at = now
	}
	if now.Sub(l.since) >= time.Second || now.Before(l.since) {
		clear(l.second)
		l.since = now
	}
	least := 1.0
	if l.second[tree]*share >= l.Rate {
		least = max(least, float64(l.Rate)/2) // the rest is for others
	}
	if l.tokens < least {
		l.stat.Fast++
		return false
	}
	return true
}

// mostTrees bounds how many trees are distinguished in a second.
const mostTrees = 1024

func (l *limits) spend(tree string) {
	l.tokens--
	l.stat.Recorded++
	if _, known := l.second[tree]; known || len(l.second) < mostTrees {
		l.second[tree]++
	}
}

func (l *limits) knows(id [16]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.traces[id]
	return ok
}

func (l *limits) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stat
	s.Traces = len(l.traces)
	return s
}

// treeOf is the top-level actor that a path is below: /user/a of /user/a/b/c.
func treeOf(path string) string {
	at := 0
	for range 3 {
		i := strings.IndexByte(path[at:], '/')
		if i < 0 {
			return path
		}
		at += i + 1
	}
	return path[:at-1]
}
