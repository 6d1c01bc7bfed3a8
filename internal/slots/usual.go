package slots

import (
	"maps"
	"slices"
	"sync"
)

// Memories that have been drained differ from their image in much the same way: what the guest's runtime writes when it starts,
// the stack of a turn. A usual memory is one of them, kept once for its image. Other patches are the difference from it, which for
// a guest of standard Go is a fifth of the difference from the image.
//
// Nothing but the size of a patch in Go's heap depends on which memory it is.
type usual struct {
	aside []Span
	runs  []byte               // its own patch
	pages map[uint32]usualPage // those that the runs touch
	order []uint32             // of pages, ascending
	end   uint64               // behind the last of them, bytes
}

// usualPage is a page of the usual memory, and of the image.
type usualPage struct{ now, was []byte }

const (
	// usualBytes is how much the pages may take that a usual memory, or one that differs from it, has changed. It keeps
	// each twice: as it is, and as it was.
	usualBytes = 128 << 10
	// leastUsual is the patch, in bytes, from which on a difference from a usual memory is made.
	leastUsual = 256
	// usualMisses is after how many memories in a row that had little in common with the usual one another becomes it.
	usualMisses = 16
	// mostUsuals bounds what an image keeps, since patches hold on to the usual memory that they were made with.
	mostUsuals = 4
)

// usuals is which memory is the usual one. It is safe for concurrent use.
type usuals struct {
	mu     sync.Mutex
	now    *usual // nil: none was drained
	made   int
	misses int // in a row
}

// get is the present one; it is nil if the image has had none and must have none any more.
func (u *usuals) get(first func() *usual) *usual {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil {
		u.now, u.made = first(), 1
	}
	return u.now
}

// tell notes whether a memory had much in common with the usual one. If too many had not, other becomes it.
func (u *usuals) tell(hit bool, other func() *usual) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if hit {
		u.misses = 0
	} else if u.misses++; u.misses >= usualMisses && u.made < mostUsuals {
		u.now, u.misses = other(), 0
		u.made++
	}
}

// usual makes p the difference of m from a usual memory, if that is less than half of w.runs, its difference from the image.
func (w *drainer) usual(m *Memory, p *Patch, aside []Span) bool {
	if len(w.runs) < leastUsual || len(w.pages)*grain > usualBytes {
		return false
	}
	this := func() *usual { return newUsual(m.image, w.runs, aside) }
	u := m.image.usuals.get(this)
	hit := false
	if u.end <= p.size && slices.Equal(u.aside, aside) {
		d := differ{aside: aside, runs: w.lean[:0]}
		for _, i := range u.with(w.pages) {
			was := u.pages[i].now
			if was == nil {
				was = m.image.before(int(i))
			}
			d.page(int(i), m.page(int(i)), was)
		}
		w.lean = d.runs
		hit = len(d.runs) < len(w.runs)/2
	}
	m.image.usuals.tell(hit, this)
	if !hit {
		return false
	}
	p.usual, p.alone = u, len(w.runs)
	if len(w.lean) > 0 {
		p.chunks = [][]byte{slices.Clip(slices.Clone(w.lean))}
	}
	return true
}

// newUsual is the memory of which runs are the patch.
func newUsual(im *Image, runs []byte, aside []Span) *usual {
	u := &usual{aside: slices.Clone(aside), runs: slices.Clone(runs), pages: map[uint32]usualPage{}}
	eachRun(u.runs, 0, func(at uint64, words []byte) { // each in one page
		i := uint32(at / uint64(grain))
		page, ok := u.pages[i]
		if !ok {
			was := slices.Clone(im.before(int(i))) // the image may be closed before the last patch is forgotten
			page = usualPage{slices.Clone(was), was}
			u.pages[i] = page
			u.order = append(u.order, i)
			u.end = (uint64(i) + 1) * uint64(grain)
		}
		copy(page.now[at%uint64(grain):], words)
	})
	return u
}

// with are the pages that the usual memory or one that has changed pages may differ in, ascending.
func (u *usual) with(pages []uint32) []uint32 {
	all := append(append(make([]uint32, 0, len(u.order)+len(pages)), u.order...), pages...)
	slices.Sort(all)
	return slices.Compact(all)
}

// plain appends the runs of p, which is a difference from u, as the difference from the image: byte for byte what Patch would
// have written.
func (u *usual) plain(dst []byte, p *Patch) []byte {
	type run struct {
		at    uint64
		words []byte
	}
	pages := maps.Clone(u.pages)
	for i, page := range pages {
		pages[i] = usualPage{slices.Clone(page.now), page.was}
	}
	others := map[uint32][]run{}
	order := slices.Clone(u.order)
	for _, c := range p.chunks { // one at most
		eachRun(c, 0, func(at uint64, words []byte) {
			i := uint32(at / uint64(grain))
			if page, ok := pages[i]; ok {
				copy(page.now[at%uint64(grain):], words)
				return
			}
			if others[i] == nil {
				order = append(order, i)
			}
			others[i] = append(others[i], run{at, words})
		})
	}
	slices.Sort(order)
	d := differ{runs: dst}
	for _, i := range order {
		if page, ok := pages[i]; ok {
			d.page(int(i), page.now, page.was)
		}
		for _, r := range others[i] {
			d.run(r.at, r.words)
		}
	}
	return d.runs
}
