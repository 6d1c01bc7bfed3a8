package schedule

import "time"

// When a cron expression is due around changes of daylight saving time.
//
// Wall-clock schedules (0 3 * * *) run once for each time that they match, at the first moment at
// which the clock shows that time or a later one: a time in the gap of spring runs at the end of
// the gap, a time that occurs twice in autumn runs the first time.
//
// Schedules by intervals (*, */n or a/n in the minutes or hours) follow elapsed time: a time that
// occurs twice in autumn runs both times; times in the gap run once, at its end, unless there is
// a run within the gap's length after it anyway.
//
// The clock of a zone is a sequence of stretches with a constant offset from UTC. Within a
// stretch, plain arithmetic is done on local times, as seconds since 1970.

// stretch is a time with a constant offset, from start to before end, in seconds since 1970.
type stretch struct{ start, end, offset int64 }

const (
	farPast   = -1 << 40
	farFuture = 1 << 40
)

func stretchAt(loc *time.Location, at int64) stretch {
	t := time.Unix(at, 0).In(loc)
	from, to := t.ZoneBounds()
	_, offset := t.Zone()
	s := stretch{farPast, farFuture, int64(offset)}
	if !from.IsZero() {
		s.start = from.Unix()
	}
	if !to.IsZero() {
		s.end = to.Unix()
	}
	return s
}

// lookBack is how long after the end of a stretch its local times may occur again, in seconds:
// offsets differ by less.
const lookBack = 36 * 3600

// shownBefore is the lowest local time that the clock has not reached before a stretch begins.
func shownBefore(loc *time.Location, s stretch) int64 {
	high := int64(farPast)
	for at := s.start; at > s.start-lookBack && at > farPast; {
		p := stretchAt(loc, at-1)
		high = max(high, p.end+p.offset)
		at = p.start
	}
	return high
}

// firstShown is the first moment at which the clock shows a local time or a later one.
func firstShown(loc *time.Location, shown int64) int64 {
	for at := shown - lookBack; ; {
		s := stretchAt(loc, at)
		if shown < s.end+s.offset {
			return max(s.start, shown-s.offset)
		}
		at = s.end
	}
}

// Next is the first time of the schedule after a time, both in nanoseconds since 1970. False: there
// are no more.
func (s *Spec) Next(after int64) (int64, bool) {
	after = max(after, firstTime-1)
	next, ok := int64(0), true
	switch s.kind {
	case atOnce:
		next, ok = s.at, s.at > after
	case byPeriod:
		n := int64(0)
		if after >= s.at {
			n = (after-s.at)/s.every + 1
		}
		next, ok = s.at+n*s.every, n <= (lastTime-s.at)/s.every
	default:
		next, ok = s.nextCron(floor(after))
		next *= second
	}
	return next, ok
}

// floor is the second that a time from just before 1970 on is in.
func floor(ns int64) int64 { return (ns+second)/second - 1 }

// nextCron is Next of a cron expression, in seconds.
func (s *Spec) nextCron(after int64) (int64, bool) {
	for at := max(after+1, firstSecond); at <= lastSecond; {
		x := stretchAt(s.loc, at)
		from := at + x.offset // the local time
		if at == x.start {
			if s.atGap(x) {
				return at, true
			}
		}
		if !s.interval {
			from = max(from, shownBefore(s.loc, x))
		}
		shown, ok := s.fields.from(from)
		if !ok {
			return 0, false
		}
		if x.end == farFuture || shown < x.end+x.offset {
			return shown - x.offset, shown-x.offset <= lastSecond
		}
		at = x.end
	}
	return 0, false
}

// atGap reports whether times in the gap before a stretch run at its beginning.
func (s *Spec) atGap(x stretch) bool {
	if x.start <= farPast {
		return false
	}
	low, high := shownBefore(s.loc, x), x.start+x.offset
	if high <= low {
		return false
	}
	missed, ok := s.fields.from(low)
	if !ok || missed >= high {
		return false
	}
	if s.interval {
		own, ok := s.fields.from(high)
		return !ok || own >= high+(high-low)
	}
	return true
}

// Last is the latest time of the schedule after one time and not after another, in nanoseconds.
// False: there is none.
func (s *Spec) Last(after, until int64) (int64, bool) {
	after, until = max(after, firstTime-1), min(until, lastTime)
	if s.kind == byCron {
		last, ok := s.lastCron(floor(after), floor(max(until, firstTime-1)))
		return last * second, ok
	}
	next, ok := s.Next(after)
	switch {
	case !ok || next > until:
		return 0, false
	case s.kind == byPeriod:
		next += (until - next) / s.every * s.every
	}
	return next, true
}

// lastCron is Last of a cron expression, in seconds. It takes about forty calls of nextCron, however
// long the interval is.
func (s *Spec) lastCron(after, until int64) (int64, bool) {
	next, ok := s.nextCron(after)
	if !ok || next > until {
		return 0, false
	}
	low, high := next-1, until // nextCron(low) <= until, nextCron(high) is not
	for high-low > 1 {
		mid := low + (high-low)/2
		if n, ok := s.nextCron(mid); ok && n <= until {
			low = n - 1
		} else {
			high = mid
		}
	}
	return s.nextCron(low)
}
