package journal

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/host/record"
)

// A turn that stores nothing is not refused by the log if the shard is another node's by now, and what its actor knows may be old. So it takes
// effect only while this node is sure that nobody can have taken the shard: otherwise it waits until the node has renewed its lease, or knows that
// it has lost the shard.

// lookAgain is the pause before those that wait are looked at again.
const lookAgain = 20 * time.Millisecond

// certainty is what the node says.
func (j *Journal) certainty() (passed uint64, ok bool) {
	if j.opt.Sure == nil {
		return 0, true
	}
	return j.opt.Sure()
}

// sure reports whether a shard is this node's, as the node has said before; over says that it is not. The caller holds the lock.
func (j *Journal) sure(p *part, passed uint64, ok bool) (sure, over bool) {
	switch {
	case j.opt.Sure == nil || j.opt.skip&guardSure != 0:
		return true, false
	case j.closed: // nothing is served any more, and nobody waits
		sure = ok && passed == p.passed
		return sure, !sure
	case !p.served:
		return false, true
	}
	return ok && (passed == p.passed || j.opt.skip&guardPassed != 0), false
}

// errUnsure ends a turn that cannot wait: it is the end of an incarnation, or a decision about a child.
var errUnsure = errors.New("journal: this node is not sure that the shard is its own, and the end of an actor does not wait")

// hold answers a turn that has stored nothing, now or when this node is sure.
func (j *Journal) hold(t *record.Turn, k *key) {
	passed, ok := j.certainty()
	j.mu.Lock()
	sure, over := j.sure(k.part, passed, ok)
	if sure || over || k.broken || t.Waits {
		var err error
		switch {
		case over:
			k.broken, err = true, ErrMoved
		case k.broken && j.opt.skip&guardSure == 0:
			err = ErrAnew
		case !sure:
			err = errUnsure
		}
		j.mu.Unlock()
		t.Answer(err)
		return
	}
	k.held = t
	j.counts.Held++
	if !k.listed {
		k.listed = true
		j.held = append(j.held, k)
	}
	looks := j.looks
	j.looks = true
	j.mu.Unlock()
	if !looks {
		j.opt.Clock.AfterFunc(lookAgain, j.lookHeld)
	}
}

// lookHeld looks at the turns that wait. They are as many as there are actors, at most.
func (j *Journal) lookHeld() {
	passed, ok := j.certainty()
	j.mu.Lock()
	var ends []func()
	var left []*key
	for _, k := range j.held {
		sure, over := j.sure(k.part, passed, ok)
		switch {
		case k.held == nil:
		case k.broken:
			ends = append(ends, j.unheld(k, ErrAnew))
		case sure:
			ends = append(ends, j.unheld(k, nil))
		case over:
			ends = append(ends, j.unheld(k, ErrMoved))
		default:
			left = append(left, k)
			continue
		}
		k.listed = false
	}
	j.held, j.looks = left, len(left) > 0
	j.mu.Unlock()
	for _, f := range ends {
		f()
	}
	if len(left) > 0 {
		j.opt.Clock.AfterFunc(lookAgain, j.lookHeld)
	}
}

// unheld ends the wait of a turn; the caller holds the lock and calls what it gets without it.
func (j *Journal) unheld(k *key, err error) func() {
	t := k.held
	k.held, k.broken = nil, k.broken || err != nil
	return func() { t.Answer(err) }
}
