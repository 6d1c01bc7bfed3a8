//go:build !wasip1

package fake

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cron is a cron expression. It has what most use: *, lists, ranges, steps and names. L, W and # are not known here.
type cron struct {
	second, minute, hour, dom, month, dow uint64
	either                                bool // both kinds of days are restricted: one match is enough
	interval                              bool // by elapsed time, not by local time
	zone                                  *time.Location
}

// among are what a field may have.
type among struct {
	low, high int
	names     []string // from low on
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

	inFields = []among{{0, 59, nil}, {0, 59, nil}, {0, 23, nil}, {1, 31, nil}, {1, 12, months}, {0, 7, weekdays}}

	shorthands = map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
)

func parseCron(expression, zone string) (*cron, error) {
	c := &cron{zone: time.UTC}
	if zone != "" {
		var err error
		if c.zone, err = time.LoadLocation(zone); err != nil {
			return nil, err
		}
	}
	text := expression
	if strings.HasPrefix(text, "@") {
		text = shorthands[strings.ToLower(text)]
	}
	words := strings.Fields(text)
	switch len(words) {
	case 5:
		words = append([]string{"0"}, words...)
	case 6:
	default:
		return nil, fmt.Errorf("%q is not a cron expression of five fields, or six", expression)
	}
	for i, set := range []*uint64{&c.second, &c.minute, &c.hour, &c.dom, &c.month, &c.dow} {
		var err error
		if *set, err = inFields[i].parse(words[i]); err != nil {
			return nil, fmt.Errorf("%q: %w", expression, err)
		}
	}
	if c.dow>>7&1 != 0 { // Sunday, too
		c.dow = c.dow&^(1<<7) | 1
	}
	c.either = !starred(words[3]) && !starred(words[5])
	c.interval = stepping(words[1]) || stepping(words[2])
	if _, ok := c.day(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return nil, fmt.Errorf("%q never runs", expression)
	}
	return c, nil
}

// starred reports whether a field of days restricts nothing.
func starred(word string) bool {
	for _, part := range strings.Split(word, ",") {
		if part == "*" || part == "?" || part == "*/1" || part == "?/1" {
			return true
		}
	}
	return false
}

func stepping(word string) bool {
	for _, part := range strings.Split(word, ",") {
		low, _, step := strings.Cut(part, "/")
		if low == "*" || low == "?" || step && !strings.Contains(low, "-") {
			return true
		}
	}
	return false
}

func (a among) parse(word string) (set uint64, err error) {
	for _, part := range strings.Split(word, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(by); err != nil || step < 1 {
				return 0, fmt.Errorf("the step %s", part)
			}
		}
		low, high := a.low, a.high
		if a.high == 7 {
			high = 6
		}
		if span != "*" && span != "?" {
			from, to, ranged := strings.Cut(span, "-")
			if low, err = a.number(from); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if high, err = a.number(to); err != nil {
					return 0, err
				}
			case !stepped:
				high = low
			}
		}
		if low > high || step > 1 && step > high-low {
			return 0, fmt.Errorf("the range %s", part)
		}
		for i := low; i <= high; i += step {
			set |= 1 << i
		}
	}
	return set, nil
}

func (a among) number(word string) (int, error) {
	for i, name := range a.names {
		if strings.EqualFold(word, name) {
			return a.low + i, nil
		}
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < a.low || n > a.high {
		return 0, fmt.Errorf("%q is not between %d and %d (L, W and # are not known to the fake)", word, a.low, a.high)
	}
	return n, nil
}

// day is the first day at or after one that the fields match; false: there is none within the years in which a calendar repeats.
func (c *cron) day(t time.Time) (time.Time, bool) {
	for end := t.Year() + 401; t.Year() < end; {
		if c.month>>uint(t.Month())&1 == 0 {
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		dom, dow := c.dom>>uint(t.Day())&1 != 0, c.dow>>uint(t.Weekday())&1 != 0
		if c.either && (dom || dow) || !c.either && dom && dow {
			return t, true
		}
		t = t.AddDate(0, 0, 1)
	}
	return t, false
}

// shown is the first time at or after another that the fields match, both as a clock without changes shows them.
func (c *cron) shown(t time.Time) (time.Time, bool) {
	for {
		midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
		on, ok := c.day(midnight)
		if !ok {
			return t, false
		}
		from := 0
		if on.Equal(midnight) {
			from = int(t.Sub(midnight) / time.Second)
		}
		for s := from; s < 24*3600; {
			switch {
			case c.hour>>(s/3600)&1 == 0:
				s = (s/3600 + 1) * 3600
			case c.minute>>(s/60%60)&1 == 0:
				s = (s/60 + 1) * 60
			case c.second>>(s%60)&1 == 0:
				s++
			default:
				return on.Add(time.Duration(s) * time.Second), true
			}
		}
		t = on.AddDate(0, 0, 1)
	}
}

// local is what the clock of the zone shows, as a time in UTC.
func (c *cron) local(t time.Time) time.Time {
	_, offset := t.In(c.zone).Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}

// next is the first time after another; zero: there is none. The clock of a zone is a sequence of stretches with one offset
// each. Times in the gap between two run at its end, those that come twice the first time; but times by intervals follow
// elapsed time: they run both times, and in a gap only if nothing runs soon after it.
func (c *cron) next(after time.Time) time.Time {
	for at := after.Truncate(time.Second).Add(time.Second); at.Year() < 2262; {
		start, end := at.In(c.zone).ZoneBounds()
		from := c.local(at)
		if !start.IsZero() {
			high := c.local(start.Add(-time.Second)).Add(time.Second) // shown before
			if at.Equal(start) && from.After(high) && c.runsInGap(high, from) {
				return at
			}
			if !c.interval && high.After(from) {
				from = high
			}
		}
		shown, ok := c.shown(from)
		if !ok {
			break
		}
		if t := at.Add(shown.Sub(c.local(at))); end.IsZero() || t.Before(end) {
			return t
		}
		at = end
	}
	return time.Time{}
}

func (c *cron) runsInGap(low, high time.Time) bool {
	missed, ok := c.shown(low)
	if !ok || !missed.Before(high) {
		return false
	}
	if c.interval {
		own, ok := c.shown(high)
		return !ok || !own.Before(high.Add(high.Sub(low)))
	}
	return true
}
