package durable

import (
	"fmt"
	"hash/crc32"
	"slices"
	"sort"
	"sync"

	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// shelf is where the frames of a checkpoint are, for actors that have not returned.
type shelf struct {
	store  *Store
	mark   wal.Position
	pieces []spot
	begins []int // of each frame: its first part
	from   []int // of each frame: its first piece; one more for the end

	mu   sync.Mutex
	kept []frame // that were read, the last one first
	held int     // bytes of them
}

// frame is one that was read.
type frame struct {
	n     int
	parts [][]byte
	bytes int
}

// mostShelved is how many bytes of frames are kept, 25 usual ones: those of actors that have begun together, and of whom these know, are
// read once. Of a million actors that return in no order no number that fits into memory would be kept for the next one.
const mostShelved = 4 << 20

// index has the shelf know the frames.
func (s *shelf) index(x *dormant.Index) error {
	part, piece := 0, 0
	for _, f := range x.Frames {
		s.begins, s.from = append(s.begins, part), append(s.from, piece)
		part, piece = part+f.Parts, piece+f.Pieces
	}
	s.from = append(s.from, piece)
	if piece > len(s.pieces) {
		return fmt.Errorf("%w: the index of the checkpoint of position %d has %d pieces of %d", ErrRecord, s.mark, piece, len(s.pieces))
	}
	return nil
}

// part reads a part; 0 is the head.
func (s *shelf) part(n int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.SearchInts(s.begins, n+1)
	if i == 0 {
		return nil, fmt.Errorf("%w: the checkpoint of position %d has no part %d", ErrRecord, s.mark, n)
	}
	parts, err := s.frame(i - 1)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint of position %d: %w", s.mark, err)
	}
	if n -= s.begins[i-1]; n >= len(parts) {
		return nil, fmt.Errorf("%w: the checkpoint of position %d has a frame with %d parts", ErrRecord, s.mark, len(parts))
	}
	return parts[n], nil
}

// frame is the parts of a frame, which it may have. The caller holds mu.
func (s *shelf) frame(n int) ([][]byte, error) {
	if i := slices.IndexFunc(s.kept, func(f frame) bool { return f.n == n }); i >= 0 {
		f := s.kept[i]
		copy(s.kept[1:], s.kept[:i])
		s.kept[0] = f
		return f.parts, nil
	}
	parts, err := s.read(n)
	if err != nil {
		return nil, err
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
func (s *shelf) read(frame int) ([][]byte, error) {
	var b []byte
	for n := s.from[frame]; n < s.from[frame+1]; n++ {
		data, err := s.piece(n)
		if err != nil {
			return nil, err
		}
		b = append(b, data...)
	}
	return unpack(b)
}

// piece reads a piece.
func (s *shelf) piece(n int) ([]byte, error) {
	b, err := s.store.log.ReadAt(s.pieces[n].batch, s.pieces[n].at)
	if err != nil {
		return nil, err
	}
	if v, err := decode(b); err == nil {
		if p, ok := v.(*piece); ok && p.mark == s.mark && int(p.n) == n {
			return p.data, nil
		}
	}
	return nil, fmt.Errorf("%w: piece %d is not where it was", ErrRecord, n)
}

// reshelve goes on with a later checkpoint, which has all that has not returned.
func (s *Store) reshelve(to *shelf, p *packer) error {
	if s.away.Len() == 0 {
		s.away, s.shelf = nil, nil
		return nil
	}
	x, err := dormant.Decode(p.bytes)
	if err == nil {
		err = to.index(x)
	}
	if err != nil {
		return err
	}
	return s.away.Replace(x, func() { s.shelf = to })
}

// gatherLazily is a checkpoint that is being read, of which only the index is kept.
type gatherLazily struct {
	*shelf
	end   *done
	known bool // where the pieces are, and that there are no others
	sum   uint32
	bytes uint64
	data  []byte // of the index
}

// add takes a piece, as gathered.add.
func (g *gatherLazily) add(at spot, p *piece) {
	if g.known || p.mark != g.mark || int(p.n) != len(g.pieces) {
		return
	}
	g.pieces, g.sum, g.bytes = append(g.pieces, at), crc32.Update(g.sum, castagnoli, p.data), g.bytes+uint64(len(p.data))
	if p.n >= g.end.frames {
		g.data = append(g.data, p.data...)
	}
}

// open reads the index.
func (g *gatherLazily) open() (*dormant.Index, error) {
	d := g.end
	no := func(why string) (*dormant.Index, error) {
		return nil, fmt.Errorf("%w: the checkpoint of position %d %s", ErrRecord, d.mark, why)
	}
	for n := int(d.frames); g.known && n < len(g.pieces); n++ {
		b, err := g.piece(n)
		if err != nil {
			return no(err.Error())
		}
		g.data = append(g.data, b...)
	}
	if d.bytes-d.states != uint64(len(g.data)) || !g.known && (int(d.pieces) != len(g.pieces) || d.bytes != g.bytes || d.sum != g.sum) {
		return no("has other bytes than were written")
	}
	x, err := unpackIndex(g.data)
	if err != nil {
		return no(err.Error())
	}
	if x.Rows() != int(d.actors) {
		return no("has other actors than its index")
	}
	g.data = nil
	return x, g.index(x)
}
