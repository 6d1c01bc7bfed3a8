//go:build !wasip1

package actortest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// usual is how long a probe waits for a message, in virtual time, where nothing else is said.
const usual = 3 * time.Second

// patience is how long an expectation waits if it is given no time.
func (p *Probe) patience() time.Duration {
	if n := len(p.within); n > 0 {
		return max(p.within[n-1].Sub(p.w.now), 0)
	}
	return usual
}

// Expect takes the next message, whose payload must equal want. It waits for what is left of the innermost
// [Probe.Within]; outside of any, for 3 s.
func (p *Probe) Expect(want actor.Encoder) Sent {
	p.w.t.Helper()
	return p.ExpectAny(want)
}

// ExpectAny takes the next message, whose payload must equal one of wants.
func (p *Probe) ExpectAny(wants ...actor.Encoder) Sent {
	p.w.t.Helper()
	var names []string
	for _, want := range wants {
		names = append(names, item(encode(want)))
	}
	return p.ExpectMatch(strings.Join(names, " or "), func(s Sent) bool {
		for _, want := range wants {
			if bytes.Equal(encode(want), s.Payload) {
				return true
			}
		}
		return false
	})
}

// ExpectAll takes as many messages as there are wants; their payloads must be the wants, in any order.
func (p *Probe) ExpectAll(wants ...actor.Encoder) []Sent {
	p.w.t.Helper()
	left := make([][]byte, len(wants))
	var names []string
	for i, want := range wants {
		left[i] = encode(want)
		names = append(names, item(left[i]))
	}
	what := strings.Join(names, " and ")
	var all []Sent
	for end := p.w.now.Add(p.patience()); len(left) > 0; {
		s, ok := p.next(end.Sub(p.w.now))
		if !ok {
			p.failed(what+", in any order", list(all))
		}
		all = append(all, s)
		found := -1
		for i, want := range left {
			if bytes.Equal(want, s.Payload) {
				found = i
			}
		}
		if found < 0 {
			p.failed(what+", in any order", list(all))
		}
		left = append(left[:found:found], left[found+1:]...)
	}
	return all
}

// ExpectMatch takes the next message, which must match; what is the name of the expectation in reports.
func (p *Probe) ExpectMatch(what string, match func(Sent) bool) Sent {
	p.w.t.Helper()
	d := p.patience()
	s, ok := p.next(d)
	switch {
	case !ok:
		p.failed(what, fmt.Sprintf("nothing within %v", d))
	case !match(s):
		p.failed(what, describe(s))
	}
	return s
}

// ExpectAs takes the next message and decodes it into d, which must read all of it.
func (p *Probe) ExpectAs(d actor.Decoder) Sent {
	p.w.t.Helper()
	return p.ExpectMatch(fmt.Sprintf("a %T", d), func(s Sent) bool { return s.Decode(d) == nil })
}

// ExpectKind takes the next message, which must be of the given kind.
func (p *Probe) ExpectKind(k SentKind) Sent {
	p.w.t.Helper()
	return p.ExpectMatch("a "+k.String(), func(s Sent) bool { return s.Kind == k })
}

// ExpectTerminated takes the next message, which must report the end of an actor that the probe watches, and
// returns the reason.
func (p *Probe) ExpectTerminated(ref actor.Ref) string {
	p.w.t.Helper()
	return p.ExpectMatch(fmt.Sprintf("the end of %d", ref), func(s Sent) bool { return s.Kind == Terminated && s.From == ref }).Text()
}

// ExpectNone fails if a message waits already, or comes within d.
func (p *Probe) ExpectNone(d time.Duration) {
	p.w.t.Helper()
	if s, ok := p.next(d); ok {
		p.failed(fmt.Sprintf("no message for %v", d), describe(s))
	}
	p.unended = true
}

// ReceiveN takes n messages of any kind.
func (p *Probe) ReceiveN(n int) []Sent {
	p.w.t.Helper()
	var all []Sent
	for end := p.w.now.Add(p.patience()); len(all) < n; {
		s, ok := p.next(end.Sub(p.w.now))
		if !ok {
			p.failed(fmt.Sprintf("%d messages", n), list(all))
		}
		all = append(all, s)
	}
	return all
}

// While bounds what [Probe.ReceiveWhile] takes. Zero fields are no bound, except for Most.
type While struct {
	Most  time.Duration // in all; 0: what is left, or 3 s
	Idle  time.Duration // without a message
	Count int
}

// ReceiveWhile takes messages as long as they match; nil matches all. It ends with the first one that does not match,
// which the next expectation gets; when nothing has come for w.Idle; with w.Count messages; or when w.Most is over.
func (p *Probe) ReceiveWhile(w While, match func(Sent) bool) []Sent {
	p.w.t.Helper()
	defer func() { p.unended = true }()
	if w.Most <= 0 {
		w.Most = p.patience()
	}
	var all []Sent
	for end := p.w.now.Add(w.Most); w.Count <= 0 || len(all) < w.Count; {
		left := end.Sub(p.w.now)
		if w.Idle > 0 {
			left = min(left, w.Idle)
		}
		if !p.w.until(left, func() bool { return len(p.queue) > 0 }) || match != nil && !match(p.queue[0]) {
			break
		}
		s, _ := p.next(0)
		all = append(all, s)
	}
	return all
}

// FishFor takes messages until one matches, and returns it. The others are discarded.
func (p *Probe) FishFor(what string, match func(Sent) bool) Sent {
	p.w.t.Helper()
	var others []Sent
	for end := p.w.now.Add(p.patience()); ; {
		s, ok := p.next(end.Sub(p.w.now))
		if !ok {
			p.failed(what, list(others))
		}
		if match(s) {
			return s
		}
		others = append(others, s)
	}
}

// Remaining is what is left of the innermost Within. The test fails outside of any.
func (p *Probe) Remaining() time.Duration {
	p.w.t.Helper()
	if len(p.within) == 0 {
		p.w.t.Fatalf("actortest: the probe %s: Remaining outside of Within", p.name)
	}
	return p.patience()
}

// Within runs f, which must take from least to most of virtual time. Expectations of this probe that are given
// no time wait until most is over; another Within inside cannot get more than is left. If the last expectation
// was ExpectNone or ReceiveWhile, it is not checked whether f has taken longer than most.
func (p *Probe) Within(least, most time.Duration, f func()) {
	p.w.t.Helper()
	begun := p.w.now
	if len(p.within) > 0 {
		most = min(most, p.patience())
	}
	p.within = append(p.within, begun.Add(most))
	p.unended = false
	func() {
		defer func() { p.within = p.within[:len(p.within)-1] }()
		f()
	}()
	switch took := p.w.now.Sub(begun); {
	case took < least:
		p.w.t.Fatalf("actortest: the probe %s: it took %v, expected at least %v%s", p.name, took, least, p.w.waits())
	case took > most && !p.unended:
		p.w.t.Fatalf("actortest: the probe %s: it took %v, expected at most %v%s", p.name, took, most, p.w.waits())
	}
}

// next takes the next message, if it comes within d.
func (p *Probe) next(d time.Duration) (Sent, bool) {
	p.w.t.Helper()
	p.unended = false
	if !p.w.until(d, func() bool { return len(p.queue) > 0 }) {
		return Sent{}, false
	}
	s := p.queue[0]
	p.last, p.queue = &s, p.queue[1:]
	return s, true
}

// Await waits until a condition holds, for at most d of virtual time. It checks whenever something has happened.
func (w *World) Await(d time.Duration, what string, is func() bool) {
	w.t.Helper()
	if !w.until(d, is) {
		w.t.Fatalf("actortest: expected within %v: %s%s", d, what, w.waits())
	}
}

func (p *Probe) failed(want, came string) {
	p.w.t.Helper()
	p.w.t.Fatalf("actortest: the probe %s\n  expected: %s\n  came: %s%s", p.name, want, came, p.w.waits())
}

// waits is the end of a report.
func (w *World) waits() string {
	text := ""
	for _, p := range w.probes {
		if len(p.queue) > 0 {
			text += fmt.Sprintf("\n    the probe %s has %s", p.name, list(p.queue))
		}
	}
	for _, a := range w.order {
		if a.failure != nil {
			text += fmt.Sprintf("\n    %s has failed: %v", a.Path(), a.failure)
		}
		if n := len(a.asks); n > 0 {
			text += fmt.Sprintf("\n    %s waits for %d answers", a.Path(), n)
		}
		if n := len(a.stash); n > 0 {
			text += fmt.Sprintf("\n    %s has %d messages put aside", a.Path(), n)
		}
	}
	for _, f := range w.failures {
		text += fmt.Sprintf("\n    a turn of %s has failed: %v", f.Path, f.Failure)
	}
	if len(w.out) > 0 {
		text += "\n    left the world: " + list(w.out)
	}
	if at, ok := w.nextAt(); ok {
		text += fmt.Sprintf("\n    something becomes due in %v", at.Sub(w.now))
	}
	if text == "" {
		return "\n  nothing waits"
	}
	return "\n  what waits:" + text
}
