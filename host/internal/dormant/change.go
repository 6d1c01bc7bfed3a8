package dormant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
)

// What a checkpoint changes in a book is written as an index: the difference to the book of the checkpoint before, or a whole book. Numbers
// are LEB128, refs 8 bytes, little endian; texts have their length before them.
//
//	byte    version, 3
//	byte    1: a whole book; 2: /user decides about its children
//	frames  how many; of each its bytes, its parts, and its pieces: how many, of each its batch, as the difference to that of the piece before,
//	        and how far behind that it is. The head is the first part of the last frame; of a whole book of a frame that is named
//	head    the place of its frame among these
//	sorts   how many; the text of each
//	rows    how many; of each the ref, the frame twice (and one more: only its place has changed), the place in it; and unless only its place
//	        has changed a byte (1: it is not below /user; 2: it is steady), the ref of its parent if that is not /user, the name; the sort
//	        of an inert actor, from 1, else 0; and of an inert one its turns, its incarnation, and the bytes of its guest's state
//	gone    how many actors have stopped for good; the ref of each
//
// Version 2, of earlier releases, does not say who is steady.
const (
	changeVersion = 3
	withoutSteady = 2
)

// Flags of a row.
const (
	rowBelow = 1 << iota
	rowSteady
)

const (
	wholeBook = 1 << iota
	busyHead
)

// Change is what a checkpoint changes in a book.
type Change struct {
	Frames []Frame
	Head   int // the frame whose first part is the head
	Busy   bool
	Parts  []PartAt // of actors; those that are new behind all others, behind their parents
	Gone   []abi.Ref
}

// PartAt is a part of a frame.
type PartAt struct {
	Of    *Part   // nil: it is as before, and only its place is another one
	Ref   abi.Ref // of the actor
	Frame int     // of Change.Frames
	Slot  int
}

// errChange says that a change does not fit the book.
var errChange = errors.New("the checkpoint does not fit the one before it")

// Settle says which actors of the change are inert: none that others are below, or whose parent decides about it. The change has who is gone.
func (b *Book) Settle(c *Change) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	left := map[int32]uint32{} // of parents: children that are gone
	for _, ref := range c.Gone {
		if i := b.find(ref); i >= 0 && b.rows[i].parent >= 0 {
			left[b.rows[i].parent]++
		}
	}
	above, busy := map[abi.Ref]bool{}, map[abi.Ref]bool{}
	for i := range c.Parts {
		if of := c.Parts[i].Of; of != nil {
			above[of.Parent] = true
			busy[of.Ref] = of.Busy
			if i := b.find(of.Ref); i >= 0 && b.rows[i].below > left[int32(i)] {
				above[of.Ref] = true
			}
		}
	}
	for i := range c.Parts {
		if of := c.Parts[i].Of; of != nil && (above[of.Ref] || busy[of.Parent] || of.Incarnation > math.MaxUint32 || of.Held > math.MaxInt32) {
			of.Sort = ""
		}
	}
}

// After is how many actors the book has after a change. It is an error if the change does not fit the book.
func (b *Book) After(c *Change) (n int, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n = b.live - len(c.Gone)
	fresh := map[abi.Ref]bool{}
	for i := range c.Parts {
		p := &c.Parts[i]
		known := b.find(p.Ref) >= 0
		if p.Of == nil {
			if !known {
				return 0, fmt.Errorf("%w: the part of an actor that it does not have", errChange)
			}
			continue
		}
		if up := parentOf(p.Of); up != 0 && !fresh[up] && b.find(up) < 0 {
			return 0, fmt.Errorf("%w: %s comes before its parent", errChange, p.Of.Path)
		}
		if !known {
			fresh[p.Ref] = true
			n++
		}
	}
	return n, nil
}

// Oldest is where the first frame begins that is needed after a change: its first piece's batch; false if there is none.
func (b *Book) Oldest(c *Change) (batch uint64, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	less := map[uint32]int{b.head: 1}
	unneeded := func(ref abi.Ref) {
		if i := b.find(ref); i >= 0 {
			less[b.rows[i].frame]++
		}
	}
	for i := range c.Parts {
		unneeded(c.Parts[i].Ref)
	}
	for _, ref := range c.Gone {
		unneeded(ref)
	}
	for i := range b.frames {
		if f := &b.frames[i]; f.live > less[b.first+uint32(i)] {
			return f.Spots[0].Batch, true
		}
	}
	if len(c.Frames) == 0 {
		return 0, false
	}
	return c.Frames[0].Spots[0].Batch, true
}

// indexer writes an index.
type indexer struct {
	frames, texts, rows []byte
	sorts               map[string]uint64
	n                   uint64
}

func (x *indexer) addFrame(f *Frame, batch *uint64) {
	x.frames = binary.AppendUvarint(binary.AppendUvarint(x.frames, uint64(f.Bytes)), uint64(f.Parts))
	x.frames = binary.AppendUvarint(x.frames, uint64(len(f.Spots)))
	for _, s := range f.Spots {
		x.frames = binary.AppendUvarint(binary.AppendUvarint(x.frames, s.Batch-*batch), s.At-s.Batch)
		*batch = s.Batch
	}
}

func (x *indexer) at(ref abi.Ref, frame, slot int, moved uint64) {
	x.n++
	x.rows = binary.LittleEndian.AppendUint64(x.rows, uint64(ref))
	x.rows = binary.AppendUvarint(binary.AppendUvarint(x.rows, uint64(frame)<<1|moved), uint64(slot))
}

func (x *indexer) row(parent abi.Ref, still bool, name, sort string, turns, life, held uint64) {
	flags := byte(0)
	if still {
		flags |= rowSteady
	}
	if parent == 0 {
		x.rows = append(x.rows, flags)
	} else {
		x.rows = binary.LittleEndian.AppendUint64(append(x.rows, flags|rowBelow), uint64(parent))
	}
	if x.rows = appendText(x.rows, name); sort == "" {
		x.rows = append(x.rows, 0)
		return
	}
	n, known := x.sorts[sort]
	if !known && len(x.sorts) == mostSorts {
		x.rows = append(x.rows, 0)
		return
	}
	if !known {
		if x.sorts == nil {
			x.sorts = map[string]uint64{}
		}
		n = uint64(len(x.sorts)) + 1
		x.sorts[sort], x.texts = n, appendText(x.texts, sort)
	}
	x.rows = binary.AppendUvarint(binary.AppendUvarint(x.rows, n), turns)
	x.rows = binary.AppendUvarint(binary.AppendUvarint(x.rows, life), held)
}

func (x *indexer) bytes(flags byte, frames, head int, gone []abi.Ref) []byte {
	to := append(binary.AppendUvarint([]byte{changeVersion, flags}, uint64(frames)), x.frames...)
	to = binary.AppendUvarint(to, uint64(head))
	to = append(binary.AppendUvarint(to, uint64(len(x.sorts))), x.texts...)
	to = append(binary.AppendUvarint(to, x.n), x.rows...)
	to = binary.AppendUvarint(to, uint64(len(gone)))
	for _, ref := range gone {
		to = binary.LittleEndian.AppendUint64(to, uint64(ref))
	}
	return to
}

func flagsOf(busy bool) byte {
	if busy {
		return busyHead
	}
	return 0
}

// parentOf is the parent of a part in an index: 0 for /user.
func parentOf(of *Part) abi.Ref {
	if of.top() {
		return 0
	}
	return of.Parent
}

// top reports whether an actor is a child of /user.
func (of *Part) top() bool {
	return strings.Count(strings.TrimPrefix(of.Path, ref.Scheme), "/") == 2
}

// Delta is the index of a change: the difference to the book.
func (b *Book) Delta(c *Change) []byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	x, batch := &indexer{}, uint64(0)
	for i := range c.Frames {
		x.addFrame(&c.Frames[i], &batch)
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.Of == nil {
			x.at(p.Ref, p.Frame, p.Slot, 1)
			continue
		}
		x.at(p.Ref, p.Frame, p.Slot, 0)
		x.row(parentOf(p.Of), p.Of.Steady, p.Of.Name, p.Of.Sort, p.Of.Turns, p.Of.Incarnation, uint64(p.Of.Held))
	}
	return x.bytes(flagsOf(c.Busy), len(c.Frames), c.Head, c.Gone)
}

// Whole is the index of the whole book as it is after a change. Nobody else changes the book meanwhile; looks at it do not wait.
func (b *Book) Whole(c *Change) ([]byte, error) {
	x, batch := &indexer{}, uint64(0)
	changed := map[abi.Ref]*PartAt{}
	for i := range c.Parts {
		changed[c.Parts[i].Ref] = &c.Parts[i]
	}
	without := map[abi.Ref]bool{}
	for _, ref := range c.Gone {
		without[ref] = true
	}
	// Of the frames only those are written that are needed then.
	needed := make([]bool, len(b.frames))
	stays := func(r *row) bool { return r.state&gone == 0 && !without[r.ref] }
	for i := range b.rows {
		if r := &b.rows[i]; stays(r) && changed[r.ref] == nil {
			needed[r.frame-b.first] = true
		}
	}
	place, frames := make([]int, len(b.frames)), 0
	for i := range b.frames {
		if place[i] = frames; needed[i] {
			x.addFrame(&b.frames[i], &batch)
			frames++
		}
	}
	before := frames
	for i := range c.Frames {
		x.addFrame(&c.Frames[i], &batch)
		frames++
	}
	for i := range b.rows {
		r := &b.rows[i]
		if !stays(r) {
			continue
		}
		p := changed[r.ref]
		if p != nil {
			x.at(r.ref, before+p.Frame, p.Slot, 0)
		} else {
			x.at(r.ref, place[r.frame-b.first], int(r.slot), 0)
		}
		parent := abi.Ref(0)
		if r.parent >= 0 {
			up := &b.rows[r.parent]
			if parent = up.ref; !stays(up) {
				return nil, fmt.Errorf("%w: an actor is there whose parent is gone", errChange)
			}
		}
		switch sort := ""; {
		case p != nil && p.Of != nil:
			x.row(parent, p.Of.Steady, b.name(r), p.Of.Sort, p.Of.Turns, p.Of.Incarnation, uint64(p.Of.Held))
		default:
			if r.sort > 0 {
				sort = b.sorts[r.sort-1].text
			}
			x.row(parent, r.state&steady != 0, b.name(r), sort, r.turns, uint64(r.life), uint64(r.held))
		}
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		if b.find(p.Ref) >= 0 {
			continue
		}
		x.at(p.Ref, before+p.Frame, p.Slot, 0)
		x.row(parentOf(p.Of), p.Of.Steady, p.Of.Name, p.Of.Sort, p.Of.Turns, p.Of.Incarnation, uint64(p.Of.Held))
	}
	return x.bytes(wholeBook|flagsOf(c.Busy), frames, before+c.Head, nil), nil
}

// Apply changes the book as an index says: with whole that of a whole book, and the book has to be empty; else the difference. After an error the book cannot be used.
// It must not be called while an actor returns, see Actors.Hold.
func (b *Book) Apply(index []byte, whole bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &parser{rest: index}
	v := p.byte()
	if v != changeVersion && v != withoutSteady && p.bad == "" {
		p.fail(fmt.Sprintf("version %d, this release reads versions %d and %d", v, withoutSteady, changeVersion))
	}
	flags := p.byte()
	if flags&^(wholeBook|busyHead) != 0 {
		p.fail("flags that no index has")
	}
	if p.bad == "" && (whole != (flags&wholeBook != 0) || whole && len(b.frames) > 0) {
		p.fail("a whole book where the difference to one is expected, or the reverse")
	}
	frames := b.readFrames(p)
	head := p.uint()
	if p.bad == "" && head >= uint64(frames) {
		p.fail("a head in no frame")
	}
	if p.bad == "" {
		from := b.first + uint32(len(b.frames)-frames)
		if b.head != 0 {
			b.frame(b.head).live--
		}
		b.head = from + uint32(head)
		b.frame(b.head).live++
		b.busy = flags&busyHead != 0
		b.readRows(p, v, from, frames)
	}
	for range p.count(8) {
		ref := abi.Ref(p.ref())
		if i := b.find(ref); i < 0 {
			p.fail("an actor is gone that was not there")
		} else {
			b.remove(i)
		}
	}
	if p.bad == "" && len(p.rest) > 0 {
		p.fail("bytes behind its end")
	}
	if p.bad != "" {
		return fmt.Errorf("%w: %s", ErrIndex, p.bad)
	}
	b.tidy()
	return nil
}

// readFrames reads the frames of an index.
func (b *Book) readFrames(p *parser) int {
	n, batch := p.count(5), uint64(0)
	if uint64(b.first)+uint64(len(b.frames))+uint64(n) > math.MaxUint32 {
		p.fail("it has more frames than can be")
		return 0
	}
	if batch = 0; len(b.frames) > 0 {
		if last := b.frames[len(b.frames)-1].Spots; len(last) > 0 {
			batch = last[0].Batch
		}
	}
	least := batch // frames are in the order of the log
	batch = 0
	for range n {
		bytes, parts, pieces := p.uint(), p.uint(), p.count(2)
		if p.bad == "" && (parts == 0 || parts > MostParts || pieces == 0 || bytes > math.MaxInt32) {
			p.fail("a frame without pieces or parts")
		}
		f := Frame{Parts: int(parts), Bytes: int(bytes), Spots: make([]Spot, pieces)}
		for i := range f.Spots {
			d, behind := p.uint(), p.uint()
			if d > 1<<62 || behind > 1<<62 || batch+d < least {
				p.fail("a piece before the one that was before it")
				return 0
			}
			batch += d
			least = batch
			f.Spots[i] = Spot{batch, batch + behind}
		}
		b.frames = append(b.frames, f)
	}
	if p.bad != "" {
		return 0
	}
	return n
}

// readRows reads the rows of an index of a version, whose frames are n from a number on.
func (b *Book) readRows(p *parser, v byte, from uint32, n int) {
	var sorts []uint16
	for range p.count(1) {
		s, err := b.sortNamed(string(p.text(math.MaxInt32)))
		if err != nil && p.bad == "" {
			p.fail("a sort that cannot be read")
		}
		if sorts = append(sorts, s); s > 0 {
			b.sorts[s-1].live++ // it keeps its number until all rows are read
			defer func() { b.sorts[s-1].live-- }()
		}
	}
	rows := p.count(10)
	if len(b.rows)+rows > math.MaxInt32 {
		p.fail("it has more actors than can be")
		return
	}
	fresh := len(b.rows) == 0 // then nobody is known: so many are quicker not looked for
	b.rows = slices.Grow(b.rows, rows)
	for size := len(b.refs); len(b.rows) == 0 && size < 2*(rows+1); {
		size *= 2
		if size >= 2*(rows+1) {
			b.refs = make([]uint32, size)
		}
	}
	for range rows {
		r := row{ref: abi.Ref(p.ref()), parent: -1}
		w, slot := p.uint(), p.uint()
		if p.bad == "" && (w>>1 >= uint64(n) || slot >= uint64(b.frame(from+uint32(w>>1)).Parts) || r.ref == 0) {
			p.fail("an actor without a place or a ref")
		}
		if p.bad != "" {
			return
		}
		r.frame, r.slot = from+uint32(w>>1), uint16(slot)
		i := -1
		if !fresh {
			i = b.find(r.ref)
		}
		if w&1 != 0 {
			if i < 0 {
				p.fail("the place of an actor that was not there")
				return
			}
			b.move(i, &r)
			continue
		}
		is := p.byte()
		if v == withoutSteady && is != 0 {
			is = rowBelow
		}
		if is&^(rowBelow|rowSteady) != 0 {
			p.fail("an actor with flags that none has")
		}
		if is&rowSteady != 0 {
			r.state = steady
		}
		if is&rowBelow != 0 {
			up := b.find(abi.Ref(p.ref()))
			if r.parent = int32(up); up < 0 {
				p.fail("an actor before its parent")
			}
		}
		name := p.text(abi.MaxName)
		if sort := p.uint(); sort > uint64(len(sorts)) {
			p.fail("an actor of no sort")
		} else if sort > 0 {
			r.turns = p.uint()
			life, held := p.uint(), p.uint()
			if r.life, r.held = uint32(life), uint32(held); life > math.MaxUint32 || held > math.MaxInt32 {
				p.fail("an actor with numbers out of range")
			}
			r.sort = sorts[sort-1]
		}
		if p.bad == "" && len(name) == 0 {
			p.fail("an actor without a name")
		}
		if p.bad == "" && i >= 0 && (b.rows[i].parent != r.parent || b.name(&b.rows[i]) != string(name)) {
			p.fail("an actor that was another one")
		}
		if b.names.Len() > math.MaxInt32 {
			p.fail("its names are too many")
		}
		if p.bad != "" {
			return
		}
		if i >= 0 {
			b.move(i, &r)
			own := &b.rows[i]
			b.sorted(own.sort, -1)
			own.turns, own.life, own.held, own.sort = r.turns, r.life, r.held, r.sort
			own.state = own.state&^steady | r.state
			b.sorted(own.sort, 1)
			continue
		}
		r.name, r.length = uint32(b.names.Len()), uint8(len(name))
		b.names.Write(name)
		b.frame(r.frame).live++
		b.sorted(r.sort, 1)
		if !b.add(r) {
			p.fail("two actors with one ref")
			return
		}
	}
}

// move has a row be where another one says.
func (b *Book) move(i int, to *row) {
	r := &b.rows[i]
	b.drop(r.frame)
	r.frame, r.slot = to.frame, to.slot
	b.frame(r.frame).live++
}

// drop says that a part of a frame is not needed.
func (b *Book) drop(frame uint32) {
	if f := b.frame(frame); f.live > 0 {
		f.live--
	}
}

// remove takes an actor out.
func (b *Book) remove(i int) {
	r := &b.rows[i]
	b.drop(r.frame)
	b.sorted(r.sort, -1)
	if r.parent >= 0 {
		b.rows[r.parent].below--
	}
	if r.state&away != 0 {
		b.away--
	}
	r.state, r.sort = gone, 0
	b.live--
}
