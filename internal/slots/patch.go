package slots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
)

// word is the unit of a [Patch].
const word = 8

// ErrPatch is returned for a patch that does not belong to the memory's image.
var ErrPatch = errors.New("slots: the patch is of another image")

// Span is a stretch of a memory, in bytes: from At up to, not including, End.
type Span struct{ At, End uint32 }

// Patch is the difference of a memory from its image. It is small: an actor changes some dozens
// of words. The zero value is the image itself.
//
// A chunk is a sequence of pairs: how many words are as in the image and how many
// differ, both as varints, and then the latter. Chunks follow on one another.
//
// A patch that [Memory.Drain] has made may be the difference from a usual memory of the image instead, see usual.
type Patch struct {
	image  *Image
	size   uint64 // of the memory, bytes
	chunks [][]byte
	pages  []uint32 // scratch of Memory.Patch
	usual  *usual   // what it is the difference from; nil: the image
	alone  int      // bytes of chunks, if it were the difference from the image; with a usual memory only
}

// Bytes is what the patch holds in Go's heap. Where it is the difference from a usual memory this is what it would hold
// without that, so that the figure does not depend on other memories.
func (p *Patch) Bytes() int {
	if p.usual != nil {
		return p.alone
	}
	n := 4 * cap(p.pages)
	for _, c := range p.chunks {
		n += cap(c)
	}
	return n
}

// Size is the size of the memory that it was made from, in bytes.
func (p *Patch) Size() uint64 { return p.size }

// Clone is an independent copy without spare capacity.
func (p *Patch) Clone() Patch {
	c := Patch{image: p.image, size: p.size, usual: p.usual, alone: p.alone, chunks: make([][]byte, len(p.chunks))}
	for i, chunk := range p.chunks {
		c.chunks[i] = append(make([]byte, 0, len(chunk)), chunk...)
	}
	return c
}

// Patch writes into p, whose capacity it reuses, how m differs from its image, leaving out spans.
// It costs what the memory has changed, where the system tells which pages those are (see
// restore), and a comparison of all pages elsewhere. A memory without an image has no patch.
func (m *Memory) Patch(p *Patch, aside ...Span) error {
	if m.block == nil {
		return ErrClosed
	}
	if m.image == nil {
		return ErrPatch
	}
	chunks := p.chunks[:0]
	if cap(chunks) == 0 {
		chunks = make([][]byte, 0, 1)
	}
	chunks = chunks[:1]
	d := differ{aside: aside, runs: chunks[0][:0]}
	pages := m.changedPages(p.pages[:0])
	for _, i := range pages {
		d.page(int(i), m.page(int(i)), m.image.before(int(i)))
	}
	chunks[0] = d.runs
	*p = Patch{image: m.image, size: m.Size(), chunks: chunks, pages: pages}
	return nil
}

// changedPages appends the pages that may differ from the image, in ascending order.
func (m *Memory) changedPages(dst []uint32) []uint32 {
	if m.moved { // pages that were zero have not been copied: they do not show as changed
		return everyPage(dst, m.view)
	}
	return m.space.back.changed(dst, m.view)
}

// Apply turns a memory that equals its image, and has the patch's size already, into the one that
// the patch was made from.
func (m *Memory) Apply(p *Patch) error { return m.apply(p, false) }

// ApplyOnce is Apply of a patch that is not needed any more: applied parts are released at once,
// so that they are not held twice.
func (m *Memory) ApplyOnce(p *Patch) error { return m.apply(p, true) }

func (m *Memory) apply(p *Patch, once bool) error {
	if m.block == nil {
		return ErrClosed
	}
	if p.image != m.image || p.size != m.Size() {
		return ErrPatch
	}
	if p.usual != nil {
		eachRun(p.usual.runs, 0, func(at uint64, words []byte) { copy(m.view[at:], words) })
	}
	at := uint64(0)
	for i, b := range p.chunks {
		at = eachRun(b, at, func(at uint64, words []byte) { copy(m.view[at:], words) })
		if once {
			p.chunks[i] = nil
		}
		if len(p.chunks) > 1 {
			runtime.Gosched() // as in Drain
		}
	}
	return nil
}

// eachRun calls f for the runs of a chunk, each with its address, and returns the address behind the last one. The chunk begins
// at an address.
func eachRun(b []byte, at uint64, f func(at uint64, words []byte)) uint64 {
	for len(b) > 0 {
		same, n := binary.Uvarint(b)
		other, k := binary.Uvarint(b[n:])
		b = b[n+k:]
		at += same * word
		f(at, b[:other*word])
		at += other * word
		b = b[other*word:]
	}
	return at
}

// page is the i-th page of grain bytes.
func (m *Memory) page(i int) []byte { return m.view[i*grain : (i+1)*grain] }

// before is the i-th page of grain bytes of a memory that was not written to, whatever its size.
func (im *Image) before(i int) []byte {
	if i < len(im.index) {
		if page := im.page(i); page != nil {
			return page
		}
	}
	return zeros[:grain]
}

// differ collects the words that differ, page by page.
type differ struct {
	aside []Span // is not compared
	runs  []byte
	last  uint64 // behind the last run, in words
}

// page compares the i-th page with what it was; pages come in ascending order.
func (d *differ) page(i int, now, was []byte) {
	at := uint64(i * grain)
	d.stretch(at, at+uint64(len(now)), at, now, was)
}

// stretch compares the addresses from begin up to end, of a page that is at an address.
func (d *differ) stretch(begin, end, at uint64, now, was []byte) {
	for _, s := range d.aside {
		a, b := roundUp(uint64(s.At)), uint64(s.End)&^(word-1)
		if a >= b || b <= begin || a >= end {
			continue
		}
		if begin < a {
			d.stretch(begin, a, at, now, was)
		}
		if b < end {
			d.stretch(b, end, at, now, was)
		}
		return
	}
	now, was = now[begin-at:end-at], was[begin-at:end-at]
	for from, size := 0, len(now); from < size; {
		from += equalWords(now[from:], was[from:]) * word
		if from == size {
			return
		}
		to := from + word
		// Including an equal word costs less than beginning a new run.
		for to < size && (!sameWord(now, was, to) || to+word < size && !sameWord(now, was, to+word)) {
			to += word
		}
		d.run(begin+uint64(from), now[from:to])
		from = to
	}
}

// run adds words that differ, from an address on.
func (d *differ) run(at uint64, words []byte) {
	n := uint64(len(words)) / word
	d.runs = binary.AppendUvarint(d.runs, at/word-d.last)
	d.runs = binary.AppendUvarint(d.runs, n)
	d.runs = append(d.runs, words...)
	d.last = at/word + n
}

func sameWord(a, b []byte, at int) bool {
	return binary.NativeEndian.Uint64(a[at:]) == binary.NativeEndian.Uint64(b[at:])
}

// equalWords is how many words a and b, of the same length, begin with alike.
func equalWords(a, b []byte) int {
	const stretch = 256
	n := 0
	for n+stretch <= len(a) && bytes.Equal(a[n:n+stretch], b[n:n+stretch]) {
		n += stretch
	}
	for ; n < len(a) && sameWord(a, b, n); n += word {
	}
	return n / word
}

func roundUp(n uint64) uint64 { return (n + word - 1) &^ (word - 1) }
