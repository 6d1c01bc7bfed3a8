package dormant

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
)

// Book says of each actor of a checkpoint where its part is. A checkpoint writes the parts of those that have changed, and what changes in
// the book; the other parts stay in the frames of the checkpoints that have written them. One goroutine at a time changes it with Apply;
// all other methods are for any goroutine.
type Book struct {
	mu    sync.RWMutex
	rows  []row // in the order of their start, each behind its parent; some are gone
	live  int
	names *strings.Builder
	refs  []uint32 // a hash table of rows, from 1, by ref
	named []uint32 // the same by name, of those that are away; nil: none ever was
	seed  maphash.Seed
	away  int

	sorts  []sortRow
	sortOf map[string]uint16 // from 1

	frames []Frame // in the order in which they were written
	first  uint32  // the number of the first one
	head   uint32  // the frame that has the head as its first part
	busy   bool    // /user decides about its children
}

// Frame is a frame of the log: whole parts of actors.
type Frame struct {
	Spots []Spot // of its pieces, in their order; at least 1
	Parts int    // at least 1, at most MostParts
	Bytes int    // of its pieces

	live int // parts that are needed
}

// Spot is where a record of the log is: the position of the first one of its batch, and its own.
type Spot struct{ Batch, At uint64 }

// MostParts bounds the parts of a frame.
const MostParts = math.MaxUint16

// row is an actor.
type row struct {
	ref    abi.Ref
	turns  uint64
	name   uint32 // where it begins in names
	parent int32  // a row; below 0: /user
	life   uint32 // the incarnation
	held   uint32
	frame  uint32
	sort   uint16 // from 1; 0: it has something under way
	slot   uint16 // in the frame
	below  uint32 // how many have it as their parent
	length uint8  // of the name
	state  rowState
}

type rowState uint8

const (
	gone   rowState = 1 << iota // it has stopped for good
	away                        // it has not returned
	steady                      // it changes only with records about it, though it has something under way or is no child of /user
)

// sortRow is a sort with the number of actors of it.
type sortRow struct {
	*Sort
	text string
	live int
}

// NewBook is one without actors.
func NewBook() *Book {
	return &Book{seed: maphash.MakeSeed(), names: &strings.Builder{}, refs: make([]uint32, 64), sortOf: map[string]uint16{}, first: 1}
}

// FromIndex is the book of a checkpoint of an earlier release, with the places of its pieces.
func FromIndex(x *Index, pieces []Spot) (*Book, error) {
	b := NewBook()
	part, piece := 0, 0 // how many bytes a frame has is not known: about 16 KiB for each piece
	var begins []int    // of each frame: its first part
	for _, f := range x.Frames {
		if f.Parts > MostParts || f.Pieces > len(pieces)-piece {
			return nil, fmt.Errorf("%w: a frame of %d parts in %d pieces", ErrIndex, f.Parts, f.Pieces)
		}
		b.frames, begins = append(b.frames, Frame{Spots: pieces[piece:][:f.Pieces:f.Pieces], Parts: f.Parts, Bytes: f.Pieces << 14}), append(begins, part)
		part, piece = part+f.Parts, piece+f.Pieces
	}
	sorts := make([]uint16, len(x.Sorts)+1)
	for i, text := range x.Sorts {
		var err error
		if sorts[i+1], err = b.sortNamed(text); err != nil {
			return nil, err
		}
	}
	b.head = b.first
	b.frames[0].live++
	b.rows = make([]row, 0, len(x.rows))
	b.names.WriteString(x.names)
	frame := 0
	for i, r := range x.rows {
		for frame+1 < len(begins) && begins[frame+1] <= i+1 {
			frame++
		}
		b.frames[frame].live++
		r.frame, r.slot, r.sort = b.first+uint32(frame), uint16(i+1-begins[frame]), sorts[r.sort]
		b.sorted(r.sort, 1)
		if !b.add(r) {
			return nil, errTwice
		}
	}
	return b, nil
}

// errTwice says that a ref is there twice.
var errTwice = fmt.Errorf("%w: two actors have one ref", ErrIndex)

// add adds a row; false if another one has its ref.
func (b *Book) add(r row) bool {
	if 2*(len(b.rows)+1) > len(b.refs) {
		b.refs = make([]uint32, 2*len(b.refs))
		for i := range b.rows {
			b.enter(i)
		}
	}
	b.rows = append(b.rows, r)
	if b.live++; r.parent >= 0 {
		b.rows[r.parent].below++
	}
	return b.enter(len(b.rows) - 1)
}

// enter enters a row by its ref; false if another one has it, and is not gone.
func (b *Book) enter(i int) bool {
	mask, ref := uint64(len(b.refs)-1), b.rows[i].ref
	at, alone := uint64(ref)&mask, true
	for ; b.refs[at] != 0; at = (at + 1) & mask {
		if r := &b.rows[b.refs[at]-1]; r.ref == ref && r.state&gone == 0 {
			alone = false
		}
	}
	b.refs[at] = uint32(i + 1)
	return alone
}

// find is the row of a ref that is not gone; -1: there is none. The caller holds mu.
func (b *Book) find(ref abi.Ref) int {
	mask := uint64(len(b.refs) - 1)
	for at := uint64(ref) & mask; b.refs[at] != 0; at = (at + 1) & mask {
		if i := b.refs[at] - 1; b.rows[i].ref == ref && b.rows[i].state&gone == 0 {
			return int(i)
		}
	}
	return -1
}

// name is the name of a row. It shares the memory of all names.
func (b *Book) name(r *row) string { return b.names.String()[r.name:][:r.length] }

// sortNamed is the number of a sort; 0: there are too many.
func (b *Book) sortNamed(text string) (uint16, error) {
	if n, ok := b.sortOf[text]; ok {
		return n, nil
	}
	s, ok := sortOf(text)
	if !ok {
		return 0, fmt.Errorf("%w: a sort that cannot be read", ErrIndex)
	}
	free := len(b.sorts)
	if free < mostSorts {
		b.sorts = append(b.sorts, sortRow{})
	} else if free = slices.IndexFunc(b.sorts, func(s sortRow) bool { return s.live == 0 }); free < 0 {
		return 0, nil
	} else {
		delete(b.sortOf, b.sorts[free].text)
	}
	b.sorts[free] = sortRow{Sort: &s, text: text}
	b.sortOf[text] = uint16(free + 1)
	return uint16(free + 1), nil
}

// sorted counts actors of a sort.
func (b *Book) sorted(sort uint16, n int) {
	if sort > 0 {
		b.sorts[sort-1].live += n
	}
}

// frame is a frame that is needed.
func (b *Book) frame(n uint32) *Frame { return &b.frames[n-b.first] }

// Len is how many actors there are.
func (b *Book) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.live
}

// Has reports whether it has an actor.
func (b *Book) Has(ref abi.Ref) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.find(ref) >= 0
}

// Stays reports whether it has an actor whose part is its state as long as no record is about it.
func (b *Book) Stays(ref abi.Ref) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	i := b.find(ref)
	return i >= 0 && b.rows[i].stays()
}

// stays reports whether the part of an actor is its state as long as no record is about it: it is inert, or steady. Indexes of earlier releases
// do not say the latter.
func (r *row) stays() bool { return r.state&steady != 0 || r.sort != 0 && r.parent < 0 }

// Passing are the actors whose parts may not be their states, though no record is about them.
func (b *Book) Passing() (all []abi.Ref) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i := range b.rows {
		if r := &b.rows[i]; r.state&gone == 0 && !r.stays() {
			all = append(all, r.ref)
		}
	}
	return all
}

// Place is where an actor is in the order of all; of another one behind all.
func (b *Book) Place(ref abi.Ref) int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if i := b.find(ref); i >= 0 {
		return i
	}
	return len(b.rows)
}

// At says where a part is: the frame by its number, and the part's place in it.
type At struct {
	Frame uint32
	Slot  int
	Spots []Spot
}

// Where is where the part of a row is; row -1: the head's.
func (b *Book) Where(row int) At {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if row < 0 {
		return At{b.head, 0, b.frame(b.head).Spots}
	}
	r := &b.rows[row]
	return At{r.frame, int(r.slot), b.frame(r.frame).Spots}
}

// Entry is an actor of a book.
type Entry struct {
	Row int // its place in the order
	Ref abi.Ref
	At
}

// Entries are all actors, in their order.
func (b *Book) Entries() []Entry { return b.entries(gone) }

// Here are those that are not away.
func (b *Book) Here() []Entry { return b.entries(gone | away) }

func (b *Book) entries(without rowState) (all []Entry) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i := range b.rows {
		if r := &b.rows[i]; r.state&without == 0 {
			all = append(all, Entry{i, r.ref, At{r.frame, int(r.slot), b.frame(r.frame).Spots}})
		}
	}
	return all
}

// Refs are those of all actors.
func (b *Book) Refs() map[abi.Ref]struct{} {
	b.mu.RLock()
	defer b.mu.RUnlock()
	all := make(map[abi.Ref]struct{}, b.live)
	for i := range b.rows {
		if b.rows[i].state&gone == 0 {
			all[b.rows[i].ref] = struct{}{}
		}
	}
	return all
}

// In are the actors whose parts are in the frames up to one.
func (b *Book) In(last uint32) (all []Entry) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i := range b.rows {
		if r := &b.rows[i]; r.state&gone == 0 && r.frame <= last {
			all = append(all, Entry{i, r.ref, At{r.frame, int(r.slot), b.frame(r.frame).Spots}})
		}
	}
	return all
}

// Frames calls f for the frames that are needed, in the order in which they were written, until it returns false. share is how much of
// the bytes of one is needed.
func (b *Book) Frames(f func(n uint32, x *Frame, share int) bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i := range b.frames {
		if x := &b.frames[i]; x.live > 0 && !f(b.first+uint32(i), x, x.Bytes*x.live/x.Parts) {
			return
		}
	}
}

// Codes calls f for the fingerprints of what actors run that have nothing under way.
func (b *Book) Codes(f func(fingerprint []byte)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i := range b.sorts {
		if b.sorts[i].live > 0 {
			f(b.sorts[i].Code)
		}
	}
}

// tidy takes out what is gone, when that is much. The caller holds mu, and nobody knows a row by its place.
func (b *Book) tidy() {
	n := 0
	for n < len(b.frames) && b.frames[n].live == 0 {
		n++
	}
	b.frames, b.first = b.frames[n:], b.first+uint32(n)
	if dead := len(b.rows) - b.live; dead < 1000 || dead < b.live/2 {
		return
	}
	rows, names := make([]row, 0, b.live), &strings.Builder{}
	at := make([]int32, len(b.rows))
	for i, r := range b.rows {
		if r.state&gone != 0 {
			continue
		}
		if at[i] = int32(len(rows)); r.parent >= 0 {
			r.parent = at[r.parent]
		}
		name := b.name(&r)
		r.name = uint32(names.Len())
		rows = append(rows, r)
		names.WriteString(name)
	}
	b.rows, b.names = rows, names
	size := 64
	for size < 2*(len(rows)+1) {
		size *= 2
	}
	b.refs = make([]uint32, size)
	for i := range rows {
		b.enter(i)
	}
	b.nameAway()
}

// nameAway makes the table of the names of those that are away. The caller holds mu.
func (b *Book) nameAway() {
	if b.named = nil; b.away == 0 {
		return
	}
	size := 64
	for size < 2*b.away {
		size *= 2
	}
	b.named = make([]uint32, size)
	mask := uint64(size - 1)
	for i := range b.rows {
		if b.rows[i].state&away == 0 {
			continue
		}
		at := maphash.String(b.seed, b.name(&b.rows[i])) & mask
		for b.named[at] != 0 {
			at = (at + 1) & mask
		}
		b.named[at] = uint32(i + 1)
	}
}

// awayNamed is the row of a name that is away; -1: there is none. The caller holds mu.
func (b *Book) awayNamed(name string) int {
	if b.named == nil {
		return -1
	}
	mask := uint64(len(b.named) - 1)
	for at := maphash.String(b.seed, name) & mask; b.named[at] != 0; at = (at + 1) & mask {
		if r := &b.rows[b.named[at]-1]; r.state&away != 0 && b.name(r) == name {
			return int(b.named[at] - 1)
		}
	}
	return -1
}
