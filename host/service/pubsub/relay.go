package pubsub

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// relay is the actor of a node that tells those of the other nodes what is subscribed to here, and gets their events. What one has taken
// arrives once and in order, or a pair of nodes begins anew: then each is told all again.
type relay struct {
	env    *service.Env
	broker *broker
	self   host.Ref
	stop   func()
	dirty  atomic.Bool

	peers    map[uint16]*peer
	asking   map[uint64]uint16 // identifies that are open
	asked    uint64
	patterns map[string]bool // what was told last
	groups   map[groupKey]int
	any      bool
	timers   bool
}

// peer is the relay of another node.
type peer struct {
	ref  host.Ref // zero: it is looked for
	busy bool     // it was asked who it is
	full bool     // all is to be told
	got  uint64   // events of it
}

const (
	relayName  = "pubsub-nodes"
	relayTimer = 1
	relayLook  = 50 * time.Millisecond // between two looks while something is to be done
	relayAsk   = 2 * time.Second
	relayOften = 10 * time.Millisecond // in which changes of what is subscribed to are told together
)

// startRelay starts the actor.
func startRelay(env *service.Env, b *broker) (*relay, error) {
	r := &relay{env: env, broker: b, peers: map[uint16]*peer{}, asking: map[uint64]uint16{}, patterns: map[string]bool{}, groups: map[groupKey]int{}}
	ref, err := env.System.SpawnService(relayName, host.Native(func() host.Actor { return r }))
	if err != nil {
		return nil, err
	}
	r.self = ref
	b.mu.Lock()
	b.changed = r.nudge
	b.mu.Unlock()
	r.stop = env.Nodes.Changes(r.nudge)
	r.nudge()
	return r, nil
}

func (r *relay) close() {
	r.stop()
	r.env.System.Stop(r.self)
}

// nudge has the actor look at what has changed. It does not block.
func (r *relay) nudge() {
	if !r.dirty.Swap(true) {
		_ = r.env.System.Tell(r.self, relayed{})
	}
}

// Receive implements [host.Actor].
func (r *relay) Receive(ctx *host.Context, m host.Message) error {
	switch m.Kind {
	case abi.KindReply:
		r.found(ctx, m.Correlation, m.Sender)
	case abi.KindReplyError, abi.KindAskTimeout:
		r.found(ctx, m.Correlation, host.Ref{})
	case abi.KindTerminated:
		r.ended(ctx, m.Sender)
	case abi.KindTimer:
		r.timers = false
		r.look(ctx)
	case abi.KindMessage:
		if m.Sender.IsZero() { // Go code of this node
			r.later(ctx, relayOften)
			return nil
		}
		return r.arrived(ctx, m)
	}
	return nil
}

// later has the actor look.
func (r *relay) later(ctx *host.Context, d time.Duration) {
	if !r.timers {
		r.timers = ctx.After(relayTimer, d, 0, nil) == nil
	}
}

// look finds the relays of nodes that have come, forgets those that have gone, and tells all what is subscribed to.
func (r *relay) look(ctx *host.Context) {
	r.dirty.Store(false)
	others := r.env.Nodes.Others()
	again := false
	for _, number := range slices.Sorted(maps.Keys(r.peers)) {
		if !slices.Contains(others, number) {
			r.forget(ctx, number)
		}
	}
	for _, number := range others {
		p := r.peers[number]
		if p == nil {
			p = &peer{}
			r.peers[number] = p
		}
		if p.ref.IsZero() && !p.busy {
			r.asked++
			path := fmt.Sprintf("wasm://%s@%d/system/%s", r.env.System.Name(), number, relayName)
			if ctx.At(path).Identify(r.asked, relayAsk) == nil {
				r.asking[r.asked], p.busy = number, true
			} else {
				again = true
			}
		}
	}
	patterns, groups := r.broker.interest()
	wide := len(patterns) > mostPatterns
	if wide {
		patterns = map[string]bool{}
	}
	change := difference(r.patterns, r.groups, patterns, groups)
	change.All, change.Any = wide != r.any, wide
	if change.All {
		change = whole(patterns, groups, wide)
	}
	r.patterns, r.groups, r.any = patterns, groups, wide
	news := change.All || len(change.More)+len(change.Less)+len(change.Groups) > 0
	for _, number := range slices.Sorted(maps.Keys(r.peers)) {
		p := r.peers[number]
		if p.ref.IsZero() || !news && !p.full {
			continue
		}
		tell := change
		if p.full {
			tell = whole(patterns, groups, wide)
		}
		tell.Topic = r.env.Bundle
		p.full = ctx.Tell(p.ref, tell) != nil // too much waits for it
		again = again || p.full
	}
	if again {
		r.later(ctx, relayLook)
	}
}

// whole is all that is subscribed to.
func whole(patterns map[string]bool, groups map[groupKey]int, wide bool) relayed {
	m := difference(nil, nil, patterns, groups)
	m.All, m.Any = true, wide
	return m
}

// found is called when another relay has said who it is, or there is none.
func (r *relay) found(ctx *host.Context, correlation uint64, ref host.Ref) {
	number, ok := r.asking[correlation]
	delete(r.asking, correlation)
	p := r.peers[number]
	if !ok || p == nil || !p.busy {
		return
	}
	if p.busy = false; ref.IsZero() || ref.UID().Node() != number || ctx.Watch(ref) != nil {
		r.later(ctx, relayLook)
		return
	}
	r.meet(ctx, number, p, ref)
}

// meet begins to speak with a relay.
func (r *relay) meet(ctx *host.Context, number uint16, p *peer, ref host.Ref) {
	*p = peer{ref: ref, full: true}
	r.broker.meet(&farNode{number: number, self: r.self, to: ref, sys: r.env.System})
	r.look(ctx)
}

// ended is called when another relay has ended, its node is lost, or the pair of nodes has begun anew.
func (r *relay) ended(ctx *host.Context, ref host.Ref) {
	number := ref.UID().Node()
	if p := r.peers[number]; p != nil && p.ref.UID() == ref.UID() {
		r.forget(ctx, number)
		r.later(ctx, relayLook)
	}
}

func (r *relay) forget(ctx *host.Context, number uint16) {
	if p := r.peers[number]; !p.ref.IsZero() {
		ctx.Unwatch(p.ref)
	}
	delete(r.peers, number)
	r.broker.gone(number)
}

// arrived handles what another relay has sent. A node states only senders of its own number, and paths of actors that it has.
func (r *relay) arrived(ctx *host.Context, m host.Message) error {
	number := m.Sender.UID().Node()
	p := r.peers[number]
	if m.Sender.Path() != ctx.Self().Path() || number == r.self.UID().Node() {
		return host.ErrUnhandled
	}
	var x relayed
	if err := m.Decode(&x); err != nil {
		return host.ErrUnhandled
	}
	if p == nil || p.ref.UID() != m.Sender.UID() { // it has found this one first, or begun anew
		if !slices.Contains(r.env.Nodes.Others(), number) || ctx.Watch(m.Sender) != nil {
			return nil
		}
		if p == nil {
			p = &peer{}
			r.peers[number] = p
		}
		r.meet(ctx, number, p, m.Sender)
	}
	switch x.Kind {
	case relayInterest:
		if x.Topic != "" && x.Topic != r.env.Bundle {
			return nil // it wants other topics than those of this bundle, and sends nothing for the same reason
		}
		if !r.broker.interested(number, &x) {
			return host.ErrUnhandled
		}
	case relayEvent:
		if topic.Check(x.Topic) != nil || len(x.Value) > MaxValue || len(x.Picked) > mostGroups {
			return host.ErrUnhandled
		}
		missed := uint64(0)
		if x.N > p.got+1 && p.got > 0 {
			missed = min(x.N-p.got-1, 1<<32)
		}
		p.got = max(x.N, p.got)
		if r.env.Nodes.Acting() {
			r.broker.arrived(&Event{Topic: x.Topic, Value: x.Value}, x.Plain, x.Picked, missed)
		}
	default:
		return host.ErrUnhandled
	}
	return nil
}
