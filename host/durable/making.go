package durable

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// making is a checkpoint that is being made: the parts of actors that have changed, while these rest, and then what else it needs.
type making struct {
	store  *Store
	packer *packer
	all    bool // the parts of all are written, but of those that have not returned

	compacts bool // nothing of what was before is needed

	begin       spot // the mark
	bytes, work int64
	touched     map[abi.Ref]uint64   // see touched
	passing     []abi.Ref            // whose parts in the book may not be their states
	still       map[abi.Ref]struct{} // of touched, or of all: those that had not returned at the mark
	actors      int

	raw   [][]byte // parts that are not packed yet
	waits int      // bytes of them

	moved   int    // parts that are as they were
	renews  bool   // the index has to be a whole one, as what is before it is too far back
	packed  []byte // the index
	delta   []byte // the difference to the book, before it is compressed
	ended   *ended
	written int64 // bytes

	proves  bool // the parts of all come, and those of others than these are compared with what the book has
	changed map[abi.Ref]uint64

	between func() // called behind each piece, in tests; nil: it is not
}

// mostRaw is how many bytes of a checkpoint are copied before actors wait for the compression.
const mostRaw = 64 << 20

// mark is called when the actors rest: all that is recorded later comes after the checkpoint. It returns whose parts it has.
func (c *making) mark() (changed []abi.Ref, all bool, err error) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.frozen.Load() {
		return nil, false, errors.Join(ErrClosing, s.err)
	}
	if c.begin, c.touched, err = s.appendMark(); err != nil {
		return nil, false, err
	}
	s.modules.begin()
	c.bytes, c.work = s.since.bytes.Swap(0), s.since.work.Swap(0)
	if c.touched == nil {
		c.touched = map[abi.Ref]uint64{}
	}
	for ref, begun := range s.untold {
		c.touched[ref] = max(begun, c.touched[ref])
	}
	s.untold = nil
	c.still = map[abi.Ref]struct{}{}
	if c.all {
		for _, r := range s.away.Rows() {
			c.still[r.Ref] = struct{}{}
		}
	} else if s.away.Len() > 0 {
		for ref := range c.touched {
			if s.away.Has(ref) {
				c.still[ref] = struct{}{}
			}
		}
	}
	if p := s.probation; p != nil && !p.Over {
		err = s.noteProbation(p)
	}
	if c.all {
		return nil, true, err
	}
	refs := maps.Clone(c.touched)
	for ref := range c.still {
		delete(refs, ref)
	}
	for _, ref := range c.passing {
		refs[ref] = 0 // the book has it
	}
	if c.proves = proof != nil && (s.last.Count%2 == 1 || s.last.Count == 0 && s.book.Len() > 0); c.proves {
		c.changed = refs
		return nil, true, err
	}
	return placed(s.book, refs), false, err
}

// appendMark writes the mark, and returns whom the records before it are about.
func (s *Store) appendMark() (p spot, refs map[abi.Ref]uint64, err error) {
	to, first, err := s.log.Begin(2)
	if err != nil {
		return p, nil, err
	}
	s.begins(first)
	refs = s.touched.take()
	to = append(to, version, tagMark)
	p.batch = s.log.Batch()
	s.spans.now.To = p.batch + wal.Position(len(to))
	p.at = s.log.End(to)
	return p, refs, nil
}

// proof is called with the part of an actor that has changed though nothing has said so, in tests: then every second checkpoint that has the
// parts of some asks all, and the first one after a start. nil: none does.
var proof func(path string, part, now []byte)

// proven reports whether a part is one of those that the checkpoint does not have. It is the state of its actor, still.
func (c *making) proven(part []byte) (bool, error) {
	of, err := port.Part(part)
	if _, changed := c.changed[of.Ref]; err != nil || changed {
		return false, err
	}
	var before []byte
	if c.store.book.Has(of.Ref) {
		before, err = c.store.shelf.part(c.store.book.Place(of.Ref))
	}
	later := false // a message that has come since the mark is in the part, too
	c.store.log.Between(func() { _, later = c.store.touched.refs[of.Ref] })
	if err == nil && !later && !bytes.Equal(part, before) {
		proof(of.Path, before, part)
	}
	return true, err
}

// take takes a part.
func (c *making) take(part []byte) (err error) {
	if c.proves {
		if other, err := c.proven(part); other || err != nil {
			return err
		}
	}
	c.raw, c.waits = append(c.raw, part), c.waits+len(part) // copying is quicker than compressing: actors wait
	for c.waits > mostRaw && len(c.raw) > 0 && err == nil {
		err = c.pack()
	}
	return err
}

// takeHead takes the head, when actors go on.
func (c *making) takeHead(head func() ([]byte, error)) error {
	b, err := head()
	if err == nil {
		c.raw, c.waits = append(c.raw, b), c.waits+len(b)
	}
	return err
}

// pack packs the first part that is left.
func (c *making) pack() error {
	part := c.raw[0]
	c.raw[0] = nil
	c.raw, c.waits = c.raw[1:], c.waits-len(part)
	of, err := port.Part(part)
	if err == nil {
		c.store.modules.has(&of)
		c.packer.add(&of, part)
	}
	return err
}

// fill adds who has gone, and the parts that are moved.
func (c *making) fill() error {
	s, change := c.store, &c.packer.change
	has := make(map[abi.Ref]struct{}, len(change.Parts))
	for i := range change.Parts {
		has[change.Parts[i].Ref] = struct{}{}
	}
	perhaps := maps.Keys(c.touched) // who has ended is in a record
	if c.all {
		perhaps = maps.Keys(s.book.Refs())
	}
	for _, ref := range slices.Sorted(perhaps) {
		_, there := has[ref]
		if _, still := c.still[ref]; !there && !still && s.book.Has(ref) {
			change.Gone = append(change.Gone, ref)
			has[ref] = struct{}{}
		}
	}
	s.book.Settle(change)
	n, err := s.book.After(change)
	if err == nil && n != c.actors {
		err = fmt.Errorf("the checkpoint has %d actors, and the system %d", n, c.actors)
	}
	if err != nil { // the next one has all
		s.all = true
		return err
	}
	return c.forward(has)
}

// index makes the index, and the end without the places of its pieces.
func (c *making) index() (*ended, error) {
	s, change := c.store, &c.packer.change
	c.delta = s.book.Delta(change)
	end := &ended{mark: c.begin.at, low: c.begin.batch, actors: uint64(c.actors), before: s.chain.end}
	b := c.delta
	if c.packed = c.packer.z.EncodeAll(b, nil); c.renews || s.chain.renew(len(c.packed)) {
		end.before = spot{}
		var err error
		if b, err = s.book.Whole(change); err != nil {
			s.all = true
			return nil, err
		}
		c.packed = c.packer.z.EncodeAll(b, nil)
	} else {
		end.low = min(end.low, s.chain.begins)
	}
	if batch, ok := s.book.Oldest(change); ok {
		end.low = min(end.low, wal.Position(batch))
	}
	end.size, end.sum = uint64(len(c.packed)), crc32.Checksum(c.packed, castagnoli)
	c.written = int64(len(c.packer.to) + len(c.packed))
	end.bytes = uint64(c.written)
	return end, nil
}

// renew reports whether the next index has to be a whole one: there is none, or what is behind it has as many bytes.
func (c *chain) renew(next int) bool {
	return c.end == (spot{}) || c.links >= mostLinks-1 || c.later+int64(next) > max(c.whole, leastChain)
}

// leastChain is how many bytes of differences there may be, however small the whole index is.
const leastChain = 64 << 10

// turnTo goes on from a checkpoint that is complete.
func (s *Store) turnTo(c *making, end spot) error {
	release := s.away.Hold() // who returns reads from where its part is
	err := s.book.Apply(c.delta, false)
	release()
	if err != nil {
		return err
	}
	s.chain.end, s.chain.low, s.all = end, c.ended.low, false
	s.chain.add(c.ended)
	s.book.Codes(s.modules.runs)
	if s.away.Len() == 0 {
		s.away = nil
		s.shelf.clear()
	}
	return nil
}
