package testkit

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// The expectations of a probe. An expectation that is given no time waits for what is left
// of the innermost [Probe.Within], and outside of any for the usual time.

// Expect takes the next message, which must match want: a value, or a [Matcher].
func (p *Probe) Expect(want any) Received {
	p.t.Helper()
	return p.expect(p.patience(), []Matcher{matcherOf(want)}, "")
}

// ExpectWithin is Expect that waits for at most d.
func (p *Probe) ExpectWithin(d time.Duration, want any) Received {
	p.t.Helper()
	return p.expect(p.k.Dilated(d), []Matcher{matcherOf(want)}, "")
}

// ExpectAny takes the next message, which must match one of wants.
func (p *Probe) ExpectAny(wants ...any) Received {
	p.t.Helper()
	return p.expect(p.patience(), matchersOf(wants), "one of ")
}

// ExpectAll takes as many messages as there are wants. Each must match a want of its own, in any order.
// They are returned in the order of the wants.
func (p *Probe) ExpectAll(wants ...any) []Received {
	p.t.Helper()
	left := matchersOf(wants)
	end := p.k.Now().Add(p.patience())
	var all []Received
	for range wants {
		m, ok := p.next(end.Sub(p.k.Now()))
		if !ok {
			p.failed("all of %s\n  came: %s\n  nothing else within %v", names(left), orNothing(all), p.k.since(end)+p.patience())
		}
		all = append(all, m)
		if !p.canAll(left, all) {
			p.failed("all of %s, in any order\n  came: %s", names(left), list(all))
		}
	}
	return p.inOrder(left, all)
}

// ExpectAs takes the next message, which must conform to T, see [OfType].
func ExpectAs[T any](p *Probe) T {
	p.t.Helper()
	m := p.Expect(OfType[T]())
	v, _ := conform[T](m.Payload)
	return v
}

// ExpectNone fails if a message waits already, or comes within d.
func (p *Probe) ExpectNone(d time.Duration) {
	p.t.Helper()
	m, ok := p.next(p.k.Dilated(d))
	p.unended = true
	if ok {
		p.failed("no message for %v\n  came: %v, at %v", d, m, m.At.Format("15:04:05.000"))
	}
}

// ExpectTerminated takes the next message, which must report that an actor that the probe watches
// has ended, and returns the reason.
func (p *Probe) ExpectTerminated(ref host.Ref) string {
	p.t.Helper()
	m := p.Expect(Matching("the end of "+ref.Path(), func(m host.Message) bool {
		return m.Kind == abi.KindTerminated && m.Sender.UID() == ref.UID()
	}))
	var reason string
	_ = m.Decode(&reason)
	return reason
}

// ReceiveN takes n messages of any kind.
func (p *Probe) ReceiveN(n int) []Received {
	p.t.Helper()
	end := p.k.Now().Add(p.patience())
	var all []Received
	for len(all) < n {
		m, ok := p.next(end.Sub(p.k.Now()))
		if !ok {
			p.failed("%s\n  came: %d in time: %s", count(n, "message"), len(all), orNothing(all))
		}
		all = append(all, m)
	}
	return all
}

// While bounds what [Probe.ReceiveWhile] takes. Zero fields are no bound, except for Most.
type While struct {
	Most  time.Duration // in all; 0: what is left, or the usual time
	Idle  time.Duration // without a message
	Count int
}

// ReceiveWhile takes messages as long as they match; nil matches all. It ends with the first one that does not match,
// which the next expectation gets; when nothing has come for w.Idle; with w.Count messages; or when w.Most is over.
func (p *Probe) ReceiveWhile(w While, match func(Received) bool) []Received {
	p.t.Helper()
	defer func() { p.unended = true }()
	most := p.patience()
	if w.Most > 0 {
		most = p.k.Dilated(w.Most)
	}
	end := p.k.Now().Add(most)
	var all []Received
	for w.Count <= 0 || len(all) < w.Count {
		left := end.Sub(p.k.Now())
		if idle := p.k.Dilated(w.Idle); w.Idle > 0 {
			left = min(left, idle)
		}
		m, ok := p.peek(left)
		if !ok || match != nil && !match(m) {
			break
		}
		p.take()
		all = append(all, m)
	}
	return all
}

// FishFor takes messages until one matches, and returns it. The others are discarded.
func (p *Probe) FishFor(want any) Received {
	p.t.Helper()
	w := matcherOf(want)
	patience := p.patience()
	end := p.k.Now().Add(patience)
	var others []Received
	for {
		m, ok := p.next(end.Sub(p.k.Now()))
		if !ok {
			p.failed("%s among the messages of %v\n  came: %s", w, patience, orNothing(others))
		}
		if w.Match(m.Message) {
			return m
		}
		others = append(others, m)
	}
}

// expect takes the next message, which must match one of wants.
func (p *Probe) expect(d time.Duration, wants []Matcher, of string) Received {
	p.t.Helper()
	begun := p.k.Now()
	m, ok := p.next(d)
	if !ok {
		p.failed("%s%s\n  came: nothing within %v", of, names(wants), d)
	}
	if !slices.ContainsFunc(wants, func(w Matcher) bool { return w.Match(m.Message) }) {
		p.failed("%s%s\n  came: %v, after %v", of, names(wants), m, max(m.At.Sub(begun), 0))
	}
	return m
}

// next takes the next message, if it comes within d.
func (p *Probe) next(d time.Duration) (Received, bool) {
	p.t.Helper()
	p.unended = false
	m, ok := p.peek(d)
	if ok {
		p.take()
	}
	return m, ok
}

// peek waits for the next message.
func (p *Probe) peek(d time.Duration) (m Received, ok bool) {
	p.t.Helper()
	p.k.until(d, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ok = len(p.queue) > 0; ok {
			m = p.queue[0]
		}
		return ok
	})
	return m, ok
}

func (p *Probe) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.queue[0]
	p.last, p.queue = &m, p.queue[1:]
}

// failed ends the test.
func (p *Probe) failed(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("testkit: the probe %s\n  expected: "+format+"%s", append(append([]any{p.name}, args...), p.k.waits())...)
}

func matchersOf(wants []any) []Matcher {
	var all []Matcher
	for _, w := range wants {
		all = append(all, matcherOf(w))
	}
	return all
}

func orNothing(ms []Received) string {
	if len(ms) == 0 {
		return "nothing"
	}
	return list(ms)
}

// canAll reports whether each message can be matched with a want of its own.
func (p *Probe) canAll(wants []Matcher, ms []Received) bool {
	return assign(wants, ms) != nil
}

// inOrder returns the messages in the order of the wants that they match.
func (p *Probe) inOrder(wants []Matcher, ms []Received) []Received {
	out := make([]Received, len(wants))
	for i, w := range assign(wants, ms) {
		out[w] = ms[i]
	}
	return out
}

// assign returns, for each message, the want that it is matched with; nil if there is no complete matching. A message
// may match several wants, so an earlier choice may have to be revised.
func assign(wants []Matcher, ms []Received) []int {
	of := make([]int, len(wants)) // the message of a want, from 1
	var try func(i int, seen []bool) bool
	try = func(i int, seen []bool) bool {
		for w := range wants {
			if seen[w] || !wants[w].Match(ms[i].Message) {
				continue
			}
			seen[w] = true
			if of[w] == 0 || try(of[w]-1, seen) {
				of[w] = i + 1
				return true
			}
		}
		return false
	}
	for i := range ms {
		if !try(i, make([]bool, len(wants))) {
			return nil
		}
	}
	out := make([]int, len(ms))
	for w, i := range of {
		if i > 0 {
			out[i-1] = w
		}
	}
	return out
}
