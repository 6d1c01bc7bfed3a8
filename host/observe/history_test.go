package observe

import (
	"errors"
	"testing"
	"time"
)

// A day is kept in a bounded number of points, none of which hides a peak.
func TestHistoryIsBoundedAndKeepsPeaks(t *testing.T) {
	s := newStage(t, nil)
	begun := s.clock.Now()
	const points = 3 * historyCoarse * historyMerged / 2 // a day and a half
	for i := range points {
		mailbox := 5
		if i == points-300 || i == points-5000 { // 50 minutes ago, 14 hours ago
			mailbox = 1000 + i
		}
		s.history.record(Moment{At: begun.Add(time.Duration(i) * historyStep), Mailbox: mailbox, Turns: uint64(10 * i)})
	}
	s.clock.Advance((points - 1) * historyStep)
	if len(s.history.fine) != historyFine || len(s.history.coarse) != historyCoarse || cap(s.history.coarse) > 2*historyCoarse {
		t.Errorf("%d and %d points", len(s.history.fine), len(s.history.coarse))
	}
	for _, c := range []struct {
		of   time.Duration
		peak int
		step time.Duration
	}{{10 * time.Minute, 5, historyStep}, {time.Hour, 1000 + points - 300, historyStep}, {13 * time.Hour, 1000 + points - 300, 3 * time.Minute}, {24 * time.Hour, 1000 + points - 300, 4 * time.Minute}} {
		h, err := s.History(c.of)
		if err != nil {
			t.Fatal(err)
		}
		peak, peaks := 0, 0
		for i, p := range h.Points {
			peak = max(peak, p.Mailbox)
			if p.Mailbox > 5 {
				peaks++
			}
			if i > 0 && (!p.At.After(h.Points[i-1].At) || p.Turns <= h.Points[i-1].Turns) {
				t.Fatalf("%v: point %d is out of order", c.of, i)
			}
		}
		last := h.Points[len(h.Points)-1]
		if peak != c.peak || len(h.Points) > historyFine || h.StepNS != int64(c.step) || h.Now.Sub(last.At) >= time.Minute || h.Now.Sub(h.Points[0].At) > c.of || h.Now.Sub(h.Points[0].At) < c.of-5*time.Minute {
			t.Errorf("%v: %d points of %v, a peak of %d, from %v to %v", c.of, len(h.Points), time.Duration(h.StepNS), peak, h.Now.Sub(h.Points[0].At), h.Now.Sub(last.At))
		}
		if c.of == 24*time.Hour && peaks != 2 {
			t.Errorf("%d peaks", peaks)
		}
	}
	for _, d := range []time.Duration{0, -1, 25 * time.Hour} {
		if _, err := s.History(d); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// With WithHistory points come by themselves, and end with the observer.
func TestHistoryIsRecorded(t *testing.T) {
	s := newStage(t, nil)
	s.spawn("one", quietActor())
	s.run()
	o := New(s.System, Options{}.WithHistory().WithSharing(time.Hour))
	defer o.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		h, err := o.History(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Points) == 1 && h.Points[0].Actors == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", h)
		}
	}
	s.spawn("two", quietActor())
	s.run()
	if seen := o.System().Actors; seen != 2 {
		t.Errorf("%d actors: who looks after the history does not see what it saw", seen)
	}
	if h, err := o.History(5 * time.Hour); err != nil || len(h.Points) != 1 {
		t.Errorf("what has just begun: %+v %v", h, err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) { // until it waits for the system's time to pass
		s.clock.Advance(historyStep)
		if h, err := o.History(24 * time.Hour); err != nil || len(h.Points) >= 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("there are no points in the time of the system")
		}
	}
}
