package host

import (
	"strings"
	"testing"
)

// A reader of events that is slow holds nobody up: what does not fit is dropped, and counted.
func TestSlowReadersLoseEvents(t *testing.T) {
	s, _ := manual(t, nil)
	slow := s.Subscribe(2, func(e *Event) bool { return e.Kind == EventStarted })
	quick := s.Subscribe(10, func(e *Event) bool { return e.Kind == EventStarted })
	for range 5 {
		must(s.Spawn("", newCounter()))(t)
	}
	s.RunUntilIdle(1000)
	if len(slow.C()) != 2 || slow.Dropped() != 3 {
		t.Errorf("%d are there, %d were dropped", len(slow.C()), slow.Dropped())
	}
	if len(quick.C()) != 5 || quick.Dropped() != 0 {
		t.Errorf("%d are there, %d were dropped", len(quick.C()), quick.Dropped())
	}
}

// A large buffer that nobody reads holds a bounded number of large events, and as many small
// ones as there is room for.
func TestSlowReadersHoldFewLargeEvents(t *testing.T) {
	s, _ := manual(t, nil)
	sub := s.Subscribe(2*heavyBacklog, nil)
	small, large := Event{Kind: EventLog, Text: "text"}, Event{Kind: EventLog, Text: strings.Repeat("x", heavyEvent+1)}
	for range heavyBacklog + 10 {
		s.bus.publish(large)
	}
	if n := len(sub.C()); n != heavyBacklog || sub.Dropped() != 10 {
		t.Errorf("%d large ones wait, %d were dropped", n, sub.Dropped())
	}
	for range heavyBacklog {
		s.bus.publish(small)
	}
	if n := len(sub.C()); n != 2*heavyBacklog || sub.Dropped() != 10 {
		t.Errorf("%d wait with the small ones, %d were dropped", n, sub.Dropped())
	}
}
