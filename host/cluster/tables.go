package cluster

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// What two nodes owe each other, so that nobody waits for a node that is lost. The engine knows nothing of this: it is read
// from the frames that pass, and what it gets when a node is lost are frames, too.

// question is an ask of this node.
type question struct {
	asker       abi.Ref
	correlation uint64
}

// asked is an open ask: who is to answer it, and answers that came before the news of who may give them.
type asked struct {
	tree   any       // that it counts for
	holder abi.Ref   // who has the question now
	who    []abi.Ref // may answer: was asked, or has been handed the question by one who was
	due    time.Duration
	held   []held
}

// held is a frame for an asker that waits for a delegation.
type held struct {
	by    abi.Ref // who must have been asked
	from  uint16  // whose node says so
	to    abi.Ref
	frame []byte
}

// bond is a watch: by is told of the end of of.
type bond struct{ by, of abi.Ref }

// tables are those of one other node.
type tables struct {
	watches  map[bond]*share     // of actors there, and whose they are
	watchers map[bond]struct{}   // of actors here
	handles  map[abi.Ref]abi.Ref // reply handles here, and the asker there that they observe
}

// Bounds of the tables, for each other node.
const (
	MaxWatches   = 1 << 16
	MaxAsks      = 1 << 16
	maxHeld      = 16
	maxAnswerers = 64
	longestAsk   = time.Hour // of which no time is known
)

func newTables() tables {
	return tables{map[bond]*share{}, map[bond]struct{}{}, map[abi.Ref]abi.Ref{}}
}

// leaving notes a frame that goes to the other node. It returns false if there is no room for what it asks for. by is the share of who has
// sent a message, or watches.
func (p *pair) leaving(to abi.Ref, m *network.Message, g *signal.Signal, by *share) bool {
	n, t := p.node, &p.tables
	switch {
	case m != nil:
		if m.Kind != abi.KindMessage || m.Correlation == 0 || m.Sender.Node() != n.self.Number {
			return true
		}
		if !within(by.asks, 1, p.asks, MaxAsks) {
			return false
		}
		left := time.Duration(min(m.Left, uint64(longestAsk)))
		if left == 0 {
			left = longestAsk
		}
		n.ask(question{m.Sender, m.Correlation}, to, n.since()+left, by.tree)
	case g.Kind == signal.Watch:
		b := bond{g.From, to}
		if t.watches[b] != nil {
			return true
		}
		if !within(by.watches, 1, len(t.watches), MaxWatches) {
			return false
		}
		by.watches++
		t.watches[b] = by
	case g.Kind == signal.Unwatch:
		t.unbind(bond{g.From, to})
	case g.Kind == signal.Terminated:
		delete(t.watchers, bond{to, g.From})
	case g.Kind == signal.Observe && g.Correlation != 0:
		if len(t.handles) >= MaxWatches {
			return false
		}
		t.handles[g.From] = to
	}
	return true
}

// unbind forgets a watch; false if there is none.
func (t *tables) unbind(b bond) bool {
	by := t.watches[b]
	if by == nil {
		return false
	}
	delete(t.watches, b)
	by.watches--
	by.forget()
	return true
}

// ask notes who is to answer an ask of this node.
func (n *Node) ask(q question, holder abi.Ref, due time.Duration, tree any) {
	a := n.asks[q]
	if a == nil {
		a = &asked{tree: tree}
		n.asks[q] = a
	} else if p := n.pairs[a.holder.Node()]; p != nil {
		p.asksOf(a.tree, -1)
	}
	a.holder, a.due = holder, due
	if !slices.Contains(a.who, holder) {
		if len(a.who) >= maxAnswerers {
			a.who = slices.Delete(a.who, 0, 1)
		}
		a.who = append(a.who, holder)
	}
	if p := n.pairs[holder.Node()]; p != nil {
		p.asksOf(a.tree, 1)
		p.listen()
	}
}

// answered forgets an ask.
func (n *Node) answered(q question) {
	if a := n.asks[q]; a != nil {
		delete(n.asks, q)
		n.release(a)
		if p := n.pairs[a.holder.Node()]; p != nil {
			p.asksOf(a.tree, -1)
		}
	}
}

// release takes what an ask holds.
func (n *Node) release(a *asked) (all []held) {
	for _, h := range a.held {
		n.holds -= len(h.frame)
	}
	all, a.held = a.held, nil
	return all
}

// sweep forgets the asks whose time is over, which the engine has ended, and those of who has ended; once for all pairs.
func (n *Node) sweep(now time.Duration) {
	if now-n.swept < pings {
		return
	}
	n.swept = now
	for q, a := range n.asks {
		if a.due <= now || n.ended(q.asker) {
			n.answered(q)
		}
	}
}

// refusal is why a frame is not taken.
type refusal string

// arrived checks a frame of the other node, notes what it says, and has the engine get it, unless it waits or means nothing any
// more.
func (p *pair) arrived(to abi.Ref, frame []byte) refusal {
	n, from := p.node, p.peer.Number
	if to.Node() != n.self.Number {
		return "it is for another node"
	}
	m, g, err := n.decoder.Decode(frame)
	if err != nil {
		return "it is malformed"
	}
	if m != nil {
		switch {
		case m.Sender != 0 && m.Sender.Node() != from && m.Via.Node() != from, m.Via != 0 && m.Via.Node() != from:
			return "its sender is of another node"
		case m.Marks&(network.Poison|network.Kill) != 0 && !n.cfg.control(p.peer):
			return "the node may not stop actors here"
		}
		if m.Kind != abi.KindMessage && m.Correlation != 0 {
			if m.Sender.Node() != from { // nor may it be handed on: only the asker has use for it
				return "an answer in the name of another node, or of nobody"
			}
			return n.answer(m.Sender, from, to, m, nil)
		}
		n.arrivedMessage(to, m)
		return ""
	}
	return p.signalled(to, g)
}

func (p *pair) signalled(to abi.Ref, g *signal.Signal) refusal {
	n, t, from := p.node, &p.tables, p.peer.Number
	if g.From != 0 && g.From.Node() != from && g.Kind != signal.Unanswered {
		return "its sender is of another node"
	}
	switch g.Kind {
	case signal.Watch:
		if len(t.watchers) >= MaxWatches {
			p.queueSignal(g.From, signal.Signal{Kind: signal.Terminated, From: to, Reason: "limit"})
			return "too many watches"
		}
		t.watchers[bond{g.From, to}] = struct{}{}
	case signal.Unwatch:
		delete(t.watchers, bond{g.From, to})
	case signal.Terminated:
		if !t.unbind(bond{to, g.From}) {
			return ""
		}
	case signal.Unanswered, signal.Delegate:
		return n.answer(g.From, from, to, nil, g)
	case signal.Abandoned:
		asker, ok := t.handles[to]
		if !ok || asker.Node() != from {
			return ""
		}
		delete(t.handles, to)
	case signal.Stop, signal.Kill:
		if !n.cfg.control(p.peer) {
			return "the node may not stop actors here"
		}
	}
	n.arrivedSignal(to, g)
	return ""
}

// counts reports whether a node may say something about an ask in the name of by: by was asked, and is on the node, or somebody
// on the node who has handed the question to by.
func (a *asked) counts(by abi.Ref, from uint16) bool {
	return slices.Contains(a.who, by) && slices.ContainsFunc(a.who, func(r abi.Ref) bool { return r.Node() == from })
}

// answer is what another node says about an ask of this node, by somebody who was asked, or will turn out to have been: a
// message, or else a signal. What is held is given to the engine after the delegation that it waits for.
func (n *Node) answer(by abi.Ref, from uint16, to abi.Ref, m *network.Message, g *signal.Signal) refusal {
	q := question{asker: to}
	if m != nil {
		q.correlation = m.Correlation
	} else {
		q.correlation = g.Correlation
	}
	a := n.asks[q]
	switch {
	case a == nil: // nobody waits, or somebody who asks here: the engine knows
		n.hand(to, m, g)
		return ""
	case !a.counts(by, from):
		frame := frameOf(m, g)
		if len(a.held) < maxHeld && n.holds+len(frame) <= n.cfg.Credit {
			n.holds += len(frame)
			a.held = append(a.held, held{by, from, to, frame})
			return ""
		}
		return "too many answers of nobody who was asked"
	case g == nil || g.Kind != signal.Delegate: // it ends the ask
		n.answered(q)
		n.hand(to, m, g)
		return ""
	}
	n.hand(to, m, g)
	waiting := n.release(a)
	if n.pairs[g.Other.Node()] == nil { // of this node, or of one that is lost: who has handed it on hears so
		n.answered(q)
		for _, h := range waiting {
			m, g, _ := network.Decode(h.frame)
			n.hand(h.to, m, g)
		}
		return ""
	}
	n.ask(q, g.Other, a.due, a.tree)
	for _, h := range waiting {
		m, g, _ := network.Decode(h.frame)
		n.answer(h.by, h.from, h.to, m, g)
	}
	return ""
}

// hand has the engine get a message, or else a signal.
func (n *Node) hand(to abi.Ref, m *network.Message, g *signal.Signal) {
	if m != nil {
		n.arrivedMessage(to, m)
	} else {
		n.arrivedSignal(to, g)
	}
}

// frameOf is a message, or else a signal, with memory of its own.
func frameOf(m *network.Message, g *signal.Signal) []byte {
	if m != nil {
		return network.AppendMessage(nil, m)
	}
	return network.AppendSignal(nil, g)
}

// unanswered ends all asks of this node that the other is to answer.
func (p *pair) unanswered(reason string) {
	n := p.node
	for _, q := range n.sortedAsks(p.peer.Number) {
		n.arrivedSignal(q.asker, &signal.Signal{
			Kind: signal.Unanswered, From: n.asks[q].holder, Correlation: q.correlation, Code: signal.NodeLost, Reason: reason,
		})
		n.answered(q)
	}
}

// lost ends all that the two nodes owe each other.
func (p *pair) lost() {
	n := p.node
	p.unanswered("host: the node of the actor is lost")
	t := &p.tables
	for _, b := range sortedBonds(t.watches) {
		t.unbind(b)
		n.arrivedSignal(b.by, &signal.Signal{Kind: signal.Terminated, From: b.of, Reason: NodeGone})
	}
	for _, b := range sortedBonds(t.watchers) {
		n.arrivedSignal(b.of, &signal.Signal{Kind: signal.Unwatch, From: b.by})
	}
	for _, h := range sortedRefs(t.handles) {
		n.arrivedSignal(h, &signal.Signal{Kind: signal.Abandoned})
	}
	p.tables = newTables()
}

// NodeGone is the reason of a Terminated message about an actor whose node is lost.
const NodeGone = "node gone"
