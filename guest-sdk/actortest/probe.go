//go:build !wasip1

package actortest

import (
	"encoding/binary"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Probe is an actor of a [World] that the test plays. Its messages wait until the test expects them, and the test sends,
// answers and watches on its behalf. As the parent of others ([Parent]) it gets their messages to their parent.
type Probe struct {
	w       *World
	name    string
	ref     actor.Ref
	queue   []Sent
	ignored func(Sent) bool
	pilot   Pilot

	last    *Sent // that the test has taken
	asked   map[uint64]bool
	corr    uint64
	within  []time.Time
	unended bool // Within does not check its end
}

// Pilot answers for a probe, before a message waits for the test. It returns the pilot of the next message:
// itself, another, or nil for none. It may call the probe's methods that send; for these m is the message
// that was taken last.
type Pilot func(p *Probe, m Sent) Pilot

// Probe makes a probe at /user/name.
func (w *World) Probe(name string) *Probe {
	w.t.Helper()
	sum := hash("probe " + name)
	p := &Probe{w: w, name: name, ref: actor.Ref(binary.LittleEndian.Uint64(sum[:])>>10 | 1<<53), asked: map[uint64]bool{}}
	if w.Find(p.Path()) != nil || w.probeAt(Target{Path: p.Path()}) != nil {
		w.t.Fatalf("actortest: there is an actor %s already", p.Path())
	}
	w.probes = append(w.probes, p)
	return p
}

// Ref is where the probe is reached.
func (p *Probe) Ref() actor.Ref { return p.ref }

// Path is where it is: /user/ and its name.
func (p *Probe) Path() string { return "/user/" + p.name }

// Ignore discards messages that match from now on; nil: none.
func (p *Probe) Ignore(match func(Sent) bool) { p.ignored = match }

// Autopilot sets the pilot.
func (p *Probe) Autopilot(f Pilot) { p.pilot = f }

// Waiting are the messages that wait for the test, the oldest first.
func (p *Probe) Waiting() []Sent { return append([]Sent(nil), p.queue...) }

// probeAt returns the probe of a target, or nil if the target is not a probe.
func (w *World) probeAt(to Target) *Probe {
	for _, p := range w.probes {
		if to.To == p.ref || to.To == 0 && to.Path == p.Path() {
			return p
		}
	}
	return nil
}

// take is the turn of a probe.
func (p *Probe) take(s Sent) {
	switch s.Kind {
	case Reply, ReplyError, Timeout:
		if s.Correlation != 0 {
			if !p.asked[s.Correlation] {
				if s.Kind != Timeout {
					p.w.dead = append(p.w.dead, s) // nobody waits for it
				}
				return
			}
			delete(p.asked, s.Correlation)
		}
	}
	if p.pilot != nil {
		taken := p.last
		p.last = &s
		p.pilot = p.pilot(p, s)
		p.last = taken
	}
	if p.ignored == nil || !p.ignored(s) {
		p.queue = append(p.queue, s)
	}
}

// Tell sends a message.
func (p *Probe) Tell(to actor.Ref, body actor.Encoder) {
	p.w.t.Helper()
	p.send(Sent{Target: Target{To: to}, Payload: encode(body)})
}

// Ask sends a question. Its outcome comes as any other message: a Reply, a ReplyError, or after the timeout
// a Timeout; a timeout of 0 is an hour.
func (p *Probe) Ask(to actor.Ref, body actor.Encoder, timeout time.Duration) {
	p.w.t.Helper()
	if timeout <= 0 {
		timeout = time.Hour
	}
	p.corr++
	n := p.corr
	p.asked[n] = true
	p.w.After(timeout, func() { p.take(Sent{Kind: Timeout, From: to, Correlation: n, Payload: []byte{0xf6}}) })
	p.send(Sent{Target: Target{To: to}, Kind: Ask, Correlation: n, Timeout: timeout, Payload: encode(body)})
}

// Reply answers the message that the test has taken last: a question gets an answer, and the sender of any
// other message a message.
func (p *Probe) Reply(body actor.Encoder) { p.w.t.Helper(); p.answer(Reply, encode(body)) }

// ReplyError answers the question that the test has taken last with an error.
func (p *Probe) ReplyError(reason string) {
	p.w.t.Helper()
	p.answer(ReplyError, encode(actor.Text(reason)))
}

func (p *Probe) answer(kind SentKind, payload []byte) {
	p.w.t.Helper()
	m := p.taken()
	question := (m.Kind == Ask || m.Kind == Forward) && m.Correlation != 0
	switch {
	case m.From == 0:
		p.w.t.Fatalf("actortest: the probe %s cannot answer: nobody has sent %s", p.name, describe(m))
	case !question && kind == ReplyError:
		p.w.t.Fatalf("actortest: the probe %s cannot answer: %s is not a question", p.name, describe(m))
	case !question:
		kind, m.Correlation = Tell, 0
	}
	p.send(Sent{Target: Target{To: m.From}, Kind: kind, Correlation: m.Correlation, Payload: payload})
}

// Forward sends on the message that the test has taken last, with its original sender.
func (p *Probe) Forward(to actor.Ref) {
	p.w.t.Helper()
	m := p.taken()
	p.w.send(Sent{Target: Target{To: to}, Kind: Forward, From: m.From, Correlation: m.Correlation, Payload: m.Payload, headers: m.headers})
	p.w.goOn()
}

// Sender is the sender of the message that the test has taken last.
func (p *Probe) Sender() actor.Ref { p.w.t.Helper(); return p.taken().From }

func (p *Probe) taken() Sent {
	p.w.t.Helper()
	if p.last == nil {
		p.w.t.Fatalf("actortest: the probe %s: the test has taken no message%s", p.name, p.w.waits())
	}
	return *p.last
}

func (p *Probe) send(s Sent) {
	p.w.t.Helper()
	s.From = p.ref
	p.w.send(s)
	p.w.goOn()
}

// Watch notifies the probe when an actor stops, see [Probe.ExpectTerminated].
func (p *Probe) Watch(ref actor.Ref) {
	p.w.t.Helper()
	p.w.watchFor(p.ref, Target{To: ref})
	p.w.goOn()
}

// Unwatch ends a watch.
func (p *Probe) Unwatch(ref actor.Ref) { p.w.unwatch(p.ref, ref) }

// Stop stops the probe: its watchers are notified, and messages to it become dead letters.
func (p *Probe) Stop() {
	p.w.t.Helper()
	for i, x := range p.w.probes {
		if x == p {
			p.w.probes = append(p.w.probes[:i:i], p.w.probes[i+1:]...)
			p.w.gone(p.ref, "stopped")
			p.w.goOn()
			return
		}
	}
}

// notice is what tells an actor, or a probe, of an end.
func (w *World) notice(to actor.Ref, who actor.Ref, reason string) {
	payload := encode(actor.Text(reason))
	if a := w.actors[to]; a != nil {
		w.queue = append(w.queue, step{to: a, envelope: abi.Envelope{Kind: abi.KindTerminated, Sender: who, Payload: payload}})
	} else if p := w.probeAt(Target{To: to}); p != nil {
		w.queue = append(w.queue, step{probe: p, sent: Sent{Target: Target{To: to}, Kind: Terminated, From: who, Payload: payload}})
	}
}
