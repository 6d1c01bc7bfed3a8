package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/supervision"
)

// Bounds of what waits: the length from which superfluous messages are looked for, how many there
// may be about asks, about 200 bytes each, and how many looks at the actor may wait.
const (
	firstThin = 256
	mostAsked = 2048
	mostLooks = 1024
)

// about is the content of a system message, as far as it decides whether two say the same.
type about struct {
	kind        sysKind
	signal      signal.Kind
	ref, other  abi.Ref
	correlation uint64
}

// thin drops messages that say nothing new, and merges those that are counted, so that a queue is no longer than
// the number of different messages in it, however often guests and operators repeat them to a busy actor.
func (q *systemQueue) thin() {
	t := thinning{items: q.items, keep: make([]bool, len(q.items)), seen: make(map[about]int, len(q.items)), order: -1}
	t.last()
	for i := range t.items {
		if t.keep[i] {
			t.keep[i] = t.first(i)
		}
	}
	rest := make([]sysMsg, 0, len(t.items)/2)
	for i, m := range t.items {
		if t.keep[i] {
			rest = append(rest, m)
		}
	}
	clear(q.items)
	q.items, q.thinAt = rest, 2*len(rest)
}

// thinning is one look at a queue.
type thinning struct {
	items              []sysMsg
	keep               []bool
	seen               map[about]int // where
	asked, born, looks int
	order              int // where the last order of the supervisor is, -1: nowhere
}

// begins reports whether m may let an actor run in another incarnation or after its
// failure, so that messages after m do not mean the same as before it.
func (m *sysMsg) begins() bool {
	return m.how.has(howOrder) || m.kind == sysStart || m.kind == sysRestartDue || m.kind == sysChildStopped
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
		switch m.kind {
		default:
			continue
		case sysSignal:
			if m.signal.Kind != signal.Watch && m.signal.Kind != signal.Unwatch {
				continue
			}
			k = about{kind: sysSignal, signal: signal.Watch, ref: m.signal.From}
		case sysPause, sysUnpause:
			t.keep[i] = t.lastPause(i)
			continue
		case sysRenewed:
			k = about{kind: sysRenewed}
		}
		at, later := t.seen[k]
		if !later {
			t.seen[k] = i
			continue
		}
		t.keep[i] = false
		switch {
		case m.kind == sysRenewed:
			t.items[at].more += 1 + m.more
		case m.signal.Once && t.items[at].signal.Kind == signal.Unwatch: // the watcher of a later unwatch does not watch any more
			t.keep[at] = false
		}
	}
	clear(t.seen)
}

// What was seen of pauses, going backwards: one of the whole subtree, which covers everything; the end of a pause, which
// also ends that of the subtree; any.
var (
	pausesBelow = about{kind: sysPause, other: 1}
	unpauses    = about{kind: sysUnpause}
	pauses      = about{kind: sysPause}
)

// lastPause reports whether no later message supersedes a pause or its end. The end of a pause also makes
// later children begin without one, which a later pause of the actor alone does not change.
func (t *thinning) lastPause(i int) bool {
	if _, later := t.seen[pausesBelow]; later {
		return false
	}
	switch m := &t.items[i]; {
	case m.how.has(howBelow):
		t.seen[pausesBelow] = i
		return true
	case m.kind == sysUnpause:
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
		delete(t.seen, about{kind: sysCrash})
		delete(t.seen, about{kind: sysStray})
		delete(t.seen, about{kind: sysQuit})
	}
	switch m.kind {
	case sysSignal:
		s := m.signal
		if s.Kind != signal.Delegate && s.Kind != signal.Unanswered {
			return true
		}
		if t.asked >= mostAsked || !t.new(about{m.kind, s.Kind, s.From, s.Other, s.Correlation}, i) { // beyond a bound answers are refused
			return false
		}
		t.asked++
	case sysBorn:
		if t.born++; t.born > mostBorn {
			m.born.to.missed.Store(true)
			return false
		}
	case sysLook:
		l := m.look
		if l.over.Load() {
			return false
		}
		if t.looks++; t.looks > mostLooks {
			l.gone()
			return false
		}
	case sysAwaitRenewal:
		k := about{kind: m.kind}
		if at, before := t.seen[k]; before {
			t.items[at].more += 1 + m.more
			return false
		}
		t.seen[k] = i
	case sysRenew:
		return t.renewal(i)
	case sysDecide: // the first of each kind has an effect
		if !t.new(about{kind: m.kind, ref: m.ref, other: abi.Ref(m.directive)}, i) {
			return false
		}
		delete(t.seen, about{kind: sysResetBackoff, ref: m.ref})
	case sysResetBackoff: // a child's wish since it was last heard of
		return t.new(about{kind: m.kind, ref: m.ref}, i)
	case sysChildFailed, sysChildEnded, sysChildHalted, sysChildBegun:
		delete(t.seen, about{kind: sysResetBackoff, ref: m.ref})
		for d := supervision.Resume; d <= supervision.Suspend; d++ {
			delete(t.seen, about{kind: sysDecide, ref: m.ref, other: abi.Ref(d)})
		}
	case sysCrash: // an actor that has failed does not fail again before the decision
		return t.new(about{kind: m.kind}, i)
	case sysStop, sysQuit, sysStray:
		if !m.how.has(howOrder) {
			return t.new(about{kind: m.kind}, i)
		}
	}
	if m.how.has(howOrder) {
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
	k := about{kind: m.kind, ref: m.ref}
	if m.detail != nil {
		k.other = 1
	}
	at, before := t.seen[k]
	if !before {
		t.seen[k] = i
		delete(t.seen, about{kind: sysResetBackoff, ref: m.ref})
		return true
	}
	to := &t.items[at]
	to.more += 1 + m.more
	if n, ok := m.detail.(*renewal); ok && n.props != nil {
		to.detail, to.failure = m.detail, m.failure
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
	if m.kind != sysRestart || before.kind != sysRestart || m.how != before.how || !m.how.has(howNow) || m.detail != nil || before.detail != nil ||
		m.failure != before.failure || m.delay != 0 || before.delay != 0 {
		return
	}
	m.more += 1 + before.more
	t.keep[t.order] = false
}
