package schedule

import (
	"math"
	"math/bits"
	"time"

	cron "github.com/netresearch/go-cron"
)

// fields are those of an expression: sets of what a clock and a calendar may show.
type fields struct {
	second, minute, hour, dom, month, dow uint64
	days                                  []cron.DomConstraint // L, L-n, LW, nW
	weekdays                              []cron.DowConstraint // n#m, n#L
	either                                bool                 // both kinds of days are restricted: one match is enough
}

// everything is how the parser marks a field that is *.
const everything = 1 << 63

func fieldsOf(s *cron.SpecSchedule) *fields {
	return &fields{
		second: s.Second &^ everything, minute: s.Minute &^ everything, hour: s.Hour &^ everything,
		dom: s.Dom &^ everything, month: s.Month &^ everything, dow: s.Dow &^ everything,
		days: s.DomConstraints, weekdays: s.DowConstraints, either: (s.Dom|s.Dow)&everything == 0,
	}
}

const (
	daySeconds = 24 * 3600
	cycleYears = 400 // after which the calendar repeats
)

// leapCycle is where such a cycle begins.
var leapCycle = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// from returns the first time at or after another that the fields match, both as a wall clock
// shows them, in seconds since 1970. False: there is none.
func (f *fields) from(shown int64) (int64, bool) {
	t := time.Unix(shown, 0).UTC()
	y, month, d := t.Date()
	m, weekday := int(month), int(t.Weekday())
	hour, minute, second := t.Clock()
	midnight := shown - int64(hour*3600+minute*60+second)
	if f.matches(y, m, d, weekday) {
		if x, ok := f.timeFrom(hour, minute, second); ok {
			return midnight + x, true
		}
	}
	first, ok := f.timeFrom(0, 0, 0)
	if !ok {
		return 0, false
	}
	for last := y + cycleYears; ; {
		step := 1
		if f.month>>m&1 == 0 {
			step = daysIn(y, m) - d + 1
		}
		midnight += int64(step) * daySeconds
		weekday = (weekday + step) % 7
		if d += step; d > daysIn(y, m) {
			d = 1
			if m++; m > 12 {
				m = 1
				y++
			}
			if y > last {
				return 0, false
			}
		}
		if f.matches(y, m, d, weekday) {
			return midnight + first, true
		}
	}
}

// matches reports whether the fields match a day.
func (f *fields) matches(y, m, d, weekday int) bool {
	if f.month>>m&1 == 0 {
		return false
	}
	dom := f.dom>>d&1 != 0 || f.special(y, m, d, weekday)
	dow := f.dow>>weekday&1 != 0 || f.nth(y, m, d, weekday)
	if f.either {
		return dom || dow
	}
	return dom && dow
}

// special is for L, L-n, LW and nW.
func (f *fields) special(y, m, d, weekday int) bool {
	if len(f.days) == 0 {
		return false
	}
	last := daysIn(y, m)
	on := func(other int) int { return ((weekday+other-d)%7 + 7) % 7 } // the weekday of another day of the month
	for _, c := range f.days {
		want := 0
		switch c.Type {
		case cron.DomLast:
			want = last
		case cron.DomLastOffset:
			want = last - c.N
		case cron.DomLastWeekday:
			want = working(last, last, on(last))
		case cron.DomNearestWeekday:
			if c.N <= last {
				want = working(c.N, last, on(c.N))
			}
		}
		if want == d {
			return true
		}
	}
	return false
}

// working is the working day (Monday to Friday) nearest to a day within its month.
func working(d, last, weekday int) int {
	switch {
	case weekday == 6 && d > 1:
		return d - 1
	case weekday == 6:
		return d + 2
	case weekday == 0 && d < last:
		return d + 1
	case weekday == 0:
		return d - 2
	}
	return d
}

// nth is for n#m and n#L.
func (f *fields) nth(y, m, d, weekday int) bool {
	for _, c := range f.weekdays {
		if c.Weekday == weekday && (c.N == (d-1)/7+1 || c.N < 0 && d+7 > daysIn(y, m)) {
			return true
		}
	}
	return false
}

func daysIn(y, m int) int {
	switch {
	case m == 2 && (y%4 == 0 && y%100 != 0 || y%400 == 0):
		return 29
	case m == 2:
		return 28
	case m == 4 || m == 6 || m == 9 || m == 11:
		return 30
	}
	return 31
}

// timeFrom is the first time of a day at or after another, in seconds.
func (f *fields) timeFrom(hour, minute, second int) (int64, bool) {
	h, m, s := nextBit(f.hour, hour), 0, 0
	if h == hour {
		m = nextBit(f.minute, minute)
		if m == minute {
			if s = nextBit(f.second, second); s == none {
				m = nextBit(f.minute, minute+1)
			}
		}
		if m == none {
			h = nextBit(f.hour, hour+1)
		}
	}
	if h == none {
		return 0, false
	}
	if h != hour {
		m = nextBit(f.minute, 0)
	}
	if h != hour || m != minute {
		s = nextBit(f.second, 0)
	}
	if m == none || s == none {
		return 0, false
	}
	return int64(h*3600 + m*60 + s), true
}

const none = 64

// nextBit is the first bit that is set, at or after one.
func nextBit(set uint64, at int) int {
	if at >= 64 {
		return none
	}
	if rest := set >> at; rest != 0 {
		return at + bits.TrailingZeros64(rest)
	}
	return none
}

// least is the shortest time between two times that the fields match, in seconds.
func (f *fields) least() int64 {
	shortest := int64(math.MaxInt64)
	first, last := int64(0), int64(0) // how many make the next unit
	for _, level := range []struct {
		set  uint64
		unit int64
	}{{f.second, 1}, {f.minute, 60}, {f.hour, 3600}} {
		for at := nextBit(level.set, 0); at != none; {
			next := nextBit(level.set, at+1)
			if next != none {
				shortest = min(shortest, int64(next-at)*level.unit+first-last)
			}
			at = next
		}
		low, high := int64(bits.TrailingZeros64(level.set)), int64(63-bits.LeadingZeros64(level.set))
		first, last = low*level.unit+first, high*level.unit+last
	}
	return min(shortest, f.leastDays()*daySeconds+first-last)
}

// leastDays is the shortest distance between two days that the fields match, within eight years
// and three days.
func (f *fields) leastDays() int64 {
	shortest := int64(math.MaxInt32)
	whole := *f
	whole.second, whole.minute, whole.hour = 1, 1, 1
	before, ok := whole.from(leapCycle)
	for end := leapCycle + 8*366*daySeconds; ok && before < end && shortest > 1; {
		var next int64
		if next, ok = whole.from(before + 1); ok {
			shortest = min(shortest, (next-before)/daySeconds)
		}
		before = next
	}
	return shortest
}
