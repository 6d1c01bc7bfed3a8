package host

import (
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
