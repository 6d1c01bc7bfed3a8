package sysmail

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/supervision"
)

// Bounds of what waits: the length from which superfluous messages are looked for, how many there
// may be about asks, about 200 bytes each, and how many looks at the actor may wait.
const (
	FirstThin = 256
	MostAsked = 2048
	MostLooks = 1024
)

// about is the content of a system message, as far as it decides whether two say the same.
type about struct {
	kind        Kind
	signal      signal.Kind
	ref, other  abi.Ref
	correlation uint64
}

// thinning is one look at a queue.
type thinning struct {
	items              []Msg
	keep               []bool
	seen               map[about]int // where
	asked, born, looks int
	order              int // where the last order of the supervisor is, -1: nowhere
}

// last finds messages that are superseded by later ones: of watches and their ends the last one of each actor counts;
// for pauses and their ends see lastPause. Of counted messages the last one takes the sum.
func (t *thinning) last() {
	clear(t.seen)
	for i, m := range slices.Backward(t.items) {
		t.keep[i] = true
		if m.begins() { // children that it starts inherit the pause
			t.forgetPauses()
		}
		var k about
		switch m.Kind {
		default:
			continue
		case Signal:
			if m.Signal.Kind != signal.Watch && m.Signal.Kind != signal.Unwatch {
				continue
			}
			k = about{kind: Signal, signal: signal.Watch, ref: m.Signal.From}
		case Pause, Unpause:
			t.keep[i] = t.lastPause(i)
			continue
		case Renewed:
			k = about{kind: Renewed}
		}
		at, later := t.seen[k]
		if !later {
			t.seen[k] = i
			continue
		}
		t.keep[i] = false
		switch {
		case m.Kind == Renewed:
			t.items[at].More += 1 + m.More
		case m.Signal.Once && t.items[at].Signal.Kind == signal.Unwatch: // the watcher of a later unwatch does not watch any more
			t.keep[at] = false
		}
	}
	clear(t.seen)
}

// What was seen of pauses, going backwards: one of the whole subtree, which covers everything; the end of a pause, which
// also ends that of the subtree; any.
var (
	pausesBelow = about{kind: Pause, other: 1}
	unpauses    = about{kind: Unpause}
	pauses      = about{kind: Pause}
)

// lastPause reports whether no later message supersedes a pause or its end. The end of a pause also makes
// later children begin without one, which a later pause of the actor alone does not change.
func (t *thinning) lastPause(i int) bool {
	if _, later := t.seen[pausesBelow]; later {
		return false
	}
	switch m := &t.items[i]; {
	case m.How.Has(Below):
		t.seen[pausesBelow] = i
		return true
	case m.Kind == Unpause:
		t.seen[pauses] = i
		return t.new(unpauses, i)
	}
	return t.new(pauses, i)
}

func (t *thinning) forgetPauses() {
	delete(t.seen, pausesBelow)
	delete(t.seen, unpauses)
	delete(t.seen, pauses)
}

// first reports whether the i-th message is the first that says this.
func (t *thinning) first(i int) bool {
	m := &t.items[i]
	if m.begins() { // it can fail, or end, when it could not before
		delete(t.seen, about{kind: Crash})
		delete(t.seen, about{kind: Stray})
		delete(t.seen, about{kind: Quit})
	}
	switch m.Kind {
	case Signal:
		s := m.Signal
		if s.Kind != signal.Delegate && s.Kind != signal.Unanswered {
			return true
		}
		if t.asked >= MostAsked || !t.new(about{m.Kind, s.Kind, s.From, s.Other, s.Correlation}, i) { // beyond a bound answers are refused
			return false
		}
		t.asked++
	case Born:
		if t.born++; t.born > MostBorn {
			m.Born.To.Miss()
			return false
		}
	case Look:
		l := m.Look
		if l.IsOver() {
			return false
		}
		if t.looks++; t.looks > MostLooks {
			l.Gone()
			return false
		}
	case AwaitRenewal:
		k := about{kind: m.Kind}
		if at, before := t.seen[k]; before {
			t.items[at].More += 1 + m.More
			return false
		}
		t.seen[k] = i
	case Renew:
		return t.renewal(i)
	case Decide: // the first of each kind has an effect
		if !t.new(about{kind: m.Kind, ref: m.Ref, other: abi.Ref(m.Directive)}, i) {
			return false
		}
		delete(t.seen, about{kind: ResetBackoff, ref: m.Ref})
	case ResetBackoff: // a child's wish since it was last heard of
		return t.new(about{kind: m.Kind, ref: m.Ref}, i)
	case ChildFailed, ChildEnded, ChildHalted, ChildBegun:
		delete(t.seen, about{kind: ResetBackoff, ref: m.Ref})
		for d := supervision.Resume; d <= supervision.Suspend; d++ {
			delete(t.seen, about{kind: Decide, ref: m.Ref, other: abi.Ref(d)})
		}
	case Crash: // an actor that has failed does not fail again before the decision
		return t.new(about{kind: m.Kind}, i)
	case Stop, Quit, Stray:
		if !m.How.Has(Order) {
			return t.new(about{kind: m.Kind}, i)
		}
	}
	if m.How.Has(Order) {
		t.again(i)
		t.order = i
	}
	return true
}

// new reports whether something was not said before, and notes it.
func (t *thinning) new(k about, i int) bool {
	if _, before := t.seen[k]; before {
		return false
	}
	t.seen[k] = i
	return true
}

// renewal merges the orders to restart a child: those that change nothing, and those that do; of the latter
// the last props count.
func (t *thinning) renewal(i int) bool {
	m := &t.items[i]
	k := about{kind: m.Kind, ref: m.Ref}
	if m.Detail != nil {
		k.other = 1
	}
	at, before := t.seen[k]
	if !before {
		t.seen[k] = i
		delete(t.seen, about{kind: ResetBackoff, ref: m.Ref})
		return true
	}
	to := &t.items[at]
	to.More += 1 + m.More
	if n, ok := m.Detail.(Renewing); ok && n.Changes() {
		to.Detail, to.Failure = m.Detail, m.Failure
	}
	return false
}

// again drops the order before the i-th if both are operators' restarts with the same content. The later
// one counts for both.
func (t *thinning) again(i int) {
	if t.order < 0 {
		return
	}
	m, before := &t.items[i], &t.items[t.order]
	if m.Kind != Restart || before.Kind != Restart || m.How != before.How || !m.How.Has(Now) || m.Detail != nil || before.Detail != nil ||
		m.Failure != before.Failure || m.Delay != 0 || before.Delay != 0 {
		return
	}
	m.More += 1 + before.More
	t.keep[t.order] = false
}
