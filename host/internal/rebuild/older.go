package rebuild

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// Older is for lives of which the records do not say by which rules they went, as in logs of earlier releases: see record.Rules. What has
// come of those is in the records, and a repetition follows that, whatever the rules are now. Where the records do not say it the present
// rules count. The zero value is for a repetition that begins.
type Older struct {
	ordered map[abi.Ref]int // how many orders an actor was given in the repetition
	quits   map[abi.Ref]int // how often the supervisor of an actor was asked before that stopped itself
}

// Redelivers is whether the message of a turn that is repeated, and has failed, has another turn: as it had, or as now is.
func (o *Older) Redelivers(x *Ahead, now bool) bool {
	if !x.Again && !x.Dropped {
		return now
	}
	return x.Again
}

// AsksFirst reports whether the supervisor is asked before an actor stops itself, as it is for a permanent one: as it was, or as now is.
func (o *Older) AsksFirst(x *Ahead, actor abi.Ref, now bool) bool {
	switch {
	case x.Fates[actor].Quits > o.quits[actor]:
		o.quits = counted(o.quits, actor)
		return true
	case x.Fates[actor].Ended:
		return false
	}
	return now
}

// QuitsYet reports whether the records say that an actor stops, later than this.
func (o *Older) QuitsYet(x *Ahead, actor abi.Ref) bool {
	fate := x.Fates[actor]
	return fate.Ended || fate.Quits > o.quits[actor]
}

// Order has an order to a child be the one that it was: a sibling of who has failed restarts, or stops if it is temporary, and it may be
// another one now.
func (o *Older) Order(x *Ahead, child abi.Ref, m *sysmail.Msg) {
	all, n := x.Fates[child].Orders, o.ordered[child]
	if o.ordered = counted(o.ordered, child); n >= len(all) {
		return
	}
	was := all[n]
	switch {
	case m.Kind == sysmail.Stop && was.What == "restart":
		m.Kind = sysmail.Restart
	case m.Kind == sysmail.Restart && was.What == "stop":
		m.Kind = sysmail.Stop
	default:
		return
	}
	m.How, m.Failure, m.Delay, m.Reason = sysmail.How(was.How), was.Failure, time.Duration(was.Delay), was.Reason
}

func counted(all map[abi.Ref]int, actor abi.Ref) map[abi.Ref]int {
	if all == nil {
		all = map[abi.Ref]int{}
	}
	all[actor]++
	return all
}
