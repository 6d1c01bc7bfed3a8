package observe

import (
	"testing"
	"time"
)

// A store that has failed, or is full, is down: the system is not ready. Without a store nothing is said of one.
func TestReadinessTellsOfTheStore(t *testing.T) {
	s := newStage(t, nil)
	s.run()
	if x := s.Observer.System(); !x.Ready || x.Store != nil {
		t.Errorf("%+v", x)
	}
	at := time.Unix(7, 0)
	for _, c := range []struct {
		store Store
		why   string
		since time.Time
	}{
		{Store{Limit: 9}, "", time.Time{}},
		{Store{Limit: 9, Full: true}, "it is full: raise store.size", s.Observer.System().Now},
		{Store{Limit: 9, Full: true, Failed: "the store has failed: EIO", FailedAt: at}, "the store has failed: EIO", at.UTC()},
	} {
		s.Observer.o = s.Observer.o.WithStore(func() *Store { return &c.store })
		x := s.Observer.System()
		if x.Store == nil || x.Store.Limit != 9 || x.Ready != (c.why == "") {
			t.Errorf("%+v", x)
		}
		switch {
		case c.why == "" && len(x.Down) > 0:
			t.Errorf("down: %+v", x.Down)
		case c.why != "" && (len(x.Down) != 1 || x.Down[0].Service != "store" || x.Down[0].Why != c.why || !x.Down[0].Since.Equal(c.since)):
			t.Errorf("down: %+v", x.Down)
		}
	}
}
