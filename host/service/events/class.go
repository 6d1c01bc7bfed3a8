package events

import (
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// group is a key of a grant, and what the names of its classes begin with.
type group string

const (
	lifecycle   group = "lifecycle"
	deadLetters group = "dead-letters"
	unhandled   group = "unhandled"
)

var groups = []group{lifecycle, deadLetters, unhandled}

// class is a kind of events: a topic, as lifecycle.started.
type class struct {
	group group // that grants it
	topic string
}

// in reports whether the class is of a channel, or below it.
func (c class) in(channel string) bool {
	return topic.Match(channel, c.topic) || topic.Match(channel+".>", c.topic)
}

// classSet is a set of indices of classes.
type classSet uint64

// classes are all that there are; at most as many as a classSet has bits.
var classes, ofKind, ofReason = makeClasses()

// What the index of a dead letter's class is of.
type reasonKey struct {
	kind   host.EventKind
	reason host.DeadReason
}

func makeClasses() (all []class, kinds map[host.EventKind]int, reasons map[reasonKey]int) {
	kinds, reasons = map[host.EventKind]int{}, map[reasonKey]int{}
	for _, k := range []host.EventKind{
		host.EventStarted, host.EventFailed, host.EventRestarted, host.EventResumed, host.EventStopped,
		host.EventEscalated, host.EventPaused, host.EventUnpaused,
	} {
		kinds[k] = len(all)
		all = append(all, class{lifecycle, "lifecycle." + k.String()})
	}
	for _, r := range host.DeadReasons() {
		reasons[reasonKey{host.EventDeadLetter, r}] = len(all)
		reasons[reasonKey{host.EventSuppressed, r}] = len(all) + 1
		all = append(all, class{deadLetters, "dead-letters." + r.Name()}, class{deadLetters, "suppressed." + r.Name()})
	}
	kinds[host.EventUnhandled] = len(all)
	return append(all, class{unhandled, "unhandled"}), kinds, reasons
}

// classOf is the class of an event; false if actors are not notified of it.
func classOf(e *host.Event) (c int, ok bool) {
	if e.Kind == host.EventDeadLetter || e.Kind == host.EventSuppressed {
		if e.Dead == nil {
			return 0, false
		}
		c, ok = ofReason[reasonKey{e.Kind, e.Dead.Reason}]
		return c, ok
	}
	c, ok = ofKind[e.Kind]
	return c, ok
}
