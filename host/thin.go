package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Bounds of what waits: from where it is looked for what is not needed, how much there
// may be about asks, about 200 bytes each, and how many may wait to look at the actor.
const (
	firstThin = 256
	mostAsked = 2048
	mostLooks = 1024
)

// about is what a system message says, as far as it matters whether another one says the same.
type about struct {
	kind        sysKind
	ref, other  abi.Ref
	correlation uint64
}

// thin drops what says nothing new, and merges what is counted, so that a queue is no longer than what is
// different in it, however often guests and operators say the same to an actor that is busy.
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

// begins reports whether an actor may run after m that has not before, in another incarnation or after its
// failure, so that what is said behind m does not mean what it has meant before.
func (m *sysMsg) begins() bool {
	return m.order || m.kind == sysStart || m.kind == sysRestartDue || m.kind == sysChildStopped
}

// last finds what is said again later: of watches and their ends an actor's last one; of pauses and their
// ends see lastPause. Of what is counted the last one takes the sum.
func (t *thinning) last() {
	clear(t.seen)
	for i, m := range slices.Backward(t.items) {
		t.keep[i] = true
		if m.begins() { // children that it starts are born paused or not
			t.forgetPauses()
		}
		var k about
		switch m.kind {
		default:
			continue
		case sysWatch, sysUnwatch:
			k = about{kind: sysWatch, ref: m.ref}
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
		case m.once && t.items[at].kind == sysUnwatch: // nobody watches who does not any more
			t.keep[at] = false
		}
	}
	clear(t.seen)
}

// What is said of pauses, from the back: for all that is below, which says all; the end of a pause, which
// ends that of what is below as well; any.
var (
	pausesBelow = about{kind: sysPause, other: 1}
	unpauses    = about{kind: sysUnpause}
	pauses      = about{kind: sysPause}
)

// lastPause reports whether a pause, or its end, is not made void by what comes later: the end of a pause
// also has children that come later begin without, which a later pause of the actor alone does not change.
func (t *thinning) lastPause(i int) bool {
	if _, later := t.seen[pausesBelow]; later {
		return false
	}
	switch m := &t.items[i]; {
	case m.below:
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

// first reports whether the i-th message is the first that says something.
func (t *thinning) first(i int) bool {
	m := &t.items[i]
	if m.begins() { // it can fail, or end, that could not before
		delete(t.seen, about{kind: sysCrash})
		delete(t.seen, about{kind: sysStray})
		delete(t.seen, about{kind: sysQuit})
	}
	switch m.kind {
	case sysDelegate, sysUnanswered: // beyond a bound answers are refused
		if t.asked >= mostAsked || !t.new(about{m.kind, m.ref, m.other, m.correlation}, i) {
			return false
		}
		t.asked++
	case sysBorn:
		if t.born++; t.born > mostBorn {
			m.token.(*lookout).missed.Store(true)
			return false
		}
	case sysLook:
		l := m.token.(*look)
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
	case sysDecide: // the first one that differs has an effect
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
	case sysCrash: // one that has failed does not fail again until it is told what becomes of it
		return t.new(about{kind: m.kind}, i)
	case sysStop, sysQuit, sysStray:
		if !m.order {
			return t.new(about{kind: m.kind}, i)
		}
	}
	if m.order {
		t.again(i)
		t.order = i
	}
	return true
}

// new reports whether something was not said before, and notes that it is now.
func (t *thinning) new(k about, i int) bool {
	if _, before := t.seen[k]; before {
		return false
	}
	t.seen[k] = i
	return true
}

// renewal merges the orders to restart a child: those that change nothing, and those that do, of which
// the last recipe counts.
func (t *thinning) renewal(i int) bool {
	m := &t.items[i]
	k := about{kind: m.kind, ref: m.ref}
	if m.token != nil {
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
	if n, ok := m.token.(*renewal); ok && n.props != nil {
		to.token, to.failure = m.token, m.failure
	}
	return false
}

// again drops the order before the i-th if both are to restart, by an operator, and say the same. The later
// one counts for both.
func (t *thinning) again(i int) {
	if t.order < 0 {
		return
	}
	m, before := &t.items[i], &t.items[t.order]
	if m.kind != sysRestart || before.kind != sysRestart || !m.now || !before.now || m.token != nil || before.token != nil ||
		m.failure != before.failure || m.delay != 0 || before.delay != 0 || m.keep != before.keep || m.hold != before.hold {
		return
	}
	m.more += 1 + before.more
	t.keep[t.order] = false
}
