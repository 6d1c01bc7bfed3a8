package look

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/event"
)

// A large buffer that nobody reads holds a bounded number of large events, and as many small
// ones as there is room for.
func TestSlowReadersHoldFewLargeEvents(t *testing.T) {
	var b Bus
	sub := b.Add(2*heavyBacklog, nil)
	small, large := event.Event{Kind: event.Log, Text: "text"}, event.Event{Kind: event.Log, Text: strings.Repeat("x", heavyEvent+1)}
	for range heavyBacklog + 10 {
		b.Publish(large)
	}
	if n := len(sub.C()); n != heavyBacklog || sub.Dropped() != 10 {
		t.Errorf("%d large ones wait, %d were dropped", n, sub.Dropped())
	}
	for range heavyBacklog {
		b.Publish(small)
	}
	if n := len(sub.C()); n != 2*heavyBacklog || sub.Dropped() != 10 {
		t.Errorf("%d wait with the small ones, %d were dropped", n, sub.Dropped())
	}
}
