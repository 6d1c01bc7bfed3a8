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
	path  string // of a stand-in; empty: it has an inbox wherever it has sent
	boxes []*boxOf
	queue []received
	open  []*host.Reply // questions that were shown, and not answered
}

// boxOf is the inbox of a probe at a place.
type boxOf struct {
	at    *place
	inbox *host.Inbox
}

// received is a message of a probe.
type received struct {
	host.Message
	node  string      // where it came
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
		p = &probe{name: name, world: w}
		p.box(w.place)
		w.probes[key] = p
	}
	return p
}

// box is the inbox of a probe at a place, made if need be; nil for a stand-in.
func (p *probe) box(at *place) *host.Inbox {
	if p.path != "" || at.sys == nil {
		return nil
	}
	for _, x := range p.boxes {
		if x.at == at {
			return x.inbox
		}
	}
	x := &boxOf{at, at.sys.Inbox(mostReceived)}
	p.boxes = append(p.boxes, x)
	return x.inbox
}

// left forgets the inboxes at a place that is there no more.
func (p *probe) left(at *place) {
	p.boxes = slices.DeleteFunc(p.boxes, func(x *boxOf) bool { return x.at == at })
}

// standIn is the probe in place of an actor.
func (w *world) standIn(path string) *probe {
	if p := w.probes[path]; p != nil && w.cluster != nil {
		return p // one for all nodes
	}
	p := &probe{name: path, world: w, path: path}
	w.probes[path] = p
	return p
}

// props makes the props of a stand-in.
func (p *probe) props() host.Props {
	node := p.world.name
	return host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage && m.Kind != abi.KindReply && m.Kind != abi.KindReplyError {
			return host.ErrUnhandled
		}
		if len(p.queue) >= mostReceived {
			return fmt.Errorf("the stand-in has %d messages that were not expected", mostReceived)
		}
		got := received{Message: m.Clone(), node: node}
		if m.Correlation != 0 && m.Kind == abi.KindMessage {
			got.reply, _ = ctx.Later() // nil if nobody waits any more
		}
		p.keep(got)
		return nil
	})
}

// collect takes over what has come to the inboxes.
func (p *probe) collect() {
	for _, x := range p.boxes {
		for {
			m, ok := x.inbox.TryReceive()
			if !ok {
				break
			}
			p.keep(received{Message: m, node: x.at.name})
		}
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

// ref is the probe at a place.
func (p *probe) ref(at *place) host.Ref {
	if box := p.box(at); box != nil {
		return box.Ref()
	}
	ref, _ := at.sys.Lookup(p.path)
	return ref
}

// send sends a message from the probe at a place.
func (p *probe) send(at *place, to host.Ref, v any) error {
	if box := p.box(at); box != nil {
		return box.Tell(to, v)
	}
	return at.sys.TellFrom(p.ref(at), to, v)
}

// take takes the next message that came to a node, or with "" to any.
func (p *probe) take(node string) (received, bool) {
	p.collect()
	i := slices.IndexFunc(p.queue, func(m received) bool { return node == "" || m.node == node })
	if i < 0 {
		return received{}, false
	}
	m := p.queue[i]
	if i == 0 {
		p.queue = p.queue[1:]
	} else {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
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
