package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// Spec says when something runs: a cron expression, a period or a single time. Its times are
// nanoseconds since 1970, in UTC; those of a cron expression are whole seconds of its zone.
type Spec struct {
	loc   *time.Location
	kind  specKind
	at    int64 // atOnce: when; period: the first
	every int64 // period

	fields   *fields
	interval bool // by elapsed time, not by local time; see next.go
}

type specKind uint8

const (
	byCron specKind = iota
	byPeriod
	atOnce
)

// Bounds of what can be planned.
const (
	MaxExpression = 256 // bytes of an expression
	MaxPeriod     = 366 * 24 * time.Hour
	minYear       = 1970
	maxYear       = 2261 // the last whole one that fits nanoseconds since 1970
)

var (
	firstSecond = time.Date(minYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastSecond  = time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - 1

	firstTime = firstSecond * second
	lastTime  = lastSecond*second + second - 1
)

const second = int64(time.Second)

// ErrNever is wrapped by errors about expressions that no time matches.
var ErrNever = errors.New("there is no such time")

const syntax = cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Extended | cron.DowOrDom

var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// ParseCron reads an expression of five fields (minute, hour, day of the month, month, day of
// the week) or six, with seconds before them; or @yearly, @annually, @monthly, @weekly, @daily,
// @midnight, @hourly. See docs/services/schedule.md for what fields may have.
func ParseCron(expression string, loc *time.Location) (*Spec, error) {
	text := expression
	switch {
	case len(text) > MaxExpression:
		return nil, fmt.Errorf("an expression of %d bytes, at most %d", len(text), MaxExpression)
	case strings.HasPrefix(text, "@"):
		known, ok := descriptors[strings.ToLower(text)]
		if !ok {
			return nil, fmt.Errorf("%q is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly; a period is not written as an expression but as every", text)
		}
		text = known
	case strings.ContainsRune(text, '='):
		return nil, fmt.Errorf("%q: a zone is not part of the expression; write it as zone", text)
	}
	words := strings.Fields(text)
	if len(words) != 5 && len(words) != 6 {
		return nil, fmt.Errorf("%q has %d fields: there are five (minute, hour, day of the month, month, day of the week), or six with seconds before them", expression, len(words))
	}
	for _, w := range words {
		for _, part := range strings.Split(w, ",") {
			if part == "" {
				return nil, fmt.Errorf("%q: the list %s has an empty element", expression, w)
			}
			if low, _, _ := strings.Cut(part, "/"); len(low) > 1 && (low[0] == '*' || low[0] == '?') {
				return nil, fmt.Errorf("%q: %s is not a range", expression, part)
			}
		}
	}
	parsed, err := cron.MustNewParser(syntax).Parse(strings.Join(words, " "))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", expression, err)
	}
	f, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is not a cron expression", expression)
	}
	s := &Spec{loc: loc, kind: byCron, fields: fieldsOf(f)}
	s.interval = stepping(words[len(words)-5]) || stepping(words[len(words)-4])
	if _, ok := s.fields.from(leapCycle); !ok {
		return nil, fmt.Errorf("%q never runs: %w", expression, ErrNever)
	}
	return s, nil
}

// stepping reports whether a field of minutes or hours gives an interval: *, */n and a/n.
func stepping(field string) bool {
	for _, part := range strings.Split(field, ",") {
		low, _, step := strings.Cut(part, "/")
		if low == "*" || low == "?" || step && !strings.Contains(low, "-") {
			return true
		}
	}
	return false
}

// Every is a period of whole seconds, from a first time on, which is kept to the nanosecond.
func Every(period time.Duration, first time.Time) (*Spec, error) {
	switch {
	case period < time.Second || period%time.Second != 0:
		return nil, fmt.Errorf("a period of %v: it has whole seconds, one at least", period)
	case period > MaxPeriod:
		return nil, fmt.Errorf("a period of %v, at most %v", period, MaxPeriod)
	}
	if err := inYears(first); err != nil {
		return nil, err
	}
	return &Spec{loc: time.UTC, kind: byPeriod, every: int64(period), at: first.UnixNano()}, nil
}

// At is a single time, to the nanosecond.
func At(t time.Time) (*Spec, error) {
	if err := inYears(t); err != nil {
		return nil, err
	}
	return &Spec{loc: t.Location(), kind: atOnce, at: t.UnixNano()}, nil
}

func inYears(t time.Time) error {
	if s := t.Unix(); s < firstSecond || s > lastSecond {
		return fmt.Errorf("the year %d: times are in %d to %d", t.UTC().Year(), minYear, maxYear)
	}
	return nil
}

// ParseTime reads a single time: RFC 3339 (2027-01-02T15:04:05+01:00), or without a zone, as the
// clock of loc shows it (2027-01-02T15:04:05, 2027-01-02 15:04). A time that the clock skips
// means the first moment after it, one that occurs twice the first of the two.
func ParseTime(text string, loc *time.Location) (time.Time, error) {
	if len(text) > MaxExpression {
		return time.Time{}, fmt.Errorf("a time of %d bytes", len(text))
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, inYears(t)
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if shown, err := time.Parse(layout, text); err == nil {
			if err := inYears(shown); err != nil {
				return time.Time{}, err
			}
			t := time.Unix(firstShown(loc, shown.Unix()), 0).In(loc)
			if t.Second() == shown.Second() && t.Minute() == shown.Minute() && t.Hour() == shown.Hour() { // not skipped
				t = t.Add(time.Duration(shown.Nanosecond()))
			}
			return t, inYears(t)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write 2027-01-02T15:04:05+01:00, or 2027-01-02 15:04 with a zone", text)
}

// Once reports whether the Spec is a single time.
func (s *Spec) Once() bool { return s.kind == atOnce }

// Least is the shortest time between two runs, by the calendar: at a change of daylight saving
// time two runs may be nearer. 0: there is only one.
func (s *Spec) Least() time.Duration {
	switch s.kind {
	case atOnce:
		return 0
	case byPeriod:
		return time.Duration(s.every)
	}
	return time.Duration(s.fields.least()) * time.Second
}
