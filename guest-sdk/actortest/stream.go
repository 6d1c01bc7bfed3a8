//go:build !wasip1

package actortest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Taker is the end of a stream (abi/flow) at which elements arrive, played by the test: nothing comes that the test has not
// requested. Expectations wait as those of a probe.
type Taker struct {
	p       *Probe
	from    actor.Ref
	stream  uint64
	credit  uint64
	got     uint64
	waiting [][]byte
}

// Giver is the end of a stream from which elements leave, played by the test.
type Giver struct {
	p      *Probe
	to     actor.Ref
	stream uint64
	credit uint64
	sent   uint64
}

// nextStream is the number of a stream, another one for each of the probe.
func (p *Probe) nextStream() uint64 { p.corr++; return p.corr }

// TakeFlow begins to take the stream that an actor serves, or gives to the probe, under a name.
func (p *Probe) TakeFlow(from actor.Ref, name string) *Taker {
	p.w.t.Helper()
	t := &Taker{p: p, from: from, stream: p.nextStream()}
	t.say(flow.Message{Op: flow.OpTake, Name: name})
	return t
}

// GiveFlow expects that an actor takes the stream of a name from the probe.
func (p *Probe) GiveFlow(name string) *Giver {
	p.w.t.Helper()
	m, from := p.flowMessage("a take of the stream "+name, func(m *flow.Message) bool { return m.Op == flow.OpTake && m.Name == name })
	return &Giver{p: p, to: from, stream: m.Stream, credit: m.Count}
}

// flowMessage takes the next message, which must be one of a stream that matches.
func (p *Probe) flowMessage(what string, match func(*flow.Message) bool) (m flow.Message, from actor.Ref) {
	p.w.t.Helper()
	s := p.ExpectMatch(what, func(s Sent) bool {
		var m flow.Message
		return s.Kind == Tell && m.Decode(s.Payload) == nil && match(&m)
	})
	_ = m.Decode(s.Payload)
	return m, s.From
}

func (t *Taker) say(m flow.Message) {
	t.p.w.t.Helper()
	m.Stream = t.stream
	t.p.Tell(t.from, actor.Raw(m.Encode()))
}

// Request asks for n elements more.
func (t *Taker) Request(n int) {
	t.p.w.t.Helper()
	t.credit += uint64(n)
	t.say(flow.Message{Op: flow.OpMore, Count: t.credit})
}

// Cancel says that nothing more is wanted.
func (t *Taker) Cancel() { t.p.w.t.Helper(); t.say(flow.Message{Op: flow.OpCancel}) }

// Expect takes the next elements, which must equal wants. It fails, too, if more come than were requested.
func (t *Taker) Expect(wants ...actor.Encoder) {
	t.p.w.t.Helper()
	for _, want := range wants {
		for len(t.waiting) == 0 {
			m, _ := t.p.flowMessage(fmt.Sprintf("the element %v", want), func(m *flow.Message) bool { return m.Op == flow.OpElements && m.Stream == t.stream })
			t.got += uint64(len(m.Elements))
			if t.waiting = m.Elements; t.got > t.credit {
				t.p.w.t.Fatalf("actortest: the probe %s has got %d elements and has requested %d", t.p.name, t.got, t.credit)
			}
		}
		payload := encode(want)
		if !bytes.Equal(payload, t.waiting[0]) {
			t.p.w.t.Fatalf("actortest: the probe %s\n  expected the element %v \n  came: %s%s", t.p.name, want, item(t.waiting[0]), t.p.w.waits())
		}
		t.waiting = t.waiting[1:]
	}
}

// ExpectNone fails if an element waits, or comes within d.
func (t *Taker) ExpectNone(d time.Duration) {
	t.p.w.t.Helper()
	if len(t.waiting) > 0 {
		t.p.w.t.Fatalf("actortest: the probe %s has %d elements more", t.p.name, len(t.waiting))
	}
	t.p.ExpectNone(d)
}

// ExpectEnd expects the end of the stream, without a failure, and behind all elements.
func (t *Taker) ExpectEnd() { t.p.w.t.Helper(); t.end("the end", false, "") }

// ExpectFailure expects that the stream fails, with a reason that contains a text.
func (t *Taker) ExpectFailure(text string) {
	t.p.w.t.Helper()
	t.end("a failure with "+text, true, text)
}

func (t *Taker) end(what string, failed bool, text string) {
	t.p.w.t.Helper()
	if len(t.waiting) > 0 && !failed {
		t.p.w.t.Fatalf("actortest: the probe %s has %d elements more", t.p.name, len(t.waiting))
	}
	t.p.flowMessage(what, func(m *flow.Message) bool {
		return m.Op == flow.OpEnd && m.Stream == t.stream && m.Failed == failed && strings.Contains(m.Reason, text)
	})
}

func (g *Giver) say(m flow.Message) {
	g.p.w.t.Helper()
	m.Stream = g.stream
	g.p.Tell(g.to, actor.Raw(m.Encode()))
}

// Requested is how many elements are asked for and were not sent.
func (g *Giver) Requested() int { return int(g.credit - g.sent) }

// ExpectRequest expects that more elements are asked for, until Requested is n.
func (g *Giver) ExpectRequest(n int) {
	g.p.w.t.Helper()
	for g.Requested() < n {
		m, _ := g.p.flowMessage(fmt.Sprintf("a request, of %d elements in all", n), func(m *flow.Message) bool { return m.Op == flow.OpMore && m.Stream == g.stream })
		g.credit = max(g.credit, m.Count)
	}
	if g.Requested() != n {
		g.p.w.t.Fatalf("actortest: the probe %s\n  expected a request of %d elements\n  requested are %d%s", g.p.name, n, g.Requested(), g.p.w.waits())
	}
}

// Send sends elements in one message, even more than were asked for.
func (g *Giver) Send(vs ...actor.Encoder) {
	g.p.w.t.Helper()
	m := flow.Message{Op: flow.OpElements, Count: g.sent}
	for _, v := range vs {
		m.Elements = append(m.Elements, encode(v))
	}
	g.sent += uint64(len(vs))
	g.say(m)
}

// Complete ends the stream.
func (g *Giver) Complete() { g.p.w.t.Helper(); g.say(flow.Message{Op: flow.OpEnd}) }

// Fail ends the stream with a failure.
func (g *Giver) Fail(reason string) {
	g.p.w.t.Helper()
	g.say(flow.Message{Op: flow.OpEnd, Reason: reason})
}

// ExpectCancel expects that the taker wants nothing more, and returns why: empty if it has broken nothing off.
func (g *Giver) ExpectCancel() string {
	g.p.w.t.Helper()
	m, _ := g.p.flowMessage("a cancel", func(m *flow.Message) bool { return m.Op == flow.OpCancel && m.Stream == g.stream })
	return m.Reason
}
