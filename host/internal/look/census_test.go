package look

import "testing"

// The numbers of censuses begin anew before they come to the one that stands for who has stopped.
func TestCensusesBeginAnew(t *testing.T) {
	var totals Totals
	var a Tally
	var counted Counted
	totals.number = countedAsEnded - 2
	for range 4 {
		met := false
		totals.Count(func(c *Census) { met = c.Meets(&counted) })
		if !met {
			t.Fatalf("census %d does not meet a living actor", totals.number)
		}
	}
	if totals.number != 3 {
		t.Errorf("the last one was number %d", totals.number)
	}
	totals.Add("a", &a, &counted)
	totals.Count(func(c *Census) {
		if c.Meets(&counted) {
			t.Error("an actor that has ended is met")
		}
	})
}
