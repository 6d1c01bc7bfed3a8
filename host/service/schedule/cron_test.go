package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/race"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func parse(t testing.TB, expression, name string) *Spec {
	t.Helper()
	s, err := ParseCron(expression, zone(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a zone's clocks do, and what runs then. The rule is in next.go.
func TestChangesOfClocks(t *testing.T) {
	for _, c := range []struct{ zone, expression, from, want string }{
		// Spring: 2:00 to 3:00 is left out.
		{"Europe/Berlin", "30 2 * * *", "2027-03-27 12:00", "2027-03-28T03:00+02:00 2027-03-29T02:30+02:00"},
		{"Europe/Berlin", "0,30 2 * * *", "2027-03-27 12:00", "2027-03-28T03:00+02:00 2027-03-29T02:00+02:00 2027-03-29T02:30+02:00"},
		{"Europe/Berlin", "30 2,3 * * *", "2027-03-27 12:00", "2027-03-28T03:00+02:00 2027-03-28T03:30+02:00 2027-03-29T02:30+02:00"},
		{"Europe/Berlin", "0 3 * * *", "2027-03-27 12:00", "2027-03-28T03:00+02:00 2027-03-29T03:00+02:00"},
		{"Europe/Berlin", "15 * * * *", "2027-03-28 00:30", "2027-03-28T01:15+01:00 2027-03-28T03:15+02:00 2027-03-28T04:15+02:00"},
		{"Europe/Berlin", "0 */2 * * *", "2027-03-27 23:30", "2027-03-28T00:00+01:00 2027-03-28T03:00+02:00 2027-03-28T04:00+02:00"},
		{"Europe/Berlin", "*/20 2 * * *", "2027-03-27 12:00", "2027-03-28T03:00+02:00 2027-03-29T02:00+02:00"},
		// Autumn: 2:00 to 3:00 comes twice.
		{"Europe/Berlin", "30 2 * * *", "2027-10-30 12:00", "2027-10-31T02:30+02:00 2027-11-01T02:30+01:00"},
		{"Europe/Berlin", "0 3 * * *", "2027-10-30 12:00", "2027-10-31T03:00+01:00 2027-11-01T03:00+01:00"},
		{"Europe/Berlin", "0 */1 * * *", "2027-10-31 00:30", "2027-10-31T01:00+02:00 2027-10-31T02:00+02:00 2027-10-31T02:00+01:00 2027-10-31T03:00+01:00"},
		{"Europe/Berlin", "*/30 2 * * *", "2027-10-30 12:00", "2027-10-31T02:00+02:00 2027-10-31T02:30+02:00 2027-10-31T02:00+01:00 2027-10-31T02:30+01:00 2027-11-01T02:00+01:00"},
		{"Europe/Berlin", "0 0-23 * * *", "2027-10-31 00:30", "2027-10-31T01:00+02:00 2027-10-31T02:00+02:00 2027-10-31T03:00+01:00"},
		// Midnight does not exist.
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03 12:00", "2018-11-04T01:00-02:00 2018-11-05T00:00-02:00"},
		{"America/Sao_Paulo", "@daily", "2018-02-17 12:00", "2018-02-18T00:00-03:00 2018-02-19T00:00-03:00"},
		{"America/Sao_Paulo", "30 23 * * *", "2018-02-17 12:00", "2018-02-17T23:30-02:00 2018-02-18T23:30-03:00"},
		// Half an hour: 2:00 to 2:30 is left out on 3 October 2027, 1:30 to 2:00 comes twice on 4 April.
		{"Australia/Lord_Howe", "15 2 * * *", "2027-10-02 12:00", "2027-10-03T02:30+11:00 2027-10-04T02:15+11:00"},
		{"Australia/Lord_Howe", "15 * * * *", "2027-10-03 00:30", "2027-10-03T01:15+10:30 2027-10-03T02:30+11:00 2027-10-03T03:15+11:00"},
		{"Australia/Lord_Howe", "*/10 * * * *", "2027-10-03 01:45", "2027-10-03T01:50+10:30 2027-10-03T02:30+11:00 2027-10-03T02:40+11:00"},
		{"Australia/Lord_Howe", "45 1 * * *", "2027-04-03 12:00", "2027-04-04T01:45+11:00 2027-04-05T01:45+10:30"},
		{"Australia/Lord_Howe", "45 * * * *", "2027-04-04 00:50", "2027-04-04T01:45+11:00 2027-04-04T01:45+10:30 2027-04-04T02:45+10:30"},
		// A day is left out.
		{"Pacific/Apia", "0 12 * * *", "2011-12-29 06:00", "2011-12-29T12:00-10:00 2011-12-31T00:00+14:00 2011-12-31T12:00+14:00"},
		{"Pacific/Apia", "0 12 30 12 *", "2011-12-01 06:00", "2011-12-31T00:00+14:00 2012-12-30T12:00+14:00"},
		{"Pacific/Apia", "0 * * * *", "2011-12-29 22:30", "2011-12-29T23:00-10:00 2011-12-31T00:00+14:00 2011-12-31T01:00+14:00"},
		{"Pacific/Kwajalein", "0 12 * * *", "1993-08-20 06:00", "1993-08-20T12:00-12:00 1993-08-22T00:00+12:00 1993-08-22T12:00+12:00"},
		// Leap days, last days, working days.
		{"UTC", "0 0 29 2 *", "2096-03-01 00:00", "2104-02-29T00:00Z 2108-02-29T00:00Z"},
		{"UTC", "0 0 L 2 *", "2027-01-01 00:00", "2027-02-28T00:00Z 2028-02-29T00:00Z"},
		{"UTC", "0 0 L-2 * *", "2028-02-01 00:00", "2028-02-27T00:00Z 2028-03-29T00:00Z"},
		{"UTC", "0 0 LW * *", "2027-01-01 00:00", "2027-01-29T00:00Z 2027-02-26T00:00Z"},
		{"UTC", "0 0 1W * *", "2027-05-01 00:00", "2027-05-03T00:00Z 2027-06-01T00:00Z"},
		{"UTC", "0 0 31W * *", "2027-01-01 00:00", "2027-01-29T00:00Z 2027-03-31T00:00Z"},
		{"UTC", "0 0 * * FRI#3", "2027-01-01 00:00", "2027-01-15T00:00Z 2027-02-19T00:00Z"},
		{"UTC", "0 0 * * MON#L", "2027-01-01 00:00", "2027-01-25T00:00Z 2027-02-22T00:00Z"},
		{"UTC", "0 0 * 2 MON#5", "2027-01-01 00:00", "2044-02-29T00:00Z 2072-02-29T00:00Z"},
		// Both days are restricted: one of them is enough. Names, ranges over the end, Sunday as 7.
		{"UTC", "0 0 13 * FRI", "2027-08-05 12:00", "2027-08-06T00:00Z 2027-08-13T00:00Z 2027-08-20T00:00Z"},
		{"UTC", "0 22-2 * NOV-jan *", "2027-01-31 21:00", "2027-01-31T22:00Z 2027-01-31T23:00Z 2027-11-01T00:00Z"},
		{"UTC", "0 0 * * 7", "2027-01-01 00:00", "2027-01-03T00:00Z"},
		{"UTC", "*/20 59 23 31 12 *", "2027-01-01 00:00", "2027-12-31T23:59Z 2027-12-31T23:59:20Z 2027-12-31T23:59:40Z 2028-12-31T23:59Z"},
		{"Europe/Berlin", "@hourly", "2027-06-01 11:59", "2027-06-01T12:00+02:00"},
	} {
		s := parse(t, c.expression, c.zone)
		from, err := time.ParseInLocation("2006-01-02 15:04", c.from, s.loc)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(c.want)
		var got []string
		at := from.Unix()
		for range want {
			next, ok := s.nextCron(at)
			if !ok {
				break
			}
			x := time.Unix(next, 0).In(s.loc)
			layout := "2006-01-02T15:04Z07:00"
			if x.Second() != 0 {
				layout = time.RFC3339
			}
			got = append(got, x.Format(layout))
			if last, ok := s.lastCron(at, next+59); !ok || last != next && s.fields.second == 1 {
				t.Errorf("%s %s: the last one up to %d is %d, %v; want %d", c.zone, c.expression, next+59, last, ok, next)
			}
			at = next
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %q from %s:\n %v\nwant\n %v", c.zone, c.expression, c.from, got, want)
		}
	}
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct{ expression, says string }{
		{"", "has 0 fields"}, {"* * * *", "has 4 fields"}, {"* * * * * * *", "has 7 fields"}, {"0 0 30 2 *", "never runs"}, {"0 0 31 4,6,9,11 *", "never runs"},
		{"0 0 L-30 2 *", "never runs"}, {"60 * * * *", "60"}, {"* 24 * * *", "24"}, {"* * 0 * *", "0"}, {"* * * 13 *", "13"}, {"* * * * 8", "8"},
		{"*/0 * * * *", "step"}, {"1,,2 * * * *", "empty element"}, {", * * * *", "empty element"}, {"@every 5m", "as every"}, {"@reboot", "not one of"},
		{"TZ=UTC * * * * *", "a zone is not part"}, {"CRON_TZ=../../etc/passwd * * * * *", "a zone is not part"}, {"H * * * *", ""}, {"*-5 * * * *", "not a range"},
		{"* * 32W * *", ""}, {"* * * * FRI#6", ""}, {"* * * * FRI#", ""}, {"* * L-0 * *", ""}, {"a * * * *", ""}, {strings.Repeat("1,", 200) + "1 * * * *", "at most 256"},
	} {
		_, err := ParseCron(c.expression, time.UTC)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want one that says %q", c.expression, err, c.says)
		}
		if strings.Contains(c.says, "never") && !errors.Is(err, ErrNever) {
			t.Errorf("%q: %v is not ErrNever", c.expression, err)
		}
	}
}

func TestLeast(t *testing.T) {
	for expression, want := range map[string]time.Duration{
		"* * * * *": time.Minute, "*/5 * * * *": 5 * time.Minute, "0 * * * *": time.Hour, "@daily": 24 * time.Hour, "0,59 * * * *": time.Minute,
		"* * * * * *": time.Second, "0,50 0 * * * *": 50 * time.Second, "59 23 * * *": 24 * time.Hour, "0 0,23 * * *": time.Hour, "0 0 * * 1": 7 * 24 * time.Hour,
		"0 0 * * 1,3": 2 * 24 * time.Hour, "0 0 1 * *": 28 * 24 * time.Hour, "0 0 1 1 *": 365 * 24 * time.Hour, "0,59 0,59 0,23 * * *": time.Second,
		"0 0 L,1 * *": 24 * time.Hour, "30 10,59 8 * * *": 49 * time.Minute,
	} {
		if got := parse(t, expression, "UTC").Least(); got != want {
			t.Errorf("%q: %v, want %v", expression, got, want)
		}
	}
}

func TestPeriodsAndTimes(t *testing.T) {
	first := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Every(90*time.Second, first)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[int64]int64{-100: 0, -1: 0, 0: 90, 89: 90, 90: 180, 1000: 1080} {
		if got, ok := s.Next(first.Unix()*second + after*second); !ok || got != (first.Unix()+want)*second {
			t.Errorf("after %d: %d", after, got-first.UnixNano())
		}
	}
	if s, err = Every(time.Second, first.Add(700*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[int64]int64{0: 700, 699: 700, 700: 1700, 5000: 5700} {
		if got, ok := s.Next(first.UnixNano() + after*1e6); !ok || got != first.UnixNano()+want*1e6 {
			t.Errorf("after %d ms: %d ns", after, got-first.UnixNano())
		}
	}
	if got, ok := s.Last(first.UnixNano()+700e6, first.UnixNano()+5699e6); !ok || got != first.UnixNano()+4700e6 {
		t.Errorf("the last one: %d ns", got-first.UnixNano())
	}
	for _, d := range []time.Duration{0, -time.Second, time.Millisecond, 1500 * time.Millisecond, MaxPeriod + time.Second} {
		if _, err := Every(d, first); err == nil {
			t.Errorf("a period of %v", d)
		}
	}
	for text, want := range map[string]string{
		"2027-03-28T02:30:00":       "2027-03-28T03:00:00+02:00", // left out: the first moment after it
		"2027-10-31 02:30":          "2027-10-31T02:30:00+02:00", // twice: the first
		"2027-01-02T15:04:05Z":      "2027-01-02T15:04:05Z",
		"2027-01-02T15:04:05+05:45": "2027-01-02T15:04:05+05:45",
	} {
		got, err := ParseTime(text, zone(t, "Europe/Berlin"))
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tomorrow", "2027-02-30T00:00:00Z", "1969-12-31T23:59:59Z", "2262-01-01T00:00:00Z", "2027-13-01 00:00", "0000-01-01 00:00"} {
		if got, err := ParseTime(text, time.UTC); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
	yearly, err := Every(MaxPeriod, first)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := yearly.Next(lastTime - second); ok { // whose sum does not fit nanoseconds
		t.Error("a run beyond the last year", at)
	}
	once, err := At(time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC))
	if err != nil || !once.Once() {
		t.Fatal(err)
	}
	if at, ok := once.Next(0); !ok || at != lastSecond*second {
		t.Error(at, ok)
	}
	if _, ok := once.Next(lastSecond * second); ok {
		t.Error("a second time")
	}
	if at, ok := parse(t, "@yearly", "UTC").Next((lastSecond - 1000) * second); ok {
		t.Error("a run beyond the last year", at)
	}
}

// stepper is the rule of next.go, minute by minute: it looks at what the clock shows at each, and
// has no idea of stretches.
type stepper struct {
	s     *Spec
	named func(shown time.Time) bool
}

// named is a naive reading of five fields of numbers, lists, ranges and steps.
func named(t *rapid.T, expression string) func(time.Time) bool {
	words := strings.Fields(expression)
	in := func(field string, value, low, high int) bool {
		for _, part := range strings.Split(field, ",") {
			text, step, stepped := strings.Cut(part, "/")
			a, b, n := low, high, 1
			if stepped {
				_, _ = fmt.Sscan(step, &n)
			}
			if text != "*" {
				from, to, ranged := strings.Cut(text, "-")
				_, _ = fmt.Sscan(from, &a)
				if b = a; stepped {
					b = high
				}
				if ranged {
					_, _ = fmt.Sscan(to, &b)
				}
			}
			for v := a; v <= b; v += n {
				if v == value {
					return true
				}
			}
		}
		return false
	}
	return func(x time.Time) bool {
		dom := in(words[2], x.Day(), 1, 31)
		dow := in(words[4], int(x.Weekday()), 0, 7) || x.Weekday() == 0 && in(words[4], 7, 0, 7) // 7 is Sunday, too
		days := dom && dow
		all := []string{"*", "*/1"}
		if !slices.Contains(all, words[2]) && !slices.Contains(all, words[4]) {
			days = dom || dow
		}
		return days && in(words[0], x.Minute(), 0, 59) && in(words[1], x.Hour(), 0, 23) && in(words[3], int(x.Month()), 1, 12)
	}
}

// shown is what the clock of a zone shows at a time, as a time in UTC.
func shown(loc *time.Location, at int64) time.Time {
	x := time.Unix(at, 0).In(loc)
	return time.Date(x.Year(), x.Month(), x.Day(), x.Hour(), x.Minute(), x.Second(), 0, time.UTC)
}

// runs are those between two times that are whole minutes of the zone.
func (n stepper) runs(from, to int64) []int64 {
	var out []int64
	high := shown(n.s.loc, from-lookBack-60)
	for at := from - lookBack; at < to; at += 60 {
		now := shown(n.s.loc, at)
		before := shown(n.s.loc, at-60)
		due := n.named(now)
		if !n.s.interval && now.Before(high) || !n.s.interval && now.Equal(high) {
			due = false
		}
		if left := before.Add(time.Minute); now.After(left) { // a gap
			missed, own := false, false
			if left.Before(high.Add(time.Minute)) {
				left = high.Add(time.Minute)
			}
			for x := left; x.Before(now); x = x.Add(time.Minute) {
				missed = missed || n.named(x)
			}
			if n.s.interval {
				gap := now.Sub(left)
				for x := now; x.Before(now.Add(gap)); x = x.Add(time.Minute) {
					own = own || n.named(x)
				}
			}
			due = due || missed && !own
		}
		if now.After(high) {
			high = now
		}
		if due && at >= from {
			out = append(out, at)
		}
	}
	return out
}

// Changes of clocks of many kinds, around which the property looks. All are at whole minutes.
var changes = []struct{ zone, day string }{
	{"Europe/Berlin", "2027-03-28"}, {"Europe/Berlin", "2027-10-31"}, {"America/New_York", "2026-03-08"}, {"America/New_York", "2026-11-01"},
	{"Australia/Lord_Howe", "2027-10-03"}, {"Australia/Lord_Howe", "2027-04-04"}, {"Pacific/Apia", "2011-12-30"}, {"Pacific/Kwajalein", "1993-08-21"},
	{"America/Sao_Paulo", "2018-11-04"}, {"America/Sao_Paulo", "2018-02-18"}, {"Asia/Kathmandu", "1986-01-01"}, {"Asia/Pyongyang", "2018-05-05"},
	{"America/Caracas", "2016-05-01"}, {"Antarctica/Troll", "2025-03-30"}, {"Antarctica/Troll", "2025-10-26"}, {"Africa/Casablanca", "2025-02-23"},
	{"Asia/Gaza", "2025-04-12"}, {"America/Nuuk", "2024-03-31"}, {"Africa/Cairo", "2010-08-11"}, {"Africa/Cairo", "2010-09-10"}, {"Europe/Volgograd", "2018-10-28"},
	{"Pacific/Fakaofo", "2011-12-30"}, {"Europe/Moscow", "2011-03-27"}, {"Asia/Kolkata", "2027-01-01"}, {"UTC", "2028-02-29"}, {"America/Havana", "2027-11-07"},
}

func TestNextAgainstStepper(t *testing.T) {
	if race.Enabled {
		t.Skip("it has one goroutine")
	}
	zones := map[string]*time.Location{}
	for _, c := range changes {
		zones[c.zone] = zone(t, c.zone)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(changes).Draw(t, "change")
		field := func(name string, low, high int) string {
			n := func() int { return rapid.IntRange(low, high).Draw(t, name) }
			switch rapid.IntRange(0, 6).Draw(t, name) {
			case 0, 1:
				return "*"
			case 2:
				return fmt.Sprintf("*/%d", rapid.IntRange(1, high-low).Draw(t, name))
			case 3:
				a := n()
				return fmt.Sprintf("%d-%d", a, rapid.IntRange(a, high).Draw(t, name))
			case 4:
				return fmt.Sprintf("%d,%d", n(), n())
			case 5:
				a := rapid.IntRange(low, high-2).Draw(t, name)
				return fmt.Sprintf("%d/%d", a, rapid.IntRange(1, high-a).Draw(t, name))
			}
			return fmt.Sprint(n())
		}
		hours := field("hours", 0, 23)
		if rapid.Bool().Draw(t, "small hours") {
			hours = fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "hour"))
		}
		dom, month := "*", "*"
		if rapid.IntRange(0, 3).Draw(t, "days") == 0 {
			dom = field("day", 1, 31)
		}
		dow := "*"
		if rapid.IntRange(0, 3).Draw(t, "weekdays") == 0 {
			dow = field("weekday", 0, 6)
		}
		expression := strings.Join([]string{field("minutes", 0, 59), hours, dom, month, dow}, " ")
		s, err := ParseCron(expression, zones[c.zone])
		if err != nil {
			t.Fatalf("%q: %v", expression, err)
		}
		noon, err := time.Parse("2006-01-02", c.day)
		if err != nil {
			t.Fatal(err)
		}
		from, to := noon.Unix()-60*3600, noon.Unix()+60*3600
		want := stepper{s, named(t, expression)}.runs(from, to)
		var got []int64
		for at := from - 1; ; {
			next, ok := s.nextCron(at)
			if !ok || next >= to {
				break
			}
			if again, ok := s.nextCron(next - 1); !ok || again != next {
				t.Fatalf("%q: after %d comes %d, after %d comes %d", expression, at, next, next-1, again)
			}
			got = append(got, next)
			at = next
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					show := func(list []int64) any {
						if i < len(list) {
							return time.Unix(list[i], 0).In(s.loc)
						}
						return "none"
					}
					t.Fatalf("%q in %s, run %d: %v, the stepper has %v", expression, c.zone, i, show(got), show(want))
				}
			}
		}
		if len(want) > 0 {
			at := rapid.Int64Range(want[0], to-1).Draw(t, "until")
			last := want[0]
			for _, w := range want {
				if w <= at {
					last = w
				}
			}
			if x, ok := s.lastCron(from-1, at); !ok || x != last {
				t.Fatalf("%q: the last up to %d is %d, want %d", expression, at, x, last)
			}
		}
	})
}

// Every zone of the machine: each hour of a year with a change comes out as the rule has it.
func TestManyZones(t *testing.T) {
	if race.Enabled {
		t.Skip("it has one goroutine")
	}
	for _, name := range []string{"Africa/Juba", "America/Anchorage", "America/Argentina/San_Luis", "America/Bogota", "America/St_Johns", "America/Scoresbysund",
		"Asia/Amman", "Asia/Beirut", "Asia/Choibalsan", "Asia/Dhaka", "Asia/Hong_Kong", "Asia/Tehran", "Asia/Tokyo", "Atlantic/Azores", "Australia/Adelaide",
		"Europe/Dublin", "Europe/Istanbul", "Europe/Lisbon", "Europe/London", "Indian/Mauritius", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter", "Pacific/Tongatapu"} {
		loc := zone(t, name)
		for _, expression := range []string{"30 2 * * *", "0 0 * * *", "*/30 * * * *", "15 1-4 * * *"} {
			s := parse(t, expression, name)
			read := named(nil, expression)
			for _, year := range []int{1999, 2010, 2018} {
				from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
				at := from
				for range 25 { // around each change of the year
					_, end := at.In(loc).ZoneBounds()
					if end.IsZero() || end.Year() > year {
						break
					}
					a, b := end.Unix()-6*3600, end.Unix()+6*3600
					want := stepper{s, read}.runs(a, b)
					var got []int64
					for x, ok := s.nextCron(a - 1); ok && x < b; x, ok = s.nextCron(x) {
						got = append(got, x)
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s %q around %v:\n%v\n%v", name, expression, end, got, want)
					}
					at = end
				}
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []string{"0 3 * * *", "*/5 * * * *", "0 0 29 2 *", "0 0 * 2 MON#5"} {
		b.Run(c, func(b *testing.B) {
			s, _ := ParseCron(c, time.UTC)
			b.ReportAllocs()
			for i := range b.N {
				s.nextCron(1800000000 + int64(i)*60)
			}
		})
	}
}
