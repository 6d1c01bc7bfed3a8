package slots

import "bytes"

// Keeper holds states of memories of one image that follow on one another: a page that a state has in common with the one that
// it was kept beside is held once. It is not safe for concurrent use. The zero value is ready.
type Keeper struct {
	bytes int
	spare []*heldPage // pages that no state has any more
}

// heldPage is the contents of a page in some states.
type heldPage struct {
	data []byte
	refs int
}

// Of a Keeper.
const (
	slab     = 1 << 20 // bytes of pages that are allocated at a time
	pageNote = 16      // bytes that a state takes for each of its pages, beside the contents
)

// Bytes is what the states take together. Pages that were dropped are used again, and not counted.
func (k *Keeper) Bytes() int { return k.bytes }

// Kept is the state of a memory at one time.
type Kept struct {
	keeper *Keeper
	image  *Image
	size   uint64
	pages  []uint32    // that differ from the image, ascending
	held   []*heldPage // their contents
}

// Size is the size of the memory that it was made from, in bytes.
func (s *Kept) Size() uint64 { return s.size }

// Keep makes a state of the memory. Pages that are as in near, a state of the same keeper, are shared with that; nil: none is near. It costs
// a look at all pages that the memory has changed since its image. A memory without an image has no states.
func (m *Memory) Keep(k *Keeper, near *Kept) (*Kept, error) {
	if m.block == nil {
		return nil, ErrClosed
	}
	if m.image == nil || near != nil && (near.keeper != k || near.image != m.image) {
		return nil, ErrPatch
	}
	s := &Kept{keeper: k, image: m.image, size: m.Size()}
	var old walk
	if near != nil {
		old = walk{near, 0}
	}
	for _, i := range m.changedPages(nil) {
		now := m.view[int(i)*grain : (int(i)+1)*grain]
		p := old.at(i)
		switch {
		case p != nil && bytes.Equal(p.data, now):
		case m.image.has(int(i), now):
			continue
		default:
			p = k.hold(now)
		}
		p.refs++
		s.pages, s.held = append(s.pages, i), append(s.held, p)
	}
	k.bytes += pageNote * len(s.pages)
	return s, nil
}

// Return makes the memory, whatever was written to it since, what a state was made from. It must have that state's size.
func (m *Memory) Return(s *Kept) error {
	if m.block == nil {
		return ErrClosed
	}
	if m.image == nil || s.image != m.image || s.size != m.Size() {
		return ErrPatch
	}
	put := func(i uint32, p *heldPage) {
		if now := m.view[int(i)*grain : (int(i)+1)*grain]; !bytes.Equal(now, p.data) {
			copy(now, p.data)
		}
	}
	w := walk{s, 0}
	for _, i := range m.changedPages(nil) {
		for w.k < len(s.pages) && s.pages[w.k] < i { // not among those that have changed
			put(s.pages[w.k], s.held[w.k])
			w.k++
		}
		if p := w.at(i); p != nil {
			put(i, p)
			w.k++
			continue
		}
		restorePage(m.view[int(i)*grain:(int(i)+1)*grain], m.image, int(i))
	}
	for ; w.k < len(s.pages); w.k++ {
		put(s.pages[w.k], s.held[w.k])
	}
	return nil
}

// Drop gives back what only this state has. It must not be used any more.
func (s *Kept) Drop() {
	k := s.keeper
	for _, p := range s.held {
		if p.refs--; p.refs == 0 {
			k.bytes -= len(p.data)
			k.spare = append(k.spare, p)
		}
	}
	k.bytes -= pageNote * len(s.pages)
	s.pages, s.held = nil, nil
}

// hold takes a page with such contents.
func (k *Keeper) hold(now []byte) *heldPage {
	if len(k.spare) == 0 {
		room := make([]byte, max(slab, grain))
		pages := make([]heldPage, len(room)/grain)
		for i := range pages {
			pages[i].data = room[i*grain : (i+1)*grain : (i+1)*grain]
			k.spare = append(k.spare, &pages[i])
		}
	}
	n := len(k.spare) - 1
	p := k.spare[n]
	k.spare = k.spare[:n]
	copy(p.data, now)
	k.bytes += len(p.data)
	return p
}

// walk finds pages of a state, asked for in ascending order.
type walk struct {
	s *Kept
	k int
}

// at is what the state has of page i; nil: it is as in the image.
func (w *walk) at(i uint32) *heldPage {
	if w.s == nil {
		return nil
	}
	for w.k < len(w.s.pages) && w.s.pages[w.k] < i {
		w.k++
	}
	if w.k < len(w.s.pages) && w.s.pages[w.k] == i {
		return w.s.held[w.k]
	}
	return nil
}

// has reports whether page i of the image has these contents; beyond its end are zeros.
func (im *Image) has(i int, now []byte) bool {
	if i < len(im.index) {
		if page := im.page(i); page != nil {
			return bytes.Equal(page, now)
		}
	}
	return allZero(now)
}
