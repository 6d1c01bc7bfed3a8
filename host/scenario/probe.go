package scenario

import (
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// probe is an actor that a scenario plays: it has a ref, and keeps what it is sent.
type probe struct {
	name  string
	world *world
	inbox *host.Inbox // nil: a stand-in
	path  string      // of a stand-in
	queue []received
	open  []*host.Reply // questions that were shown, and not answered
}

// received is a message of a probe.
type received struct {
	host.Message
	reply *host.Reply // nil: nobody waits for an answer
}

// mostReceived bounds the messages of a stand-in that were not expected yet.
const mostReceived = 10_000

// probeKey is the key of a probe in world.probes.
func (w *world) probeKey(name string) string {
	if path := pathOf(name); slices.Contains(w.scenario.standIns, path) {
		return path
	}
	return name
}

// probe is the probe with a name, made if need be.
func (w *world) probe(name string) *probe {
	key := w.probeKey(name)
	p := w.probes[key]
	if p == nil {
		p = &probe{name: name, world: w, inbox: w.sys.Inbox(mostReceived)}
		w.probes[key] = p
	}
	return p
}

// standIn is the probe in place of an actor.
func (w *world) standIn(path string) *probe {
	p := &probe{name: path, world: w, path: path}
	w.probes[path] = p
	return p
}

// props makes the props of a stand-in.
func (p *probe) props() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage && m.Kind != abi.KindReply && m.Kind != abi.KindReplyError {
			return host.ErrUnhandled
		}
		if len(p.queue) >= mostReceived {
			return fmt.Errorf("the stand-in has %d messages that were not expected", mostReceived)
		}
		got := received{Message: m.Clone()}
		if m.Correlation != 0 && m.Kind == abi.KindMessage {
			got.reply, _ = ctx.Later() // nil if nobody waits any more
		}
		p.keep(got)
		return nil
	})
}

// collect takes over what has come to the inbox, if there is one.
func (p *probe) collect() {
	for p.inbox != nil {
		m, ok := p.inbox.TryReceive()
		if !ok {
			return
		}
		p.keep(received{Message: m})
	}
}

func (p *probe) keep(m received) {
	p.queue = append(p.queue, m)
	p.world.hold(m.bytes())
}

// bytes is about what its messages take.
func (p *probe) bytes() (n int) {
	for i := range p.queue {
		n += p.queue[i].bytes()
	}
	return n
}

// bytes is about what the message takes.
func (m *received) bytes() int { return 200 + len(m.Payload) + len(m.Headers) }

func (p *probe) ref() host.Ref {
	if p.inbox != nil {
		return p.inbox.Ref()
	}
	ref, _ := p.world.sys.Lookup(p.path)
	return ref
}

// send sends a message from the probe.
func (p *probe) send(to host.Ref, v any) error {
	if p.inbox != nil {
		return p.inbox.Tell(to, v)
	}
	return p.world.sys.TellFrom(p.ref(), to, v)
}

// take takes the next message.
func (p *probe) take() (received, bool) {
	p.collect()
	if len(p.queue) == 0 {
		return received{}, false
	}
	m := p.queue[0]
	p.queue = p.queue[1:]
	p.world.release(m.bytes())
	if m.reply != nil {
		p.open = append(p.open, m.reply)
	}
	return m, true
}

// waiting reports whether anybody waits for an answer to a question that was shown, and forgets
// questions for which nobody does.
func (p *probe) waiting() bool {
	p.open = slices.DeleteFunc(p.open, func(r *host.Reply) bool {
		select {
		case <-r.Gone():
			return true
		default:
			return false
		}
	})
	return len(p.open) > 0
}
