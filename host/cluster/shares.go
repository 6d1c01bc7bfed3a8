package cluster

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// All actors of this node share the credit of a pair, and its tables of asks and watches. What a message or a watch takes of them counts for
// the tree of its sender, and no tree has more than greed times what it leaves free. So one that is alone has seven eighths, and however many flood a node, there
// is something left for the next one.

const greed = 7

// share is what a tree has of a pair.
type share struct {
	of      map[any]*share
	tree    any
	asks    int // that the other node is to answer
	watches int // of its actors
	bytes   int // that wait for it
}

// shareOf is that of a tree; nil is the tree of who is no actor.
func (p *pair) shareOf(tree any) *share {
	s := p.shares[tree]
	if s == nil {
		s = &share{of: p.shares, tree: tree}
		p.shares[tree] = s
	}
	return s
}

// forget forgets a share that has nothing.
func (s *share) forget() {
	if s.asks == 0 && s.watches == 0 && s.bytes == 0 {
		delete(s.of, s.tree)
	}
}

// within reports whether a tree that has so much may have n more of most, of which all have used.
func within(has, n, used, most int) bool { return has+n <= greed*(most-used-n) }

// treeOf is the tree that a message counts for: that of its sender, or if that is elsewhere of who has forwarded it. That of a signal is its
// sender's.
func treeOf(port network.Port, m *network.Message, g *signal.Signal) (tree any) {
	if port == nil {
		return nil
	}
	var by abi.Ref
	if m == nil {
		by = g.From
	} else if by = m.Sender; by.Node() != port.Node() {
		by = m.Via
	}
	tree, _ = port.Tree(by)
	return tree
}

// sharing is a share's part of a block, in bytes.
type sharing struct {
	*share
	bytes int
}

// sharingBytes is what a sharing costs of the credit, from the second one of a block on.
const sharingBytes = 32

// charge has a share pay for what was just written into the last block.
func (s *stream) charge(by *share, bytes int) {
	b := s.out[len(s.out)-1]
	for i := range b.by {
		if b.by[i].share == by {
			b.by[i].bytes += bytes
			by.bytes += bytes
			return
		}
	}
	if len(b.by) > 0 {
		bytes += sharingBytes
		s.bytes += sharingBytes
	}
	b.by = append(b.by, sharing{by, bytes})
	by.bytes += bytes
}

// giveBack gives back what a block has taken of shares.
func (b *block) giveBack() {
	for _, x := range b.by {
		x.share.bytes -= x.bytes
		x.forget()
	}
	b.by = nil
}

// asksOf counts an ask that the other node is to answer, or one less.
func (p *pair) asksOf(tree any, more int) {
	s := p.shareOf(tree)
	p.asks += more
	s.asks += more
	s.forget()
}

// ended reports whether nobody has a ref of this node any more.
func (n *Node) ended(of abi.Ref) bool {
	if n.port == nil {
		return false
	}
	_, here := n.port.Tree(of)
	return !here
}
