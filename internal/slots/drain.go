package slots

import (
	"runtime"
	"sync"
)

// drainPages is how many pages are saved before they are released: 1 MiB.
const drainPages = 256

// drainers are the buffers of Drain: a chunk is made in one and then copied, without
// spare room.
var drainers = sync.Pool{New: func() any { return new(drainer) }}

type drainer struct {
	pages []uint32
	runs  []byte
	lean  []byte // the difference from a usual memory
}

// Drain is Patch of a memory whose contents are no longer needed. Pages are returned to the
// system, if it takes them, once they have been read, so that memory and patch together hardly
// take more than the larger of the two. The memory must be Reset or freed next.
func (m *Memory) Drain(aside ...Span) (*Patch, error) {
	if m.block == nil {
		return nil, ErrClosed
	}
	if m.image == nil {
		return nil, ErrPatch
	}
	w := drainers.Get().(*drainer)
	defer drainers.Put(w)
	im := m.image
	if m.moved {
		im = nil
	}
	p := &Patch{image: m.image, size: m.Size()}
	d := differ{aside: aside}
	w.pages = m.changedPages(w.pages[:0])
	for pages := w.pages; len(pages) > 0; {
		part := pages[:min(len(pages), drainPages)]
		pages = pages[len(part):]
		d.runs = w.runs[:0]
		for _, i := range part {
			d.page(int(i), m.page(int(i)), m.image.before(int(i)))
		}
		w.runs = d.runs
		if len(pages) == 0 && len(p.chunks) == 0 && w.usual(m, p, aside) {
			break
		}
		if len(d.runs) > 0 {
			p.chunks = append(p.chunks, append(make([]byte, 0, len(d.runs)), d.runs...))
		}
		if len(pages) == 0 && len(p.chunks) <= 1 {
			break // a small one: what resets the memory does it all
		}
		if err := m.space.back.discard(m.block, im, part); err != nil {
			return nil, err
		}
		runtime.Gosched() // it is about a millisecond's work
	}
	if cap(w.pages) > 1<<16 {
		w.pages = nil // once 256 MiB, for ever half a megabyte
	}
	return p, nil
}
