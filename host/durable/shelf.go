package durable

import (
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// shelf reads the parts of the actors of a book.
type shelf struct {
	store *Store
	book  *dormant.Book

	mu   sync.Mutex
	kept []frame // that were read, the last one first
	held int     // bytes of them
}

// frame is one that was read.
type frame struct {
	n     uint32
	parts [][]byte
	bytes int
}

// mostShelved is how many bytes of frames are kept, 25 usual ones: those of actors that have begun together, and of whom these know, are
// read once. Of a million actors that return in no order no number that fits into memory would be kept for the next one.
const mostShelved = 4 << 20

// part reads the part of a row; -1 is the head.
func (s *shelf) part(row int) ([]byte, error) { return s.of(s.book.Where(row)) }

// of reads a part.
func (s *shelf) of(x dormant.At) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(x)
}

// at reads a part. The caller holds mu.
func (s *shelf) at(x dormant.At) ([]byte, error) {
	parts, err := s.frame(x.Frame, x.Spots)
	if err == nil && x.Slot >= len(parts) {
		err = fmt.Errorf("%w: the frame at position %d has %d parts", ErrRecord, x.Spots[0].At, len(parts))
	}
	if err != nil {
		return nil, err
	}
	return parts[x.Slot], nil
}

// parts reads the head, and the parts of some actors, in their order. It reads each frame once.
func (s *shelf) parts(of []dormant.Entry) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([][]byte, len(of)+1)
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(int64(of[a].Frame) - int64(of[b].Frame)) })
	var err error
	if all[0], err = s.at(s.book.Where(-1)); err != nil {
		return nil, err
	}
	for _, i := range order {
		if all[i+1], err = s.at(of[i].At); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// frame is the parts of a frame, which it may have. The caller holds mu.
func (s *shelf) frame(n uint32, pieces []dormant.Spot) ([][]byte, error) {
	if i := slices.IndexFunc(s.kept, func(f frame) bool { return f.n == n }); i >= 0 {
		f := s.kept[i]
		copy(s.kept[1:], s.kept[:i])
		s.kept[0] = f
		return f.parts, nil
	}
	parts, err := s.read(pieces)
	if err != nil {
		return nil, fmt.Errorf("the frame at position %d: %w", pieces[0].At, err)
	}
	f := frame{n: n, parts: parts}
	for _, b := range parts {
		f.bytes += len(b) + 32 // with what says where it is
	}
	if f.bytes > mostShelved {
		return parts, nil
	}
	s.kept, s.held = slices.Insert(s.kept, 0, f), s.held+f.bytes
	for s.held > mostShelved {
		last := len(s.kept) - 1
		s.held -= s.kept[last].bytes
		s.kept[last] = frame{}
		s.kept = s.kept[:last]
	}
	return parts, nil
}

// clear gives back what is kept.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.held = nil, 0
}

// read reads a frame.
func (s *shelf) read(pieces []dormant.Spot) ([][]byte, error) {
	var b []byte
	for _, x := range pieces {
		data, err := s.store.pieceAt(spot{wal.Position(x.Batch), wal.Position(x.At)})
		if err != nil {
			return nil, err
		}
		b = append(b, data...)
	}
	return unpack(b)
}

// gatherLazily is a checkpoint of an earlier release that is being read, of which only the index is kept.
type gatherLazily struct {
	end    *done
	pieces []dormant.Spot
	sum    uint32
	bytes  uint64
	data   []byte // of the index
}

// add takes a piece, as gathered.add.
func (g *gatherLazily) add(at spot, p *piece) {
	if p.mark != g.end.mark || int(p.n) != len(g.pieces) {
		return
	}
	g.pieces, g.sum, g.bytes = append(g.pieces, at.inBook()), crc32.Update(g.sum, castagnoli, p.data), g.bytes+uint64(len(p.data))
	if p.n >= g.end.frames {
		g.data = append(g.data, p.data...)
	}
}

// open reads the index.
func (g *gatherLazily) open() (*dormant.Book, error) {
	d := g.end
	no := func(why string) (*dormant.Book, error) {
		return nil, fmt.Errorf("%w: the checkpoint of position %d %s", ErrRecord, d.mark, why)
	}
	if d.bytes-d.states != uint64(len(g.data)) || int(d.pieces) != len(g.pieces) || d.bytes != g.bytes || d.sum != g.sum {
		return no("has other bytes than were written")
	}
	x, err := unpackIndex(g.data)
	if err != nil {
		return no(err.Error())
	}
	if x.Rows() != int(d.actors) {
		return no("has other actors than its index")
	}
	book, err := dormant.FromIndex(x, g.pieces)
	if err != nil {
		return no(err.Error())
	}
	return book, nil
}
