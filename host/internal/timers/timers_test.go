package timers

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"pgregory.net/rapid"
)

type owner struct {
	clock  *clock.Virtual
	alarms alarm.Board
	mail   []*mailbox.Envelope
	late   time.Duration // the turn that runs has begun so long ago
}

func (o *owner) Clock() clock.Clock         { return o.clock }
func (o *owner) TurnTime() time.Time        { return o.clock.Now().Add(-o.late) }
func (o *owner) Alarms() *alarm.Board       { return &o.alarms }
func (o *owner) Insist(e *mailbox.Envelope) { o.mail = append(o.mail, e) }

func newOwner() *owner { return &owner{clock: clock.NewVirtual(time.Unix(100, 0))} }

// handle begins the turns of what has come, and returns the keys of what still counted.
func (o *owner) handle(s *Set) (keys []uint64) {
	for _, e := range o.mail {
		if s.Current(e) {
			s.Begun(o, e)
			keys = append(keys, e.Correlation)
		}
	}
	o.mail = nil
	return keys
}

func TestOnceAndPeriods(t *testing.T) {
	o := newOwner()
	var s Set
	s.Start(o, 1, 10, 0, []byte("x"), nil)
	s.Start(o, 2, 5, 20, nil, nil)
	if s.Len() != 2 || s.Bytes() != 1 || o.alarms.Pending() != 1 {
		t.Error(s.Len(), s.Bytes(), o.alarms.Pending())
	}
	o.clock.Advance(10)
	if got := o.handle(&s); !slices.Equal(got, []uint64{2, 1}) || s.Has(1) || !s.Has(2) || o.alarms.Pending() != 0 {
		t.Error(got)
	}
	o.clock.Advance(20)
	o.clock.Advance(100) // not handled yet: no second one
	if got := o.handle(&s); !slices.Equal(got, []uint64{2}) {
		t.Error(got)
	}
	s.CancelAll()
	o.clock.Advance(100)
	if len(o.mail) != 0 || o.clock.Pending() != 0 || s.Bytes() != 0 {
		t.Error("cancelled, and something comes")
	}
}

// unstoppable has alarms that are ringing already when they are stopped.
type unstoppable struct{ *clock.Virtual }

func (c unstoppable) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.Virtual.AfterFunc(d, f)
	return rings{}
}

type rings struct{}

func (rings) Stop() bool { return false }

type unstoppableOwner struct{ *owner }

func (o unstoppableOwner) Clock() clock.Clock { return unstoppable{o.clock} }

// A timer that rings by itself while Ring has it ring counts once, whichever comes first, and has one period afterwards.
func TestRingsTwice(t *testing.T) {
	for _, pace := range []Pace{FixedDelay, FixedRate} {
		for _, late := range []bool{false, true} { // the second envelope comes when the first one's turn has begun
			o := unstoppableOwner{newOwner()}
			var s Set
			s.StartAt(o, o.TurnTime(), 1, 10, 10, pace, nil, nil)
			s.Ring(o, 1)
			if !late {
				o.clock.Advance(10)
			}
			turns := 0
			handle := func() {
				for _, e := range o.mail {
					if s.Current(e) {
						s.Begun(o, e)
						turns++
					}
				}
				o.mail = nil
			}
			handle()
			for range 10 {
				o.clock.Advance(10)
				handle()
			}
			want := 11
			if late && pace == FixedRate {
				want = 10 // the grid begins at 10, and Ring was before that
			}
			if turns != want {
				t.Errorf("pace %d, late %v: %d turns, and not %d", pace, late, turns, want)
			}
		}
	}
}

// One that is set again in its own turn is a new one and rings.
func TestSetAgainInItsOwnTurn(t *testing.T) {
	for _, period := range []time.Duration{0, 7} {
		o := newOwner()
		var s Set
		s.Start(o, 1, 10, period, nil, nil)
		o.clock.Advance(10)
		s.Begun(o, o.mail[0])
		s.Start(o, 1, 3, 0, nil, nil)
		o.mail = nil
		o.clock.Advance(3)
		if got := o.handle(&s); !slices.Equal(got, []uint64{1}) {
			t.Errorf("period %d: %v", period, got)
		}
	}
}

// Whatever happens: what is handled was set, not cancelled, not replaced and due.
func TestNothingStaleIsHandled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOwner()
		var s Set
		due := map[uint64]time.Time{}
		key := rapid.Uint64Range(1, 3)
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				k, d := key.Draw(t, "key"), time.Duration(rapid.IntRange(0, 20).Draw(t, "d"))
				s.Start(o, k, d, 0, nil, nil)
				due[k] = o.clock.Now().Add(d)
			},
			"cancel": func(t *rapid.T) { k := key.Draw(t, "key"); s.Cancel(k); delete(due, k) },
			"pass":   func(t *rapid.T) { o.clock.Advance(time.Duration(rapid.IntRange(0, 10).Draw(t, "by"))) },
			"handle": func(t *rapid.T) {
				for _, k := range o.handle(&s) {
					at, ok := due[k]
					if !ok || at.After(o.clock.Now()) {
						t.Fatalf("%d is handled, though it is due %v, %v", k, at, ok)
					}
					delete(due, k)
				}
			},
			"": func(t *rapid.T) {
				if s.Len() != len(due) {
					t.Fatalf("%d are set, want %d", s.Len(), len(due))
				}
			},
		})
		o.clock.Advance(100)
		o.handle(&s)
		if s.Len() != 0 || o.alarms.Pending() != 0 {
			t.Fatal("some never rang")
		}
	})
}

// Whatever the pace, the delays and how long turns take: what is handled, and when, is what a model
// says, to the nanosecond.
func TestPacesAgainstAModel(t *testing.T) {
	type model struct {
		due    time.Time
		period time.Duration
		pace   Pace
		rung   bool
	}
	rapid.Check(t, func(t *rapid.T) {
		o := newOwner()
		var s Set
		want := map[uint64]*model{}
		key := rapid.Uint64Range(1, 4)
		advance := func(d time.Duration) {
			o.clock.Advance(d)
			for _, m := range want {
				m.rung = m.rung || !m.due.After(o.clock.Now())
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				k := key.Draw(t, "key")
				d, p := time.Duration(rapid.IntRange(0, 20).Draw(t, "delay")), time.Duration(rapid.IntRange(0, 12).Draw(t, "period"))
				pace := rapid.SampledFrom([]Pace{FixedDelay, FixedRate}).Draw(t, "pace")
				s.StartAt(o, o.TurnTime(), k, d, p, pace, nil, nil)
				want[k] = &model{due: o.clock.Now().Add(d), period: p, pace: pace}
			},
			"cancel": func(t *rapid.T) { k := key.Draw(t, "key"); s.Cancel(k); delete(want, k) },
			"pass":   func(t *rapid.T) { advance(time.Duration(rapid.IntRange(0, 30).Draw(t, "by"))) },
			"handle": func(t *rapid.T) {
				got := map[uint64]bool{}
				for _, k := range o.handle(&s) {
					if got[k] || want[k] == nil || !want[k].rung {
						t.Fatalf("%d is handled: twice %v, %+v", k, got[k], want[k])
					}
					got[k] = true
				}
				now := o.clock.Now()
				for k, m := range want {
					if m.rung != got[k] {
						t.Fatalf("%d: rung %v, handled %v", k, m.rung, got[k])
					}
					switch {
					case !m.rung:
					case m.period == 0:
						delete(want, k)
					case m.pace == FixedDelay:
						m.due = now.Add(m.period)
					default:
						for !m.due.After(now) {
							m.due = m.due.Add(m.period)
						}
					}
					m.rung = false
				}
			},
			"": func(t *rapid.T) {
				states := s.Save()
				if len(states) != len(want) {
					t.Fatalf("%d are set, want %d", len(states), len(want))
				}
				for _, st := range states {
					if m := want[st.Key]; !m.due.Equal(st.Due) {
						t.Fatalf("%d is due at %v, want %v", st.Key, st.Due, m.due)
					}
				}
			},
		})
	})
}

func TestReceiveTimeout(t *testing.T) {
	o := newOwner()
	r := StartReceive(o, 10)
	o.clock.Advance(9)
	r.Restart(o)
	o.clock.Advance(9)
	if len(o.mail) != 0 {
		t.Fatal("too early")
	}
	o.clock.Advance(1)
	if len(o.mail) != 1 || !r.Current(o.mail[0]) {
		t.Fatal("not at all")
	}
	other := StartReceive(o, 10)
	if other.Current(o.mail[0]) || (*Receive)(nil).Current(o.mail[0]) {
		t.Error("one before it counts")
	}
	other.Stop()
	(*Receive)(nil).Stop()
	o.clock.Advance(100)
	if len(o.mail) != 1 {
		t.Error("stopped, and rings")
	}
}

func TestSaveAndLoad(t *testing.T) {
	o := newOwner()
	var s Set
	s.Start(o, 9, 10, 0, []byte("a"), nil)
	s.Start(o, 3, 20, 5, []byte("b"), nil)
	o.clock.Advance(4)
	saved := s.Save()
	if len(saved) != 2 || saved[0].Key != 3 || saved[1].Due != time.Unix(100, 10) {
		t.Fatalf("%+v", saved)
	}
	p := newOwner()
	p.clock.Advance(6)
	var again Set
	again.Load(p, saved)
	p.clock.Advance(4)
	if got := p.handle(&again); !slices.Equal(got, []uint64{9}) {
		t.Errorf("%v", got)
	}
	p.clock.Advance(10)
	p.handle(&again)
	p.clock.Advance(5)
	if got := p.handle(&again); !slices.Equal(got, []uint64{3}) {
		t.Errorf("%v", got)
	}
}

// What a turn sets is due from the turn's time, and not from when it takes effect.
func TestDueFromTheTurn(t *testing.T) {
	for _, pace := range []Pace{FixedDelay, FixedRate} {
		o := newOwner()
		var s Set
		o.late = 3
		s.StartAt(o, o.TurnTime(), 1, 10, 10, pace, nil, nil)
		s.Start(o, 2, 2, 0, nil, nil) // over already
		r := StartReceive(o, 8)
		o.clock.Advance(0)
		if got := o.handle(&s); !slices.Equal(got, []uint64{2}) {
			t.Error(got)
		}
		o.clock.Advance(5)
		if len(o.mail) != 1 || !r.Current(o.mail[0]) {
			t.Error("no receive timeout")
		}
		o.mail = nil
		o.clock.Advance(2) // 7 after it was set, 10 after the turn
		if got := o.handle(&s); !slices.Equal(got, []uint64{1}) {
			t.Error(got)
		}
		o.clock.Advance(7) // 4 after the turn of the first one has begun, which was 3 before
		if pace == FixedRate {
			o.clock.Advance(3)
		}
		if got := o.handle(&s); !slices.Equal(got, []uint64{1}) {
			t.Error(pace, got)
		}
		s.CancelAll()
		r.Stop()
	}
}
