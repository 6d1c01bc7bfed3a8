package durable

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// A checkpoint has frames with the parts of actors that have changed since the one before, and an index. That is the difference to the
// index of the one before, or now and then a whole one: then a start does not look further back. So checkpoints are a chain, which begins
// with a whole index, and the log is needed from there on, or from the first frame on that has the part of an actor.

// tagEnded is the end of a checkpoint, in a record of laterVersion.
const tagEnded = 10

// ended is that record:
//
//	mark, low   positions, 8 bytes each, little endian; the checkpoint needs the log from low on
//	sum         CRC-32C of the index as it is in its pieces, 4 bytes
//	actors      of the checkpoint
//	bytes       of all its pieces
//	size        of the index in its pieces
//	before      where the end of the one before is: its batch, and how far behind that it is; 0 and 0: the index is a whole one
//	index       how many pieces it has; of each its batch, as the difference to that of the piece before, and how far behind that it is
//
// Numbers without a size are LEB128.
type ended struct {
	mark, low wal.Position
	sum       uint32
	actors    uint64
	bytes     uint64
	size      uint64
	before    spot
	index     []spot
}

func (e *ended) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{laterVersion, tagEnded}, uint64(e.mark))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.low))
	b = binary.LittleEndian.AppendUint32(b, e.sum)
	for _, n := range []uint64{e.actors, e.bytes, e.size, uint64(e.before.batch), uint64(e.before.at - e.before.batch), uint64(len(e.index))} {
		b = binary.AppendUvarint(b, n)
	}
	batch := wal.Position(0)
	for _, x := range e.index {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.batch-batch)), uint64(x.at-x.batch))
		batch = x.batch
	}
	return b
}

// decodeEnded is the inverse of encode; false if b is none, or not well formed.
func decodeEnded(b []byte) (*ended, bool) {
	if len(b) < 22 || b[1] != tagEnded {
		return nil, false
	}
	e := &ended{mark: wal.Position(binary.LittleEndian.Uint64(b[2:])), low: wal.Position(binary.LittleEndian.Uint64(b[10:])), sum: binary.LittleEndian.Uint32(b[18:])}
	p := parser{rest: b[22:]}
	e.actors, e.bytes, e.size = p.uint(), p.uint(), p.uint()
	at := func(before wal.Position) (x spot) {
		d, behind := p.uint(), p.uint()
		if d > 1<<62 || behind > 1<<62 {
			p.bad = "a position that no log has"
			return x
		}
		x.batch = before + wal.Position(d)
		return spot{x.batch, x.batch + wal.Position(behind)}
	}
	e.before = at(0)
	n := p.uint()
	if n == 0 || n > uint64(len(p.rest)/2) {
		return nil, false
	}
	e.index = make([]spot, n)
	last, batch := e.mark, wal.Position(0)
	for i := range e.index {
		e.index[i] = at(batch)
		if batch = e.index[i].batch; e.index[i].at <= last || p.bad != "" {
			return nil, false
		}
		last = e.index[i].at
	}
	ok := p.bad == "" && len(p.rest) == 0 && e.size > 0 && e.size <= e.bytes && e.low <= e.mark && (e.before == spot{} || e.before.at >= e.low && e.before.at < e.mark)
	return e, ok
}

// chain is what a store has to know of its last checkpoint to make the next one.
type chain struct {
	end    spot         // of the last checkpoint; zero: none has an index that a difference can be to
	low    wal.Position // the log is needed from here on
	begins wal.Position // of the whole index: its first piece's batch
	links  int          // behind the whole index
	whole  int64        // bytes of that
	later  int64        // bytes of the others
}

// mostLinks bounds a chain.
const mostLinks = 256

// ends are the ends of a chain, from the last one back to that with a whole index.
func (s *Store) ends(last *ended) (all []*ended, err error) {
	if first := s.log.First(); last.low < first {
		return nil, fmt.Errorf("%w: the checkpoint of position %d needs the log from position %d on, and it begins at %d", ErrRecord, last.mark, last.low, first)
	}
	for e := last; ; {
		if all = append(all, e); e.before == (spot{}) {
			return all, nil
		}
		if len(all) > mostLinks {
			return nil, fmt.Errorf("%w: the checkpoint of position %d has more than %d before it up to a whole index", ErrRecord, last.mark, mostLinks)
		}
		b, err := s.log.ReadAt(e.before.batch, e.before.at)
		if err != nil {
			return nil, err
		}
		v, err := decode(b)
		x, ok := v.(*ended)
		if !ok {
			return nil, fmt.Errorf("%w: before the checkpoint of position %d is none: %v", ErrRecord, e.mark, err)
		}
		e = x
	}
}

// book reads the book of a checkpoint, whose end is at a place.
func (s *Store) readBook(last *ended, at spot) (*dormant.Book, chain, error) {
	no := func(e *ended, err error) (*dormant.Book, chain, error) {
		return nil, chain{}, fmt.Errorf("%w: the index of the checkpoint of position %d: %w", ErrRecord, e.mark, err)
	}
	all, err := s.ends(last)
	if err != nil {
		return nil, chain{}, err
	}
	book := dormant.NewBook()
	c := chain{end: at, low: last.low, begins: all[len(all)-1].index[0].batch}
	for _, e := range slices.Backward(all) {
		var b []byte
		for _, x := range e.index {
			data, err := s.pieceAt(x)
			if err != nil {
				return no(e, err)
			}
			b = append(b, data...)
		}
		if uint64(len(b)) != e.size || crc32.Checksum(b, castagnoli) != e.sum {
			return no(e, fmt.Errorf("it has other bytes than were written"))
		}
		index, err := expand(b)
		if err == nil {
			err = book.Apply(index, e.before == spot{})
		}
		if err == nil && book.Len() != int(e.actors) {
			err = fmt.Errorf("%d actors instead of %d", book.Len(), e.actors)
		}
		if err != nil {
			return no(e, err)
		}
		c.add(e)
	}
	return book, c, nil
}

// add counts an index.
func (c *chain) add(e *ended) {
	if e.before == (spot{}) {
		c.begins, c.links, c.whole, c.later = e.index[0].batch, 0, int64(e.size), 0
	} else {
		c.links, c.later = c.links+1, c.later+int64(e.size)
	}
}

// pieceAt reads a piece.
func (s *Store) pieceAt(x spot) ([]byte, error) {
	b, err := s.log.ReadAt(x.batch, x.at)
	if err != nil {
		return nil, err
	}
	if v, err := decode(b); err == nil {
		if p, ok := v.(*piece); ok {
			return p.data, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no piece of a checkpoint at position %d", ErrRecord, x.at)
}

// eachPart calls f for the head and the parts of all actors of a checkpoint, whose end is at a place, in their order. It ends with ctx.
func (s *Store) eachPart(ctx context.Context, last *ended, at spot, f func([]byte) error) error {
	book, _, err := s.readBook(last, at)
	if err != nil {
		return err
	}
	shelf := &shelf{store: s, book: book}
	parts, err := shelf.parts(book.Entries())
	for i := 0; err == nil && i < len(parts); i++ {
		if err = context.Cause(ctx); err == nil && i > 0 {
			err = f(parts[i])
		}
	}
	return err
}
